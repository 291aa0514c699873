"""Loss scales of TensorFlow 1, and the optimizers that use them."""

import pytest

import tapeflow as tf

v1 = tf.compat.v1
mixed_precision = v1.mixed_precision


@pytest.fixture(autouse=True)
def no_rewrite():
    yield
    mixed_precision.disable_mixed_precision_graph_rewrite()


def test_a_fixed_scale():
    scale = mixed_precision.FixedLossScale(3)
    assert scale().numpy() == 3.0 and scale.update([tf.constant(float("nan"))])[1] is True
    assert repr(type(scale).from_config(scale.get_config())) == "FixedLossScale(3.0)"
    with pytest.raises(ValueError, match="must be a Python int or float"):
        mixed_precision.FixedLossScale(tf.constant(3.0))


def test_a_scale_that_adapts():
    scale = mixed_precision.DynamicLossScale(4.0, increment_period=2, multiplier=2.0)
    finite, infinite = [tf.constant([1.0]), None], [tf.constant([1.0]), tf.constant(float("inf"))]
    values = []
    for grads in (finite, finite, finite, infinite, infinite, infinite, infinite):
        _, should_apply = scale.update(grads)
        assert bool(should_apply) == (grads is finite)
        values.append(float(scale()))
    assert values == [4.0, 8.0, 8.0, 4.0, 2.0, 1.0, 1.0]
    assert repr(scale).startswith("DynamicLossScale(current_loss_scale=1.0, num_good_steps=0, initial_loss_scale=4.0")
    largest = mixed_precision.DynamicLossScale(3e38, increment_period=1)
    largest.update(finite)
    assert largest().numpy() == tf.constant(3e38).numpy()


def test_a_scale_is_saved(tmp_path):
    scale, other = (mixed_precision.DynamicLossScale(4.0) for _ in range(2))
    scale.update([tf.constant(float("inf"))])
    tf.train.Checkpoint(scale=other).restore(tf.train.Checkpoint(scale=scale).save(str(tmp_path / "scale")))
    assert other().numpy() == 2.0


def test_gradients_that_are_not_finite_are_skipped():
    v = tf.Variable([1.0, 2.0])
    factor = tf.Variable(1.0, trainable=False)
    scale = mixed_precision.DynamicLossScale(8.0)
    opt = mixed_precision.MixedPrecisionLossScaleOptimizer(v1.train.MomentumOptimizer(0.5, 0.9), scale)
    opt.minimize(lambda: tf.reduce_sum(v * v) * factor, var_list=[v])
    assert v.numpy().tolist() == [0.0, 0.0] and scale().numpy() == 8.0
    factor.assign(float("inf"))
    opt.minimize(lambda: tf.reduce_sum(v + 1.0) * factor, var_list=[v])
    assert v.numpy().tolist() == [0.0, 0.0] and scale().numpy() == 4.0
    rows = tf.IndexedSlices(tf.constant([8.0]), tf.constant([1]), tf.constant([2]))
    assert opt._unscaled(rows).values.numpy().tolist() == [2.0] and opt._unscaled(None) is None


def test_in_a_graph():
    with tf.Graph().as_default(), v1.Session() as session:
        v, factor = v1.get_variable("v", initializer=1.0), v1.placeholder(tf.float32, [])
        opt = mixed_precision.enable_mixed_precision_graph_rewrite(v1.train.GradientDescentOptimizer(0.25))
        step = opt.minimize(v * v * factor, var_list=[v])
        session.run(v1.global_variables_initializer())
        seen = []
        for value in (1.0, float("inf"), 1.0):
            session.run(step, {factor: value})
            seen.append(session.run([v, opt._loss_scale()]))
        assert seen == [[0.5, 2.0**15], [0.5, 2.0**14], [0.25, 2.0**14]]


def test_the_switch():
    enabled = tf.__internal__.train.is_mixed_precision_graph_rewrite_enabled
    opt = mixed_precision.enable_mixed_precision_graph_rewrite(v1.train.GradientDescentOptimizer(0.1), 16.0)
    assert enabled() and opt._loss_scale().numpy() == 16.0
    with pytest.raises(ValueError, match="must not already be an instance"):
        mixed_precision.enable_mixed_precision_graph_rewrite(opt)
    with pytest.raises(ValueError, match="must be an instance of a"):
        mixed_precision.enable_mixed_precision_graph_rewrite("sgd")
    with pytest.raises(ValueError, match="Could not interpret loss scale"):
        mixed_precision.enable_mixed_precision_graph_rewrite(v1.train.GradientDescentOptimizer(0.1), "fixed")
    mixed_precision.disable_mixed_precision_graph_rewrite()
    assert not enabled()
    tf.__internal__.train.set_using_mixed_precision_policy(True)
    try:
        with pytest.raises(ValueError, match="global Keras dtype Policy"):
            mixed_precision.enable_mixed_precision_graph_rewrite(v1.train.GradientDescentOptimizer(0.1))
    finally:
        tf.__internal__.train.set_using_mixed_precision_policy(False)
