"""Variables that are kept in parts: how partitioners divide them, and what operations see of them."""

import numpy as np
import pytest

import tapeflow as tf
from tapeflow._src.compat.v1.variables.partitions import PartitionedVariable

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


def test_parts_know_where_they_are():
    with tf.Graph().as_default():
        parts = v1.create_partitioned_variables([5, 2], [3, 1], tf.constant([[1, 2]] * 5))
        assert [part._save_slice_info.spec for part in parts] == ["5 2 0,2:0,2", "5 2 2,2:0,2", "5 2 4,1:0,2"]
        assert {part.dtype for part in parts} == {tf.int32}
        again = PartitionedVariable("w", [5, 2], tf.int32, parts[::-1], [3, 1])
        assert list(again) == parts
        with pytest.raises(ValueError, match="full shapes must match"):
            PartitionedVariable("w", [6, 2], tf.int32, parts, [3, 1])
        with pytest.raises(ValueError, match="may not be empty"):
            PartitionedVariable("w", [5, 2], tf.int32, [], [3, 1])


def test_specs_of_parts_can_be_read():
    info = tf.Variable.SaveSliceInfo.from_spec("4 3 2,2:0,3")
    assert (info.full_shape, info.var_offset, info.var_shape) == ([4, 3], [2, 0], [2, 3])
    for spec, what in [("4", "space-separated"), ("x 0,1", "sequence of integers"), ("4 0", "comma-separated pairs")]:
        with pytest.raises(ValueError, match=what):
            tf.Variable.SaveSliceInfo.from_spec(spec)


def test_a_tensor_is_divided_by_its_own_shape():
    with tf.Graph().as_default(), v1.Session() as session:
        w = v1.get_variable("w", initializer=tf.constant([1.0, 2.0]), partitioner=v1.fixed_size_partitioner(2))
        session.run(v1.global_variables_initializer())
        session.run(w.assign_add(tf.constant([10.0, 20.0])))
        np.testing.assert_array_equal(session.run(w.as_tensor()), [11.0, 22.0])
        assert w.as_tensor().op.type == "Identity"


def make_whole(session, parts, first=None):
    w = v1.get_variable("net/w", [5, 2], initializer=first, partitioner=v1.fixed_size_partitioner(parts))
    b = v1.get_variable("net/b", [2])
    session.run(v1.global_variables_initializer())
    return w, b


def test_files_hold_the_whole(tmp_path):
    values = np.arange(10, dtype=np.float32).reshape(5, 2)
    path = str(tmp_path / "model")
    with tf.Graph().as_default(), v1.Session() as session:
        make_whole(session, 3, tf.constant(values))
        v1.train.Saver().save(session, path)
    assert tf.train.list_variables(path) == [("net/b", [2]), ("net/w", [5, 2])]
    np.testing.assert_array_equal(tf.train.load_variable(path, "net/w"), values)
    with tf.Graph().as_default(), v1.Session() as session:  # another number of parts
        w, _ = make_whole(session, 2)
        v1.train.Saver().restore(session, path)
        np.testing.assert_array_equal(session.run(w.as_tensor()), values)
    with tf.Graph().as_default(), v1.Session() as session:
        v1.train.import_meta_graph(f"{path}.meta").restore(session, path)
        np.testing.assert_array_equal(session.run("net/w/part_1:0"), values[2:4])
        assert [v._save_slice_info.spec for v in v1.global_variables()[:2]] == ["5 2 0,2:0,2", "5 2 2,2:0,2"]


def test_names_for_wholes_in_files(tmp_path):
    path = str(tmp_path / "model")
    with tf.Graph().as_default(), v1.Session() as session:
        w, b = make_whole(session, 3, v1.ones_initializer())
        saver = v1.train.Saver({"weights": w, "bias": b, "middle": list(w)[1]})
        saver.save(session, path)
        session.run(w.assign(np.zeros([5, 2], np.float32)))
        v1.train.Saver({"weights": list(w)}).restore(session, path)
        np.testing.assert_array_equal(session.run(w.as_tensor()), np.ones([5, 2]))
    assert tf.train.list_variables(path) == [("bias", [2]), ("middle", [2, 2]), ("weights", [5, 2])]
    with tf.Graph().as_default(), v1.Session() as session:
        w = v1.get_variable("w", [4, 2], partitioner=v1.fixed_size_partitioner(2))
        with pytest.raises(tf.errors.InvalidArgumentError, match="does not match the shape stored"):
            v1.train.Saver({"weights": w}).restore(session, path)


def test_parts_of_a_value_that_is_not_whole_stay_alone(tmp_path):
    path = str(tmp_path / "model")
    with tf.Graph().as_default(), v1.Session() as session:
        w, _ = make_whole(session, 3, v1.ones_initializer())
        saver = v1.train.Saver(list(w)[:1])
        saver.save(session, path)
        assert tf.train.list_variables(path) == [("net/w/part_0", [2, 2])]
        saver.restore(session, path)
