"""Variables: in-place updates, aliasing, sparse updates, copies."""

import copy
import gc
import pickle

import numpy as np
import pytest

import tapeflow as tf
from tapeflow._src import _core


def address(variable):
    return np.asarray(variable.read_value()).__array_interface__["data"][0]


def test_updates_happen_in_place_when_nobody_else_holds_the_value():
    v = tf.Variable(tf.ones([1000]))
    v.assign_sub(tf.ones([1000]))  # the first write separates the variable from its initial value
    before = address(v)
    for _ in range(5):
        v.assign_add(tf.ones([1000]))
    assert address(v) == before
    np.testing.assert_array_equal(v, np.full(1000, 5.0))


def test_a_tensor_read_before_an_assignment_keeps_its_value():
    v = tf.Variable([1.0, 2.0, 3.0, 4.0, 5.0])
    old, view, array = v.read_value(), v[1:3], v.numpy()
    v.assign_add(np.ones(5, np.float32))
    v.assign([9.0] * 5)
    np.testing.assert_array_equal(old, [1, 2, 3, 4, 5])
    np.testing.assert_array_equal(view, [2, 3])
    np.testing.assert_array_equal(array, [1, 2, 3, 4, 5])


def test_assigning_a_tensor_does_not_tie_it_to_the_variable():
    t = tf.ones([100])
    v = tf.Variable(tf.zeros([100]))
    v.assign(t)
    v.assign_add(t)
    np.testing.assert_array_equal(t, np.ones(100))
    np.testing.assert_array_equal(v, np.full(100, 2.0))


def test_writing_to_a_numpy_copy_does_not_change_the_variable():
    v = tf.Variable(np.zeros(100, np.float32))
    v.numpy()[:] = 7.0
    np.testing.assert_array_equal(v, np.zeros(100))


def test_self_assignment():
    v = tf.Variable(np.arange(10.0))
    v.assign(v)
    v.assign_add(v)
    np.testing.assert_array_equal(v, 2 * np.arange(10.0))


@pytest.mark.parametrize("call", ["assign", "assign_add", "assign_sub"])
def test_a_failing_update_changes_nothing(call):
    v = tf.Variable([1.0, 2.0])
    with pytest.raises((ValueError, tf.errors.InvalidArgumentError)):
        getattr(v, call)([1.0, 2.0, 3.0])
    with pytest.raises(ValueError):
        getattr(v, call)(tf.constant([1, 2]))
    np.testing.assert_array_equal(v, [1.0, 2.0])


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64", "int32", "int64", "uint8", "complex64"])
def test_arithmetic_updates_in_every_dtype(dtype):
    v = tf.Variable(tf.cast([1, 2, 3], dtype))
    v.assign_add(tf.cast([4, 5, 6], dtype))
    v.assign_sub(tf.cast([1, 1, 1], dtype))
    np.testing.assert_array_equal(tf.cast(v, "float32") if dtype == "bfloat16" else v, [4, 6, 8])


def test_read_value_false_gives_none():
    v = tf.Variable(1.0)
    assert v.assign(2.0, read_value=False) is None
    assert float(v) == 2.0


def test_batch_scatter_update():
    v = tf.Variable(np.zeros((2, 3), np.float32))
    v.batch_scatter_update(tf.IndexedSlices(tf.constant([[1.0], [2.0]]), tf.constant([[0], [2]])))
    np.testing.assert_array_equal(v, [[1, 0, 0], [0, 0, 2]])


@pytest.mark.parametrize("indices", [[[0, 1], [2, 0]], tf.constant([[0, 1], [2, 0]], tf.int64)], ids=["list", "tensor"])
def test_batch_scatter_update_in_a_function(indices):
    v = tf.Variable(tf.zeros([2, 3, 1]))

    @tf.function
    def update(values):
        return v.batch_scatter_update(tf.IndexedSlices(values, indices))

    found = update(tf.reshape(tf.range(1.0, 5.0), [2, 2, 1]))
    np.testing.assert_array_equal(found, [[[1], [2], [0]], [[4], [0], [3]]])
    np.testing.assert_array_equal(v, found)


def test_scatter_out_of_range_changes_nothing():
    v = tf.Variable([1.0, 2.0])
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"indices\[1\] = 5 is not in \[0, 2\)"):
        v.scatter_add(tf.IndexedSlices(tf.constant([1.0, 1.0]), tf.constant([0, 5])))
    np.testing.assert_array_equal(v, [1.0, 2.0])


def test_repeated_rows_add_up():
    v = tf.Variable([0.0, 0.0])
    v.scatter_add(tf.IndexedSlices(tf.constant([1.0, 2.0, 4.0]), tf.constant([0, 0, 1])))
    np.testing.assert_array_equal(v, [3.0, 4.0])


def test_slice_assignment_of_every_kind():
    v = tf.Variable(np.zeros((4, 5), np.float32))
    v[1:3, ::2].assign(np.ones((2, 3), np.float32))
    v[..., -1].assign([5.0, 6.0, 7.0, 8.0])
    v[0, 0].assign(9.0)
    expected = np.zeros((4, 5))
    expected[1:3, ::2] = 1
    expected[..., -1] = [5, 6, 7, 8]
    expected[0, 0] = 9
    np.testing.assert_array_equal(v, expected)


def test_a_shallow_copy_is_the_same_variable():
    v = tf.Variable(1.0)
    assert copy.copy(v) is v
    assert copy.copy([v])[0] is v


def test_pickle_and_copies():
    v = tf.Variable([1.0, 2.0], name="w", trainable=False)
    for other in (pickle.loads(pickle.dumps(v)), copy.deepcopy(v)):
        np.testing.assert_array_equal(other, [1.0, 2.0])
        assert (other.name, other.trainable, other.dtype) == ("w:0", False, tf.float32)
        other.assign([0.0, 0.0])
    np.testing.assert_array_equal(v, [1.0, 2.0])


def test_unknown_dimensions():
    v = tf.Variable([[1.0, 2.0]], shape=tf.TensorShape([None, 2]))
    v.assign([[1.0, 2.0], [3.0, 4.0]])
    assert v.shape.as_list() == [None, 2]
    with pytest.raises(ValueError, match="Shape mismatch"):
        v.assign([[1.0, 2.0, 3.0]])


def test_variables_are_garbage_collected():
    gc.collect()
    before = _core.memory_info()["current"]
    v = tf.Variable(tf.ones([250_000]))
    v.cycle = v
    assert _core.memory_info()["current"] > before
    del v
    gc.collect()
    assert _core.memory_info()["current"] == before


def test_sparse_updates_leave_values_read_before_as_they_were():
    v = tf.Variable([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
    before = v.read_value()
    v.scatter_sub(tf.IndexedSlices([[1.0, 1.0], [2.0, 2.0]], [2, 2]))
    v.scatter_update(tf.IndexedSlices([[9.0, 9.0]], [0]))
    assert before.numpy().tolist() == [[1, 2], [3, 4], [5, 6]]
    assert v.numpy().tolist() == [[9, 9], [3, 4], [2, 3]]


def test_a_sparse_update_that_fails_changes_nothing():
    v = tf.Variable([1.0, 2.0])
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"scatter_add: indices\[1\] = 2 is not in \[0, 2\)"):
        v.scatter_add(tf.IndexedSlices([5.0, 5.0], [0, 2]))
    assert v.numpy().tolist() == [1, 2]


def test_scatters_refuse_what_does_not_fit():
    v = tf.Variable([1.0, 2.0])
    refused = (
        lambda: v.scatter_nd_add([[-1]], [1.0]),
        lambda: v.scatter_nd_update([[2]], [1.0]),
        lambda: v.scatter_add(tf.IndexedSlices([1.0, 2.0, 3.0], [0])),
        lambda: v.batch_scatter_update(tf.IndexedSlices([1.0], [5])),
        lambda: tf.Variable(1.0).scatter_add(tf.IndexedSlices([1.0], [0])),
        lambda: tf.Variable(1.0).scatter_nd_sub([[0]], [1.0]),
        lambda: tf.Variable(1.0).batch_scatter_update(tf.IndexedSlices([1.0], [0])),
    )
    for update in refused:
        with pytest.raises(tf.errors.InvalidArgumentError):
            update()
    with pytest.raises(TypeError, match="Cannot convert"):
        tf.Variable([1, 2]).batch_scatter_update(tf.IndexedSlices([1.5], [0]))
    assert v.numpy().tolist() == [1, 2]


def test_eagerly_there_is_nothing_to_initialise():
    v = tf.Variable(1.0)
    assert v.initializer is None
    with pytest.raises(RuntimeError, match="not supported when eager execution is enabled"):
        v.eval()


def test_initializers_know_their_arguments():
    again = tf.constant_initializer.from_config(tf.constant_initializer(3.0).get_config())
    assert again([2]).numpy().tolist() == [3, 3]
    assert tf.zeros_initializer().get_config() == {}
    with pytest.raises(TypeError, match="unsupported shape"):
        tf.constant_initializer([1, 2, 3])([2, 2])


def test_libraries_set_the_private_trainable():
    v = tf.Variable(2.0)
    v._trainable = False
    assert not v.trainable and not v._trainable
    with tf.GradientTape() as tape:
        y = v * v
    assert tape.watched_variables() == () and tape.gradient(y, v) is None
    v._trainable = True
    assert v.trainable


def test_counting_up_to_a_limit():
    v = tf.Variable(1)
    assert int(v.count_up_to(2)) == 1
    with pytest.raises(tf.errors.OutOfRangeError, match="Reached limit of 2"):
        v.count_up_to(2)
    assert int(v) == 2


class Halved(tf.Variable):
    """Stands for another variable, as the variables of mixed precision in Keras 2 do: it never has a value itself."""

    def __init__(self, variable):
        self._variable = variable

    def __getattr__(self, name):
        return getattr(self._variable, name)

    dtype = property(lambda self: self._variable.dtype)
    shape = property(lambda self: self._variable.shape)

    def read_value(self):
        return tf.cast(self._variable.read_value(), tf.float16)

    def __mul__(self, other):
        return self.read_value() * other


tf.register_tensor_conversion_function(Halved, lambda value, dtype=None, name=None, as_ref=False: value.read_value())


class TestStandIns:
    def test_operations_convert_them(self):
        stand_in, halves = Halved(tf.Variable([1.0, 2.0])), tf.constant([3.0, 4.0], tf.float16)
        for found in (
            tf.multiply(halves, stand_in),
            halves * stand_in,
            stand_in * halves,
            tf.convert_to_tensor(stand_in) * halves,
        ):
            assert found.dtype == tf.float16
            np.testing.assert_array_equal(found, [3.0, 8.0])
        np.testing.assert_array_equal(-stand_in, [-1.0, -2.0])
        np.testing.assert_array_equal(stand_in + 1.0, [2.0, 3.0])
        np.testing.assert_array_equal(tf.concat([stand_in, halves], 0), [1.0, 2.0, 3.0, 4.0])
        assert tf.is_tensor(stand_in)
        assert (stand_in == [1.0, 5.0]).numpy().tolist() == [True, False]

    def test_what_they_lack_is_that_of_the_other(self):
        inner = tf.Variable([1.0, 2.0])
        stand_in = Halved(inner)
        assert stand_in.handle is inner
        assert stand_in.numpy().tolist() == [1.0, 2.0]
        assert not stand_in._in_graph_mode
        assert inner.read_value()._numpy().tolist() == [1.0, 2.0]

    def test_gradients(self):
        inner = tf.Variable([1.0, 2.0])
        stand_in = Halved(inner)
        with tf.GradientTape(persistent=True) as tape:
            y = tf.reduce_sum(stand_in * stand_in)
        np.testing.assert_array_equal(tape.gradient(y, inner), [2.0, 4.0])
        np.testing.assert_array_equal(tape.gradient(y, stand_in), [2.0, 4.0])

    def test_an_own_trainable(self):
        class Plain(tf.Variable):
            def __init__(self, trainable):
                self._trainable = trainable

            trainable = property(lambda self: self._trainable)

        assert Plain(True).trainable
        assert not Plain(False).trainable

    def test_references_have_an_order(self):
        a, b = tf.Variable(1.0).ref(), tf.Variable(2.0).ref()
        assert (a < b) != (b < a)
        assert sorted([a, b]) == sorted([b, a])


def test_a_branch_without_results_beside_one_that_assigns():
    v, w = tf.Variable(0), tf.Variable(1.0)

    @tf.function
    def step(both):
        return tf.cond(both, lambda: tf.group(v.assign_add(1), w.assign(2.0)), lambda: v.assign_add(10).op)

    assert step(tf.constant(True)) is None
    assert step(tf.constant(False)) is None
    assert v.numpy() == 11
    assert w.numpy() == 2.0


@pytest.mark.parametrize("dtype", [tf.float32, tf.int32])
@pytest.mark.parametrize(("method", "expected"), [("scatter_mul", [14, 9, 360]), ("scatter_div", [3, 9, 10])])
def test_repeated_rows_multiply_in_graphs(dtype, method, expected):
    slices = tf.IndexedSlices(tf.constant([2, 2, 3], dtype), tf.constant([0, 2, 2]))
    for wrap in (lambda f: f, tf.function):
        v = tf.Variable([7, 9, 60], dtype=dtype)
        wrap(lambda v=v: [getattr(v, method)(slices)][:0])()
        assert v.numpy().astype(int).tolist() == expected


@pytest.mark.parametrize("argument", [{"use_resource": True}, {"collections": ["weights"]}, {"expected_shape": [1]}])
def test_arguments_of_tensorflow_1_mean_nothing(argument):
    assert tf.Variable([2.0], **argument).numpy().tolist() == [2.0]
    with pytest.raises(TypeError, match="unexpected keyword argument"):
        tf.Variable([2.0], use_resources=True)


def test_the_name_of_the_handle_can_be_set():
    """Keras 2 does so when it reads a model from a folder."""
    variable = tf.Variable(1.0, name="first")
    variable._handle_name = "second:0"
    assert variable.name == variable._handle_name == "second:0"


@pytest.mark.parametrize("what", ["synchronization", "aggregation"])
def test_modes_that_do_not_exist_are_refused(what):
    with pytest.raises(ValueError, match=f"Invalid variable {what} mode: x for variable"):
        tf.Variable(1.0, **{what: "x"})
    assert getattr(tf.Variable(1.0, **{what: None}), what).value == 0
