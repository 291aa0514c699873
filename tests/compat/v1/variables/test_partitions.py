"""Variables that are kept in parts: how partitioners divide them, and what operations see of them."""

import numpy as np
import pytest

import tapeflow as tf

v1 = tf.compat.v1


@pytest.mark.parametrize(
    ("partitioner", "counts"),
    [
        (v1.fixed_size_partitioner(2), [2, 1]),
        (v1.fixed_size_partitioner(9, axis=1), [1, 3]),
        (v1.variable_axis_size_partitioner(24), [2, 1]),
        (v1.variable_axis_size_partitioner(16, max_shards=3), [3, 1]),
        (v1.min_max_variable_partitioner(max_partitions=3, min_slice_size=4), [3, 1]),
        (v1.min_max_variable_partitioner(max_partitions=3, min_slice_size=24), [2, 1]),
    ],
)
def test_partitioners(partitioner, counts):
    assert partitioner(shape=tf.TensorShape([4, 3]), dtype=tf.float32) == counts


def test_partitioners_refuse_what_makes_no_sense():
    with pytest.raises(ValueError, match="`max_shards` must be positive"):
        v1.variable_axis_size_partitioner(16, max_shards=0)
    with pytest.raises(ValueError, match="Cannot partition variable along axis 2"):
        v1.min_max_variable_partitioner(2, axis=2)(tf.TensorShape([4, 3]), tf.float32)


def test_a_variable_in_parts():
    with tf.Graph().as_default(), v1.Session() as session:
        with v1.variable_scope("layer", partitioner=v1.fixed_size_partitioner(3)):
            w = v1.get_variable("w", [5, 2], initializer=v1.ones_initializer())
        assert (w.name, w.shape, len(w)) == ("layer/w", [5, 2], 3)
        assert [part.name for part in w] == [f"layer/w/part_{i}:0" for i in range(3)]
        assert [part.shape[0] for part in w] == [2, 2, 1]
        loss = tf.reduce_sum(tf.convert_to_tensor(w) * [[1.0, 2.0]])
        step = v1.train.GradientDescentOptimizer(1.0).minimize(loss)
        session.run(v1.global_variables_initializer())
        assert session.run(loss) == 15.0
        session.run(step)
        np.testing.assert_array_equal(session.run(w.as_tensor()), [[0.0, -1.0]] * 5)
        session.run(w.assign(np.arange(10, dtype=np.float32).reshape(5, 2)))
        np.testing.assert_array_equal(session.run(list(w)[2]), [[8.0, 9.0]])
        with v1.variable_scope("layer", reuse=True, partitioner=v1.fixed_size_partitioner(3)):
            assert v1.get_variable("w", [5, 2]) is w
        with (
            v1.variable_scope("layer", reuse=True, partitioner=v1.fixed_size_partitioner(2)),
            pytest.raises(ValueError, match="specified partitions"),
        ):
            v1.get_variable("w", [5, 2])


def test_the_parts_alone():
    with tf.Graph().as_default(), v1.Session() as session:
        parts = v1.create_partitioned_variables([3, 2], [1, 2], tf.constant([[1.0, 2.0]] * 3))
        session.run(v1.global_variables_initializer())
        assert [part.name for part in parts] == ["PartitionedVariable/part_0:0", "PartitionedVariable/part_1:0"]
        np.testing.assert_array_equal(session.run(parts[1]), [[2.0]] * 3)
        with pytest.raises(ValueError, match="Can only slice a variable along one dimension"):
            v1.create_partitioned_variables([4, 2], [2, 2], v1.ones_initializer())
