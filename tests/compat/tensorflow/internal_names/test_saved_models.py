"""What Keras 2 asks of saved models: functions made for the file, and objects that stand for saved ones."""

import inspect

import pytest

import tapeflow as tf
from tapeflow._src.compat.tensorflow.internal_names.saved_models import save_and_return_nodes
from tapeflow._src.types import spec_names

load_partial = tf.__internal__.saved_model.load_partial
parse_saved_model = tf.__internal__.saved_model.parse_saved_model


class Layer(tf.Module):
    """Makes a function of its method when it is saved, as Keras's layers do."""

    _object_identifier = "_my_layer"

    def __init__(self, value):
        super().__init__()
        self.kernel = tf.Variable(value)
        self.parts = tf.__internal__.tracking.wrap([])

    def call(self, x):
        return x * self.kernel

    def _trackable_children(self, save_type="checkpoint", **kwargs):
        children = super()._trackable_children(save_type, **kwargs)
        if save_type == "savedmodel":
            cache = kwargs["cache"]
            if self not in cache:
                cache[self] = tf.function(self.call, input_signature=[tf.TensorSpec([None])])
            children["call_fn"] = cache[self]
        return children


def test_objects_add_functions_for_the_file(tmp_path):
    layer = Layer(3.0)
    nodes, paths = save_and_return_nodes(layer, tmp_path)
    assert nodes[0] is layer
    assert paths[layer] == ()
    assert [reference.name for reference in paths[layer.kernel]] == ["kernel"]
    saved = parse_saved_model(tmp_path).meta_graphs[0].object_graph_def.nodes
    assert saved[0].user_object.identifier == "_my_layer"
    assert {child.local_name for child in saved[0].children} >= {"kernel", "parts", "call_fn"}
    loaded = tf.saved_model.load(tmp_path)
    assert loaded.call_fn(tf.constant([2.0])).numpy() == [6.0]
    assert loaded.parts == []


def test_inner_objects_add_functions_for_the_file(tmp_path):
    model = tf.Module()
    model.layer = Layer(3.0)
    tf.saved_model.save(model, tmp_path)
    assert tf.saved_model.load(tmp_path).layer.call_fn(tf.constant([2.0])).numpy() == [6.0]


def test_a_generator_stands_for_a_saved_one(tmp_path):
    model = tf.Module()
    model.generator = tf.random.Generator.from_seed(3)
    tf.saved_model.save(model, tmp_path)
    expected, fresh = model.generator.normal([2]), tf.random.Generator.from_seed(5)
    load_partial(str(tmp_path), {"root.generator": (fresh, setattr)})
    assert fresh.normal([2]).numpy().tolist() == expected.numpy().tolist()


def test_given_objects_stand_for_saved_ones(tmp_path):
    tf.saved_model.save(Layer(3.0), tmp_path)
    layer, attributes = Layer(0.0), {}
    own = layer.kernel

    def setter(thing, name, value):
        assert thing is layer
        attributes[name] = value

    found = load_partial(tmp_path, {"root": (layer, setter), "root.kernel": (layer.kernel, setattr)})
    assert found["root"] is layer
    assert found["root.kernel"] is own
    assert own.numpy() == 3.0
    assert attributes["kernel"] is own
    own.assign(5.0)
    assert attributes["call_fn"](tf.constant([2.0])).numpy() == [10.0]


def test_lists_are_filled_before_objects_get_them(tmp_path):
    layer = Layer(1.0)
    layer.parts.append(tf.Variable(2.0))
    tf.saved_model.save(layer, tmp_path)
    lengths = {}
    load_partial(tmp_path, {"root": (Layer(0.0), lambda thing, name, value: lengths.update({name: value}))})
    assert [part.numpy() for part in lengths["parts"]] == [2.0]


def test_paths_that_lead_nowhere(tmp_path):
    tf.saved_model.save(Layer(3.0), tmp_path)
    with pytest.raises(ValueError, match=r"no object 'root\.bias'"):
        load_partial(tmp_path, ["root.bias"])
    with pytest.raises(ValueError, match="root"):
        load_partial(tmp_path, ["kernel"])


class Optimizer(tf.Module):
    pass


def test_registered_types_are_made_again(tmp_path):
    registration = tf.__internal__.saved_model.load.VersionedTypeRegistration(
        object_factory=lambda proto: Optimizer(), version=2, min_producer_version=1, min_consumer_version=1
    )
    tf.__internal__.saved_model.load.register_revived_type(
        "test_saved_models_optimizer", lambda thing: isinstance(thing, Optimizer), [registration]
    )
    root = tf.Module()
    root.optimizer = Optimizer()
    root.optimizer.step = tf.Variable(4)
    tf.saved_model.save(root, tmp_path)
    loaded = tf.saved_model.load(tmp_path)
    assert type(loaded.optimizer) is Optimizer
    assert loaded.optimizer.step.numpy() == 4


def test_decorators_keep_or_give_a_signature():
    class Owner:
        def call(self, x, training=False):
            return x

    owner = Owner()
    spec = inspect.FullArgSpec(["self", "x", "flag"], None, "rest", (1,), ["key"], {"key": 2}, {})
    first = tf.__internal__.decorator.make_decorator(owner.call, lambda *a, **k: a, decorator_argspec=spec)
    assert str(inspect.signature(first)) == "(self, x, flag=1, *, key=2, **rest)"
    second = tf.__internal__.decorator.make_decorator(first, lambda *a, **k: a)
    assert str(inspect.signature(second)) == "(x, flag=1, *, key=2, **rest)"
    assert second.__self__ is owner
    assert tf.function(second).function_spec.arg_names == ["x", "flag"]


def test_specs_that_a_library_registered_are_written_by_name():
    @spec_names.register("test_project.PairSpec")
    class PairSpec(tf.TypeSpec):
        def __init__(self, size):
            self.size = size

        value_type = property(lambda self: tuple)
        _component_specs = property(lambda self: [tf.TensorSpec([self.size])] * 2)

        def _serialize(self):
            return (self.size,)

        def _to_components(self, value):
            return list(value)

        def _from_components(self, components):
            return tuple(components)

    assert PairSpec(3)._TypeSpec__make_cmp_key([{"a": 1}]) == PairSpec(4)._TypeSpec__make_cmp_key([{"a": 1}])
    assert PairSpec(3)._TypeSpec__is_compatible((tf.TensorSpec([None]),), (tf.TensorSpec([2]),))
    coder = tf.__internal__.saved_model
    message = coder.encode_structure({"x": PairSpec(3)})
    assert message.dict_value.fields["x"].type_spec_value.type_spec_class_name == "test_project.PairSpec"
    assert coder.decode_proto(message) == {"x": PairSpec(3)}
    message.dict_value.fields["x"].type_spec_value.type_spec_class_name = "test_project.Other"
    with pytest.raises(ValueError, match="No TypeSpec has been registered"):
        coder.decode_proto(message)


def test_a_table_that_was_given_empty_is_filled(tmp_path):
    class Nothing(tf.lookup.KeyValueTensorInitializer):
        def __init__(self):
            self._key_dtype, self._value_dtype = tf.string, tf.int64

        key_dtype = property(lambda self: self._key_dtype)
        value_dtype = property(lambda self: self._value_dtype)

        def initialize(self, table):
            pass

    module = tf.Module()
    module.table = tf.lookup.StaticHashTable(
        tf.lookup.KeyValueTensorInitializer(["a", "b"], tf.constant([3, 4], tf.int64)), -1
    )
    tf.saved_model.save(module, tmp_path)
    empty = tf.lookup.StaticHashTable(Nothing(), -1)
    load_partial(tmp_path, {"root.table": (empty, setattr)})
    assert empty.lookup(tf.constant(["b", "c"])).numpy().tolist() == [4, -1]
