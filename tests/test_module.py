"""`tf.Module` finds variables in TensorFlow's order, and `tf.name_scope` names them."""

import collections
import threading

import pytest

import tapeflow as tf
from tapeflow._src.module import current_name_scope


class Dense(tf.Module):
    def __init__(self, name=None):
        super().__init__(name=name)
        self.w = tf.Variable([[0.0]], name="w")
        self.b = tf.Variable([0.0], name="b", trainable=False)


class Network(tf.Module):
    def __init__(self, name=None):
        super().__init__(name)
        self.zlast = tf.Variable(1.0, name="zlast")
        with self.name_scope:
            self.layers = [Dense(), Dense()]
            self.d = {
                "b": Dense(name="bb"),
                "a": (tf.Variable(2.0, name="in_a"), {"k": tf.Variable(3.0, name="in_k")}),
            }
        self.aa = tf.Variable(4.0)


def names(variables):
    return [variable.name for variable in variables]


def is_variable(value):
    return isinstance(value, tf.Variable)


def test_order_of_variables():
    module = Network()
    assert names(module.variables) == [
        "Variable:0", "network/in_a:0", "network/in_k:0", "zlast:0",
        "network/b:0", "network/w:0", "network/b:0", "network/w:0", "network/b:0", "network/w:0"]  # fmt: skip
    assert names(module.trainable_variables) == [
        "Variable:0", "network/in_a:0", "network/in_k:0", "zlast:0",
        "network/w:0", "network/w:0", "network/w:0"]  # fmt: skip
    assert names(module.non_trainable_variables) == ["network/b:0"] * 3
    assert [submodule.name for submodule in module.submodules] == ["bb", "dense", "dense"]
    assert all(type(found) is tuple for found in (module.variables, module.trainable_variables, module.submodules))


def test_paths():
    module = Network()
    paths = [path for path, _ in module._flatten(with_path=True, predicate=is_variable)]
    assert paths == [
        ("aa",), ("d", "a", 0), ("d", "a", 1, "k"), ("zlast",), ("d", "b", "b"), ("d", "b", "w"),
        ("layers", 0, "b"), ("layers", 0, "w"), ("layers", 1, "b"), ("layers", 1, "w")]  # fmt: skip
    assert [path for path, _ in module._flatten(recursive=False, with_path=True, predicate=is_variable)] == paths[:4]
    reverse = module._flatten(
        recursive=False, with_path=True, predicate=is_variable, attribute_traversal_key=lambda name: -ord(name[0])
    )
    assert [path[0] for path, _ in reverse] == ["zlast", "d", "d", "aa"]


class Tree(tf.Module):
    """All kinds of containers, and itself below itself."""

    def __init__(self):
        super().__init__()
        self.ordered = collections.OrderedDict([("z", tf.Variable(1.0, name="z")), ("a", tf.Variable(1.0, name="a"))])
        self.me = self
        self.both = [self, [tf.Variable(2.0, name="deep")]]
        self.point = collections.namedtuple("Point", "x y")(tf.Variable(1.0, name="x"), tf.Variable(1.0, name="y"))
        self.queue = collections.deque([tf.Variable(1.0, name="queued")])
        self.by_number = {10: tf.Variable(1.0, name="ten"), 9: tf.Variable(1.0, name="nine")}


def test_containers_and_cycles():
    tree = Tree()
    found = ["deep:0", "nine:0", "ten:0", "a:0", "z:0", "x:0", "y:0", "queued:0"]
    assert names(tree.variables) == found
    assert tree.submodules == ()
    paths = [path for path, _ in tree._flatten(with_path=True, predicate=is_variable)]
    assert len(paths) == 3 * len(found)
    assert paths[:2] == [("both", 1, 0), ("by_number", 9)]
    assert ("me", "both", 1, 0) in paths
    assert ("both", 0, "both", 1, 0) in paths


def test_shared_variables_come_once():
    module = tf.Module(name="m")
    shared = tf.Variable(1.0, name="shared")
    layer = Dense()
    module.a, module.b, module.c, module.d = shared, shared, [shared, layer], layer
    assert names(module.variables) == ["shared:0", "b:0", "w:0"]
    assert [path for path, _ in module._flatten(with_path=True, predicate=is_variable)] == [
        ("a",), ("b",), ("c", 0), ("c", 1, "b"), ("c", 1, "w"), ("d", "b"), ("d", "w")]  # fmt: skip


def test_ignored_attributes_and_properties():
    class Ignoring(tf.Module):
        _TF_MODULE_IGNORED_PROPERTIES = frozenset(["hidden"]) | tf.Module._TF_MODULE_IGNORED_PROPERTIES

        def __init__(self):
            super().__init__()
            self.hidden = tf.Variable(1.0, name="hidden")
            self.shown = tf.Variable(1.0, name="shown")

        @property
        def computed(self):
            raise AssertionError("properties are not visited")

    assert names(Ignoring().variables) == ["shown:0"]


def test_attribute_that_cannot_be_visited():
    module = tf.Module()
    module.bad = {1: 2, "a": 3}
    with pytest.raises(ValueError, match="Error processing property 'bad' of"):
        _ = module.variables


def test_names():
    for class_name, name in (
        ("CamelCaseXYZ2Net", "camel_case_xyz2_net"),
        ("MLP", "mlp"),
        ("_Private", "__private"),
        ("A", "a"),
        ("ResNet50V2", "res_net50_v2"),
    ):
        assert type(class_name, (tf.Module,), {})().name == name
    assert tf.Module(name="_x").name == "_x"
    with pytest.raises(AttributeError):
        tf.Module().name = "y"


@pytest.mark.parametrize("name", ["a b", "1a", "", "a/b", "ä"])
def test_wrong_names(name):
    with pytest.raises(ValueError, match=f"'{name}' is not a valid module name. Module names must be valid"):
        tf.Module(name=name)


def test_module_without_init():
    class Forgetful(tf.Module):
        def __init__(self):
            pass

    assert Forgetful().variables == ()
    with pytest.raises(AttributeError, match="'Forgetful' object has no attribute '_name'"):
        _ = Forgetful().name


def test_scope_of_a_module():
    class Scoped(tf.Module):
        @tf.Module.with_name_scope
        def make(self, name, inner=None):
            """Makes a variable."""
            if inner is None:
                return tf.Variable(1.0, name=name).name
            with tf.name_scope(inner):
                return tf.Variable(1.0, name=name).name

    assert Scoped().make("q") == "scoped/q:0"
    assert Scoped(name="k").make("q", inner="i") == "k/i/q:0"
    assert (Scoped.make.__name__, Scoped.make.__doc__) == ("make", "Makes a variable.")
    with tf.name_scope("outer"):
        module = Scoped()
    assert module.name_scope.name == "outer/scoped/"
    assert module.make("q") == "outer/scoped/q:0"


@pytest.mark.parametrize(
    ("path", "scope", "current"),
    [
        (["a", "b"], "a/b/", "a/b"),
        (["a/", "b"], "a/b/", "a/b"),
        (["a", "b/"], "b/", "b"),
        (["a", ""], "", ""),
        (["a", "", "c"], "c/", "c"),
        (["a", "a"], "a/a/", "a/a"),
        (["a/b/c"], "a/b/c/", "a/b/c"),
        (["a b"], "a b/", "a b"),
    ],
)
def test_name_scopes(path, scope, current):
    scopes = [tf.name_scope(name) for name in path]
    for each in scopes:
        inner = each.__enter__()
    assert inner == scope
    assert tf.get_current_name_scope() == current_name_scope() == current
    assert tf.Variable(1.0, name="v").name == f"{scope}v:0"
    for each in reversed(scopes):
        each.__exit__(None, None, None)
    assert tf.get_current_name_scope() == ""


def test_name_scope_again():
    scope = tf.name_scope("re")
    with scope as first:
        pass
    with tf.name_scope("out"), scope as second, scope as third:
        assert tf.get_current_name_scope() == "out/re/re"
    assert (first, second, third, scope.name) == ("re/", "out/re/", "out/re/re/", "re")
    assert tf.get_current_name_scope() == ""


def test_name_scope_after_an_error():
    with pytest.raises(KeyError), tf.name_scope("a"):
        raise KeyError
    assert tf.get_current_name_scope() == ""


def test_name_scope_refuses():
    for wrong in (None, 5):
        with pytest.raises(ValueError, match=r"name for name_scope must be a string."):
            tf.name_scope(wrong)


def test_threads_have_their_own_scopes():
    seen = []
    with tf.name_scope("a"):
        thread = threading.Thread(target=lambda: seen.append(tf.get_current_name_scope()))
        thread.start()
        thread.join()
    assert seen == [""]


def test_values_that_are_not_saved():
    class Model(tf.Module):
        def __init__(self):
            super().__init__()
            self.kept = tf.Variable(1.0)
            self.aside = self._no_dependency({"v": tf.Variable(2.0)})

    model = Model()
    assert isinstance(model.aside, dict) and len(model.trainable_variables) == 2
    assert "kept" in model._trackable_children() and "aside" not in model._trackable_children()
    model.aside = [tf.Variable(3.0)]
    assert "aside" in model._trackable_children()


def test_values_that_auto_trackables_do_not_save():
    thing = tf.__internal__.tracking.AutoTrackable()
    thing.first, thing.second = tf.Variable(1.0), thing._no_dependency(tf.Variable(2.0))
    assert float(thing.second) == 2.0 and list(thing._trackable_children()) == ["first"]
