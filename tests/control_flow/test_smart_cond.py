"""`tf.__internal__.smart_cond`: the condition decides at once where it is known."""

import pytest

import tapeflow as tf

smart_cond = tf.__internal__.smart_cond.smart_cond


@pytest.mark.parametrize("pred, expected", [(True, "yes"), (0, "no"), (1, "yes")])
def test_known(pred, expected):
    assert smart_cond(pred, lambda: "yes", lambda: "no") == expected
    assert smart_cond(tf.constant(bool(pred)), lambda: "yes", lambda: "no") == expected


def test_sizes_of_a_traced_shape_are_known():
    @tf.function(input_signature=[tf.TensorSpec([None, 4])])
    def last_or_only(x):
        return smart_cond(tf.shape(x)[-1] > 1, lambda: x[:, -1], lambda: tf.squeeze(x, -1))

    assert last_or_only(tf.constant([[1.0, 2.0, 3.0, 4.0]])).numpy().tolist() == [4.0]


def test_unknown():
    choose = tf.function(lambda pred: smart_cond(pred, lambda: tf.constant(1), lambda: tf.constant(2)))
    assert [int(choose(tf.constant(pred))) for pred in (True, False)] == [1, 2]


def test_errors():
    with pytest.raises(TypeError, match=r"must be a Tensor, or a Python bool, or 1 or 0. Received: pred=2 of type int"):
        smart_cond(2, lambda: 1, lambda: 2)
    with pytest.raises(TypeError, match=r"Argument `true_fn` must be callable. Received 1"):
        smart_cond(True, 1, lambda: 2)
