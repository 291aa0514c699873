"""Variables that `get_variable` makes eagerly."""

from tapeflow._src.compat.v1.variables import variable_store
from tapeflow.compat import v1 as tf


def test_eager_variables_belong_to_whoever_holds_them():
    assert tf.get_variable("w", [2]) is not tf.get_variable("w", [2])


def test_a_store_keeps_eager_variables():
    store = variable_store.EagerVariableStore()
    with store.as_default():
        w = tf.get_variable("w", [2], collections=["mine"])
        b = tf.get_variable("b", [2], trainable=False)
        assert tf.get_variable("w", [2]) is w
    assert store.variables() == [b, w]
    assert (store.trainable_variables(), store.non_trainable_variables()) == ([w], [b])
    copied = store.copy().variables()[1]
    assert copied is not w
    assert copied.numpy().tolist() == w.numpy().tolist()
