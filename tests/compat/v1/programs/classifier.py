"""A classifier with a hidden layer: batches, dropout, a falling learning rate, saving and restoring."""

import os
import tempfile

import numpy as np
import tensorflow.compat.v1 as tf

tf.disable_v2_behavior()
tf.set_random_seed(2)
rng = np.random.default_rng(0)
features = rng.normal(size=(200, 4)).astype("float32")
labels = (features[:, 0] * features[:, 1] > 0).astype("int32")


def layer(x, size, name, activation=None):
    with tf.variable_scope(name, reuse=tf.AUTO_REUSE):
        w = tf.get_variable("w", [int(x.shape[1]), size], initializer=tf.glorot_uniform_initializer(seed=3))
        b = tf.get_variable("b", [size], initializer=tf.constant_initializer(0.0))
        y = tf.nn.bias_add(tf.matmul(x, w), b)
        return activation(y) if activation else y


x = tf.placeholder(tf.float32, [None, 4], name="x")
y = tf.placeholder(tf.int32, [None], name="y")
keep = tf.placeholder_with_default(1.0, shape=[])
hidden = tf.nn.dropout(layer(x, 32, "hidden", tf.nn.relu), keep_prob=keep)
logits = layer(hidden, 2, "out")
loss = tf.losses.sparse_softmax_cross_entropy(labels=y, logits=logits)
loss += 1e-4 * tf.add_n([tf.nn.l2_loss(v) for v in tf.trainable_variables() if v.name.endswith("w:0")])
accuracy = tf.reduce_mean(tf.to_float(tf.equal(tf.argmax(logits, 1, output_type=tf.int32), y)))
step = tf.train.get_or_create_global_step()
rate = tf.train.exponential_decay(0.02, step, 100, 0.7, staircase=True)
optimizer = tf.train.AdamOptimizer(rate)
pairs = optimizer.compute_gradients(loss)
clipped, _ = tf.clip_by_global_norm([dx for dx, _ in pairs], 5.0)
train = optimizer.apply_gradients(zip(clipped, [v for _, v in pairs]), global_step=step)
saver = tf.train.Saver()
folder = tempfile.mkdtemp()

with tf.Session() as session:
    session.run(tf.global_variables_initializer())
    for _ in range(300):
        rows = rng.integers(0, 200, 32)
        session.run(train, feed_dict={x: features[rows], y: labels[rows], keep: 0.95})
    reached = session.run(accuracy, {x: features, y: labels})
    path = saver.save(session, os.path.join(folder, "model"), global_step=step)

with tf.Session() as session:
    saver.restore(session, tf.train.latest_checkpoint(folder))
    again = session.run("Mean:0" if accuracy.name == "Mean:0" else accuracy, {"x:0": features, "y:0": labels})
    print(int(session.run(step)), again == reached, reached > 0.9 or reached)
