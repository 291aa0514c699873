"""Nodes and points: attention over the edges of a graph, convolution over nearest points."""

import torch
import torch.nn.functional as nn
from in_torch.train import loss


@loss
def gat(params, data):
    w, al, ar, out = params
    x, src, dst, labels = data
    n = x.shape[0]
    h = (x @ w).reshape(n, 4, 16)
    left, right = (h * al).sum(-1), (h * ar).sum(-1)
    e = nn.leaky_relu(left[src] + right[dst], 0.2)
    m = torch.full((n, 4), -1e30).scatter_reduce(0, dst[:, None].expand(-1, 4), e.detach(), "amax")
    p = torch.exp(e - m[dst])
    z = torch.zeros(n, 4).index_add(0, dst, p)
    a = p / z[dst]
    y = torch.zeros(n, 4, 16).index_add(0, dst, a[..., None] * h[src])
    return nn.cross_entropy(nn.elu(y.reshape(n, 64)) @ out, labels)


@loss
def point_cloud(params, data):
    x, labels = data
    with torch.no_grad():
        s = (x * x).sum(-1)
        d = s[:, :, None] + s[:, None] - 2 * x @ x.transpose(1, 2)
        near = torch.topk(-d, 8)[1]
    n = torch.gather(x[:, None].expand(8, 256, 256, 3), 2, near[..., None].expand(8, 256, 8, 3))
    c = x[:, :, None].expand(n.shape)
    h = nn.leaky_relu(torch.cat([c, n - c], -1) @ params[0] + params[1], 0.2)
    return nn.cross_entropy(h.amax(2).amax(1) @ params[2] + params[3], labels)
