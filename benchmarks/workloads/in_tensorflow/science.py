"""Generative models and scientific computing: derivatives inside losses, linear algebra, integrators, FFT, graphs."""

import math

import tensorflow as tf
from in_tensorflow.train import loss, mlp
from registry import step


@loss
def vae(params, data):
    x, noise = data
    mean, log_variance = tf.split(mlp(x, params[:4], tf.nn.relu), 2, axis=1)
    logits = mlp(mean + tf.exp(0.5 * log_variance) * noise, params[4:], tf.nn.relu)
    reconstruction = tf.reduce_sum(tf.nn.sigmoid_cross_entropy_with_logits(labels=x, logits=logits), 1)
    divergence = -0.5 * tf.reduce_sum(1 + log_variance - tf.square(mean) - tf.exp(log_variance), 1)
    return tf.reduce_mean(reconstruction + divergence)


@loss
def wgan_gp(params, data):
    real, noise, mix = data[:3]
    fake = mlp(noise, data[3:], tf.nn.relu)
    between = mix * real + (1 - mix) * fake
    with tf.GradientTape() as tape:
        tape.watch(between)
        scores = mlp(between, params, tf.nn.tanh)
    slopes = tape.gradient(scores, between)
    penalty = tf.reduce_mean(tf.square(tf.sqrt(tf.reduce_sum(tf.square(slopes), 1) + 1e-12) - 1))
    scores = mlp(fake, params, tf.nn.tanh) - mlp(real, params, tf.nn.tanh)
    return tf.reduce_mean(scores) + 10 * penalty


@loss
def pinn(params, data):
    t, x = data
    with tf.GradientTape() as second:
        second.watch(x)
        with tf.GradientTape() as first:
            first.watch([t, x])
            u = mlp(tf.concat([t, x], 1), params, tf.nn.tanh)
        u_t, u_x = first.gradient(u, [t, x])
    u_xx = second.gradient(u_x, x)
    initial = mlp(tf.concat([tf.zeros_like(x), x], 1), params, tf.nn.tanh) + tf.sin(math.pi * x)
    return tf.reduce_mean(tf.square(u_t + u * u_x - 0.01 / math.pi * u_xx)) + tf.reduce_mean(tf.square(initial))


@loss
def gaussian_process(params, data):
    x, y = data
    x = x * tf.exp(-params[0])
    squares = tf.reduce_sum(tf.square(x), 1)
    distances = squares[:, None] + squares[None, :] - 2 * tf.matmul(x, x, transpose_b=True)
    noise = (tf.exp(params[2]) * 0.1 + 1e-4) * tf.eye(y.shape[0])
    factor = tf.linalg.cholesky(tf.exp(params[1]) * tf.exp(-0.5 * distances) + noise)
    whitened = tf.linalg.triangular_solve(factor, y[:, None])
    return 0.5 * tf.reduce_sum(tf.square(whitened)) + tf.reduce_sum(tf.math.log(tf.linalg.diag_part(factor)))


@loss
def kalman_filter(params, data):
    transition, log_q, log_r = params
    observation, y = data
    q, r = tf.linalg.diag(tf.exp(log_q)), tf.linalg.diag(tf.exp(log_r))
    mean, covariance, value = tf.zeros([4, 1]), tf.eye(4), tf.constant(0.0)
    for t in range(y.shape[0]):
        mean = transition @ mean
        covariance = transition @ covariance @ tf.transpose(transition) + q
        residual = y[t][:, None] - observation @ mean
        s = observation @ covariance @ tf.transpose(observation) + r
        gain = tf.transpose(tf.linalg.solve(s, observation @ covariance))
        value += 0.5 * (tf.reduce_sum(residual * tf.linalg.solve(s, residual)) + tf.math.log(tf.linalg.det(s)))
        mean += gain @ residual
        covariance -= gain @ observation @ covariance
    return value


@step
def hmc(params, data, rate):
    x, y, momentum = data

    def potential(w):
        logits = tf.linalg.matvec(x, w)
        losses = tf.nn.sigmoid_cross_entropy_with_logits(labels=y, logits=logits)
        return tf.reduce_sum(losses) + 0.5 * tf.reduce_sum(tf.square(w))

    def slope(w):
        with tf.GradientTape() as tape:
            tape.watch(w)
            value = potential(w)
        return tape.gradient(value, w)

    start = params[0].read_value()
    w, m = start, momentum - 0.5 * rate * slope(start)
    for i in range(10):
        w = w + rate * m
        m = m - (rate if i < 9 else 0.5 * rate) * slope(w)
    before = potential(start) + 0.5 * tf.reduce_sum(tf.square(momentum))
    after = potential(w) + 0.5 * tf.reduce_sum(tf.square(m))
    params[0].assign(tf.where(tf.exp(before - after) > 0.5, w, start))
    return after


@loss
def ode_net(params, data):
    x, y = data
    h = 0.05
    for _ in range(20):
        k1 = mlp(x, params, tf.tanh)
        k2 = mlp(x + 0.5 * h * k1, params, tf.tanh)
        k3 = mlp(x + 0.5 * h * k2, params, tf.tanh)
        k4 = mlp(x + h * k3, params, tf.tanh)
        x += h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
    return tf.reduce_mean(tf.square(x - y))


@loss
def fft_loss(params, data):
    scale, shift = params
    x, targets = data
    spectrum = tf.signal.rfft(tf.tanh(x * scale + shift))
    return tf.reduce_mean(tf.square(tf.math.log(tf.abs(spectrum) + 1) - targets))


@loss
def graph_net(params, data):
    x, senders, receivers, targets = data
    for i in (0, 2):
        messages = tf.concat([tf.gather(x, senders), tf.gather(x, receivers)], 1)
        messages = tf.nn.relu(messages @ params[i])
        x += tf.nn.relu(tf.math.unsorted_segment_sum(messages, receivers, x.shape[0]) @ params[i + 1])
    return tf.reduce_mean(tf.square(x - targets))


@loss
def kmeans(params, data):
    (centers,), (points,) = params, data
    distances = tf.reduce_sum(tf.square(points), 1)[:, None] + tf.reduce_sum(tf.square(centers), 1)
    distances -= 2 * tf.matmul(points, centers, transpose_b=True)
    return tf.reduce_sum(tf.reduce_min(distances, 1))


@loss
def optimal_control(params, data):
    (u,) = params
    (x,) = data

    def f(s, a):
        return tf.stack([s[:, 1], tf.sin(s[:, 0]) - 0.1 * s[:, 1] + a[:, 0]], 1)

    cost = 0.0
    dt = 0.05
    for t in range(50):
        a = u[t]
        k1 = f(x, a)
        k2 = f(x + 0.5 * dt * k1, a)
        k3 = f(x + 0.5 * dt * k2, a)
        k4 = f(x + dt * k3, a)
        x = x + dt / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
        cost += tf.reduce_mean(tf.reduce_sum(x * x, 1) + 0.1 * tf.reduce_sum(a * a, 1))
    return cost / 50
