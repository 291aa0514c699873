"""Images: blocks of well-known nets, a U-Net, differentiable augmentation."""

import jax
import jax.numpy as jnp
from in_jax.train import cross_entropy, loss, sigmoid_cross_entropy


def conv(x, kernel, stride=1, groups=1):
    layout = ("NHWC", "HWIO", "NHWC")
    strides = (stride, stride)
    return jax.lax.conv_general_dilated(
        x, kernel, strides, "SAME", dimension_numbers=layout, feature_group_count=groups
    )


def batch_norm(x, scale, shift):
    mean, variance = x.mean((0, 1, 2)), x.var((0, 1, 2))
    return (x - mean) * jax.lax.rsqrt(variance + 1e-5) * scale + shift


@loss
def resnet(params, data):
    images, labels = data
    relu = jax.nn.relu
    x = relu(batch_norm(conv(images, params[0]), *params[1:3]))
    h = relu(batch_norm(conv(x, params[3]), *params[4:6]))
    x = relu(x + batch_norm(conv(h, params[6]), *params[7:9]))
    h = relu(batch_norm(conv(x, params[9], 2), *params[10:12]))
    x = relu(conv(x, params[15], 2) + batch_norm(conv(h, params[12]), *params[13:15]))
    return cross_entropy(labels, x.mean((1, 2)) @ params[16])


@loss
def mobilenet(params, data):
    images, labels = data
    x = conv(images, params[0])
    for i in range(1, len(params) - 1, 9):
        expand, depthwise, project = params[i : i + 3], params[i + 3 : i + 6], params[i + 6 : i + 9]
        h = jax.nn.relu6(batch_norm(conv(x, expand[0]), *expand[1:]))
        h = conv(h, depthwise[0], groups=h.shape[-1])
        h = jax.nn.relu6(batch_norm(h, *depthwise[1:]))
        x += batch_norm(conv(h, project[0]), *project[1:])
    return cross_entropy(labels, x.mean((1, 2)) @ params[-1])


@loss
def unet(params, data):
    images, masks = data

    def block(x, i):
        return jax.nn.relu(conv(x, params[2 * i]) + params[2 * i + 1])

    def up(x):
        return x.repeat(2, 1).repeat(2, 2)

    def pool(x):
        return jax.lax.reduce_window(x, -jnp.inf, jax.lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")

    high = block(block(images, 0), 1)
    middle = block(block(pool(high), 2), 3)
    x = block(pool(middle), 4)
    x = block(jnp.concatenate([middle, block(up(x), 5)], -1), 6)
    x = block(jnp.concatenate([high, block(up(x), 7)], -1), 8)
    return jnp.mean(sigmoid_cross_entropy(masks, conv(x, params[18]) + params[19]))


@loss
def augmentation(params, data):
    x, w = params
    brightness, saturation, contrast, flips, targets = data
    x = x + (brightness - 0.5)
    mean = x.mean(3, keepdims=True)
    x = (x - mean) * (2 * saturation) + mean
    mean = x.mean((1, 2, 3), keepdims=True)
    x = (x - mean) * (contrast + 0.5) + mean
    x = flips * x[:, :, ::-1] + (1 - flips) * x
    x = jnp.pad(x, ((0, 0), (4, 4), (4, 4), (0, 0)), "reflect")[:, 7:55, 3:51, :]
    x = jnp.concatenate([x[:, :8], jnp.zeros_like(x[:, 8:16]), x[:, 16:]], 1)
    x = jax.image.resize(x, (x.shape[0], 24, 24, 3), "bilinear", antialias=False)
    return jnp.mean(jnp.square(jnp.tanh(x @ w) - targets))
