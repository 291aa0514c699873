"""Assertions: their classes and the words people match on; printing; raw operations by keyword."""

import logging
import sys

import numpy as np
import pytest

import tapeflow as tf


@pytest.mark.parametrize(
    ("call", "kind", "words"),
    [
        (
            lambda d: d.assert_equal([1, 2], [1, 3], message="m"),
            "InvalidArgumentError",
            "m\nCondition x == y did not hold",
        ),
        (lambda d: d.assert_less([2.0], [1.0]), "InvalidArgumentError", "Condition x < y did not hold"),
        (lambda d: d.assert_positive([1.0, -1.0]), "InvalidArgumentError", "Condition x > 0 did not hold element-wise"),
        (lambda d: d.assert_near([1.0], [1.1]), "InvalidArgumentError", "not equal to tolerance"),
        (lambda d: d.check_numerics([float("nan")], "bad"), "InvalidArgumentError", "bad : Tensor had NaN values"),
        (
            lambda d: d.Assert(False, [[1, 2, 3, 4]]),
            "InvalidArgumentError",
            "to be true. Summarized data: 1, 2, 3, ...",
        ),
        (lambda d: d.assert_rank([1], 2), ValueError, "must have rank 2.  Received rank 1"),
        (lambda d: d.assert_type(tf.constant(1), tf.float32), TypeError, "must be of type tf.float32; got tf.int32"),
        (lambda d: d.assert_shapes([(tf.zeros([2, 3]), ("N", 4))]), ValueError, "dimension 1 must have size 4"),
        (lambda d: d.assert_proper_iterable(tf.constant([1])), TypeError, "proper"),
    ],
)
def test_failures(call, kind, words):
    with pytest.raises(tf.errors.InvalidArgumentError if isinstance(kind, str) else kind) as caught:
        call(tf.debugging)
    assert words in str(caught.value)


def test_check_numerics_also_looks_at_the_gradient():
    x = tf.constant([0.0])
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = tf.sqrt(tf.debugging.check_numerics(x, "root"))
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"detected in gradient\. root"):
        tape.gradient(y, x)


def test_print(capsys):
    tf.print("a", tf.constant([1.0, 2.5, 3e-9, 4, 5, 6, 7, 8]), 3, [1, tf.constant(2)], output_stream=sys.stdout)
    tf.print(tf.constant([[1, 2], [3, 4]]), tf.constant(["a"]), sep=",", end="|", output_stream=sys.stdout)
    assert capsys.readouterr().out == 'a [1 2.5 3e-09 ... 6 7 8] 3 [1, 2]\n[[1 2]\n [3 4]],["a"]|'


def test_print_to_a_file(tmp_path):
    path = tmp_path / "log"
    for _ in range(2):
        tf.print("x", output_stream=f"file://{path}")
    assert path.read_text() == "x\nx\n"


def test_raw_operations_take_keywords_alone():
    assert float(tf.raw_ops.Sum(input=[1.0, 2.0], axis=0)) == 3.0
    with pytest.raises(TypeError):
        tf.raw_ops.Sum([1.0, 2.0], 0)
    with pytest.raises(TypeError, match="missing 1 required keyword argument: 'axis'"):
        tf.raw_ops.Sum(input=[1.0])
    with pytest.raises(TypeError, match="unexpected keyword argument 'keepdims'"):
        tf.raw_ops.Sum(input=[1.0], axis=0, keepdims=True)
    assert not hasattr(tf.raw_ops, "GatherGrad")


def test_symbols_of_shapes():
    scalar, one, square = tf.constant(5), tf.ones([1]), tf.ones([2, 2])
    check = tf.debugging.assert_shapes
    check([(scalar, ()), (one, ()), (scalar, (1,)), (one, "1"), (square, None), (scalar, "a"), (one, ("a",))])
    check(
        [(square, "A."), (tf.ones([1, 2, 3, 2]), "*BA"), (tf.ones([2, 3]), (..., "A", "B")), (square, np.array([2, 2]))]
    )
    for shapes, message in [
        (
            [(tf.constant([2, 2]), ())],
            "Specified explicitly.  Tensor .* dimension 0 must have size 1.  Received size 2",
        ),
        ([(scalar, ("a",)), (square, ("a", 2))], "Specified by tensor .* dimension 0 must have size 1"),
        ([(square, "N*")], "only allowed as the first entry"),
        ([(square, 2)], "must be an iterable"),
        ([(tf.ones([2, 3]), "*3D")], "dimension -2 must have size 3"),
        ([(square, "*ABC")], "must have rank at least 3"),
    ]:
        with pytest.raises(ValueError, match=message):
            check(shapes)


def test_ranks_are_integers():
    with pytest.raises(TypeError, match="must be of type"):
        tf.debugging.assert_rank([1, 2], 0.5)
    with pytest.raises(ValueError, match="Rank must be a scalar"):
        tf.debugging.assert_rank_in([1, 2], (1, [1, 2]))


def test_one_string_is_printed_without_quotes(capsys):
    @tf.function
    def show(x):
        tf.print(x, output_stream=sys.stdout)
        tf.print(x, x, output_stream=sys.stdout)

    show(tf.constant("ab"))
    show(tf.constant(["ab"]))
    assert capsys.readouterr().out == 'ab\n"ab" "ab"\n["ab"]\n["ab"] ["ab"]\n'


def test_an_object_that_becomes_a_tensor_of_the_graph():
    class Later:
        def __init__(self, make):
            self.make = make

        def __tf_tensor__(self, dtype=None, name=None):
            return self.make()

    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        x = tf.constant([1.0, 2.0])
        session.run(tf.compat.v1.debugging.assert_positive(Later(lambda: 1.0 + x)))
        with pytest.raises(tf.errors.InvalidArgumentError):
            session.run(tf.compat.v1.debugging.assert_positive(Later(lambda: 1.0 - x)))


@pytest.mark.parametrize(("level", "name"), [(logging.INFO, "INFO"), (0, "INFO"), (-1, "WARNING"), (-2, "ERROR")])
def test_levels_of_logging_are_streams(level, name):
    records = []
    handler = logging.Handler()
    handler.emit = records.append
    logger, before = tf.get_logger(), tf.get_logger().level
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    try:
        tf.print("text", output_stream=level)
    finally:
        logger.removeHandler(handler)
        logger.setLevel(before)
    assert [(record.levelname, record.getMessage()) for record in records] == [(name, "text")]
    with pytest.raises(ValueError, match="Unknown output stream"):
        tf.print("text", output_stream=7)


def test_errors_of_a_run_name_the_tensor():
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        x = tf.compat.v1.placeholder(tf.float32, name="my_tensor")
        for check, text in (
            (tf.debugging.assert_rank(x, 0), "Tensor my_tensor:0 must have rank 0"),
            (tf.debugging.assert_rank_at_least(x, 2), "Tensor my_tensor:0 must have rank at least 2"),
            (tf.compat.v1.assert_rank(x, 3), "Tensor my_tensor:0 must have rank 3"),
            (tf.debugging.assert_equal(x, 5.0), "x == y did not hold element-wise:"),
        ):
            with pytest.raises(tf.errors.InvalidArgumentError, match=text):
                session.run(check, {x: [1.0, 2.0]})
