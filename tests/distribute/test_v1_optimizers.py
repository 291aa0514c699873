"""`tf.compat.v1.train` optimizers in the replicas of a strategy: they add the gradients of all of them."""

import numpy as np
import pytest

import tapeflow as tf

OPTIMIZERS = {
    "sgd": lambda: tf.compat.v1.train.GradientDescentOptimizer(0.1),
    "momentum": lambda: tf.compat.v1.train.MomentumOptimizer(0.1, 0.9),
    "adam": lambda: tf.compat.v1.train.AdamOptimizer(0.05, epsilon=1e-3),
    "rmsprop": lambda: tf.compat.v1.train.RMSPropOptimizer(0.05, momentum=0.3, epsilon=1e-3, centered=True),
}


def trained(strategy, optimizer, traced):
    rows = np.random.default_rng(0)
    x, labels = rows.normal(size=[8, 4]).astype("float32"), rows.integers(0, 3, 8)
    dataset = tf.data.Dataset.from_tensor_slices((x, labels)).batch(8).repeat(3)
    with strategy.scope():
        w, e = tf.Variable(tf.ones([4, 3]) * 0.1), tf.Variable(tf.ones([3, 4]))
        count = tf.Variable(0, dtype=tf.int64, trainable=False)
        optimizer = optimizer()

    def replica(x, labels):
        with tf.GradientTape() as tape:
            logits = (x + tf.gather(e, labels)) @ w
            loss = tf.reduce_sum(tf.nn.sparse_softmax_cross_entropy_with_logits(labels, logits)) / 8
        pairs = zip(tape.gradient(loss, [w, e]), [w, e])
        optimizer.apply_gradients(pairs, global_step=count)
        return loss

    def step(x, labels):
        return strategy.reduce("SUM", strategy.run(replica, args=(x, labels)), axis=None)

    step = tf.function(step) if traced else step
    losses = [step(x, labels).numpy() for x, labels in strategy.experimental_distribute_dataset(dataset)]
    copies = [copy.numpy() for copy in strategy.experimental_local_results(w)]
    return losses, copies, e.numpy(), int(count)


@pytest.mark.parametrize("traced", [False, True])
@pytest.mark.parametrize("name", OPTIMIZERS)
def test_gradients_of_all_replicas_are_added(name, traced):
    losses, (w,), e, _ = trained(tf.distribute.OneDeviceStrategy("CPU:0"), OPTIMIZERS[name], traced)
    found, copies, found_e, count = trained(
        tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"]), OPTIMIZERS[name], traced
    )
    assert count == 3 and len(copies) == 2
    np.testing.assert_allclose(found, losses, rtol=1e-5)
    for copy in copies:
        np.testing.assert_allclose(copy, w, rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(found_e, e, rtol=1e-4, atol=1e-6)


def test_minimize_in_replicas():
    strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
    with strategy.scope():
        v = tf.Variable(1.0)
        optimizer = tf.compat.v1.train.GradientDescentOptimizer(0.1)
    strategy.run(lambda: optimizer.minimize(lambda: v**2))
    assert [copy.numpy() for copy in strategy.experimental_local_results(v)] == pytest.approx([0.6, 0.6])
    with strategy.scope(), pytest.raises(RuntimeError, match=r"Use `_distributed_apply\(\)`"):
        optimizer.apply_gradients([(tf.constant(1.0), v)])
