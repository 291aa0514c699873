"""Lists, dictionaries and tuples that an object holds."""

import copy

import tapeflow as tf

wrap = tf.__internal__.tracking.wrap


class Layer(tf.Module):
    def __init__(self):
        super().__init__()
        self.w = tf.Variable(1.0)
        self.b = tf.Variable(2.0, trainable=False)

    trainable_weights = property(lambda self: [self.w])
    non_trainable_weights = property(lambda self: [self.b])


def test_containers_know_the_layers_inside():
    layer, variable = Layer(), tf.Variable(3.0)
    held = wrap([layer, [variable], {"x": Layer()}])
    assert [type(x).__name__ for x in held[1:]] == ["ListWrapper", "_DictWrapper"]
    assert held.layers[0] is layer and len(held.layers) == 2
    assert [v.numpy() for v in held.trainable_weights] == [1.0, 3.0, 1.0]
    assert [v.numpy() for v in held.non_trainable_weights] == [2.0, 2.0]
    assert list(held._trackable_children()) == ["0", "1", "2"]


def test_containers_are_lists_and_dictionaries():
    held = wrap([1, 2])
    held += [3]
    held[0] = 5
    assert held == [5, 2, 3] and isinstance(held, list)
    assert tf.nest.map_structure(lambda x: x + 1, wrap({"a": 1, "b": [2]})) == {"a": 2, "b": [3]}
    assert copy.deepcopy(held) == [5, 2, 3]
    assert wrap((1, 2)) == (1, 2) and type(wrap((1, 2))) is tuple
    assert len({wrap([1]), wrap([1])}) == 2  # found by identity, as objects are


def test_checkpoint_of_containers(tmp_path):
    first, second = tf.Module(), tf.Module()
    for module, value in ((first, 1.0), (second, 0.0)):
        variables = [tf.Variable(value), {"x": tf.Variable(value + 1)}]
        module.held = tf.__internal__.tracking.sticky_attribute_assignment(module, "held", variables)
    path = tf.train.Checkpoint(first).write(tmp_path / "model")
    tf.train.Checkpoint(second).read(path).assert_consumed()
    assert second.held[0].numpy() == 1.0 and second.held[1]["x"].numpy() == 2.0
