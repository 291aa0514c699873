"""The initial values of every workload, made by NumPy alone: the libraries start from the same numbers."""

import itertools
from dataclasses import dataclass, field

import numpy as np


@dataclass
class Values:
    params: list
    data: list = field(default_factory=list)
    rate: float = 0.01  # of gradient descent, where the workload uses it
    tolerance: float = 2e-3  # of the losses, relative


VALUES = {}


def workload(function):
    VALUES[function.__name__] = lambda: function(np.random.default_rng(0))
    return function


def normal(rng, *shape, scale=1.0, dtype="float32"):
    return (rng.standard_normal(shape) * scale).astype(dtype)


def kernel(rng, *shape):
    """Weights whose product keeps the variance: the last axis is the output."""
    return normal(rng, *shape, scale=(2.0 / np.prod(shape[:-1])) ** 0.5)


def integers(rng, high, *shape):
    return rng.integers(0, high, shape).astype("int32")


def layers(rng, *sizes):
    """Weight and bias of each layer of an MLP, one after the other."""
    return [a for n, m in itertools.pairwise(sizes) for a in (kernel(rng, n, m), np.zeros(m, "float32"))]


def ones(n):
    return np.ones(n, "float32")


def zeros(n):
    return np.zeros(n, "float32")


@workload
def transformer(rng):
    vocabulary, width, length, batch = 1000, 128, 64, 8
    params = [normal(rng, vocabulary, width, scale=0.1), normal(rng, length, width, scale=0.1)]
    for _ in range(2):
        params += [ones(width), zeros(width), normal(rng, width, 3 * width, scale=0.05)]
        params += [normal(rng, width, width, scale=0.05), ones(width), zeros(width)]
        params += layers(rng, width, 4 * width, width)
    mask = np.triu(np.full((length, length), -1e9, "float32"), 1)
    return Values(params, [integers(rng, vocabulary, batch, length), integers(rng, vocabulary, batch, length), mask])


@workload
def gru(rng):
    length, batch, inputs, units = 50, 32, 32, 128
    params = [normal(rng, inputs, 3 * units, scale=0.1), normal(rng, units, 3 * units, scale=0.1)]
    params += [zeros(3 * units), zeros(3 * units), normal(rng, units, 1, scale=0.1)]
    return Values(params, [normal(rng, length, batch, inputs), normal(rng, batch, 1)])


@workload
def bidirectional_lstm(rng):
    length, batch, inputs, units, outputs = 100, 16, 32, 64, 8
    params = []
    for _ in range(2):
        params += [
            normal(rng, inputs, 4 * units, scale=0.1),
            normal(rng, units, 4 * units, scale=0.1),
            zeros(4 * units),
        ]
    params += [normal(rng, 2 * units, outputs, scale=0.1)]
    return Values(params, [normal(rng, length, batch, inputs), normal(rng, length, batch, outputs)], rate=5.0)


@workload
def embedding_adam(rng):
    rows, width, batch, words, classes = 50_000, 64, 128, 8, 10
    weights = [normal(rng, rows, width, scale=0.1), normal(rng, width, classes, scale=0.1)]
    slots = [np.zeros_like(w) for w in weights for _ in range(2)]
    return Values(weights + slots, [integers(rng, rows, batch, words), integers(rng, classes, batch)], rate=0.001)


@workload
def resnet(rng):
    params = [kernel(rng, 3, 3, 3, 32), ones(32), zeros(32)]
    for inputs, outputs in ((32, 32), (32, 64)):
        params += [kernel(rng, 3, 3, inputs, outputs), ones(outputs), zeros(outputs)]
        params += [kernel(rng, 3, 3, outputs, outputs), ones(outputs), zeros(outputs)]
    params += [kernel(rng, 1, 1, 32, 64), kernel(rng, 64, 10)]
    return Values(params, [normal(rng, 16, 32, 32, 3), integers(rng, 10, 16)])


@workload
def mobilenet(rng):
    params = [kernel(rng, 1, 1, 3, 24)]
    for _ in range(2):
        params += [kernel(rng, 1, 1, 24, 96), ones(96), zeros(96)]
        params += [normal(rng, 3, 3, 1, 96, scale=0.3), ones(96), zeros(96)]
        params += [kernel(rng, 1, 1, 96, 24), ones(24), zeros(24)]
    return Values([*params, kernel(rng, 24, 10)], [normal(rng, 16, 32, 32, 3), integers(rng, 10, 16)], rate=0.1)


@workload
def unet(rng):
    shapes = [(1, 16), (16, 16), (16, 32), (32, 32), (32, 64), (64, 32), (64, 32), (32, 16), (32, 16), (16, 1)]
    params = [a for n, m in shapes for a in (kernel(rng, 3, 3, n, m), zeros(m))]
    return Values(params, [normal(rng, 4, 64, 64, 1), integers(rng, 2, 4, 64, 64, 1).astype("float32")])


@workload
def augmentation(rng):
    batch, size = 32, 64
    images = rng.random((batch, size, size, 3)).astype("float32")
    factors = [rng.random((batch, 1, 1, 1)).astype("float32") for _ in range(3)]
    flips = integers(rng, 2, batch, 1, 1, 1).astype("float32")
    return Values([images, normal(rng, 3, 8)], [*factors, flips, normal(rng, batch, 24, 24, 8)], rate=1.0)


@workload
def vae(rng):
    params = layers(rng, 784, 400, 40) + layers(rng, 20, 400, 784)
    return Values(params, [rng.random((128, 784)).astype("float32"), normal(rng, 128, 20)], rate=1e-4)


@workload
def wgan_gp(rng):
    params = layers(rng, 64, 256, 256, 1)
    data = [normal(rng, 128, 64), normal(rng, 128, 32), rng.random((128, 1)).astype("float32")]
    return Values(params, [*data, *layers(rng, 32, 128, 64)], rate=0.001)


@workload
def pinn(rng):
    params = layers(rng, 2, 50, 50, 50, 50, 50, 1)
    return Values(params, [rng.random((5000, 1)).astype("float32") for _ in range(2)], rate=0.001)


@workload
def gaussian_process(rng):
    return Values([zeros(4), zeros(1), zeros(1)], [normal(rng, 400, 4), normal(rng, 400)], rate=1e-5)


@workload
def kalman_filter(rng):
    transition = (0.9 * np.eye(4) + 0.05 * rng.standard_normal((4, 4))).astype("float32")
    observation = normal(rng, 2, 4)
    return Values([transition, zeros(4), zeros(2)], [observation, normal(rng, 60, 2)], rate=1e-4)


@workload
def hmc(rng):
    x = normal(rng, 1000, 50)
    y = (rng.random(1000) < 0.5).astype("float32")
    return Values([zeros(50)], [x, y, normal(rng, 50)], rate=0.01)


@workload
def ode_net(rng):
    return Values(layers(rng, 16, 64, 16), [normal(rng, 128, 16), normal(rng, 128, 16)])


@workload
def fft_loss(rng):
    return Values(
        [ones(4096), zeros(4096)], [normal(rng, 64, 4096), rng.random((64, 2049)).astype("float32")], rate=300.0
    )


@workload
def graph_net(rng):
    nodes, edges, width = 2000, 16_000, 64
    params = [normal(rng, 2 * width if i % 2 == 0 else width, width, scale=0.1) for i in range(4)]
    data = [normal(rng, nodes, width), integers(rng, nodes, edges), integers(rng, nodes, edges)]
    return Values(params, [*data, normal(rng, nodes, width)], rate=1e-3)


@workload
def kmeans(rng):
    return Values([normal(rng, 32, 16)], [normal(rng, 10_000, 16)], rate=1e-4)


@workload
def normalisation(rng):
    rows, columns = 256, 16_384
    params = [ones(columns), zeros(columns), ones(columns), ones(columns)]
    return Values(params, [normal(rng, rows, columns), normal(rng, rows, columns)], rate=1000.0)


@workload
def mlp_float64(rng):
    params = [a.astype("float64") for a in layers(rng, 256, 512, 512, 10)]
    return Values(params, [normal(rng, 128, 256, dtype="float64"), integers(rng, 10, 128)], tolerance=1e-8)


@workload
def mlp_bfloat16(rng):
    params = layers(rng, 256, 512, 512, 10)
    return Values(params, [normal(rng, 128, 256), integers(rng, 10, 128)], tolerance=3e-2)


@workload
def deep_plain(rng):
    return Values(layers(rng, *[256] * 40, 10), [normal(rng, 512, 256), integers(rng, 10, 512)], rate=1e-4)


@workload
def per_example_jacobian(rng):
    return Values(layers(rng, 64, 128, 10), [normal(rng, 64, 64), integers(rng, 10, 64)], rate=0.1)


@workload
def per_example_vmap(rng):
    return per_example_jacobian(rng)


def optimizer(rng, slots):
    """20 million parameters in ten variables, their gradients, `slots` arrays of zeros for each."""
    block = normal(rng, 1000, 2000)
    weights = [block * np.float32(1 + 0.1 * i) for i in range(10)]
    gradients = [block[::-1] * np.float32(0.01 * (i + 1)) for i in range(10)]
    return Values([zeros(1)[0], *weights, *(np.zeros_like(w) for w in weights * slots)], gradients, rate=0.05)


@workload
def adamw(rng):
    return optimizer(rng, 2)


@workload
def lion(rng):
    return optimizer(rng, 1)


@workload
def rmsprop(rng):
    return optimizer(rng, 1)


@workload
def spline_flow(rng):
    return Values(
        [normal(rng, 8, 64, scale=0.3), zeros(64), normal(rng, 64, 8 * 25, scale=0.1), zeros(200)],
        [normal(rng, 512, 16)],
    )


@workload
def diffusion(rng):
    c = 32
    params = [kernel(rng, 3, 3, 3, c), normal(rng, 32, c, scale=0.1), ones(c), zeros(c), kernel(rng, 3, 3, c, c)]
    params += [kernel(rng, 3, 3, c, 64), ones(64), zeros(64), kernel(rng, 3, 3, 64, 64), kernel(rng, 2, 2, c, 64) * 0.5]
    params += [ones(64), zeros(64), kernel(rng, 3, 3, 64, c), normal(rng, 3, 3, c, 3, scale=0.05)]
    return Values(
        params, [normal(rng, 8, 32, 32, 3), normal(rng, 8, 32, 32, 3), rng.uniform(0, 1, (8,)).astype("float32")]
    )


@workload
def nerf(rng):
    params = layers(rng, 27, 64, 64, 4)
    return Values(params, [normal(rng, 128, 32, 3), np.full((128, 32), 0.1, "float32"), normal(rng, 128, 3)])


@workload
def wavenet(rng):
    c = 32
    params = [kernel(rng, 1, c)]
    for _ in range(6):
        params += [normal(rng, 2, c, 2 * c, scale=0.1), normal(rng, c, c, scale=0.1), normal(rng, c, c, scale=0.1)]
    return Values([*params, kernel(rng, c, 64)], [normal(rng, 4, 512, 1), integers(rng, 64, 4, 512)])


@workload
def gat(rng):
    n, e = 1000, 8000
    params = [kernel(rng, 64, 64), normal(rng, 4, 16, scale=0.1), normal(rng, 4, 16, scale=0.1), kernel(rng, 64, 7)]
    return Values(params, [normal(rng, n, 64), integers(rng, n, e), integers(rng, n, e), integers(rng, 7, n)])


@workload
def point_cloud(rng):
    return Values([*layers(rng, 6, 64), *layers(rng, 64, 10)], [normal(rng, 8, 256, 3), integers(rng, 10, 8)])


@workload
def optimal_control(rng):
    return Values([normal(rng, 50, 32, 1, scale=0.1)], [normal(rng, 32, 2)], rate=0.1)


# ---- dynamics: small states over many steps


@workload
def lorenz(rng):
    return Values([np.array([9.0, 27.0, 2.5], "float32")], [normal(rng, 64, 3)], rate=1e-4)


@workload
def epidemic(rng):
    return Values([np.array([0.5, 0.1], "float32")], [np.abs(normal(rng, 100, 3, scale=0.3))], rate=1e-3)


@workload
def kalman_tracking(rng):
    return Values([np.zeros(4, "float32"), np.zeros(2, "float32")], [normal(rng, 40, 2)], rate=1e-3)


@workload
def hidden_markov(rng):
    return Values([normal(rng, 8, 8), normal(rng, 8, 20)], [integers(rng, 20, 60, 16)], rate=0.1)


@workload
def bicycle(rng):
    return Values([normal(rng, 50, 2, scale=0.1)], [np.array([0.0, 0.0, 0.0, 1.0], "float32")], rate=1e-3)


@workload
def spring_chain(rng):
    start = np.stack([np.arange(12.0), np.zeros(12)], 1).astype("float32")
    return Values([np.full(11, 3.0, "float32")], [start, normal(rng, 12, 2, scale=0.1)], rate=1e-3)


@workload
def robot_arm(rng):
    return Values([normal(rng, 64, 6, scale=0.3)], [normal(rng, 64, 2)], rate=1e-2)


@workload
def small_gru(rng):
    params = [kernel(rng, 2, 24), kernel(rng, 8, 24), np.zeros(24, "float32"), kernel(rng, 8, 1)]
    return Values(params, [normal(rng, 50, 4, 2), normal(rng, 4, 1)], rate=1e-2)


@workload
def attitude(rng):
    start = normal(rng, 16, 4)
    start /= np.linalg.norm(start, axis=1, keepdims=True)
    return Values([normal(rng, 40, 16, 3, scale=0.3)], [start, start[::-1].copy()], rate=1e-2)


@workload
def cart_pole(rng):
    return Values(layers(rng, 4, 16, 1), [normal(rng, 32, 4, scale=0.1)], rate=1e-3)


# ---- structured models


@workload
def vit(rng):
    w = 96
    p = [kernel(rng, 4, 4, 3, w), normal(rng, 1, 1, w, scale=0.1), normal(rng, 65, w, scale=0.1)]
    for _ in range(2):
        p += [ones(w), zeros(w), normal(rng, w, 3 * w, scale=0.05), normal(rng, w, w, scale=0.05), ones(w), zeros(w)]
        p += layers(rng, w, 4 * w, w)
    return Values([*p, kernel(rng, w, 10)], [normal(rng, 16, 32, 32, 3), integers(rng, 10, 16)])


@workload
def seq2seq(rng):
    v, e, h = 500, 32, 64
    p = [normal(rng, v, e, scale=0.1), normal(rng, v, e, scale=0.1)]
    p += [normal(rng, e + h, 2 * h, scale=0.1), zeros(2 * h), normal(rng, e + h, h, scale=0.1), zeros(h)]
    p += [normal(rng, e + 2 * h, 2 * h, scale=0.1), zeros(2 * h), normal(rng, e + 2 * h, h, scale=0.1), zeros(h)]
    p += [
        normal(rng, h, h, scale=0.1),
        normal(rng, h, h, scale=0.1),
        normal(rng, h, scale=0.1),
        normal(rng, 2 * h, v, scale=0.1),
    ]
    return Values(p, [integers(rng, v, 20, 16), integers(rng, v, 16, 16), integers(rng, v, 16, 16)], rate=0.1)


@workload
def moe_partition(rng):
    w, e, h = 64, 8, 128
    return Values(
        [normal(rng, w, e, scale=0.3), normal(rng, e, w, h, scale=0.1), normal(rng, e, h, w, scale=0.1)],
        [normal(rng, 512, w), normal(rng, 512, w)],
        rate=0.1,
    )


@workload
def ragged_mean(rng):
    lengths = rng.integers(1, 30, 128)
    n = int(lengths.sum())
    return Values(
        [normal(rng, 2000, 32, scale=0.1), *layers(rng, 32, 64, 4)],
        [
            integers(rng, 2000, n),
            lengths.astype("int64"),
            np.repeat(np.arange(128), lengths).astype("int32"),
            integers(rng, 4, 128),
        ],
        rate=0.5,
    )


@workload
def maml(rng):
    return Values(
        layers(rng, 1, 40, 40, 1),
        [normal(rng, 8, 10, 1), normal(rng, 8, 10, 1), normal(rng, 8, 10, 1), normal(rng, 8, 10, 1)],
    )


@workload
def adafactor(rng):
    w = layers(rng, 256, 512, 512, 10)
    slots = []
    for a in w:
        slots += [np.zeros(a.shape[:1], "float32"), np.zeros(a.shape[1:], "float32")]
    return Values([zeros(1)[0], *w, *slots], [normal(rng, 64, 256), integers(rng, 10, 64)], rate=0.01)


@workload
def sinkhorn(rng):
    return Values([normal(rng, 128, 2)], [normal(rng, 128, 2) + 1], rate=1.0)


@workload
def tensor_train(rng):
    return Values(
        [normal(rng, 28, 2, 10, 10, scale=0.1) + np.eye(10, dtype="float32") * 0.7, normal(rng, 10, 10)],
        [rng.random((64, 28)).astype("float32"), integers(rng, 10, 64)],
    )
