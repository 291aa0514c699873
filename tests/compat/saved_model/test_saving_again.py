"""Models that are loaded, saved again and loaded: lists with gaps, traces for values, variables as arguments."""

import pytest

import tapeflow as tf
from tapeflow._src.compat.saved_model import saved_model


def cycle(model, folder, times=2, **kwargs):
    for number in range(times):
        tf.saved_model.save(model, str(folder / str(number)), **kwargs)
        model = tf.saved_model.load(str(folder / str(number)))
    return model


def holding(**attributes):
    model = tf.Module()
    for name, value in attributes.items():
        setattr(model, name, value)
    return model


@pytest.mark.parametrize("kind", [list, tuple])
def test_what_is_no_object_leaves_a_gap_in_a_list(kind, tmp_path):
    loaded = cycle(holding(parts=kind([tf.Variable(1.0), 1, tf.Variable(3.0)])), tmp_path)
    first, second, third = loaded.parts
    assert float(first) == 1.0 and second is None and float(third) == 3.0


def test_a_tensor_is_no_value_of_python(tmp_path):
    @tf.function(autograph=False)
    def f(a):
        return a if isinstance(a, int) else a + 1

    f(2)
    f(tf.constant(2))
    loaded = cycle(holding(f=f), tmp_path)
    assert [int(loaded.f(x)) for x in (2, 3, tf.constant(2), tf.constant(3))] == [2, 4, 3, 4]


def test_a_function_that_was_called_with_a_variable_of_nobody(tmp_path):
    v = tf.Variable(3.0)
    square = tf.function(lambda x: x * x)
    square(v)
    loaded = cycle(holding(f=square), tmp_path)
    assert float(loaded.f(v)) == 9.0 and float(loaded.f(tf.constant(2.0))) == 4.0


def test_tensors_of_a_signature_are_given_by_name(tmp_path):
    spec = tf.TensorSpec(None, tf.float32)
    two = tf.function(lambda x, y: x - y)
    loaded = cycle(holding(f=two), tmp_path, 1, signatures=two.get_concrete_function(spec, spec))
    signature, one, half = loaded.signatures["serving_default"], tf.constant(1.0), tf.constant(0.5)
    assert float(signature(y=half, x=one)["output_0"]) == 0.5
    for args, kwargs in (((one, half), {}), ((one,), {"y": half})):
        with pytest.raises(TypeError, match="positional"):
            signature(*args, **kwargs)
    single = tf.function(lambda x: -x)
    (tmp_path / "one").mkdir()
    loaded = cycle(holding(f=single), tmp_path / "one", 1, signatures=single.get_concrete_function(spec))
    assert float(loaded.signatures["serving_default"](one)["output_0"]) == -1.0


def test_concrete_functions_keep_the_names_of_their_parameters(tmp_path):
    concrete = tf.function(lambda x, y=2: x + y).get_concrete_function(tf.TensorSpec([], tf.int32))
    loaded = cycle(holding(f=concrete), tmp_path)
    assert list(loaded.f.function_type.parameters) == ["x", "y"] and int(loaded.f(x=tf.constant(3))) == 5


def test_signatures_of_a_loaded_model_are_not_replaced(tmp_path):
    f = tf.function(lambda: tf.constant(1.0))
    loaded = cycle(holding(f=f), tmp_path, 1, signatures={"key": f.get_concrete_function()})
    loaded.signatures = {"other": loaded.signatures["key"]}
    with pytest.raises(ValueError, match='an attribute named "signatures"'):
        tf.saved_model.save(loaded, str(tmp_path / "again"))


def test_variables_of_open_shape_are_loaded_with_it(tmp_path):
    class Maker(tf.Module):
        v = None

        @tf.function(input_signature=[tf.TensorSpec([None], tf.int64)])
        def make(self, x):
            if self.v is None:
                self.v = tf.Variable(x)

    maker = Maker()
    maker.make([1, 2, 3])
    assert maker.v.shape.as_list() == [None] and maker.v.numpy().tolist() == [1, 2, 3]
    maker.v.assign([1, 2, 3, 4])
    loaded = cycle(maker, tmp_path)
    loaded.v.assign([5])
    assert loaded.v.shape.as_list() == [None] and loaded.v.numpy().tolist() == [5]


def test_a_function_keeps_its_input_signature(tmp_path):
    module = tf.Module()
    module.f = tf.function(lambda x: 2.0 * x, input_signature=[tf.TensorSpec([None, 3], name="x")])
    module.g = tf.function(lambda x: 3.0 * x)
    module.g(tf.constant(1.0))
    tf.saved_model.save(module, tmp_path / "first")
    loaded = tf.saved_model.load(tmp_path / "first")
    tf.saved_model.save(loaded, tmp_path / "second")
    for model in (loaded, tf.saved_model.load(tmp_path / "second")):
        assert [spec.shape.as_list() for spec in model.f.input_signature] == [[None, 3]]
        assert model.g.input_signature is None
        with pytest.raises(TypeError, match="Binding inputs"):
            model.f(tf.ones([2, 7]))
        with pytest.raises(ValueError, match="Could not find matching concrete function"):
            model.g(tf.ones([2]))
        assert list(model.signatures) == ["serving_default"]
        assert model.f._list_all_concrete_functions() == model.f.concrete_functions


def test_a_model_that_is_written_anew_while_it_is_read(tmp_path, monkeypatch):
    """What is read is one of the two, whole: the graph and the values are in several files."""

    def write(names):
        tf.saved_model.save(holding(**{name: tf.Variable(value) for name, value in names.items()}), str(tmp_path))

    def replaced_after_the_graph(folder, tags):
        monkeypatch.undo()
        found = saved_model.read_meta_graph(folder, tags)
        write({"b": [3.0], "c": [4.0]})
        return found

    write({"a": [1.0], "b": [2.0]})
    monkeypatch.setattr(saved_model, "read_meta_graph", replaced_after_the_graph)
    loaded = tf.saved_model.load(str(tmp_path))
    assert [loaded.b.numpy(), loaded.c.numpy()] == [[3.0], [4.0]] and not hasattr(loaded, "a")


def test_counts_of_sparse_and_ragged_rows(tmp_path):
    @tf.function(input_signature=[tf.TensorSpec([None, None], tf.int32)])
    def count(x):
        sparse, ragged = tf.sparse.from_dense(x), tf.RaggedTensor.from_tensor(x, padding=0)
        return tf.math.bincount(sparse, axis=-1), tf.math.bincount(ragged, axis=-1, binary_output=True)

    x = tf.constant([[1, 3, 3], [2, 0, 0]])
    loaded = cycle(holding(f=count), tmp_path, 3)
    for found, expected in zip(loaded.f(x), count(x)):
        assert found.numpy().tolist() == expected.numpy().tolist()


def test_lists_of_bools_whose_size_is_unknown(tmp_path):
    @tf.function(input_signature=[tf.TensorSpec([], tf.int32)])
    def even(n):
        array = tf.TensorArray(tf.bool, size=0, dynamic_size=True)
        for i in tf.range(n):
            array = array.write(i, i % 2 == 0)
        return array.stack()

    assert cycle(holding(f=even), tmp_path).f(tf.constant(3)).numpy().tolist() == [True, False, True]
