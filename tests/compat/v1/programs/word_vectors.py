"""Word vectors from pairs of neighbours: embeddings, a softmax over all words, sparse updates."""

import numpy as np
import tensorflow.compat.v1 as tf

tf.disable_v2_behavior()
tf.set_random_seed(1)
text = ["the", "cat", "sat", "on", "the", "mat", "the", "dog", "sat", "on", "the", "rug"]
words = sorted(set(text))
number = {word: i for i, word in enumerate(words)}
pairs = [(number[a], number[b]) for i, a in enumerate(text) for b in text[max(0, i - 1) : i + 2] if a != b]

centers = tf.placeholder(tf.int32, shape=[None], name="centers")
neighbours = tf.placeholder(tf.int32, shape=[None], name="neighbours")
with tf.variable_scope("model"):
    vectors = tf.get_variable("vectors", [len(words), 6], initializer=tf.random_uniform_initializer(-1.0, 1.0))
    weights = tf.get_variable("weights", [6, len(words)], initializer=tf.truncated_normal_initializer(stddev=0.3))
    bias = tf.get_variable("bias", [len(words)], initializer=tf.zeros_initializer())
logits = tf.matmul(tf.nn.embedding_lookup(vectors, centers), weights) + bias
loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=neighbours, logits=logits))
assert isinstance(tf.gradients(loss, vectors)[0], tf.IndexedSlices)
train = tf.train.AdagradOptimizer(0.5).minimize(loss)

rng = np.random.default_rng(0)
with tf.Session() as session:
    session.run(tf.global_variables_initializer())
    losses = []
    for _ in range(80):
        batch = np.array(pairs)[rng.integers(0, len(pairs), 8)]
        losses.append(session.run([loss, train], {centers: batch[:, 0], neighbours: batch[:, 1]})[0])
print("fell" if np.mean(losses[-10:]) < 0.7 * np.mean(losses[:10]) else f"stayed {losses}")
