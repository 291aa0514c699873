"""Recurrent layers of cuDNN, against the equations written with NumPy."""

import numpy as np
import pytest

import tapeflow as tf

T, B, WIDTH, U = 4, 3, 2, 5
GATES = {"lstm": 4, "gru": 3, "rnn_relu": 1, "rnn_tanh": 1}


def _sigmoid(x):
    return 1 / (1 + np.exp(-x))


def _reference(mode, x, h, c, w, r, bw, br, lengths):
    outputs = np.zeros((T, B, U))
    for b in range(B):
        for t in range(lengths[b]):
            xs, hs = (w @ x[t, b] + bw).reshape(-1, U), (r @ h[b] + br).reshape(-1, U)
            if mode == "lstm":
                i, f, o = (_sigmoid(xs[k] + hs[k]) for k in (0, 1, 3))
                c[b] = f * c[b] + i * np.tanh(xs[2] + hs[2])
                h[b] = o * np.tanh(c[b])
            elif mode == "gru":
                reset, z = (_sigmoid(xs[k] + hs[k]) for k in (0, 1))
                h[b] = (1 - z) * np.tanh(xs[2] + reset * hs[2]) + z * h[b]
            else:
                total = xs[0] + hs[0]
                h[b] = np.maximum(total, 0) if mode == "rnn_relu" else np.tanh(total)
            outputs[t, b] = h[b]
    return outputs, h, c


def _given(mode, directions=1):
    rng = np.random.default_rng(0)
    n = GATES[mode] * U
    parts = [(rng.normal(size=(n, WIDTH)), rng.normal(size=(n, U)), rng.normal(size=n), rng.normal(size=n))
             for _ in range(directions)]  # fmt: skip
    vector = np.concatenate([m.ravel() for p in parts for m in p[:2]] + [b for p in parts for b in p[2:]])
    return rng.normal(size=(T, B, WIDTH)), rng.normal(size=(2, directions, B, U)), parts, vector


@pytest.mark.parametrize("mode", GATES)
def test_one_direction(mode):
    x, (h, c), parts, vector = _given(mode)
    expected, end_h, end_c = _reference(mode, x, h[0].copy(), c[0].copy(), *parts[0], [T] * B)
    for name in ("CudnnRNN", "CudnnRNNV2"):
        found = getattr(tf.raw_ops, name)(input=x, input_h=h, input_c=c, params=vector, rnn_mode=mode)
        np.testing.assert_allclose(found.output, expected, rtol=1e-6)
        np.testing.assert_allclose(found.output_h, [end_h], rtol=1e-6)
    if mode == "lstm":
        np.testing.assert_allclose(found.output_c, [end_c], rtol=1e-6)


@pytest.mark.parametrize("mode", ["lstm", "gru"])
@pytest.mark.parametrize("time_major", [True, False])
def test_both_directions_with_lengths(mode, time_major):
    x, (h, c), parts, vector = _given(mode, 2)
    lengths = [4, 2, 1]
    forward, h0, _ = _reference(mode, x, h[0].copy(), c[0].copy(), *parts[0], lengths)
    flipped = np.zeros_like(x)
    for b, n in enumerate(lengths):
        flipped[:n, b] = x[:n, b][::-1]
    backward, h1, _ = _reference(mode, flipped, h[1].copy(), c[1].copy(), *parts[1], lengths)
    for b, n in enumerate(lengths):
        backward[:n, b] = backward[:n, b][::-1].copy()
    order = [0, 1, 2] if time_major else [1, 0, 2]
    run = tf.function(tf.raw_ops.CudnnRNNV3)
    found = run(
        input=tf.constant(x.transpose(order)), input_h=tf.constant(h.transpose(order)),
        input_c=tf.constant(c.transpose(order)), params=tf.constant(vector), sequence_lengths=tf.constant(lengths),
        rnn_mode=mode, direction="bidirectional", time_major=time_major,
    )  # fmt: skip
    expected = np.concatenate([forward, backward], 2).transpose(order)
    np.testing.assert_allclose(found.output, expected, rtol=1e-6)
    np.testing.assert_allclose(found.output_h, np.stack([h0, h1]).transpose(order), rtol=1e-6)


def test_gradients():
    x, (h, c), _, vector = _given("gru")

    def loss(x, params):
        return tf.reduce_sum(tf.raw_ops.CudnnRNN(input=x, input_h=h, input_c=c, params=params, rnn_mode="gru").output)

    theoretical, numerical = tf.test.compute_gradient(loss, [tf.constant(x), tf.constant(vector)])
    for a, b in zip(theoretical, numerical):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5)


def test_what_is_not_there():
    x, (h, c), _, vector = _given("gru")
    with pytest.raises(tf.errors.UnimplementedError, match="linear_input"):
        tf.raw_ops.CudnnRNN(input=x, input_h=h, input_c=c, params=vector, rnn_mode="gru", input_mode="skip_input")


def test_the_shape_of_the_output_is_known_while_tracing():
    def run(x):
        count, steps = tf.shape(x)[0], tf.shape(x)[1]
        state = tf.zeros([count, 1, 2])
        return tf.raw_ops.CudnnRNNV3(
            input=x,
            input_h=state,
            input_c=state,
            params=tf.ones([4 * 2 * (3 + 2) + 16]),
            sequence_lengths=tf.fill([count], steps),
            time_major=False,
        ).output

    traced = tf.function(run).get_concrete_function(tf.TensorSpec([None, 5, 3]))
    assert traced.structured_outputs.shape.as_list() == [None, 5, 2]
