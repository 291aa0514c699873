"""Generative models and scientific computing: derivatives inside losses, linear algebra, integrators, FFT, graphs."""

import math

import torch
import torch.nn.functional as nn
from in_torch.train import compile_if_asked, loss, loss_of_parts, mlp, part
from registry import step


@loss
def vae(params, data):
    x, noise = data
    mean, log_variance = mlp(x, params[:4], nn.relu).chunk(2, 1)
    logits = mlp(mean + torch.exp(0.5 * log_variance) * noise, params[4:], nn.relu)
    reconstruction = nn.binary_cross_entropy_with_logits(logits, x, reduction="none").sum(1)
    divergence = -0.5 * (1 + log_variance - mean.square() - log_variance.exp()).sum(1)
    return (reconstruction + divergence).mean()


@loss
def wgan_gp(params, data):
    real, noise, mix = data[:3]
    fake = mlp(noise, data[3:], nn.relu)
    slopes = torch.func.grad(lambda x: mlp(x, params, torch.tanh).sum())(mix * real + (1 - mix) * fake)
    penalty = (torch.sqrt(slopes.square().sum(1) + 1e-12) - 1).square().mean()
    return (mlp(fake, params, torch.tanh) - mlp(real, params, torch.tanh)).mean() + 10 * penalty


@loss
def pinn(params, data):
    t, x = data

    def u_of(t, x):
        return mlp(torch.cat([t, x], 1), params, torch.tanh)

    def sum_with_value(t, x):
        u = u_of(t, x)
        return u.sum(), u

    def slope_sum(x):
        (u_t, u_x), u = torch.func.grad(sum_with_value, (0, 1), has_aux=True)(t, x)
        return u_x.sum(), (u, u_t, u_x)

    u_xx, (u, u_t, u_x) = torch.func.grad(slope_sum, has_aux=True)(x)
    initial = u_of(torch.zeros_like(x), x) + torch.sin(math.pi * x)
    return (u_t + u * u_x - 0.01 / math.pi * u_xx).square().mean() + initial.square().mean()


@loss
def gaussian_process(params, data):
    x, y = data
    x = x * torch.exp(-params[0])
    squares = x.square().sum(1)
    distances = squares[:, None] + squares[None, :] - 2 * x @ x.t()
    noise = (torch.exp(params[2]) * 0.1 + 1e-4) * torch.eye(y.shape[0])
    factor = torch.linalg.cholesky(torch.exp(params[1]) * torch.exp(-0.5 * distances) + noise)
    whitened = torch.linalg.solve_triangular(factor, y[:, None], upper=False)
    return 0.5 * whitened.square().sum() + factor.diagonal().log().sum()


@part
def kalman_update(mean, covariance, y, transition, observation, q, r):
    mean = transition @ mean
    covariance = transition @ covariance @ transition.t() + q
    residual = y[:, None] - observation @ mean
    s = observation @ covariance @ observation.t() + r
    gain = torch.linalg.solve(s, observation @ covariance).t()
    value = 0.5 * ((residual * torch.linalg.solve(s, residual)).sum() + torch.log(torch.linalg.det(s)))
    return mean + gain @ residual, covariance - gain @ observation @ covariance, value


@loss_of_parts
def kalman_filter(params, data):
    transition, log_q, log_r = params
    observation, ys = data
    q, r = torch.diag(log_q.exp()), torch.diag(log_r.exp())
    mean, covariance, value = torch.zeros(4, 1), torch.eye(4), 0.0
    for y in ys:
        mean, covariance, term = kalman_update(mean, covariance, y, transition, observation, q, r)
        value = value + term
    return value


def potential(w, x, y):
    return nn.binary_cross_entropy_with_logits(x @ w, y, reduction="sum") + 0.5 * w.square().sum()


@step
def hmc(params, data, rate):
    x, y, momentum = data

    def slope(w):
        w = w.detach().requires_grad_()
        return torch.autograd.grad(compile_if_asked(potential)(w, x, y), w)[0]

    start = params[0].detach().clone()
    w, m = start, momentum - 0.5 * rate * slope(start)
    for i in range(10):
        w = w + rate * m
        m = m - (rate if i < 9 else 0.5 * rate) * slope(w)
    before = potential(start, x, y) + 0.5 * momentum.square().sum()
    after = potential(w, x, y) + 0.5 * m.square().sum()
    with torch.no_grad():
        params[0].copy_(torch.where(torch.exp(before - after) > 0.5, w, start))
    return after


@part
def runge_kutta(x, params):
    h = 0.05
    k1 = mlp(x, params, torch.tanh)
    k2 = mlp(x + 0.5 * h * k1, params, torch.tanh)
    k3 = mlp(x + 0.5 * h * k2, params, torch.tanh)
    k4 = mlp(x + h * k3, params, torch.tanh)
    return x + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)


@loss_of_parts
def ode_net(params, data):
    x, y = data
    for _ in range(20):
        x = runge_kutta(x, params)
    return (x - y).square().mean()


@loss
def fft_loss(params, data):
    scale, shift = params
    x, targets = data
    spectrum = torch.fft.rfft(torch.tanh(x * scale + shift))
    return (torch.log(spectrum.abs() + 1) - targets).square().mean()


@loss
def graph_net(params, data):
    x, senders, receivers, targets = data
    for i in (0, 2):
        messages = nn.relu(torch.cat([x[senders], x[receivers]], 1) @ params[i])
        sums = torch.zeros_like(x).index_add(0, receivers, messages)
        x = x + nn.relu(sums @ params[i + 1])
    return (x - targets).square().mean()


@loss
def kmeans(params, data):
    (centers,), (points,) = params, data
    distances = points.square().sum(1)[:, None] + centers.square().sum(1) - 2 * points @ centers.t()
    return distances.min(1).values.sum()


@part
def control_step(x, a):
    def f(s, a):
        return torch.stack([s[:, 1], torch.sin(s[:, 0]) - 0.1 * s[:, 1] + a[:, 0]], 1)

    dt = 0.05
    k1 = f(x, a)
    k2 = f(x + 0.5 * dt * k1, a)
    k3 = f(x + 0.5 * dt * k2, a)
    k4 = f(x + dt * k3, a)
    x = x + dt / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
    return x, ((x * x).sum(1) + 0.1 * (a * a).sum(1)).mean()


@loss_of_parts
def optimal_control(params, data):
    (u,) = params
    (x,) = data
    cost = 0.0
    for t in range(50):
        x, c = control_step(x, u[t])
        cost = cost + c
    return cost / 50
