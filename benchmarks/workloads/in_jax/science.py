"""Generative models and scientific computing: derivatives inside losses, linear algebra, integrators, FFT, graphs."""

import math

import jax
import jax.numpy as jnp
from in_jax.train import loss, mlp, sigmoid_cross_entropy
from registry import step


@loss
def vae(params, data):
    x, noise = data
    mean, log_variance = jnp.split(mlp(x, params[:4], jax.nn.relu), 2, axis=1)
    logits = mlp(mean + jnp.exp(0.5 * log_variance) * noise, params[4:], jax.nn.relu)
    reconstruction = sigmoid_cross_entropy(x, logits).sum(1)
    divergence = -0.5 * (1 + log_variance - jnp.square(mean) - jnp.exp(log_variance)).sum(1)
    return jnp.mean(reconstruction + divergence)


@loss
def wgan_gp(params, data):
    real, noise, mix = data[:3]
    fake = mlp(noise, data[3:], jax.nn.relu)
    between = mix * real + (1 - mix) * fake
    slopes = jax.grad(lambda x: mlp(x, params, jnp.tanh).sum())(between)
    penalty = jnp.mean(jnp.square(jnp.sqrt(jnp.square(slopes).sum(1) + 1e-12) - 1))
    scores = mlp(fake, params, jnp.tanh) - mlp(real, params, jnp.tanh)
    return scores.mean() + 10 * penalty


@loss
def pinn(params, data):
    t, x = data

    def u_of(t, x):
        return mlp(jnp.concatenate([t, x], 1), params, jnp.tanh)

    def slopes(x):
        return jax.grad(lambda t, x: u_of(t, x).sum(), (0, 1))(t, x)

    def slope_sum(x):
        u_t, u_x = slopes(x)
        return u_x.sum(), (u_t, u_x)

    u_xx, (u_t, u_x) = jax.grad(slope_sum, has_aux=True)(x)
    initial = u_of(jnp.zeros_like(x), x) + jnp.sin(math.pi * x)
    residual = u_t + u_of(t, x) * u_x - 0.01 / math.pi * u_xx
    return jnp.mean(jnp.square(residual)) + jnp.mean(jnp.square(initial))


@loss
def gaussian_process(params, data):
    x, y = data
    x = x * jnp.exp(-params[0])
    squares = jnp.square(x).sum(1)
    distances = squares[:, None] + squares[None, :] - 2 * x @ x.T
    noise = (jnp.exp(params[2]) * 0.1 + 1e-4) * jnp.eye(y.shape[0])
    factor = jnp.linalg.cholesky(jnp.exp(params[1]) * jnp.exp(-0.5 * distances) + noise)
    whitened = jax.scipy.linalg.solve_triangular(factor, y, lower=True)
    return 0.5 * jnp.square(whitened).sum() + jnp.log(jnp.diag(factor)).sum()


@loss
def kalman_filter(params, data):
    transition, log_q, log_r = params
    observation, y = data
    q, r = jnp.diag(jnp.exp(log_q)), jnp.diag(jnp.exp(log_r))

    def update(state, y):
        mean, covariance = state
        mean = transition @ mean
        covariance = transition @ covariance @ transition.T + q
        residual = y[:, None] - observation @ mean
        s = observation @ covariance @ observation.T + r
        gain = jnp.linalg.solve(s, observation @ covariance).T
        value = 0.5 * ((residual * jnp.linalg.solve(s, residual)).sum() + jnp.log(jnp.linalg.det(s)))
        return (mean + gain @ residual, covariance - gain @ observation @ covariance), value

    _, values = jax.lax.scan(update, (jnp.zeros((4, 1)), jnp.eye(4)), y)
    return values.sum()


@step
def hmc(params, data, rate):
    x, y, momentum = data

    def potential(w):
        return sigmoid_cross_entropy(y, x @ w).sum() + 0.5 * jnp.square(w).sum()

    slope = jax.grad(potential)
    (start,) = params
    w, m = start, momentum - 0.5 * rate * slope(start)
    for i in range(10):
        w = w + rate * m
        m = m - (rate if i < 9 else 0.5 * rate) * slope(w)
    before = potential(start) + 0.5 * jnp.square(momentum).sum()
    after = potential(w) + 0.5 * jnp.square(m).sum()
    return after, [jnp.where(jnp.exp(before - after) > 0.5, w, start)]


@loss
def ode_net(params, data):
    x, y = data
    h = 0.05
    for _ in range(20):
        k1 = mlp(x, params, jnp.tanh)
        k2 = mlp(x + 0.5 * h * k1, params, jnp.tanh)
        k3 = mlp(x + 0.5 * h * k2, params, jnp.tanh)
        k4 = mlp(x + h * k3, params, jnp.tanh)
        x += h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
    return jnp.mean(jnp.square(x - y))


@loss
def fft_loss(params, data):
    scale, shift = params
    x, targets = data
    spectrum = jnp.fft.rfft(jnp.tanh(x * scale + shift))
    return jnp.mean(jnp.square(jnp.log(jnp.abs(spectrum) + 1) - targets))


@loss
def graph_net(params, data):
    x, senders, receivers, targets = data
    for i in (0, 2):
        messages = jax.nn.relu(jnp.concatenate([x[senders], x[receivers]], 1) @ params[i])
        x += jax.nn.relu(jax.ops.segment_sum(messages, receivers, x.shape[0]) @ params[i + 1])
    return jnp.mean(jnp.square(x - targets))


@loss
def kmeans(params, data):
    (centers,), (points,) = params, data
    distances = jnp.square(points).sum(1)[:, None] + jnp.square(centers).sum(1) - 2 * points @ centers.T
    return distances.min(1).sum()


@loss
def optimal_control(params, data):
    (u,) = params
    (x,) = data

    def f(s, a):
        return jnp.stack([s[:, 1], jnp.sin(s[:, 0]) - 0.1 * s[:, 1] + a[:, 0]], 1)

    dt = 0.05

    def body(x, a):
        k1 = f(x, a)
        k2 = f(x + 0.5 * dt * k1, a)
        k3 = f(x + 0.5 * dt * k2, a)
        k4 = f(x + dt * k3, a)
        x = x + dt / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
        return x, ((x * x).sum(1) + 0.1 * (a * a).sum(1)).mean()

    return jax.lax.scan(body, x, u)[1].mean()
