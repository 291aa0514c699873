"""Branches, loops, maps and arrays of tensors inside functions, compared with their eager results."""

import numpy as np
import pytest

import tapeflow as tf

ANY = [tf.TensorSpec([None], tf.float32)]


def same(program, *args, signature=None):
    """The traced result: it and its gradient by the first argument must be those of the program itself."""
    results = []
    for function in (tf.function(program, input_signature=signature), program):
        with tf.GradientTape() as tape:
            tape.watch(args[0])
            y = function(*args)
        results.append([*tf.nest.flatten(y), tape.gradient(y, args[0])])
    for one, two in zip(*results, strict=True):
        assert (one is None) == (two is None)
        if one is not None:
            np.testing.assert_allclose(np.asarray(one), np.asarray(two), rtol=1e-6)
    return results[0][0].numpy()


X = tf.constant([1.0, 2.0, 3.0])

PROGRAMS = {
    "map": lambda x: tf.map_fn(lambda r: r * r, x),
    "map of pairs": lambda x: tf.map_fn(lambda p: (p[0] * p[1], p[0] + 1.0), (x, x * 2.0)),
    "map to another dtype": lambda x: tf.cast(tf.map_fn(lambda r: r > 1.0, x, fn_output_signature=tf.bool), tf.float32),
    "vectorized map": lambda x: tf.vectorized_map(lambda r: tf.stack([r, r * r]), x),
    "map over a closure": lambda x: tf.map_fn(lambda r: r * tf.reduce_sum(x), x),
    "scan": lambda x: tf.scan(lambda a, r: a * r, x),
    "scan from a start": lambda x: tf.scan(lambda a, r: a + r * r, x, initializer=tf.constant(1.0)),
    "reverse scan": lambda x: tf.scan(lambda a, r: 2.0 * a + r, x, reverse=True),
    "scan of pairs": lambda x: tf.scan(lambda a, r: (a[0] + r, a[1] * r), x, (tf.constant(0.0), tf.constant(1.0))),
    "foldl": lambda x: tf.foldl(lambda a, r: 2.0 * a + r * r, x),
    "foldr": lambda x: tf.foldr(lambda a, r: 2.0 * a + r * r, x, tf.constant(1.0)),
}


@pytest.mark.parametrize("signature", [None, ANY], ids=["known", "unknown"])
@pytest.mark.parametrize("program", PROGRAMS.values(), ids=PROGRAMS.keys())
def test_maps(program, signature):
    same(program, X, signature=signature)


def test_map_traces_its_function_once():
    calls = []
    tf.function(lambda x: tf.map_fn(lambda r: calls.append(r) or r, x))(X)
    assert len(calls) == 1


def test_map_dtype_must_be_promised():
    with pytest.raises(tf.errors.InvalidArgumentError, match="TensorArray dtype is float32"):
        tf.function(lambda x: tf.map_fn(lambda r: tf.cast(r, tf.int32), x))(X)


# ---- branches


@pytest.mark.parametrize("index", [0, 1, 2, 7, -1])
def test_switch_case(index):
    def program(x, i):
        return tf.switch_case(i, [lambda: x, lambda: x * x, lambda: x * 3.0])

    same(program, X, tf.constant(index))


def test_switch_case_with_default_and_keys():
    function = tf.function(lambda i: tf.switch_case(i, {1: lambda: 3, 0: lambda: 1}, default=lambda: 9))
    assert [function(tf.constant(i)).numpy() for i in (0, 1, 2, -5)] == [1, 3, 9, 9]


def test_case():
    function = tf.function(lambda x: tf.case([(x > 5, lambda: 1), (x > 3, lambda: 2)], default=lambda: 3))
    assert [function(tf.constant(i)).numpy() for i in (6, 4, 1)] == [1, 2, 3]
    lacking = tf.function(lambda x: tf.case([(x > 5, lambda: 1), (x > 3, lambda: 2)]))
    assert lacking(tf.constant(4)).numpy() == 2
    with pytest.raises(tf.errors.InvalidArgumentError, match="None of conditions evaluated as True"):
        lacking(tf.constant(1))


def test_exclusive_case():
    function = tf.function(lambda x: tf.case([(x > 1, lambda: 1), (x > 3, lambda: 2)], exclusive=True))
    assert function(tf.constant(2)).numpy() == 1
    with pytest.raises(tf.errors.InvalidArgumentError, match="More than one condition evaluated as True"):
        function(tf.constant(4))


def test_branches_capture_different_tensors():
    def program(x, y):
        a, b, c = x * 2.0, y * 3.0, x + y
        return tf.cond(tf.reduce_sum(x) > 0, lambda: a + b, lambda: b + c)

    same(program, X, X + 1.0)
    same(program, -X, X + 1.0)


def test_nested_branches_and_shapes():
    @tf.function
    def function(x):
        y = tf.cond(x[0] > 0, lambda: tf.cond(x[1] > 0, lambda: x, lambda: x[:2]), lambda: x[:1])
        assert y.shape.as_list() == [None]
        return y

    assert function(X).shape == [3]
    assert function(X * [1.0, -1.0, 1.0]).shape == [2]
    assert function(-X).shape == [1]


def test_branch_results_must_agree():
    def function(*branches):
        return tf.function(lambda x: tf.cond(x > 0, *branches))(tf.constant(1))

    with pytest.raises(TypeError, match="must have the same number, type, and overall structure of return values"):
        function(lambda: 1, lambda: 1.0)
    with pytest.raises(TypeError, match="must have the same number, type, and overall structure of return values"):
        function(lambda: (1, 2), lambda: 1)
    with pytest.raises(ValueError, match="Lengths of branch outputs of cond must match"):
        function(lambda: None, lambda: 1)
    assert function(lambda: None, lambda: None) is None


def test_structures_from_branches():
    function = tf.function(
        lambda x: tf.cond(x > 0, lambda: {"a": x, "b": [x, None]}, lambda: {"a": -x, "b": [x, None]})
    )
    result = function(tf.constant(-3))
    assert (result["a"].numpy(), result["b"][1]) == (3, None)


# ---- loops


def test_loop_over_structures():
    def program(x):
        return tf.while_loop(
            lambda i, d: i < 3,
            lambda i, d: (i + 1, {"a": d["a"] * x, "b": (d["b"][0] + 1.0,)}),
            (tf.constant(0), {"a": x, "b": (x,)}),
        )[1]

    same(program, X)


@pytest.mark.parametrize("limit", [0, 3, 100])
def test_maximum_iterations(limit):
    def loop(n):
        return tf.while_loop(lambda i: i < 7, lambda i: i + 1, [tf.constant(0)], maximum_iterations=n)[0]

    assert tf.function(loop)(tf.constant(limit)).numpy() == min(7, limit)
    assert tf.function(loop)(limit).numpy() == min(7, limit)


def test_shape_invariants():
    def loop(x, invariants):
        return tf.while_loop(
            lambda a: tf.size(a) < 9, lambda a: (tf.concat([a, a], 0),), [x], shape_invariants=invariants
        )[0]

    grown = tf.function(lambda x: loop(x, [tf.TensorShape([None])]))(tf.constant([1.0, 2.0]))
    assert grown.shape == [16]
    with pytest.raises(
        ValueError, match=r"enters the loop with shape \(1,\), but has shape \(2,\) after one iteration"
    ):
        tf.function(lambda x: loop(x, None))(tf.constant([1.0]))
    with pytest.raises(ValueError, match="is not compatible with the initial shape"):
        tf.function(lambda x: loop(x, [tf.TensorShape([3])]))(tf.constant([1.0]))


def test_loop_variables_keep_their_dtype():
    loop = tf.function(lambda x: tf.while_loop(lambda a: a < 9, lambda a: (tf.cast(a, tf.float32),), [x]))
    with pytest.raises(TypeError, match=r"enters the loop with type <dtype: 'int32'> but has type <dtype: 'float32'>"):
        loop(tf.constant(1))


def test_nested_loops_with_gradients():
    def program(x):
        def inner(i, y):
            return tf.while_loop(lambda j, z: j < i, lambda j, z: (j + 1, z * x), (tf.constant(0), y))[1]

        return tf.while_loop(lambda i, y: i < 4, lambda i, y: (i + 1, inner(i, y)), (tf.constant(0), x))[1]

    same(program, X)


def test_loop_that_never_runs():
    def program(x):
        return tf.while_loop(lambda y: tf.reduce_sum(y) < 0, lambda y: y * y, [x])[0]

    same(program, X)


# ---- arrays of tensors


def test_array_of_growing_length():
    @tf.function
    def function(n):
        array = tf.TensorArray(tf.float32, 0, dynamic_size=True)
        for i in tf.range(n):
            array = array.write(i, tf.cast(i, tf.float32) ** 2)
        return array.stack(), array.size()

    for n in (0, 1, 4):
        rows, size = function(tf.constant(n))
        assert rows.numpy().tolist() == [float(i * i) for i in range(n)]
        assert size.numpy() == n


def test_array_methods():
    def program(x, i):
        array = tf.TensorArray(tf.float32, 3, clear_after_read=False).unstack(x)
        array = array.write(i, x[0] * x[1])
        return array.read(i) * array.stack() + tf.reduce_sum(array.gather([0, 2]))

    same(program, X, tf.constant(1))
    pairs = tf.constant([[1.0, 2.0], [3.0, 4.0]])
    same(lambda x, i: tf.TensorArray(tf.float32, 2).unstack(x).write(i, x[0] * 2.0).concat(), pairs, tf.constant(1))
    same(lambda x, i: tf.TensorArray(tf.float32, 3).scatter(i, x).stack(), X, tf.constant([2, 0, 1]))
    same(lambda x, n: tf.TensorArray(tf.float32, n).unstack(x).stack(), X, tf.constant(3))


def test_array_positions_that_do_not_exist():
    with pytest.raises(tf.errors.InvalidArgumentError, match="Trying to modify element 5 in a list with 3 elements"):
        tf.function(lambda i: tf.TensorArray(tf.float32, 3).write(i, 1.0).stack())(tf.constant(5))
    with pytest.raises(tf.errors.InvalidArgumentError, match="Trying to access element 5 in a list with 3 elements"):
        tf.function(lambda i: tf.TensorArray(tf.float32, 3, element_shape=[]).read(i))(tf.constant(5))


def test_what_was_not_written_is_zero():
    function = tf.function(lambda i: tf.TensorArray(tf.float32, 3, element_shape=[]).write(i, 1.0).stack())
    assert function(tf.constant(1)).numpy().tolist() == [0.0, 1.0, 0.0]


def test_arrays_in_branches():
    def program(x, flag):
        array = tf.TensorArray(tf.float32, 2).write(0, x)
        array = tf.cond(flag, lambda: array.write(1, x * x), lambda: array.write(1, x * 3.0))
        return array.stack()

    same(program, X, tf.constant(True))
    same(program, X, tf.constant(False))


def test_array_of_texts():
    @tf.function
    def function(n):
        array = tf.TensorArray(tf.string, 2)
        for i in tf.range(n):
            array = array.write(i, tf.as_string(i))
        return array.stack()

    assert function(tf.constant(2)).numpy().tolist() == [b"0", b"1"]


# ---- positions and sizes known when the graph runs


@pytest.mark.parametrize(
    "program",
    [
        lambda x, i: x[i],
        lambda x, i: x[i:],
        lambda x, i: x[:i] * 2.0,
        lambda x, i: x[i - 1 : i + 1, tf.newaxis],
        lambda x, i: x[..., ::i],
        lambda x, i: x[-i],
        lambda x, i: tf.zeros([i, 2]) + tf.reduce_sum(x),
        lambda x, i: tf.range(i, 5, dtype=tf.float32) * x[0],
        lambda x, i: tf.reshape(x, [i, 3]),
        lambda x, i: tf.fill([i], x[1]),
    ],
)
def test_symbolic_positions(program):
    same(program, X, tf.constant(1))
    same(program, X, tf.constant(1), signature=[*ANY, tf.TensorSpec([], tf.int32)])


def test_sizes():
    function = tf.function(lambda x: (tf.shape(x), tf.size(x), tf.rank(x)), input_signature=[tf.TensorSpec(None)])
    sizes, size, rank = function(tf.ones([2, 3]))
    assert (sizes.numpy().tolist(), size.numpy(), rank.numpy()) == ([2, 3], 6, 2)


def test_unconnected_zeros_of_a_size_known_when_it_runs():
    @tf.function(input_signature=ANY)
    def function(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = tf.constant(1.0)
        return tape.gradient(y, x, unconnected_gradients="zero")

    assert function(X).numpy().tolist() == [0.0, 0.0, 0.0]


def test_shapes_that_depend_on_elements():
    @tf.function
    def function(x):
        places, (distinct, _) = tf.where(x > 1), tf.unique(x)
        assert places.shape.as_list() == [None, 1]
        assert distinct.shape.as_list() == [None]
        return places, distinct

    places, distinct = function(tf.constant([1, 1, 2]))
    assert (places.numpy().tolist(), distinct.numpy().tolist()) == ([[2]], [1, 2])


# ---- composite tensors


def test_ragged_tensors_travel():
    ragged = tf.ragged.constant([[1.0], [2.0, 3.0]])
    chosen = tf.function(lambda r, flag: tf.cond(flag, lambda: r * 2.0, lambda: r))(ragged, tf.constant(True))
    assert chosen.to_list() == [[2.0], [4.0, 6.0]]
    _, looped = tf.function(
        lambda r: tf.while_loop(lambda i, r: i < 2, lambda i, r: (i + 1, r * 2.0), (tf.constant(0), r))
    )(ragged)
    assert looped.to_list() == [[4.0], [8.0, 12.0]]

    @tf.function
    def total(r):
        result = 0.0
        for row in r:
            result += tf.reduce_sum(row)
        return result

    assert total(ragged).numpy() == 6.0


def test_sparse_tensors_travel():
    def program(s):
        def step(i, s):
            return i + 1, s.with_values(s.values * 2.0)

        return tf.sparse.to_dense(tf.while_loop(lambda i, s: i < 2, step, (tf.constant(0), s))[1])

    assert tf.function(program)(tf.sparse.from_dense([[0.0, 1.0]])).numpy().tolist() == [[0.0, 4.0]]


# ---- what is refused


def test_switch_case_keys_are_checked():
    for branches in ({0: int, 5: int}, [(1, int), (1, int)], {-1: int, 0: int}):
        with pytest.raises(ValueError, match="must form contiguous range of"):
            tf.switch_case(tf.constant(0), branches)
    with pytest.raises(ValueError, match="at least one item in 'branch_fns'"):
        tf.switch_case(tf.constant(0), [])


def test_loops_that_cannot_be():
    with pytest.raises(ValueError, match="'loop_vars' must be provided"):
        tf.while_loop(lambda: True, lambda: (), [])
    with pytest.raises(TypeError, match="type should remain constant"):
        tf.function(lambda n: tf.while_loop(lambda i: i < n, lambda i: tf.cast(i, tf.float32), [0]))(tf.constant(3))

    def growing(i, x):
        return i + 1, tf.concat([x, x], 0)

    with pytest.raises(ValueError, match="enters the loop with shape"):
        tf.function(lambda n: tf.while_loop(lambda i, _: i < n, growing, [0, tf.ones([1])]))(tf.constant(3))


def test_unstack_more_than_there_is_room_for():
    with pytest.raises(ValueError, match="Cannot unstack 2 tensors into a TensorArray of static size 1"):
        tf.TensorArray(tf.float32, 1).unstack([1.0, 2.0])


def test_arrays_go_into_functions_and_come_out():
    @tf.function
    def function(x, array):
        return {"array": tf.TensorArray(tf.float32, 2).write(0, x).write(1, array.read(0)), "none": None, "x": x}

    result = function(tf.constant(3.0), tf.TensorArray(tf.float32, 1).write(0, 5.0))
    assert result["array"].stack().numpy().tolist() == [3, 5]
    assert (result["none"], result["x"].numpy()) == (None, 3)


def test_shape_invariants_of_ragged_tensors():
    def doubled(n):
        start = [tf.constant(0), tf.ragged.constant([[1], [2, 3]])]
        shapes = [tf.TensorShape([]), tf.TensorShape([None, None])]
        return tf.while_loop(lambda i, _: i < n, lambda i, r: (i + 1, tf.concat([r, r], 0)), start, shapes)[1]

    assert tf.function(doubled)(tf.constant(1)).to_list() == doubled(tf.constant(1)).to_list() == [[1], [2, 3]] * 2


def test_conditions_of_one_truth_value():
    assert int(tf.while_loop(lambda i: [i < 3], lambda i: i + 1, [tf.constant(0)])[0]) == 3
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"scalar, but it has shape \(2,\)"):
        tf.function(lambda x: tf.cond(x > 0.0, lambda: 1, lambda: 2))(tf.ones([2]))


def test_python_values_are_no_conditions_of_a_graph():
    with pytest.raises(TypeError, match="pred must not be a Python bool"):
        tf.function(lambda: tf.cond(True, lambda: 1, lambda: 2), autograph=False)()
    assert tf.cond(True, lambda: 1, lambda: 2) == 1
    with pytest.raises(TypeError, match="pred must be a Tensor, got: True"):
        tf.case([(True, lambda: 1)])


@pytest.mark.parametrize("branch", [0, 1, 2])
def test_indices_of_sparse_gradients_have_one_dtype(branch):
    """As in TensorFlow, IndexedSlices of int32 and int64 indices meet as int64."""

    def slices(dtype, value):
        return lambda: {"g": tf.IndexedSlices(tf.fill([2, 3], value), tf.constant([1, 0], dtype), tf.constant([4, 3]))}

    @tf.function
    def pair(which):
        return tf.cond(which == 0, slices(tf.int32, 1.0), slices(tf.int64, 2.0))["g"]

    @tf.function
    def several(which):
        choices = [slices(tf.int64, 1.0), slices(tf.int32, 2.0), slices(tf.int32, 3.0)]
        return tf.switch_case(which, choices)["g"]

    which = tf.constant(branch)
    for found, value in ((pair(which), min(branch, 1) + 1.0), (several(which), branch + 1.0)):
        assert found.indices.dtype == tf.int64
        assert found.indices.numpy().tolist() == [1, 0] and found.values.numpy().tolist() == [[value] * 3] * 2


def test_invariants_are_of_the_kind_of_their_values():
    invariants = [tf.TensorSpec([], tf.int32), tf.SparseTensorSpec([None])]
    sparse = tf.SparseTensor([[0]], [1.0], [10])

    @tf.function
    def count(i, x):
        return tf.while_loop(lambda i, _: i < 10, lambda i, x: (i + 1, x), [i, x], invariants)[0]

    assert count(tf.constant(0), sparse).numpy() == 10
    with pytest.raises(TypeError, match=r"SparseTensorSpec.* is not compatible with"):
        count(tf.constant(0), tf.constant([1.0]))
    with pytest.raises(TypeError, match=r"SparseTensorSpec.* is not compatible with tf\.RaggedTensor"):
        count(tf.constant(0), tf.ragged.constant([[1.0, 2.0], [3.0]]))
    with pytest.raises(TypeError, match=r"TensorSpec.*int32.* is not compatible with"):
        count(tf.constant(0.0), sparse)
