"""Images: blocks of well-known nets, a U-Net, differentiable augmentation."""

import torch
import torch.nn.functional as nn
from in_torch.train import channels_first, loss


def conv(x, kernel, stride=1):
    """With TensorFlow's SAME: a kernel of 3 and a stride of 2 pad at the end alone."""
    if stride == 2 and kernel.shape[-1] == 3:
        return nn.conv2d(nn.pad(x, (0, 1, 0, 1)), kernel, stride=2)
    return nn.conv2d(x, kernel, stride=stride, padding=kernel.shape[-1] // 2)


def batch_norm(x, scale, shift):
    return nn.batch_norm(x, None, None, scale, shift, training=True, eps=1e-5)


@loss
@channels_first
def resnet(params, data):
    images, labels = data
    x = nn.relu(batch_norm(conv(images, params[0]), *params[1:3]))
    h = nn.relu(batch_norm(conv(x, params[3]), *params[4:6]))
    x = nn.relu(x + batch_norm(conv(h, params[6]), *params[7:9]))
    h = nn.relu(batch_norm(conv(x, params[9], 2), *params[10:12]))
    x = nn.relu(conv(x, params[15], 2) + batch_norm(conv(h, params[12]), *params[13:15]))
    return nn.cross_entropy(x.mean((2, 3)) @ params[16], labels)


@loss
@channels_first
def mobilenet(params, data):
    images, labels = data
    x = conv(images, params[0])
    for i in range(1, len(params) - 1, 9):
        expand, depthwise, project = params[i : i + 3], params[i + 3 : i + 6], params[i + 6 : i + 9]
        h = nn.relu6(batch_norm(conv(x, expand[0]), *expand[1:]))
        h = nn.conv2d(h, depthwise[0], padding=1, groups=h.shape[1])
        h = nn.relu6(batch_norm(h, *depthwise[1:]))
        x = x + batch_norm(conv(h, project[0]), *project[1:])
    return nn.cross_entropy(x.mean((2, 3)) @ params[-1], labels)


@loss
@channels_first
def unet(params, data):
    images, masks = data

    def block(x, i):
        return nn.relu(nn.conv2d(x, params[2 * i], params[2 * i + 1], padding=1))

    def up(x):
        return nn.interpolate(x, scale_factor=2.0, mode="nearest")

    high = block(block(images, 0), 1)
    middle = block(block(nn.max_pool2d(high, 2), 2), 3)
    x = block(nn.max_pool2d(middle, 2), 4)
    x = block(torch.cat([middle, block(up(x), 5)], 1), 6)
    x = block(torch.cat([high, block(up(x), 7)], 1), 8)
    return nn.binary_cross_entropy_with_logits(nn.conv2d(x, params[18], params[19], padding=1), masks)


@loss
def augmentation(params, data):
    x, w = params
    brightness, saturation, contrast, flips, targets = data
    x = x + (brightness - 0.5)
    mean = x.mean(3, keepdim=True)
    x = (x - mean) * (2 * saturation) + mean
    mean = x.mean((1, 2, 3), keepdim=True)
    x = (x - mean) * (contrast + 0.5) + mean
    x = flips * x.flip(2) + (1 - flips) * x
    x = nn.pad(x.permute(0, 3, 1, 2), (4, 4, 4, 4), "reflect")[:, :, 7:55, 3:51]
    x = torch.cat([x[:, :, :8], torch.zeros_like(x[:, :, 8:16]), x[:, :, 16:]], 2)
    x = nn.interpolate(x, size=(24, 24), mode="bilinear", align_corners=False)
    return torch.mean(torch.square(torch.tanh(x.permute(0, 2, 3, 1) @ w) - targets))
