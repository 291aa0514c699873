"""Small programs of control flow whose results were compared with TensorFlow 2.21: eager, in functions, in sessions."""

import collections

import numpy as np
import pytest

import tapeflow as tf

Pair = collections.namedtuple("Pair", "a b")


def eagerly(program):
    return tf.nest.map_structure(lambda t: t.numpy(), program(), expand_composites=True)


def in_function(program):
    return tf.nest.map_structure(lambda t: t.numpy(), tf.function(program)(), expand_composites=True)


def in_session(program):
    with tf.compat.v1.Graph().as_default(), tf.compat.v1.Session() as session:
        tree = program()
        found = session.run(tf.nest.flatten(tree, expand_composites=True))
        return tf.nest.pack_sequence_as(tree, found, expand_composites=True)


EVERYWHERE = pytest.mark.parametrize("run", [eagerly, in_function, in_session])


def same(found, expected):
    for one, two in zip(tf.nest.flatten(found, True), tf.nest.flatten(expected, True), strict=True):
        np.testing.assert_allclose(one, two, rtol=1e-5)


# ---- loops


@EVERYWHERE
@pytest.mark.parametrize(
    ("program", "expected"),
    [
        (lambda: tf.while_loop(lambda i: i < 3, lambda i: (i + 1,), (tf.constant(0),)), [3]),
        (lambda: tf.while_loop(lambda i: i < 3, lambda i: [i + 1], [tf.constant(0)]), [3]),
        (lambda: tf.while_loop(lambda s: s.a < 3, lambda s: [Pair(s.a + 1, s.b * 2)], [Pair(0, 1.0)]), [3, 8]),
        (lambda: tf.while_loop(lambda a, b: a < 3, lambda a, b: Pair(a + 1, b * 2), Pair(0, 1.0)), [3, 8]),
        (lambda: tf.while_loop(lambda i, d: i < 3, lambda i, d: (i + 1, {"x": d["x"] * 2}), (0, {"x": 1.0})), [3, 8]),
        (lambda: tf.while_loop(lambda i, s: i < 3, lambda i, s: (i + 1, s + "x"), (0, tf.constant("a")))[0], [3]),
        (lambda: tf.while_loop(lambda i, b: b, lambda i, b: (i + 1, i < 3), (0, tf.constant(True)))[0], [4]),
    ],
)
def test_structures_of_loop_variables(run, program, expected):
    same(run(program), expected)


@EVERYWHERE
@pytest.mark.parametrize(("limit", "rounds"), [(5, 5), (0, 0), (-1, 0), ("tensor", 5)])
def test_maximum_iterations(run, limit, rounds):
    def program():
        most = tf.constant(5) if limit == "tensor" else limit
        return tf.while_loop(lambda i: i < 100, lambda i: (i + 1,), (tf.constant(0),), maximum_iterations=most)

    same(run(program), [rounds])


@EVERYWHERE
def test_maximum_iterations_must_be_a_number(run):
    for limit, error in ((5.5, TypeError), ([5], ValueError)):
        with pytest.raises(error, match="maximum_iterations"):
            run(
                lambda limit=limit: tf.while_loop(
                    lambda i: i < 9,
                    lambda i: (i + 1,),
                    (tf.constant(0),),
                    maximum_iterations=tf.constant(limit) if isinstance(limit, list) else limit,
                )
            )


@EVERYWHERE
def test_composite_loop_variables(run):
    ragged = run(
        lambda: (
            tf.while_loop(
                lambda i, _: i < 2,
                lambda i, r: (i + 1, tf.concat([r, r], axis=1)),
                (0, tf.ragged.constant([[1], [2, 3]])),
                shape_invariants=(tf.TensorShape([]), tf.RaggedTensorSpec([None, None], tf.int32)),
            )[1].flat_values
        )
    )
    assert ragged.tolist() == [1] * 4 + [2, 3] * 4
    matrix = lambda: tf.sparse.from_dense([[1, 0], [0, 2]])  # noqa: E731
    sparse = run(lambda: tf.while_loop(lambda i, _: i < 2, lambda i, s: (i + 1, s * 2), (0, matrix()))[1].values)
    assert sparse.tolist() == [4, 8]


@pytest.mark.parametrize("run", [in_function, in_session])
def test_what_a_round_may_not_change(run):
    def loop(body, start, **options):
        return lambda: tf.while_loop(lambda i, _: i < 3, lambda i, x: (i + 1, body(x)), (0, start()), **options)[1]

    one = lambda: tf.constant([1.0])  # noqa: E731
    with pytest.raises(TypeError, match=r"type .*float32.* but has type .*int32.* after 1 iteration"):
        run(loop(lambda x: tf.cast(x, tf.int32), one))
    with pytest.raises(ValueError, match=r"with shape \(1,\), but has shape \(2,\) after one iteration"):
        run(loop(lambda x: tf.concat([x, x], 0), one))
    with pytest.raises((ValueError, TypeError), match="structure"):
        run(loop(lambda x: (x, x), one))
    open_shape = (tf.TensorShape([]), tf.TensorShape([None]))
    assert run(loop(lambda x: tf.concat([x, x], 0), one, shape_invariants=open_shape)).tolist() == [1] * 8


def test_a_value_does_not_become_none():
    with pytest.raises(ValueError, match="None"):
        tf.while_loop(lambda i, _: i < 3, lambda i, _: (i + 1, None), (tf.constant(0), tf.constant(1)))


@pytest.mark.parametrize("loop", ["while_loop", "map_fn", "scan", "foldl", "foldr"])
def test_back_prop_false_in_a_graph(loop):
    def program(x):
        if loop == "while_loop":
            return tf.while_loop(lambda i, _: i < 3, lambda i, y: (i + 1, y * y), (0, x), back_prop=False)[1]
        if loop == "map_fn":
            return tf.map_fn(lambda t: t * t, x, back_prop=False)
        return getattr(tf, loop)(lambda a, t: a * t, x, back_prop=False)

    @tf.function
    def slope(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = program(x)
        return tape.gradient(y, x)

    assert slope(tf.constant([1.0, 2.0])) is None


def test_while_loop_of_tensorflow_1():
    loop = tf.compat.v1.while_loop
    bare = tf.function(lambda: loop(lambda i: i < 3, lambda i: i + 1, [tf.constant(0)]))()
    assert bare.numpy() == 3
    options = {"return_same_structure": True, "maximum_iterations": 2}
    (kept,) = tf.function(lambda: loop(lambda i: i < 3, lambda i: i + 1, [tf.constant(0)], **options))()
    assert kept.numpy() == 2


# ---- branches


@pytest.mark.parametrize("run", [eagerly, in_function, in_session])
def test_case_without_a_condition_that_holds(run):
    def program(x, **options):
        x = tf.constant(x)
        return tf.case([(x < 1, lambda: tf.constant(1)), (x < 3, lambda: tf.constant(2))], **options)

    assert run(lambda: program(2)) == 2
    assert run(lambda: program(5, default=lambda: tf.constant(3))) == 3
    with pytest.raises(tf.errors.InvalidArgumentError, match="None of conditions evaluated as True"):
        run(lambda: program(5))
    with pytest.raises(tf.errors.InvalidArgumentError, match="exclusive=True"):
        run(lambda: program(0, exclusive=True))
    with pytest.raises(TypeError, match="pred must be Tensor of type bool"):
        run(lambda: tf.case([(tf.constant(1), lambda: tf.constant(1))]))


@EVERYWHERE
def test_gradients_of_what_was_not_taken(run):
    def program():
        x, y = tf.constant(3.0), tf.constant(4.0)
        taken = lambda: tf.cond(tf.random.uniform([]) < 2, lambda: x * x, lambda: y)  # noqa: E731
        if run is in_session:
            return tf.compat.v1.gradients(taken(), [x, y])
        with tf.GradientTape() as tape:
            tape.watch([x, y])
            z = taken()
        slopes = tape.gradient(z, [x, y])
        return [slopes[0], tf.zeros([]) if run is eagerly and slopes[1] is None else slopes[1]]

    same(run(program), [6, 0])


def test_branches_of_tensorflow_1():
    v1 = tf.compat.v1
    one, two = (lambda: [tf.constant(1)]), (lambda: [tf.constant(2)])
    assert v1.cond(tf.constant(True), one, two).numpy() == 1
    assert [t.numpy() for t in v1.cond(tf.constant(True), one, two, strict=True)] == [1]
    assert v1.cond(tf.constant(False), fn1=one, fn2=two).numpy() == 2
    assert v1.case([(tf.constant(False), one)], default=two).numpy() == 2
    assert [t.numpy() for t in tf.function(lambda: v1.cond(tf.constant(True), one, two))()] == [1]
    with pytest.raises(TypeError, match="'true_fn' and 'fn1' may not be set simultaneously"):
        v1.cond(tf.constant(True), one, two, fn1=one)


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda: tf.cond(tf.constant(True), lambda: 1), "'false_fn' argument required"),
        (lambda: tf.cond(tf.constant(True), lambda: 1, 2), "'false_fn' must be callable"),
        (lambda: tf.case(3), "'pred_fn_pairs' must be a list, tuple, or dict"),
        (lambda: tf.switch_case(tf.constant(0), 3), "'branch_fns' must be a list, tuple, or dict"),
        (lambda: tf.switch_case(tf.constant(0), {"a": lambda: 1}), "key must be a Python `int`"),
    ],
)
def test_what_is_no_branch(call, text):
    with pytest.raises(tf.errors.InvalidArgumentError, match="scalar"):
        tf.switch_case(tf.constant([1]), [lambda: 1, lambda: 2])
    with pytest.raises(TypeError, match=text):
        call()


# ---- maps and folds


@EVERYWHERE
def test_scan_of_nothing(run):
    found = run(lambda: tf.scan(lambda a, x: a + x, tf.zeros([0, 2]), initializer=tf.zeros([2])))
    assert found.shape == (0, 2)


@EVERYWHERE
def test_rows_of_a_sparse_tensor(run):
    def program():
        x = tf.sparse.from_dense([[1, 0], [3, 2]])
        return tf.map_fn(lambda row: tf.sparse.to_dense(row) * 2, x, fn_output_signature=tf.int32)

    assert run(program).tolist() == [[2, 0], [6, 4]]


def test_results_that_change():
    with pytest.raises(ValueError, match="Incompatible shape for value"):
        tf.map_fn(tf.range, tf.constant([1, 3]))
    with pytest.raises(tf.errors.InvalidArgumentError):
        tf.map_fn(tf.range, tf.constant([1, 3]), infer_shape=False)
    with pytest.raises(ValueError, match="Incompatible shape for value"):
        tf.scan(lambda a, _: tf.concat([a, a], 0), tf.ones([2]), initializer=tf.ones([1]))
    cast = lambda: tf.scan(lambda a, _: tf.cast(a, tf.int32), tf.ones([2]), initializer=tf.ones([]))  # noqa: E731
    with pytest.raises(tf.errors.InvalidArgumentError, match="trying to write dtype int32"):
        cast()
    with pytest.raises(TypeError, match="after 1 iteration"):
        tf.function(cast)()


# ---- random numbers


def test_a_random_function_called_in_two_places():
    tf.random.set_seed(3)
    inner = tf.function(lambda: tf.random.uniform([2]))
    outer = tf.function(lambda: (inner(), inner()))
    first = np.ravel([*outer(), *outer()])
    assert len(set(first.tolist())) == 8
    tf.random.set_seed(3)
    np.testing.assert_array_equal(np.ravel([*outer(), *outer()]), first)


def test_random_numbers_of_rounds_come_in_order():
    def drawn(count):
        tf.random.set_seed(3)
        step = lambda i, s: (i + 1, tf.concat([s[1:], tf.random.uniform([1])], 0))  # noqa: E731
        return tf.function(lambda: tf.while_loop(lambda i, _: i < count, step, (0, tf.zeros([3])))[1])().numpy()

    three, two = drawn(3), drawn(2)
    np.testing.assert_array_equal(three[:2], two[1:])
    assert len(set(three.tolist())) == 3


def test_numbers_of_python_stay_numbers_in_an_eager_loop():
    seen = []

    def body(i, x):
        seen.append(type(i))
        return i + 1, x + i

    i, x = tf.while_loop(lambda i, x: i < 3, body, (0, tf.constant(0, tf.int64)))
    assert seen == [int, int, int] and isinstance(i, tf.Tensor) and (int(i), int(x), x.dtype) == (3, 3, tf.int64)


def test_an_eager_loop_gives_what_its_body_does():
    rounds = tf.while_loop(lambda i, x: i < 3, lambda i, x: (i + 1, x * 2.0), [tf.constant(0), tf.constant(1.0)])
    assert isinstance(rounds, tuple) and [float(x) for x in rounds] == [3.0, 8.0]
    none = tf.while_loop(lambda i, x: i < 0, lambda i, x: (i, x), [tf.constant(0), tf.constant(1.0)])
    assert isinstance(none, list)
