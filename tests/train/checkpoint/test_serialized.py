"""Objects that give the tensors which a checkpoint keeps for them."""

import importlib

import pytest

import tapeflow as tf

Trackable = tf.__internal__.tracking.Trackable


class Pair(Trackable):
    def __init__(self, left, right):
        self.left, self.right = tf.Variable(left), tf.Variable(right)

    def _serialize_to_tensors(self):
        return {"left": self.left, "right": self.right}

    def _restore_from_tensors(self, restored_tensors):
        return tf.group(self.left.assign(restored_tensors["left"]), self.right.assign(restored_tensors["right"]))


@pytest.fixture
def prefix(tmp_path):
    return str(tmp_path / "model")


def test_tensors_have_keys_of_their_own(prefix):
    root, child = Pair(1, 2), Pair(3, 4)
    checkpoint = tf.train.Checkpoint(root=root, child=child)
    path = checkpoint.write(prefix)
    reader = tf.train.load_checkpoint(path)
    assert reader.get_tensor("/.ATTRIBUTES/left") == 1 and reader.get_tensor("child/.ATTRIBUTES/right") == 4
    tf.install_as_tensorflow()
    graph = importlib.import_module("tensorflow.python.checkpoint.checkpoint").object_metadata(path)
    assert {a.name: a.checkpoint_key for a in graph.nodes[1].attributes} == {
        "left": "child/.ATTRIBUTES/left",
        "right": "child/.ATTRIBUTES/right",
    }
    for variable in (root.left, root.right, child.left, child.right):
        variable.assign(0)
    checkpoint.read(path).assert_consumed().assert_existing_objects_matched()
    assert [v.numpy() for v in (root.left, root.right, child.left, child.right)] == [1, 2, 3, 4]


def test_an_object_that_the_checkpoint_lacks_is_reported(prefix):
    path = tf.train.Checkpoint(a=tf.Variable(1)).write(prefix)
    other = tf.train.Checkpoint(a=tf.Variable(0), pair=Pair(1, 2))
    with pytest.raises(AssertionError, match="not bound to checkpointed values"):
        other.read(path).assert_existing_objects_matched()


def test_in_a_session(prefix):
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        pair = Pair(1.0, 2.0)
        session.run([pair.left.initializer, pair.right.initializer])
        checkpoint = tf.train.Checkpoint(pair=pair)
        path = checkpoint.write(prefix)
        session.run([pair.left.assign(0.0), pair.right.assign(0.0)])
        checkpoint.read(path).assert_consumed().run_restore_ops()
        assert session.run([pair.left, pair.right]) == [1.0, 2.0]


def test_values_may_be_computed_when_a_checkpoint_is_written(prefix):
    tf.install_as_tensorflow()
    deferred = importlib.import_module("tensorflow.python.checkpoint.tensor_callable").Callable

    class Counted(Trackable):
        def __init__(self):
            self.count = tf.Variable(0)

        def _serialize_to_tensors(self):
            def step():
                return self.count.assign_add(1)

            return {"count": deferred(step, self.count.dtype, self.count.device)}

        def _restore_from_tensors(self, restored_tensors):
            self.count.assign(restored_tensors["count"])

    counted = Counted()
    checkpoint = tf.train.Checkpoint(counted=counted)
    first = checkpoint.write(prefix)
    checkpoint.write(prefix + "2")
    assert counted.count.numpy() == 2
    checkpoint.read(first)
    assert counted.count.numpy() == 1
