"""Composite tensors that a program defines: what operations do with them."""

import pytest

import tapeflow as tf


class PairSpec(tf.TypeSpec):
    value_type = property(lambda self: Pair)

    def __init__(self, shape, dtype):
        self.shape, self.dtype = tf.TensorShape(shape), dtype

    def _serialize(self):
        return self.shape, self.dtype

    @property
    def _component_specs(self):
        return [tf.TensorSpec(self.shape, self.dtype)] * 2

    def _to_components(self, value):
        return [value.left, value.right]

    def _from_components(self, components):
        return Pair(*components)


class Pair(tf.__internal__.CompositeTensor):
    def __init__(self, left, right):
        self.left, self.right = left, right

    @property
    def _type_spec(self):
        return PairSpec(self.left.shape, self.left.dtype)


class Point(tf.experimental.ExtensionType):
    left: tf.Tensor
    right: tf.Tensor


@pytest.mark.parametrize("kind", [Pair, Point])
@pytest.mark.parametrize("wrap", [lambda f: f, tf.function], ids=["eager", "function"])
def test_identity_hands_on_all_tensors(kind, wrap):
    left, right = tf.constant([1.0, 2.0]), tf.constant([3.0, 4.0])
    with tf.GradientTape(persistent=True) as tape:
        tape.watch([left, right])
        pair = wrap(lambda a, b: tf.identity(kind(a, b), name="pair"))(left, right)
        cut = wrap(lambda a, b: tf.stop_gradient(kind(a, b)))(left, right)
        y, z = pair.left * pair.right, cut.left * right
    assert type(pair) is kind and y.numpy().tolist() == [3.0, 8.0]
    assert [g.numpy().tolist() for g in tape.gradient(y, [left, right])] == [[3.0, 4.0], [1.0, 2.0]]
    assert tape.gradient(z, left) is None and tape.gradient(z, right).numpy().tolist() == [1.0, 2.0]
    with pytest.raises((TypeError, ValueError), match=r"to (a )?Tensor"):
        wrap(lambda a, b: tf.abs(kind(a, b)))(left, right)


def test_a_graph_of_tensorflow_1_takes_them():
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        pair = tf.identity(Pair(tf.constant([1.0]), tf.constant([2.0])))
        assert session.run(pair.right).tolist() == [2.0]


def test_sparse_tensors_lose_their_gradient():
    values = tf.constant([5.0])
    with tf.GradientTape() as tape:
        tape.watch(values)
        sparse = tf.stop_gradient(tf.SparseTensor([[0, 1]], values, [2, 2]))
        y = tf.sparse.reduce_sum(sparse)
    assert float(y) == 5.0 and tape.gradient(y, values) is None


def test_a_composite_that_becomes_a_tensor_is_an_operand():
    class Parameter(tf.__internal__.CompositeTensor):
        def __tf_tensor__(self, dtype=None, name=None):
            return tf.constant([2.0, 4.0])

    x = tf.constant([1.0, 2.0])
    for found, want in ((x / Parameter(), [0.5, 0.5]), (Parameter() - x, [1, 2]), (x < Parameter(), [True, True])):
        assert found.numpy().tolist() == want
