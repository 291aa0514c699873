"""Images: blocks of well-known nets, a U-Net, differentiable augmentation."""

import tensorflow as tf
from in_tensorflow.train import cross_entropy, loss


def conv(x, kernel, stride=1):
    return tf.nn.conv2d(x, kernel, stride, "SAME")


def batch_norm(x, scale, shift):
    mean, variance = tf.nn.moments(x, [0, 1, 2])
    return tf.nn.batch_normalization(x, mean, variance, shift, scale, 1e-5)


@loss
def resnet(params, data):
    images, labels = data
    x = tf.nn.relu(batch_norm(conv(images, params[0]), *params[1:3]))
    h = tf.nn.relu(batch_norm(conv(x, params[3]), *params[4:6]))
    x = tf.nn.relu(x + batch_norm(conv(h, params[6]), *params[7:9]))
    h = tf.nn.relu(batch_norm(conv(x, params[9], 2), *params[10:12]))
    x = tf.nn.relu(conv(x, params[15], 2) + batch_norm(conv(h, params[12]), *params[13:15]))
    return cross_entropy(labels, tf.reduce_mean(x, [1, 2]) @ params[16])


@loss
def mobilenet(params, data):
    images, labels = data
    x = conv(images, params[0])
    for i in range(1, len(params) - 1, 9):
        expand, depthwise, project = params[i : i + 3], params[i + 3 : i + 6], params[i + 6 : i + 9]
        h = tf.nn.relu6(batch_norm(conv(x, expand[0]), *expand[1:]))
        kernel = tf.reshape(depthwise[0], [3, 3, -1, 1])
        h = tf.nn.depthwise_conv2d(h, kernel, [1, 1, 1, 1], "SAME")
        h = tf.nn.relu6(batch_norm(h, *depthwise[1:]))
        x += batch_norm(conv(h, project[0]), *project[1:])
    return cross_entropy(labels, tf.reduce_mean(x, [1, 2]) @ params[-1])


@loss
def unet(params, data):
    images, masks = data

    def block(x, i):
        return tf.nn.relu(conv(x, params[2 * i]) + params[2 * i + 1])

    def up(x, size):
        return tf.image.resize(x, [size, size], "nearest")

    high = block(block(images, 0), 1)
    middle = block(block(tf.nn.max_pool2d(high, 2, 2, "VALID"), 2), 3)
    x = block(tf.nn.max_pool2d(middle, 2, 2, "VALID"), 4)
    x = block(tf.concat([middle, block(up(x, 32), 5)], -1), 6)
    x = block(tf.concat([high, block(up(x, 64), 7)], -1), 8)
    logits = conv(x, params[18]) + params[19]
    return tf.reduce_mean(tf.nn.sigmoid_cross_entropy_with_logits(labels=masks, logits=logits))


@loss
def augmentation(params, data):
    x, w = params
    brightness, saturation, contrast, flips, targets = data
    x = x + (brightness - 0.5)
    mean = tf.reduce_mean(x, 3, keepdims=True)
    x = (x - mean) * (2 * saturation) + mean
    mean = tf.reduce_mean(x, [1, 2, 3], keepdims=True)
    x = (x - mean) * (contrast + 0.5) + mean
    x = flips * tf.reverse(x, [2]) + (1 - flips) * x
    x = tf.pad(x, [[0, 0], [4, 4], [4, 4], [0, 0]], "REFLECT")[:, 7:55, 3:51, :]
    x = tf.concat([x[:, :8], tf.zeros_like(x[:, 8:16]), x[:, 16:]], 1)
    x = tf.image.resize(x, [24, 24], "bilinear")
    return tf.reduce_mean(tf.square(tf.tanh(x @ w) - targets))
