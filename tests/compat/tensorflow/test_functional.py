"""Control flow over functions, by TensorFlow's inner names."""

import pytest

import tapeflow as tf
from tapeflow._src.compat.tensorflow.inner_modules import table

functional = table.find("python.ops.functional_ops")


def test_loops_and_branches():
    total = functional.While([tf.constant(4.0), 0.0], lambda n, s: n > 0, lambda n, s: (n - 1, s + n))
    assert [x.numpy() for x in total] == [0.0, 10.0]
    assert functional.For(0, 5, 2, [1.0], lambda i, x: x + tf.cast(i, tf.float32))[0].numpy() == 7.0
    assert functional.For(5, 0, -2, [1.0], lambda i, x: x + tf.cast(i, tf.float32))[0].numpy() == 10.0
    for test, wanted in ((True, 2.0), (0, 3.0), ("", 3.0), ("x", 2.0), ([], 3.0), ([0], 2.0)):
        found = functional.If(tf.constant(test), [1.0], lambda x: x + 1, lambda x: x + 2)
        assert found[0].numpy() == wanted
    case = table.find("python.ops.gen_functional_ops").case
    assert [case(i, [1.0], [tf.float32], [lambda x: x, lambda x: -x])[0].numpy() for i in (0, 1, 7)] == [
        1.0,
        -1.0,
        -1.0,
    ]


def test_raw_operations_take_keywords():
    operations = table.find("python.ops.gen_math_ops")
    assert operations.add(1.0, 2.0).numpy() == operations.Add(x=1.0, y=2.0).numpy() == 3.0
    with pytest.raises(TypeError, match="Add only takes keyword args"):
        operations.Add(1.0, 2.0)
    with pytest.raises(TypeError, match="only takes keyword args"):
        tf.raw_ops.Add(1.0, 2.0)
