"""State of objects that are no variables."""

import tapeflow as tf


class Counter(tf.train.experimental.PythonState):
    def __init__(self, count):
        self.count = count

    def serialize(self):
        return str(self.count)

    def deserialize(self, string_value):
        self.count = int(string_value)


def test_a_checkpoint_keeps_it(tmp_path):
    path = tf.train.Checkpoint(counter=Counter(7), v=tf.Variable(1.0)).save(str(tmp_path / "point"))
    counter = Counter(0)
    tf.train.Checkpoint(counter=counter, v=tf.Variable(0.0)).restore(path)
    assert counter.count == 7
    assert "counter/.ATTRIBUTES/py_state" in [name for name, _ in tf.train.list_variables(path)]
