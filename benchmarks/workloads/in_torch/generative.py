"""Generative models: a spline flow, a denoiser, a radiance field, dilated convolutions of audio."""

import math

import torch
import torch.nn.functional as nn
from in_torch.train import channels_first, loss, mlp


@loss
def spline_flow(params, data):
    (x,) = data
    w1, b1, w2, b2 = params
    a, b = x.chunk(2, 1)
    theta = torch.addmm(b2, torch.relu(torch.addmm(b1, a, w1)), w2).reshape(x.shape[0], 8, 25)
    widths = 6.0 * theta[..., :8].softmax(-1)
    heights = 6.0 * theta[..., 8:16].softmax(-1)
    slopes = nn.softplus(theta[..., 16:])
    xs = widths.cumsum(-1) - 3.0
    ys = heights.cumsum(-1) - 3.0
    inside = b.clamp(-2.99, 2.99)
    k = (inside[..., None] >= xs).sum(-1).clamp(max=7)[..., None]

    def pick(t):
        return t.gather(-1, k)[..., 0]

    w, h, d0, d1 = pick(widths), pick(heights), pick(slopes[..., :-1]), pick(slopes[..., 1:])
    x0, y0 = pick(xs) - w, pick(ys) - h
    s = h / w
    xi = (inside - x0) / w
    den = s + (d1 + d0 - 2 * s) * xi * (1 - xi)
    y = y0 + h * (s * xi * xi + d0 * xi * (1 - xi)) / den
    slope = s * s * (d1 * xi * xi + 2 * s * xi * (1 - xi) + d0 * (1 - xi) ** 2) / (den * den)
    mask = b.abs() < 2.99
    y = torch.where(mask, y, b)
    log_det = torch.where(mask, slope.log(), 0.0).sum(1)
    return (0.5 * (y * y).sum(1) - log_det).mean()


@loss
@channels_first
def diffusion(params, data):
    x, noise, t = data
    c1, emb, s1, h1, c2, c3, s2, h2, c4, up, s3, h3, c5, c6 = params
    a = torch.cos(t * math.pi / 2)[:, None, None, None]
    noisy = a * x + torch.sqrt(1 - a * a) * noise
    freq = torch.exp(-math.log(1000.0) * torch.arange(16) / 16)
    angles = t[:, None] * 1000 * freq
    e = torch.cat([torch.sin(angles), torch.cos(angles)], 1) @ emb
    h = nn.conv2d(noisy, c1, padding=1) + e[:, :, None, None]
    skip = h + nn.conv2d(nn.silu(nn.group_norm(h, 8, s1, h1, 1e-5)), c2, padding=1)
    d = nn.conv2d(nn.pad(skip, (0, 1, 0, 1)), c3, stride=2)
    d = d + nn.conv2d(nn.silu(nn.group_norm(d, 8, s2, h2, 1e-5)), c4, padding=1)
    u = nn.conv_transpose2d(d, up, stride=2)
    u = torch.cat([u, skip], 1)
    u = nn.conv2d(nn.silu(nn.group_norm(u, 8, s3, h3, 1e-5)), c5, padding=1)
    return (nn.conv2d(nn.silu(u), c6, padding=1) - noise).square().mean()


@loss
def nerf(params, data):
    p, delta, target = data
    enc = torch.cat([p, *[f(p * 2.0**i) for i in range(4) for f in (torch.sin, torch.cos)]], -1)
    h = mlp(enc.reshape(-1, 27), params, torch.relu).reshape(128, 32, 4)
    sigma, rgb = nn.softplus(h[..., 0]), torch.sigmoid(h[..., 1:])
    alpha = 1 - torch.exp(-sigma * delta)
    keep = torch.cumprod(1 - alpha + 1e-10, -1)
    w = alpha * torch.cat([torch.ones(128, 1), keep[:, :-1]], 1)
    return ((w[..., None] * rgb).sum(1) - target).square().mean()


@loss
def wavenet(params, data):
    x, labels = data
    x = (x @ params[0]).transpose(1, 2)
    total = 0.0
    for i in range(6):
        w, skip, res = params[1 + 3 * i : 4 + 3 * i]
        d = 2**i
        y = nn.conv1d(nn.pad(x, (d, 0)), w.permute(2, 1, 0), dilation=d)
        a, b = y.chunk(2, 1)
        g = torch.tanh(a) * torch.sigmoid(b)
        total = total + nn.conv1d(g, skip.T[..., None])
        x = x + nn.conv1d(g, res.T[..., None])
    return nn.cross_entropy((torch.relu(total + x).transpose(1, 2) @ params[-1]).reshape(-1, 64), labels.reshape(-1))
