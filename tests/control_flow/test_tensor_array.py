"""tf.TensorArray: elements of different shapes, sizes and errors; eager, in functions and in sessions."""

import numpy as np
import pytest

import tapeflow as tf

X = np.array([1.0, 2.0, 3.0], np.float32)


def eagerly(program):
    with tf.GradientTape() as outer:
        x = tf.constant(X)
        outer.watch(x)
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = program(x)
        slope = tape.gradient(y, x)
    return [y, slope, outer.gradient(slope, x)]


def in_function(program):
    @tf.function(input_signature=[tf.TensorSpec([None])])
    def function(x):
        with tf.GradientTape() as outer:
            outer.watch(x)
            with tf.GradientTape() as tape:
                tape.watch(x)
                y = program(x)
            slope = tape.gradient(y, x)
        second = outer.gradient(slope, x)
        return [y, slope, tf.zeros_like(x) if second is None else second]

    return function(tf.constant(X))


def outside_function(program):
    return eagerly(tf.function(program))


def in_session(program):
    with tf.compat.v1.Graph().as_default(), tf.compat.v1.Session() as session:
        x = tf.compat.v1.placeholder(tf.float32, [None])
        y = program(x)
        (slope,) = tf.compat.v1.gradients(y, [x])
        (second,) = tf.compat.v1.gradients(slope, [x])
        wanted = [y, slope] if second is None else [y, slope, second]
        return session.run(wanted, {x: X})


def check(program, value, slope, second=None):
    for run in (eagerly, in_function, outside_function, in_session):
        found = run(program)
        np.testing.assert_allclose(found[0], value, rtol=1e-6, err_msg=run.__name__)
        np.testing.assert_allclose(found[1], slope, rtol=1e-6, err_msg=run.__name__)
        if second is not None:
            np.testing.assert_allclose(found[2], second, rtol=1e-6, err_msg=run.__name__)


def filled(x, size=3, **options):
    """The first numbers of the argument times one of them, in a loop: one number, then two, then three."""
    array = tf.TensorArray(tf.float32, size=size, infer_shape=False, **options)
    body = lambda i, array: (i + 1, array.write(i, x[: i + 1] * x[i]))  # noqa: E731
    return tf.while_loop(lambda i, _: i < 3, body, (tf.constant(0), array))[1]


# ---- elements of different shapes


@pytest.mark.parametrize("options", [{}, {"element_shape": [None]}, {"size": 0, "dynamic_size": True}])
def test_uneven_elements_written_in_a_loop(options):
    check(lambda x: filled(x, **options).concat(), [1, 2, 4, 3, 6, 9], [7, 8, 9], [4, 4, 4])


def test_uneven_elements_read_in_a_loop():
    def program(x):
        array = filled(x, clear_after_read=False)
        step = lambda i, s: (i + 1, s + tf.reduce_sum(array.read(i) ** 2))  # noqa: E731
        return tf.while_loop(lambda i, _: i < 3, step, (tf.constant(0), 0.0))[1]

    check(program, 147, [30, 72, 138])


def test_uneven_elements_written_before_and_read_in_a_loop():
    def program(x):
        array = tf.TensorArray(tf.float32, size=3, infer_shape=False, clear_after_read=False)
        array = array.write(0, x[:1] * 2).write(1, x[:2] * 3).write(2, x * x)
        step = lambda i, s: (i + 1, s + tf.reduce_sum(array.read(i)))  # noqa: E731
        return tf.while_loop(lambda i, _: i < 3, step, (tf.constant(0), 0.0))[1]

    check(program, 25, [7, 7, 6], [2, 2, 2])


def test_uneven_elements_of_several_dimensions():
    def program(x):
        array = tf.TensorArray(tf.float32, size=3, infer_shape=False)
        body = lambda i, array: (i + 1, array.write(i, x[: i + 1, None] * x[None, :]))  # noqa: E731
        return tf.while_loop(lambda i, _: i < 3, body, (tf.constant(0), array))[1].concat()

    rows = [np.outer(X[: i + 1], X) for i in range(3)]
    check(program, np.concatenate(rows), [28, 22, 16])


def test_empty_elements():
    def program(x):
        array = tf.TensorArray(tf.float32, size=4, infer_shape=False)
        body = lambda i, array: (i + 1, array.write(i, x[:i]))  # noqa: E731
        return tf.while_loop(lambda i, _: i < 4, body, (tf.constant(0), array))[1].concat()

    check(program, [1, 1, 2, 1, 2, 3], [3, 2, 1])


def test_split_by_lengths_that_are_not_known():
    def program(x):
        lengths = tf.cast(x, tf.int32)
        array = tf.TensorArray(tf.float32, size=3, infer_shape=False, clear_after_read=False)
        array = array.split(tf.concat([x, x * x], 0), lengths)
        return tf.reduce_sum(array.read(2) * x) + tf.reduce_sum(array.read(0)) + tf.reduce_sum(array.concat())

    check(program, 57, [7, 17, 34], [8, 14, 20])


def test_uneven_elements_in_branches():
    def program(x):
        array = tf.TensorArray(tf.float32, size=2, infer_shape=False)
        array = tf.cond(x[0] > 0, lambda: array.write(0, x * x).write(1, x[:1]), lambda: array.write(0, x).write(1, x))
        return array.concat()

    check(program, [1, 4, 9, 1], [3, 4, 6], [2, 2, 2])


def test_unstack_scatter_and_gather_of_uneven_arrays():
    def program(x):
        array = tf.TensorArray(tf.float32, size=3, infer_shape=False).unstack(x[:, None] * x)
        array = array.write(tf.cast(x[0], tf.int32), x[:2])
        array = array.scatter(tf.cast(x[:1], tf.int32) + 1, x[None] * 2)
        return tf.reduce_sum(array.gather([0, 2])) + tf.reduce_sum(array.concat())

    check(program, 39, [19, 7, 6], [8, 2, 2])


def test_what_does_not_fit_together():
    def unequal(x, how):
        array = filled(x)
        return array.gather([0, 1]) if how == "gather" else array.stack()

    for how in ("stack", "gather"):
        function = tf.function(lambda x, how=how: unequal(x, how))
        with pytest.raises(tf.errors.InvalidArgumentError, match="inconsistent shapes"):
            function(tf.constant(X))
    any_length = tf.function(input_signature=[tf.TensorSpec([None])])
    scalars = any_length(lambda x: tf.TensorArray(tf.float32, tf.size(x), infer_shape=False).unstack(x).concat())
    with pytest.raises(tf.errors.InvalidArgumentError, match="scalar"):
        scalars(tf.constant(X))
    unwritten = any_length(lambda x: tf.TensorArray(tf.float32, tf.size(x), infer_shape=False).write(0, x).read(1))
    with pytest.raises(tf.errors.InvalidArgumentError, match="never written"):
        unwritten(tf.constant(X))


def test_uneven_strings():
    @tf.function
    def function(n):
        array = tf.TensorArray(tf.string, size=n, infer_shape=False)
        for i in tf.range(n):
            array = array.write(i, tf.fill([i], tf.strings.as_string(i)))
        return array.concat()

    assert function(tf.constant(3)).numpy().tolist() == [b"1", b"2", b"2"]


# ---- sizes, reading twice, and errors


def test_unstack_decides_the_size():
    array = tf.TensorArray(tf.float32, size=4).unstack([1.0, 2.0, 3.0])
    assert array.size() == 3
    np.testing.assert_array_equal(array.stack(), [1, 2, 3])


def test_an_element_that_was_read_is_zero_in_the_stack():
    array = tf.TensorArray(tf.float32, size=2).unstack([1.0, 2.0])
    array.read(0)
    np.testing.assert_array_equal(array.stack(), [0, 2])
    with pytest.raises(tf.errors.InvalidArgumentError, match="twice"):
        array.read(0)


@pytest.mark.parametrize("index", [2, -1])
def test_places_that_do_not_exist(index):
    array = tf.TensorArray(tf.float32, size=2).unstack([1.0, 2.0])
    for use in (lambda array: array.read(index), lambda array: array.write(index, 1.0).stack()):
        with pytest.raises(tf.errors.OutOfRangeError):
            use(array)
        traced = tf.function(lambda use=use: use(tf.TensorArray(tf.float32, size=2).unstack([1.0, 2.0])))
        with pytest.raises(tf.errors.InvalidArgumentError, match=f"element {index} in a list with 2 elements"):
            traced()


def test_a_size_is_needed():
    with pytest.raises(ValueError, match="Size must be declared for TensorArrays"):
        tf.TensorArray(tf.float32)
    with pytest.raises(ValueError, match="Argument `size` must be provided"):
        tf.function(lambda: tf.TensorArray(tf.float32).stack())()
    with pytest.raises(tf.errors.InvalidArgumentError, match="non negative"):
        tf.function(lambda: tf.TensorArray(tf.float32, size=-1).stack())()
    with pytest.raises(tf.errors.InvalidArgumentError, match="size is not equal to the size of lengths"):
        tf.TensorArray(tf.float32, size=3).split([1.0, 2.0, 3.0], [1, 2])


def test_concat_of_nothing_keeps_the_inner_shape():
    array = tf.TensorArray(tf.float32, size=0, element_shape=[None, 2])
    assert array.concat().shape == [0, 2]


def test_gradient_of_elements_gathered_twice():
    """TensorFlow counts an element once in graphs, however often it was gathered."""
    program = lambda x: tf.TensorArray(tf.float32, size=3).unstack(x).gather([2, 0, 2])  # noqa: E731
    check(program, [3, 1, 3], [1, 0, 2])


def test_scatter_into_a_growing_array():
    """TensorFlow puts the rows in other places in graphs."""
    array = lambda: tf.TensorArray(tf.float32, size=0, dynamic_size=True, element_shape=[2])  # noqa: E731
    program = lambda: array().scatter([2, 0], [[1.0, 2.0], [3.0, 4.0]]).stack()  # noqa: E731
    for run in (program, tf.function(program)):
        np.testing.assert_array_equal(run(), [[3, 4], [0, 0], [1, 2]])


def test_positions_in_a_list_that_are_not_known():
    @tf.function
    def f(i):
        array = tf.TensorArray(tf.float32, size=3).unstack([1.0, 2.0, 3.0])
        return array.gather([i, 0]), array.scatter([i, 0], [7.0, 8.0]).stack()

    gathered, scattered = f(tf.constant(2))
    np.testing.assert_array_equal(gathered, [3.0, 1.0])
    np.testing.assert_array_equal(scattered, [8.0, 2.0, 7.0])


def test_a_staged_loop_fills_a_buffer():
    """Tracing does not go over the elements, so that loops over 10**7 rows begin at once and Ctrl-C ends them."""
    with tf.Graph().as_default():
        array = tf.TensorArray._of_loop(tf.float32, 1_000, [2])
        assert array._tensors == []
        assert array.size().shape == []
        assert array.write(3, [1.0, 2.0])._tensors == []
    many = tf.ones([1_000])
    f = tf.function(lambda x: (tf.map_fn(lambda row: row * 2.0, x), tf.scan(lambda s, row: s + row, x)))
    doubled, sums = f(many)
    assert doubled.numpy().sum() == 2_000.0
    assert sums.numpy()[-1] == 1_000.0


def test_what_is_read_has_dense_gradients():
    @tf.function
    def gradient(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            array = tf.TensorArray(tf.float32, size=2).unstack(x)
            y = array.read(0) + 2.0 * array.read(1)
        return tape.gradient(y, x)

    found = gradient(tf.constant([[1.0, 2.0], [3.0, 4.0]]))
    assert isinstance(found, tf.Tensor)
    np.testing.assert_array_equal(found, [[1.0, 1.0], [2.0, 2.0]])
