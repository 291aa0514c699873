"""A recurrent network written as a Python loop, trained to add up its inputs."""

import numpy as np
import tensorflow.compat.v1 as tf

tf.disable_eager_execution()
tf.set_random_seed(3)
rng = np.random.default_rng(0)
sequences = rng.normal(size=(16, 5, 2)).astype("float32")
sums = sequences.sum(axis=(1, 2))[:, np.newaxis]

x = tf.placeholder(tf.float32, [16, 5, 2])
y = tf.placeholder(tf.float32, [16, 1])
with tf.variable_scope("cell"):
    w_in, w_state = tf.get_variable("in", [2, 8]), tf.get_variable("state", [8, 8])
state = tf.zeros([16, 8])
for moment in tf.unstack(x, axis=1):
    state = tf.tanh(tf.matmul(moment, w_in) + tf.matmul(state, w_state))
loss = tf.reduce_mean(tf.squared_difference(tf.matmul(state, tf.get_variable("out", [8, 1])), y))
train = tf.train.RMSPropOptimizer(0.01).minimize(loss)

session = tf.InteractiveSession()
tf.global_variables_initializer().run()
first = loss.eval({x: sequences, y: sums})
for _ in range(150):
    train.run({x: sequences, y: sums})
print("fell" if loss.eval({x: sequences, y: sums}) < 0.2 * first else "stayed")
session.close()
