"""Recurrent networks of TensorFlow 1: the same numbers as chains and as loops, ends of sequences, names, errors."""

import numpy as np
import pytest

import tapeflow
import tapeflow.compat.v1 as tf

X = np.random.RandomState(0).randn(3, 5, 2).astype("f")
LENGTHS = [5, 2, 3]


@pytest.fixture(autouse=True)
def graph():
    with tapeflow.Graph().as_default() as graph:
        yield graph


class Cell:
    """Anything with this face is a cell; it has a state of two parts and makes its variables as it is called."""

    state_size, output_size = (3, 4), 4

    def zero_state(self, batch_size, dtype):
        return tf.zeros([batch_size, 3], dtype), tf.zeros([batch_size, 4], dtype)

    def __call__(self, x, state, scope=None):
        with tf.variable_scope("cell", reuse=tf.AUTO_REUSE):
            w = tf.get_variable("w", [6, 4], initializer=tf.constant_initializer(WEIGHTS))
        h = tf.tanh(tf.matmul(tf.concat([x, state[1]], 1), w) + tf.reduce_sum(state[0], 1, keepdims=True))
        return h, (state[0] * 0.5 + h[:, :3], h)


WEIGHTS = np.random.RandomState(1).randn(6, 4).astype("f") * 0.4


def by_hand(x, lengths):
    """The outputs and the last states, row by row."""
    outputs, memory, last = (
        np.zeros((len(x), x.shape[1], 4), "f"),
        np.zeros((len(x), 3), "f"),
        np.zeros((len(x), 4), "f"),
    )
    for row, length in enumerate(lengths):
        for time in range(length):
            h = np.tanh(np.concatenate([x[row, time], last[row]]) @ WEIGHTS + memory[row].sum())
            outputs[row, time], last[row] = h, h
            memory[row] = memory[row] * 0.5 + h[:3]
    return outputs, memory, last


def run(fetches, feeds=None):
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        return session.run(fetches, feeds)


@pytest.mark.parametrize("time_major", [False, True])
def test_a_loop_ends_each_row_where_its_sequence_ends(time_major):
    x, lengths = tf.placeholder(tf.float32, [None, None, 2]), tf.placeholder(tf.int32, [None])
    order = [1, 0, 2] if time_major else [0, 1, 2]
    outputs, state = tf.nn.dynamic_rnn(Cell(), tf.transpose(x, order), lengths, dtype=tf.float32, time_major=time_major)
    assert outputs.shape.as_list() == [None, None, 4] and state[0].shape.as_list() == [None, 3]
    found = run([tf.transpose(outputs, order), *state], {x: X, lengths: LENGTHS})
    for ours, expected in zip(found, by_hand(X, LENGTHS)):
        np.testing.assert_allclose(ours, expected, atol=1e-6)
    assert [v.name for v in tf.trainable_variables()] == ["rnn/cell/w:0"]


def test_chain_and_loop_have_equal_gradients():
    x = tf.placeholder(tf.float32, [3, 5, 2])
    looped, _ = tf.nn.dynamic_rnn(Cell(), x, LENGTHS, dtype=tf.float32)
    with tf.variable_scope("", reuse=tf.AUTO_REUSE):
        chained, _ = tf.nn.static_rnn(Cell(), tf.unstack(x, axis=1), dtype=tf.float32, sequence_length=LENGTHS)
    (weights,) = tf.trainable_variables()
    dx = [tf.gradients(tf.reduce_sum(y * y), [x, weights]) for y in (looped, tf.stack(chained, axis=1))]
    (a, b), (c, d) = run(dx, {x: X})
    np.testing.assert_allclose(a, c, atol=1e-5)
    np.testing.assert_allclose(b, d, atol=1e-5)


def test_both_directions():
    outputs, states = tf.nn.bidirectional_dynamic_rnn(Cell(), Cell(), X, LENGTHS, dtype=tf.float32)
    steps = list(tf.unstack(tf.constant(X), axis=1))
    listed, _, last = tf.nn.static_bidirectional_rnn(
        Cell(),
        Cell(),
        steps,
        dtype=tf.float32,
        sequence_length=LENGTHS,
        scope=tf.VariableScope(tf.AUTO_REUSE, "bidirectional_rnn"),
    )
    turned = X.copy()
    for row, length in enumerate(LENGTHS):
        turned[row, :length] = X[row, :length][::-1]
    back, memory, _ = by_hand(turned, LENGTHS)
    for row, length in enumerate(LENGTHS):
        back[row, :length] = back[row, :length][::-1]
    found, found_states, found_list, found_last = run([outputs, states, tf.stack(listed, 1), last])
    np.testing.assert_allclose(found[0], by_hand(X, LENGTHS)[0], atol=1e-6)
    np.testing.assert_allclose(found[1], back, atol=1e-6)
    np.testing.assert_allclose(found_states[1][0], memory, atol=1e-6)
    np.testing.assert_allclose(found_list, np.concatenate(found, 2), atol=1e-6)
    np.testing.assert_allclose(found_last[0], memory, atol=1e-6)
    names = [f"bidirectional_rnn/{way}/cell/w:0" for way in ("fw", "bw")]
    assert [v.name for v in tf.trainable_variables()] == names


def test_a_function_steers_a_loop():
    steps = tf.TensorArray(tf.float32, size=5).unstack(np.swapaxes(X, 0, 1))

    def steer(time, output, state, count):
        finished = time >= tf.constant(LENGTHS)
        x = tf.cond(tf.reduce_all(finished), lambda: tf.zeros([3, 2]), lambda: steps.read(time))
        if output is None:
            return finished, x, Cell().zero_state(3, tf.float32), None, tf.constant(0)
        return finished, x, state, output, count + 1

    emitted, state, count = tf.nn.raw_rnn(Cell(), steer)
    outputs, memory, _ = by_hand(X, LENGTHS)
    found, (found_memory, _), rounds = run([emitted.stack(), state, count])
    np.testing.assert_allclose(np.swapaxes(found, 0, 1), outputs, atol=1e-6)
    np.testing.assert_allclose(found_memory, memory, atol=1e-6)
    assert rounds == 5


def test_errors_are_tensorflows():
    x = tf.placeholder(tf.float32, [None, None, 2])
    with pytest.raises(ValueError, match="If no initial_state is provided, argument `dtype` must be specified"):
        tf.nn.dynamic_rnn(Cell(), x)
    with pytest.raises(
        TypeError, match=r"The argument 'cell' \(3\) is not an RNNCell: 'output_size' property is missing"
    ):
        tf.nn.dynamic_rnn(3, x, dtype=tf.float32)
    with pytest.raises(ValueError, match="must be accessible via shape inference, but saw value None"):
        tf.nn.dynamic_rnn(Cell(), tf.placeholder(tf.float32, [None, None, None]), dtype=tf.float32)
    with pytest.raises(ValueError, match="sequence_length must be a vector of length batch_size"):
        tf.nn.dynamic_rnn(Cell(), x, [[1]], dtype=tf.float32)
    with pytest.raises(TypeError, match="`inputs` must be a sequence"):
        tf.nn.static_rnn(Cell(), x, dtype=tf.float32)
    lengths = tf.placeholder(tf.int32, [None])
    outputs, _ = tf.nn.dynamic_rnn(Cell(), x, lengths, dtype=tf.float32)
    with pytest.raises(tf.errors.InvalidArgumentError, match="Expected shape for Tensor"):
        run(outputs, {x: X, lengths: [1]})
