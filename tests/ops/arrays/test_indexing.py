"""Slices with masks, scatters, partitions: values and the form of their gradients."""

import numpy as np
import pytest

import tapeflow as tf
from tests.ops.gradients import gradient


def test_strided_slice_masks():
    x = tf.reshape(tf.range(12), [3, 4])
    np.testing.assert_array_equal(tf.strided_slice(x, [0, 1], [2, 2], shrink_axis_mask=2), [1, 5])
    np.testing.assert_array_equal(tf.strided_slice(x, [1, 0], [0, 1], end_mask=1), [[4], [8]])
    assert tf.strided_slice(x, [0, 0, 0], [1, 2, 2], ellipsis_mask=1).shape == [2, 2]
    assert tf.strided_slice(x, [0, 0], [1, 3], new_axis_mask=1).shape == [1, 3, 4]
    with pytest.raises(tf.errors.InvalidArgumentError, match="must be non-zero"):
        tf.strided_slice(x, [0], [1], [0])


def test_rows_of_gather_nd_and_gather_give_indexed_slices():
    for function in (lambda x: tf.gather_nd(x, [[0], [2]]), lambda x: tf.gather(x, [0, 2])):
        (dx,) = gradient(function, np.ones((3, 2), np.float32))
        assert isinstance(dx, tf.IndexedSlices)
    (dx,) = gradient(lambda x: tf.boolean_mask(x, [True, False, True]), np.ones((3, 2), np.float32))
    np.testing.assert_array_equal(dx, [[1, 1], [0, 0], [1, 1]])


def test_mirror_pad_gradient_is_dense():
    for mode in ("REFLECT", "SYMMETRIC"):
        x = np.arange(4, dtype=np.float32)
        np.testing.assert_array_equal(tf.pad(x, [[2, 1]], mode), np.pad(x, (2, 1), mode.lower()))
        (dx,) = gradient(lambda x, mode=mode: tf.pad(x, [[2, 1]], mode), x)
        assert float(tf.reduce_sum(dx)) == 7.0


@pytest.mark.parametrize("mode", ["REFLECT", "SYMMETRIC"])
@pytest.mark.parametrize(
    ("shape", "pairs"),
    [
        ((70, 80), [[2, 3], [0, 5]]),
        ((5, 30, 40, 3), [[0, 0], [3, 3], [0, 2], [2, 0]]),
        ((80, 60), [[79, 0], [1, 59]]),
        ((5000,), [[10, 4999]]),
    ],
)
def test_mirror_pad_of_large_tensors(mode, shape, pairs):
    x = np.random.default_rng(0).standard_normal(shape).astype(np.float32)
    np.testing.assert_array_equal(tf.pad(x, pairs, mode), np.pad(x, pairs, mode.lower()))
    (dx,) = gradient(lambda x: tf.pad(x, pairs, mode), x)
    places = np.pad(np.arange(x.size).reshape(shape), pairs, mode.lower())
    np.testing.assert_array_equal(dx, np.bincount(places.ravel(), minlength=x.size).reshape(shape))


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.complex128, np.bool_])
@pytest.mark.parametrize("length", [1, 31, 130, 1000, 5000])
def test_columns_are_repeated(length, dtype):
    x = (np.random.default_rng(length).standard_normal((7, 1)) > 0.3).astype(dtype) * dtype(3)
    np.testing.assert_array_equal(tf.broadcast_to(x, [7, length]), np.broadcast_to(x, [7, length]))
    np.testing.assert_array_equal(tf.broadcast_to(x.T[:, :, None], [2, 7, length])[1], np.broadcast_to(x, [7, length]))


def test_transpose_conjugates():
    x = tf.constant([[1 + 2j, 3j]])
    np.testing.assert_array_equal(tf.transpose(x, conjugate=True), np.conj(x.numpy()).T)
    (dx,) = gradient(lambda x: tf.transpose(x) * [[1j], [2.0 + 0j]], x.numpy())
    np.testing.assert_array_equal(dx, [[-1j, 2.0]])


def test_scatter_extremum_shares_among_equals():
    dx, du = gradient(lambda x, u: tf.tensor_scatter_nd_max(x, [[0], [0], [1]], u), [1.0, 5.0, 2.0], [1.0, 1.0, 5.0])
    np.testing.assert_allclose(dx, [1 / 3, 0.5, 1.0], rtol=1e-6)
    np.testing.assert_allclose(du, [1 / 3, 1 / 3, 0.5], rtol=1e-6)


def test_scatter_of_strings_and_errors():
    assert tf.tensor_scatter_nd_update(["a", "b"], [[1]], ["z"]).numpy().tolist() == [b"a", b"z"]
    with pytest.raises(tf.errors.InvalidArgumentError, match="does not index into"):
        tf.tensor_scatter_nd_add([1.0, 2.0], [[5]], [1.0])


def test_partition_and_stitch_are_inverse():
    x = np.arange(10, dtype=np.float32).reshape(5, 2)
    partitions = [0, 2, 0, 1, 2]

    def there_and_back(x):
        places = tf.dynamic_partition(tf.range(5), partitions, 3)
        return tf.dynamic_stitch(places, tf.dynamic_partition(x, partitions, 3)) * 2.0

    np.testing.assert_array_equal(there_and_back(x), 2 * x)
    np.testing.assert_array_equal(gradient(there_and_back, x)[0], np.full_like(x, 2.0))


def test_stitching_what_only_the_graph_knows():
    """No Python runs in the graph, and the shapes of each pair are compared."""

    @tf.function(input_signature=[tf.TensorSpec([None], tf.int32), tf.TensorSpec([None], tf.int32), tf.TensorSpec([])])
    def f(first, second, x):
        rows = [tf.ones([n, 2]) * x for n in (2, 3)]
        return tf.dynamic_stitch([first, second], rows)

    kinds = [op.type for op in f.get_concrete_function().graph.get_operations()]
    assert "Composition" not in kinds
    np.testing.assert_array_equal(f([4, 0], [1, 2, 3], 2.0), np.full([5, 2], 2))
    with pytest.raises(tf.errors.InvalidArgumentError, match="dynamic_stitch"):
        f([4, 0, 1], [2, 3], 2.0)


def test_update_of_a_slice():
    dx, dv = gradient(
        lambda x, v: (
            tf.raw_ops.TensorStridedSliceUpdate(input=x, begin=[1], end=[3], strides=[1], value=v) * [1.0, 2, 3, 4]
        ),
        [0.0] * 4,
        [5.0, 6.0],
    )
    np.testing.assert_array_equal(dx, [1.0, 0.0, 0.0, 4.0])
    np.testing.assert_array_equal(dv, [2.0, 3.0])


def test_rows_are_sparse_only_along_axis_zero_given_as_such():
    x = tf.constant([1.0, 2.0])
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(x)
        first, last = tf.gather(x, [0], axis=0), tf.gather(x, [0], axis=-1)
    assert isinstance(tape.gradient(first, x), tf.IndexedSlices)
    assert tape.gradient(last, x).numpy().tolist() == [1, 0]


def test_padding_of_booleans():
    assert tf.pad([True], [[1, 1]]).numpy().tolist() == [False, True, False]
    assert tf.linalg.diag([True]).numpy().tolist() == [[True]]
    assert tf.linalg.diag_part([[True, False], [True, True]]).numpy().tolist() == [True, True]


def test_messages_say_which_index_is_wrong():
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"indices\[0,1\] = \[7\] does not index into param shape"):
        tf.gather_nd([[1, 2], [3, 4]], [[[0], [7]]])
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"indices\[0,1\] = \[9\] does not index into shape \[3\]"):
        tf.scatter_nd([[[0], [9]]], [[1, 2]], [3])
    outer = (
        r"Dimensions \[0,2\) of indices\[shape=\[1,2,1\]\] must match dimensions \[0,2\) of updates\[shape=\[1,3\]\]"
    )
    with pytest.raises(tf.errors.InvalidArgumentError, match=outer):
        tf.scatter_nd([[[0], [1]]], [[1, 2, 3]], [3])
    with pytest.raises(tf.errors.InvalidArgumentError, match="Outer dimensions of indices and update must match"):
        tf.tensor_scatter_nd_add([1, 2, 3], [[[0], [1]]], [[1, 2, 3]])
    with pytest.raises(
        tf.errors.InvalidArgumentError, match=r"Dimensions \[1,2\) of input\[shape=\[3,2\]\] must match"
    ):
        tf.tensor_scatter_nd_add(tf.zeros([3, 2]), [[0]], tf.zeros([1, 3]))


def test_arrays_of_numbers_are_conditions():
    condition = np.array([1, 0])
    for f in (tf.where, tf.function(lambda c, x, y: tf.where(condition, x, y))):
        assert f(condition, 1.0, 2.0).numpy().tolist() == [1.0, 2.0]
    with pytest.raises(TypeError):
        tf.where([1, 0], 1.0, 2.0)
    with pytest.raises(tf.errors.InvalidArgumentError, match="expected to be a bool"):
        tf.where(tf.constant([1, 0]), 1.0, 2.0)


OUTSIDE = [[0, 1], [1, 5], [-1, 0]]


@pytest.mark.parametrize("wrap", [lambda program: program, tf.function], ids=["eager", "function"])
def test_positions_outside_are_ignored_if_asked_for(wrap):
    x, updates = tf.constant([[1.0, 2.0], [3.0, 4.0]]), tf.constant([10.0, 20.0, 30.0])
    more = {"bad_indices_policy": "IGNORE"}
    programs = {
        "gather": (lambda: tf.gather_nd(x, OUTSIDE, **more), [2.0, 0.0, 0.0]),
        "row": (lambda: tf.gather_nd(x, [[1], [2]], **more), [[3.0, 4.0], [0.0, 0.0]]),
        "batches": (lambda: tf.gather_nd(x, [[1], [2]], 1, **more), [2.0, 0.0]),
        "scatter": (lambda: tf.scatter_nd(OUTSIDE, updates, [2, 2], **more), [[0.0, 10.0], [0.0, 0.0]]),
        "update": (
            lambda: tf.raw_ops.TensorScatterUpdate(tensor=x, indices=OUTSIDE, updates=updates, **more),
            [[1.0, 10.0], [3.0, 4.0]],
        ),
        "add": (lambda: tf.tensor_scatter_nd_add(x, OUTSIDE, updates, **more), [[1.0, 12.0], [3.0, 4.0]]),
        "sub": (lambda: tf.tensor_scatter_nd_sub(x, OUTSIDE, updates, **more), [[1.0, -8.0], [3.0, 4.0]]),
        "max": (lambda: tf.tensor_scatter_nd_max(x, OUTSIDE, updates, **more), [[1.0, 10.0], [3.0, 4.0]]),
        "min": (lambda: tf.tensor_scatter_nd_min(x, OUTSIDE, -updates, **more), [[1.0, -10.0], [3.0, 4.0]]),
    }
    for name, (program, expected) in programs.items():
        np.testing.assert_array_equal(wrap(program)(), expected, err_msg=name)
        with tf.GradientTape() as tape, tf.autodiff.ForwardAccumulator(x, tf.ones([2, 2])) as forward:
            tape.watch([x, updates])
            y = wrap(program)()
        dx, d_updates = tape.gradient(y, [x, updates], unconnected_gradients="zero")
        y_dot = forward.jvp(y, unconnected_gradients="zero")
        np.testing.assert_allclose(tf.reduce_sum(dx), tf.reduce_sum(y_dot), err_msg=name)  # <1, J 1> = <J' 1, 1>
        np.testing.assert_array_equal(d_updates[1:], [0.0, 0.0], err_msg=name)


def test_policies_are_checked():
    with pytest.raises(tf.errors.InvalidArgumentError, match="does not index into param shape"):
        tf.gather_nd([1, 2], [[5]], bad_indices_policy="ERROR")
    with pytest.raises(tf.errors.InvalidArgumentError, match="bad_indices_policy must be"):
        tf.gather_nd([1, 2], [[1]], bad_indices_policy="SOME")
    with pytest.raises(ValueError, match="non-default bad_indices_policy"):
        tf.gather_nd(tf.ragged.constant([[1], [2, 3]]), [[0]], bad_indices_policy="IGNORE")
    assert tf.gather_nd(["a", "b"], [[1], [7]], bad_indices_policy="IGNORE").numpy().tolist() == [b"b", b""]
