"""Marks of what will go, notices in docstrings, and questions about decorated functions."""

import collections
import enum
import functools
import importlib
import logging
import types

import pytest

import tapeflow as tf
from tapeflow._src.types import version


@pytest.fixture(autouse=True)
def alias(monkeypatch):
    tf.install_as_tensorflow()
    monkeypatch.setattr(version, "_strict", [False])


@pytest.fixture
def messages(caplog):
    with caplog.at_level(logging.WARNING, logger="tensorflow"):
        yield lambda: [record.getMessage() for record in caplog.records]


def inner(name):
    return importlib.import_module(f"tensorflow.python.util.{name}")


def test_function(messages):
    @inner("deprecation").deprecated("2030-01-01", "Use another.")
    def f(x):
        """Doubles.

        Args:
          x: A number.
        """
        return 2 * x

    assert (f(2), f(3), f.__name__) == (4, 6, "f")
    (message,) = messages()
    assert message.startswith(f"From {__file__}:")
    assert message.endswith(
        f".f (from {__name__}) is deprecated and will be removed after 2030-01-01.\n"
        "Instructions for updating:\nUse another."
    )
    assert f.__doc__ == (
        "Doubles. (deprecated)\n\nDeprecated: THIS FUNCTION IS DEPRECATED. It will be removed after 2030-01-01.\n"
        "Instructions for updating:\nUse another.\n\nArgs:\n  x: A number."
    )


def test_what_a_mark_needs():
    deprecation = inner("deprecation")
    with pytest.raises(ValueError, match="instructions"):
        deprecation.deprecated("2030-01-01", "")
    with pytest.raises(ValueError, match="Specify which argument"):
        deprecation.deprecated_args("2030-01-01", "Use another.")
    with pytest.raises(ValueError, match="Specify which argument"):
        deprecation.deprecated_arg_values("2030-01-01", "Use another.")
    with pytest.raises(ValueError, match="YYYY-MM-DD"):
        deprecation.deprecated("01-01-2030", "Use another.")
    with pytest.raises(ValueError, match="not present in the function signature"):
        deprecation.deprecated_args(None, "Use another.", "gone")(lambda x: x)
    with pytest.raises(ValueError, match="is not a function"):
        deprecation.deprecated(None, "Use another.")(3)


def test_classes_warn_when_objects_are_made(messages):
    class Thing:
        def __init__(self, x):
            self.x = x

    class Kind(enum.Enum):
        a = 1

    class Text(str):
        pass

    mark = inner("deprecation").deprecated(None, "No more.")
    pair = mark(collections.namedtuple("pair", "x y"))
    assert mark(Thing) is Thing and Thing(1).x == 1
    assert mark(Kind)(1) is Kind.a and mark(Text)("t") == "t" and pair(1, 2) == (1, 2)
    assert len(messages()) == 4 and all("in a future version" in message for message in messages())
    assert all("IS DEPRECATED" in kind.__doc__ for kind in (Thing, Kind, Text, pair))


def test_alias(messages):
    class Thing:
        def __init__(self, x):
            self.x = x

    older = inner("deprecation").deprecated_alias("lib.Older", "lib.Thing", Thing)
    assert older(3).x == 3 and issubclass(older, Thing) and Thing(3).x == 3
    (message,) = messages()
    assert message.endswith("The name lib.Older is deprecated. Please use lib.Thing instead.\n")
    assert inner("tf_inspect").getfullargspec(older.__init__).args == ["self", "x"]


def test_arguments(messages):
    deprecation = inner("deprecation")

    @deprecation.deprecated_args(None, "Leave it out.", "old", ("kept", None))
    def f(x, old=1, kept=None):
        return x + old

    assert f(1) == 2 and f(1, kept=None) == 2 and messages() == []
    assert f(1, 2) == 3 and f(1, kept=5) == 2
    assert ["with old" in messages()[0], "with kept" in messages()[1]] == [True, True]
    with pytest.raises(TypeError, match="missing 1 required positional argument"):
        f()
    assert f.__doc__.startswith(
        "DEPRECATED FUNCTION ARGUMENTS\n\nDeprecated: SOME ARGUMENTS ARE DEPRECATED: `(kept, old)`."
    )


def test_values_of_arguments(messages):
    deprecation = inner("deprecation")

    @deprecation.deprecated_arg_values(None, "Not None.", warn_once=False, mode=None)
    def g(mode=None):
        return mode

    g("b")
    with deprecation.silence():
        g(None)
    assert messages() == []
    g(None)
    g()
    assert len(messages()) == 2 and "with mode=None" in messages()[0]


def test_a_replaced_logger_is_called(monkeypatch):
    module = importlib.import_module("tensorflow.python.platform.tf_logging")
    calls = []
    monkeypatch.setattr(module, "warning", lambda *args: calls.append(args))
    inner("deprecation").deprecated("2030-01-01", "Use another.")(lambda: None)()
    assert "deprecated and will be removed" in calls[0][0] and calls[0][-2:] == ("after 2030-01-01", "Use another.")


def test_strict_mode_makes_errors():
    f = inner("deprecation").deprecated(None, "Use another.")(lambda: 1)
    tf.experimental.enable_strict_mode()
    with pytest.raises(RuntimeError, match="strict mode"):
        f()


def test_renamed_argument_and_endpoints():
    deprecation = inner("deprecation")
    look = deprecation.deprecated_argument_lookup
    assert (look("new", 1, "old", None), look("new", None, "old", 2)) == (1, 2)
    with pytest.raises(ValueError, match="Cannot specify both 'old' and 'new'"):
        look("new", 1, "old", 2)
    assert deprecation.rewrite_argument_docstring("Of `a`.\n  a: One.", "a", "b") == "Of `b`.\n  b: One."
    noted = deprecation.deprecated_endpoints("x.f", "f")(lambda: None)
    assert noted._tf_deprecated_api_names == ("x.f", "f")
    with pytest.raises(deprecation.DeprecatedNamesAlreadySetError):
        deprecation.deprecated_endpoints("g")(noted)


def test_moved_module(messages):
    module = types.ModuleType("new_place")
    module.a = 1
    look = inner("deprecation").deprecate_moved_module("old_place", module, "3.0")
    assert look("a") == look("a") == 1
    assert len(messages()) == 1 and "old_place has been moved to new_place" in messages()[0]


def test_notices():
    notice = inner("decorator_utils").add_notice_to_docstring
    assert notice("One\nTwo", "How.", "", "(x)", ["Mind."], "Note") == "One (x)\n\nNote: Mind.\nHow.\n\nTwo"
    assert notice("  One\n  ", None, "", "(x)", ["Mind."]) == "One (x)\n\nWarning: Mind."
    assert notice("", "How.", "None", "(x)", ["Mind."]) == "None\n\nWarning: Mind.\nHow."
    with pytest.raises(ValueError, match="notice"):
        notice("One", "How.", "", "", [])


def test_cached_properties_of_classes():
    seen = []

    class Base:
        @inner("decorator_utils").cached_classproperty
        def name(cls):  # noqa: N805
            seen.append(cls)
            return cls.__name__

    class Below(Base):
        pass

    assert [Base.name, Base().name, Below.name, Below.name] == ["Base", "Base", "Below", "Below"]
    assert seen == [Base, Below]
    with pytest.raises(AttributeError):
        Base().name = 1


def test_inspection_looks_through_decorators():
    tf_decorator, tf_inspect = inner("tf_decorator"), inner("tf_inspect")

    def f(a, b=2, *, c=3):
        return a + b + c

    class Kind:
        def method(self):
            pass

    decorated = tf_decorator.TFDecorator("one", tf_decorator.TFDecorator("two", f))
    assert tf_inspect.getargspec(decorated) == (["a", "b", "c"], None, None, (2, 3))
    assert tf_inspect.getfullargspec(decorated).kwonlyargs == ["c"]
    assert tf_inspect.isfunction(decorated) and tf_inspect.getfile(decorated) == __file__
    assert tf_inspect.isclass(tf_decorator.TFDecorator("one", Kind))
    other = tf_inspect.FullArgSpec(["z"], None, None, None, [], None, {})
    assert tf_inspect.getargspec(tf_decorator.TFDecorator("one", f, "", other)) is other
    assert tf_inspect.getfullargspec(functools.partial(decorated, 1)).args == ["b"]
    with pytest.raises(ValueError, match="keyword-only arguments"):
        tf_inspect.getargspec(functools.partial(lambda m, n: m, m=0))
    assert tf_inspect.isanytargetmethod(tf_decorator.TFDecorator("one", functools.partial(Kind().method)))
    assert not tf_inspect.isanytargetmethod(decorated)


def test_rewrap_changes_the_target():
    tf_decorator = inner("tf_decorator")

    def doubled(target):
        def call(x):
            return 2 * call.__wrapped__(x)

        return tf_decorator.make_decorator(target, call)

    def f(x):
        return x

    once = doubled(f)
    twice = doubled(once)
    tf_decorator.rewrap(twice, f, lambda x: x + 1)
    assert twice(1) == 8
    tf_decorator.rewrap(twice, once, lambda x: x)
    assert twice(1) == 2


def test_context_managers_are_decorated():
    @inner("tf_contextlib").contextmanager
    def around(a, b=2):
        yield a + b

    (decorator,), _ = inner("tf_decorator").unwrap(around)
    assert decorator.decorator_name == "contextmanager"
    assert inner("tf_inspect").getargspec(around).args == ["a", "b"]
    with around(1) as value:
        assert value == 3


def test_sets_by_identity():
    identity = inner("object_identity")
    a, b = [1], [1]
    assert list(identity.ObjectIdentitySet([a, b]).difference([b])) == [a]
    assert (
        identity._ObjectIdentityWrapper(a) == identity._ObjectIdentityWrapper(a) != identity._ObjectIdentityWrapper(b)
    )
