"""Tensor lists by TensorFlow's raw operations: eager, in functions, loops and graphs, with gradients and errors."""

import numpy as np
import pytest

import tapeflow as tf

R = tf.raw_ops
SCALAR, VECTOR, COLUMN = tf.constant(1.0), tf.constant([1.0, 2.0]), tf.constant([[1.0], [2.0]])


def sizes(shape):
    return tf.constant(shape, tf.int32)


def empty(shape=-1, most=-1, dtype=tf.float32):
    return R.EmptyTensorList(element_shape=sizes(shape), max_num_elements=most, element_dtype=dtype)


def reserve(shape, count):
    return R.TensorListReserve(element_shape=sizes(shape), num_elements=count, element_dtype=tf.float32)


def from_tensor(tensor, shape=-1):
    return R.TensorListFromTensor(tensor=tensor, element_shape=sizes(shape))


def push(handle, tensor):
    return R.TensorListPushBack(input_handle=handle, tensor=tensor)


def pop(handle, shape=-1, dtype=tf.float32):
    return R.TensorListPopBack(input_handle=handle, element_shape=sizes(shape), element_dtype=dtype)


def get(handle, index, shape=-1, dtype=tf.float32):
    return R.TensorListGetItem(input_handle=handle, index=index, element_shape=sizes(shape), element_dtype=dtype)


def put(handle, index, item, **options):
    return R.TensorListSetItem(input_handle=handle, index=index, item=item, **options)


def stack(handle, shape=-1, count=-1, dtype=tf.float32):
    return R.TensorListStack(input_handle=handle, element_shape=sizes(shape), element_dtype=dtype, num_elements=count)


def gather(handle, indices, shape=-1):
    return R.TensorListGather(
        input_handle=handle, indices=indices, element_shape=sizes(shape), element_dtype=tf.float32
    )


def concat(handle, shape=-1, leading=()):
    leading = tf.constant(list(leading), tf.int64)
    return R.TensorListConcatV2(
        input_handle=handle, element_shape=sizes(shape), leading_dims=leading, element_dtype=tf.float32
    )


def split(tensor, lengths, shape=-1):
    return R.TensorListSplit(tensor=tensor, element_shape=sizes(shape), lengths=tf.constant(lengths, tf.int64))


def scatter(tensor, indices, shape=-1, count=-1):
    return R.TensorListScatterV2(tensor=tensor, indices=indices, element_shape=sizes(shape), num_elements=count)


def scatter_into(handle, tensor, indices):
    return R.TensorListScatterIntoExistingList(input_handle=handle, tensor=tensor, indices=indices)


def resize(handle, size):
    return R.TensorListResize(input_handle=handle, size=size)


def length(handle):
    return R.TensorListLength(input_handle=handle)


def element_shape(handle, kind=tf.int32):
    return R.TensorListElementShape(input_handle=handle, shape_type=kind)


def join(one, two):
    return R.TensorListConcatLists(input_a=one, input_b=two, element_dtype=tf.float32)


VALUES = {
    "push": (lambda: stack(push(push(empty([]), 1.0), 2.0)), [1.0, 2.0]),
    "pop": (lambda: pop(from_tensor(VECTOR))[1], 2.0),
    "popped": (lambda: stack(pop(from_tensor(VECTOR))[0]), [1.0]),
    "pop unset": (lambda: pop(reserve([-1, 3], 2), [1, 3])[1], [[0.0, 0.0, 0.0]]),
    "get unset": (lambda: get(reserve(-1, 2), 0, [2]), [0.0, 0.0]),
    "get unset, shape of another": (lambda: get(put(reserve(-1, 3), 1, VECTOR), 0), [0.0, 0.0]),
    "set": (lambda: stack(put(from_tensor(VECTOR), 0, 5.0)), [5.0, 2.0]),
    "set behind": (lambda: stack(put(from_tensor(VECTOR, []), 2, 5.0, resize_if_index_out_of_bounds=True)), [1, 2, 5]),
    "stack none": (lambda: stack(empty([1, 2])), np.zeros((0, 1, 2))),
    "stack unset": (lambda: stack(reserve(-1, 2), []), [0.0, 0.0]),
    "stack some": (lambda: stack(put(reserve(-1, 2), 1, VECTOR)), [[0.0, 0.0], [1.0, 2.0]]),
    "gather": (lambda: gather(from_tensor(VECTOR), [1, 0, 1]), [2.0, 1.0, 2.0]),
    "gather none": (lambda: gather(empty([2]), sizes([])), np.zeros((0, 2))),
    "gather some": (lambda: gather(put(reserve(-1, 3), 1, VECTOR), [1, 2]), [[1.0, 2.0], [0.0, 0.0]]),
    "concat": (lambda: concat(push(push(empty([-1]), VECTOR), [3.0]))[0], [1.0, 2.0, 3.0]),
    "concat lengths": (lambda: concat(push(push(empty([-1]), VECTOR), [3.0]))[1], [2, 1]),
    "concat none": (lambda: concat(empty([-1, 2]))[0], np.zeros((0, 2))),
    "concat unset": (lambda: concat(reserve(-1, 2), [-1, 3], [1, 2])[1], [1, 2]),
    "concat some": (lambda: concat(put(reserve(-1, 2), 1, COLUMN))[0], [[0.0], [0.0], [1.0], [2.0]]),
    "split": (lambda: get(split(tf.range(5.0), [3, 2]), 1), [3.0, 4.0]),
    "scatter": (lambda: stack(scatter(VECTOR, [2, 0], [])), [2.0, 0.0, 1.0]),
    "scatter size": (lambda: length(scatter(VECTOR, [2, 0], [], 5)), 5),
    "scatter into": (lambda: stack(scatter_into(from_tensor(VECTOR, []), VECTOR, [1, 2])), [1.0, 1.0, 2.0]),
    "grow": (lambda: stack(resize(from_tensor(VECTOR, []), 3)), [1.0, 2.0, 0.0]),
    "shrink": (lambda: stack(resize(from_tensor(VECTOR, []), 1)), [1.0]),
    "join": (lambda: stack(join(from_tensor(VECTOR), from_tensor([3.0]))), [1.0, 2.0, 3.0]),
    "unknown element shape": (lambda: element_shape(push(empty(), VECTOR)), -1),
    "element shape": (lambda: element_shape(empty([-1, 3]), tf.int64), [-1, 3]),
}  # fmt: skip


@pytest.mark.parametrize("name", VALUES)
@pytest.mark.parametrize("mode", ["eager", "function", "graph"])
def test_values(name, mode):
    build, expected = VALUES[name]
    if mode == "graph":
        with tf.Graph().as_default(), tf.compat.v1.Session() as session:
            found = session.run(build())
    else:
        found = (build if mode == "eager" else tf.function(build))().numpy()
    np.testing.assert_array_equal(found, expected)
    assert np.shape(found) == np.shape(expected)


ERRORS = {
    "full": (lambda: push(push(empty([], 1), 1.0), 1.0), "Tried to push item into a full list"),
    "push shape": (lambda: push(empty([]), VECTOR), r"incompatible shape to a list. Op element shape: \[2\]"),
    "push dtype": (lambda: push(empty([]), tf.constant(1)), "op elements int32 but list elements float"),
    "pop empty": (lambda: pop(empty()), "Trying to pop from an empty list"),
    "pop unset": (lambda: pop(reserve(-1, 2)), "uninitialized tensor but element_shape is not fully defined"),
    "pop shape": (lambda: pop(reserve([-1, 2], 2), [1, 3]), r"shapes during merge: \[1,3\] vs. \[\?,2\]"),
    "get behind": (lambda: get(from_tensor(VECTOR), 2), "access element 2 in a list with 2 elements"),
    "get before": (lambda: get(from_tensor(VECTOR), -1), "access element -1 in a list with 2 elements"),
    "get dtype": (lambda: get(from_tensor(VECTOR), 0, dtype=tf.int32), "op elements int32 but list elements float"),
    "set behind": (lambda: put(from_tensor(VECTOR), 2, 1.0), "modify element 2 in a list with 2 elements"),
    "set before": (
        lambda: put(empty([]), -1, 1.0, resize_if_index_out_of_bounds=True),
        "modify element -1 in a list with 0 elements",
    ),
    "set too many": (
        lambda: put(empty([], 5), 5, 1.0, resize_if_index_out_of_bounds=True),
        "modify element 5 in a list with 0 elements",
    ),
    "set shape": (lambda: put(from_tensor(VECTOR, []), 0, VECTOR), "incompatible shape at a list index"),
    "stack none": (lambda: stack(empty([-1, 2])), r"empty list with non-fully-defined element_shape: \[\?,2\]"),
    "stack unset": (lambda: stack(reserve(-1, 3)), "only contains uninitialized tensors"),
    "stack ranks": (lambda: stack(push(push(empty(), 1.0), VECTOR)), "Incompatible ranks during merge: 0 vs. 1"),
    "stack count": (lambda: stack(from_tensor(VECTOR), count=3), "expected a list with 3 elements but got a list"),
    "gather behind": (lambda: gather(from_tensor(VECTOR), [2]), "gather element 2 in a list with 2 elements"),
    "gather unset": (lambda: gather(reserve(-1, 3), [0]), "Tried to gather uninitialized tensors"),
    "concat none": (lambda: concat(empty([2, -1])), "All except the first dimension must be fully defined"),
    "concat scalars": (lambda: concat(push(push(empty(), VECTOR), 1.0)), "Concat saw a scalar shape at index 1"),
    "concat lengths": (lambda: concat(reserve([-1, 3], 3)), "at index 0 but leading_dims has only 0 elements"),
    "split negative": (lambda: split(VECTOR, [1, -1]), "Invalid value in lengths: -1"),
    "split long": (lambda: split(VECTOR, [3]), r"Attempting to slice \[0, 3\] from tensor with length 2"),
    "split short": (lambda: split(VECTOR, [1]), "Length of tensor: 2 Values used: 1"),
    "split scalar": (lambda: split(SCALAR, [1]), "Tensor must be at least a vector"),
    "split scalars": (lambda: split(VECTOR, [1, 1], []), "requires element_shape to be at least of rank 1"),
    "scatter behind": (lambda: scatter(VECTOR, [1, 3], [], 3), "scatter at index 3 in list with size 3"),
    "scatter before": (lambda: scatter(VECTOR, [-1, 0], []), "TensorListScatter must all be non-negative"),
    "scatter rows": (lambda: scatter(VECTOR, [1, 0, 2], []), "Expected: 3 Actual: 2"),
    "scatter vector": (lambda: scatter(VECTOR, [0, 1], [2], [1]), "num_elements must be a scalar"),
    "scatter count": (lambda: scatter(VECTOR, [0, 1], [], -2), "num_elements >= -1, found: -2"),
    "resize": (lambda: resize(from_tensor(VECTOR), -1), "expects size to be non-negative"),
    "reserve": (lambda: reserve([], -1), "must be a non negative number, but got -1"),
    "reserve vector": (lambda: reserve([], [1, 1]), "num_elements must be a scalar"),
    "shape rank": (lambda: empty([[1]]), "Shape must be at most rank 1 but is rank 2"),
    "shape scalar": (lambda: empty(3), "fully unknown shape specified as -1"),
    "from scalar": (lambda: from_tensor(SCALAR), "Tensor must be at least a vector"),
    "from shape": (lambda: from_tensor(VECTOR, [2]), r"list with shape \[2\] from a tensor with shape \[\]"),
    "join shapes": (lambda: join(from_tensor(VECTOR, []), from_tensor(COLUMN, [1])), "shapes are not identical"),
    "join dtypes": (lambda: join(from_tensor(VECTOR), from_tensor([1])), r"input_b\[0\].dtype != element_dtype"),
    "no list": (lambda: stack(VECTOR), "expected to be a variant tensor"),
}  # fmt: skip


@pytest.mark.parametrize("name", ERRORS)
def test_errors(name):
    build, text = ERRORS[name]
    with pytest.raises(tf.errors.InvalidArgumentError, match=text):
        build()


def test_a_list_never_changes():
    first = from_tensor(VECTOR)
    push(first, 3.0), put(first, 0, 9.0), pop(first), scatter_into(first, VECTOR, [0, 4])
    np.testing.assert_array_equal(stack(first), [1.0, 2.0])
    assert first.dtype == tf.variant and first.shape == []


def test_elements_of_different_shapes():
    handle = push(push(empty(), SCALAR), VECTOR)
    np.testing.assert_array_equal(get(handle, 1), [1.0, 2.0])
    handle, last = pop(handle)
    np.testing.assert_array_equal(last, [1.0, 2.0])
    np.testing.assert_array_equal(get(handle, 0), 1.0)


def test_first_and_second_derivatives():
    def cube_sum(x):
        handle = push(from_tensor(x, []), x[0] * x[1])
        handle = put(handle, 0, get(handle, 1) ** 2)
        rows = stack(handle)
        return tf.reduce_sum(rows**3)

    x = tf.constant([2.0, 3.0])

    def derivatives(x):
        with tf.GradientTape() as outer:
            outer.watch(x)
            with tf.GradientTape() as inner:
                inner.watch(x)
                y = cube_sum(x)
            dx = inner.gradient(y, x)
        return dx, outer.jacobian(dx, x)

    # y = b^6 + b^3 + (ab)^3
    a, b = 2.0, 3.0
    first = [3 * a**2 * b**3, 6 * b**5 + 3 * b**2 + 3 * a**3 * b**2]
    mixed = 9 * a**2 * b**2
    second = [[6 * a * b**3, mixed], [mixed, 30 * b**4 + 6 * b + 6 * a**3 * b]]
    for call in (derivatives, tf.function(derivatives)):
        dx, ddx = call(x)
        np.testing.assert_allclose(dx, first)
        np.testing.assert_allclose(ddx, second)


@pytest.mark.parametrize("read", [lambda x: stack(scatter(x, [1, 0], [])), lambda x: gather(from_tensor(x), [1, 0]),
                                  lambda x: concat(split(x, [1, 1]))[0][::-1],
                                  lambda x: stack(join(from_tensor(x[1:]), from_tensor(x[:1]))),
                                  lambda x: stack(resize(from_tensor(x[::-1], []), 2))])  # fmt: skip
def test_gradients_pass_through(read):
    for wrap in (lambda f: f, tf.function):
        with tf.GradientTape() as tape:
            tape.watch(VECTOR)
            y = wrap(lambda x: tf.reduce_sum(read(x) * [3.0, 5.0]))(VECTOR)
        np.testing.assert_array_equal(tape.gradient(y, VECTOR), [5.0, 3.0])


def test_a_loop_fills_a_list_and_empties_it():
    @tf.function
    def squares(n, x):
        handle = tf.while_loop(
            lambda i, handle: i < n,
            lambda i, handle: (i + 1, push(handle, x * tf.cast(i, tf.float32))),
            [0, empty([])],
        )[1]
        _, total = tf.while_loop(
            lambda handle, total: length(handle) > 0,
            lambda handle, total: (pop(handle)[0], total + pop(handle)[1] ** 2),
            [handle, 0.0],
        )
        return total, stack(handle), length(handle)

    x = tf.constant(2.0)
    with tf.GradientTape() as tape:
        tape.watch(x)
        total, rows, count = squares(tf.constant(4), x)
    np.testing.assert_array_equal(rows, [0.0, 2.0, 4.0, 6.0])
    assert total == 56.0 and count == 4
    assert tape.gradient(total, x) == 56.0


def test_positions_that_a_graph_computes():
    @tf.function
    def changed(handle_rows, i):
        handle = from_tensor(handle_rows, [])
        handle = put(handle, i, 7.0)
        return get(handle, i), stack(handle), gather(handle, [i, 0])

    item, rows, some = changed(VECTOR, tf.constant(1))
    assert item == 7.0
    np.testing.assert_array_equal(rows, [1.0, 7.0])
    np.testing.assert_array_equal(some, [7.0, 1.0])
    with pytest.raises(tf.errors.InvalidArgumentError, match="modify element 2 in a list with 2 elements"):
        changed(VECTOR, tf.constant(2))


def test_limits_hold_when_the_graph_runs():
    @tf.function
    def fill(n):
        return stack(tf.while_loop(lambda i, h: i < n, lambda i, h: (i + 1, push(h, 1.0)), [0, empty([], 3)])[1])

    np.testing.assert_array_equal(fill(tf.constant(3)), [1.0, 1.0, 1.0])
    with pytest.raises(tf.errors.InvalidArgumentError, match="Tried to push item into a full list"):
        fill(tf.constant(4))


def test_a_list_enters_and_leaves_a_function():
    @tf.function
    def longer(handle):
        return push(handle, [3.0])

    handle = longer(push(push(empty([-1]), VECTOR), [5.0]))
    assert length(handle) == 3
    np.testing.assert_array_equal(concat(handle)[0], [1.0, 2.0, 5.0, 3.0])
    np.testing.assert_array_equal(concat(handle)[1], [2, 1, 1])
    np.testing.assert_array_equal(get(handle, 0), [1.0, 2.0])


def staged(function, *values):
    """The result of a function for which nothing but the ranks and dtypes of its arguments is known."""
    tensors = [tf.convert_to_tensor(x) for x in values]
    specs = [tf.TensorSpec([None] * x.shape.rank, x.dtype) for x in tensors]
    return tf.function(function, input_signature=specs)(*tensors)


STAGED = {
    "pop": (lambda x: pop(from_tensor(x))[1], [VECTOR], 2.0),
    "get unset": (lambda n, i: get(reserve(-1, n), i, [2]), [3, 1], [0.0, 0.0]),
    "pop unset": (lambda n: pop(reserve(-1, n), [2])[1], [3], [0.0, 0.0]),
    "stack unset": (lambda n: stack(reserve(-1, n), [2]), [1], [[0.0, 0.0]]),
    "stack some": (lambda n, i: stack(put(reserve(-1, n), i, VECTOR)), [2, 1], [[0.0, 0.0], [1.0, 2.0]]),
    "gather": (lambda x, i: gather(from_tensor(x), i), [VECTOR, [1, 1, 0]], [2.0, 2.0, 1.0]),
    "gather unset": (lambda i: gather(reserve(-1, 3), i, [2]), [[0]], [[0.0, 0.0]]),
    "gather one of several shapes": (lambda i: gather(push(push(empty(), 1.0), VECTOR), i), [[1]], [[1.0, 2.0]]),
    "concat some": (
        lambda n, i: concat(put(reserve(-1, n), i, COLUMN))[0], [2, 1], [[0.0], [0.0], [1.0], [2.0]]),
    "concat lengths": (lambda n, i: concat(put(reserve(-1, n), i, COLUMN))[1], [2, 1], [2, 2]),
    "scatter": (lambda x, i: stack(scatter(x, i, [])), [VECTOR, [2, 0]], [2.0, 0.0, 1.0]),
    "scatter, any shape": (lambda x, i: stack(scatter(x, i)), [VECTOR, [2, 0]], [2.0, 0.0, 1.0]),
    "scatter, known indices": (lambda x: stack(scatter(x, [2, 0], [])), [VECTOR], [2.0, 0.0, 1.0]),
    "scatter none": (lambda x, i: length(scatter(x, i, [])), [tf.zeros([0]), tf.zeros([0], tf.int32)], 0),
    "scatter size": (lambda x, i, n: length(scatter(x, i, [], n)), [VECTOR, [2, 0], 5], 5),
    "scatter into": (lambda x, i: stack(scatter_into(from_tensor(x, []), x, i)), [VECTOR, [2, 0]], [2.0, 2.0, 1.0]),
    "grow": (lambda x, n: stack(resize(from_tensor(x, []), n)), [VECTOR, 3], [1.0, 2.0, 0.0]),
    "shrink": (lambda x, n: stack(resize(from_tensor(x), n)), [VECTOR, 1], [1.0]),
    "join": (lambda x: stack(join(push(empty(), 5.0), from_tensor(x))), [VECTOR], [5.0, 1.0, 2.0]),
}  # fmt: skip


@pytest.mark.parametrize("name", STAGED)
def test_values_that_a_graph_computes(name):
    build, values, expected = STAGED[name]
    np.testing.assert_array_equal(staged(build, *values), expected)


STAGED_ERRORS = {
    "pop empty": (lambda x: pop(from_tensor(x))[1], [tf.zeros([0])], "Trying to pop from an empty list"),
    "get behind": (lambda x, i: get(from_tensor(x, []), i), [VECTOR, 2], "access element 2 in a list with 2 elements"),
    "stack count": (lambda x: stack(from_tensor(x), count=3), [VECTOR], "expected a list with 3 elements"),
    "scatter before": (lambda x, i: stack(scatter(x, i, [])), [VECTOR, [-1, 0]], "must all be non-negative"),
    "scatter behind": (lambda x, i: stack(scatter(x, i, [], 2)), [VECTOR, [2, 0]], "scatter behind the end"),
    "resize": (lambda x, n: stack(resize(from_tensor(x), n)), [VECTOR, -1], "expects size to be non-negative"),
    "push shape": (lambda x: get(push(empty([3]), x), 0), [VECTOR], "not compatible with expected shape"),
    "set shape": (lambda x: get(put(reserve([-1, 2], 2), 0, x), 0), [COLUMN], "not compatible with expected shape"),
    "split short": (lambda x: stack(split(x, [1])), [VECTOR], "Unused values in tensor"),
    "concat unset": (
        lambda n, i: concat(put(put(reserve(-1, n), i, VECTOR), 0, [1.0]))[0], [3, 1], "contains uninitialized"),
}  # fmt: skip


@pytest.mark.parametrize("name", STAGED_ERRORS)
def test_errors_when_the_graph_runs(name):
    build, values, text = STAGED_ERRORS[name]
    with pytest.raises(tf.errors.InvalidArgumentError, match=text):
        staged(build, *values)
