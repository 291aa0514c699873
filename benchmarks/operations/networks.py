"""Layers of networks: convolutions, pools, normalisations, losses, resizing, random numbers."""


def first(x):
    return x.permute(0, 3, 1, 2)


def conv(torch, x, k, **options):
    return torch.nn.functional.conv2d(first(x), k.permute(3, 2, 0, 1), **options)


ROWS = {
    "conv2d 5x5": (
        ["image", "kernel_5"],
        lambda tf, x, k: tf.nn.conv2d(x, k, 1, "SAME"),
        lambda torch, x, k: conv(torch, x, k, padding=2),
    ),
    "conv2d 1x1": (
        ["image", "kernel_1"],
        lambda tf, x, k: tf.nn.conv2d(x, k, 1, "SAME"),
        lambda torch, x, k: conv(torch, x, k),
    ),
    "conv2d 1x1 stride 2": (
        ["image", "kernel_1"],
        lambda tf, x, k: tf.nn.conv2d(x, k, 2, "VALID"),
        lambda torch, x, k: conv(torch, x, k, stride=2),
    ),
    "conv2d dilated": (
        ["image", "kernel"],
        lambda tf, x, k: tf.nn.conv2d(x, k, 1, "SAME", dilations=2),
        lambda torch, x, k: conv(torch, x, k, padding=2, dilation=2),
    ),
    "conv2d groups": (
        ["even_image", "kernel_in_groups"],
        lambda tf, x, k: tf.nn.conv2d(x, k, 1, "SAME"),
        lambda torch, x, k: conv(torch, x, k, padding=1, groups=4),
    ),
    "conv2d rgb 7x7": (
        ["rgb", "kernel_rgb"],
        lambda tf, x, k: tf.nn.conv2d(tf.pad(x, [[0, 0], [3, 3], [3, 3], [0, 0]]), k, 2, "VALID"),
        lambda torch, x, k: conv(torch, x, k, padding=3, stride=2),
    ),
    "conv1d stride 2": (
        ["signal", "filter"],
        lambda tf, x, k: tf.nn.conv1d(x, k, 2, "VALID"),
        lambda torch, x, k: torch.nn.functional.conv1d(x.transpose(1, 2), k.permute(2, 1, 0), stride=2),
    ),
    "conv1d dilated": (
        ["signal", "filter"],
        lambda tf, x, k: tf.nn.conv1d(x, k, 1, "VALID", dilations=4),
        lambda torch, x, k: torch.nn.functional.conv1d(x.transpose(1, 2), k.permute(2, 1, 0), dilation=4),
    ),
    "conv3d": (
        ["volume", "kernel_3d"],
        lambda tf, x, k: tf.nn.conv3d(x, k, [1] * 5, "SAME"),
        lambda torch, x, k: torch.nn.functional.conv3d(x.permute(0, 4, 1, 2, 3), k.permute(4, 3, 0, 1, 2), padding=1),
    ),
    "conv3d stride 2": (
        ["volume", "kernel_3d"],
        lambda tf, x, k: tf.nn.conv3d(x, k, [1, 2, 2, 2, 1], "VALID"),
        lambda torch, x, k: torch.nn.functional.conv3d(x.permute(0, 4, 1, 2, 3), k.permute(4, 3, 0, 1, 2), stride=2),
    ),
    "depthwise stride 2": (
        ["image", "depthwise"],
        lambda tf, x, k: tf.nn.depthwise_conv2d(x, k, [1, 2, 2, 1], "VALID"),
        lambda torch, x, k: conv(torch, x, k.transpose(2, 3), stride=2, groups=x.shape[3]),
    ),
    "depthwise dilated": (
        ["image", "depthwise"],
        lambda tf, x, k: tf.nn.depthwise_conv2d(x, k, [1, 1, 1, 1], "SAME", dilations=[2, 2]),
        lambda torch, x, k: conv(torch, x, k.transpose(2, 3), padding=2, dilation=2, groups=x.shape[3]),
    ),
    "separable_conv2d": (
        ["image", "depthwise", "kernel_1"],
        lambda tf, x, k, p: tf.nn.separable_conv2d(x, k, p, [1, 1, 1, 1], "SAME"),
        lambda torch, x, k, p: torch.nn.functional.conv2d(
            conv(torch, x, k.transpose(2, 3), padding=1, groups=x.shape[3]), p.permute(3, 2, 0, 1)
        ),
    ),
    "max_pool 3x3 stride 2": (
        ["image"],
        lambda tf, x: tf.nn.max_pool2d(x, 3, 2, "VALID"),
        lambda torch, x: torch.nn.functional.max_pool2d(first(x), 3, 2),
    ),
    "max_pool 3x3 same": (
        ["image"],
        lambda tf, x: tf.nn.max_pool2d(x, 3, 1, "SAME"),
        lambda torch, x: torch.nn.functional.max_pool2d(first(x), 3, 1, 1),
    ),
    "avg_pool 3x3": (
        ["image"],
        lambda tf, x: tf.nn.avg_pool2d(x, 3, 1, "VALID"),
        lambda torch, x: torch.nn.functional.avg_pool2d(first(x), 3, 1),
    ),
    "avg_pool 3x3 stride 2": (
        ["image"],
        lambda tf, x: tf.nn.avg_pool2d(x, 3, 2, "VALID"),
        lambda torch, x: torch.nn.functional.avg_pool2d(first(x), 3, 2),
    ),
    "max_pool1d": (
        ["signal"],
        lambda tf, x: tf.nn.max_pool1d(x, 2, 2, "VALID"),
        lambda torch, x: torch.nn.functional.max_pool1d(x.transpose(1, 2), 2),
    ),
    "max_pool3d": (
        ["volume"],
        lambda tf, x: tf.nn.max_pool3d(x, 2, 2, "VALID"),
        lambda torch, x: torch.nn.functional.max_pool3d(x.permute(0, 4, 1, 2, 3), 2),
    ),
    "avg_pool3d": (
        ["volume"],
        lambda tf, x: tf.nn.avg_pool3d(x, 2, 2, "VALID"),
        lambda torch, x: torch.nn.functional.avg_pool3d(x.permute(0, 4, 1, 2, 3), 2),
    ),
    "global max pool": (["image"], lambda tf, x: tf.reduce_max(x, [1, 2]), lambda torch, x: torch.amax(x, (1, 2))),
    "softmax last of three": (["cube"], lambda tf, a: tf.nn.softmax(a), lambda torch, a: a.softmax(-1)),
    "layer_norm of three": (
        ["cube", "width", "width"],
        lambda tf, x, g, b: tf.nn.batch_normalization(x, *tf.nn.moments(x, [-1], keepdims=True), b, g, 1e-5),
        lambda torch, x, g, b: torch.nn.functional.layer_norm(x, x.shape[2:], g, b),
    ),
    "rms_norm": (
        ["cube", "width"],
        lambda tf, x, g: x * tf.math.rsqrt(tf.reduce_mean(tf.square(x), -1, keepdims=True) + 1e-6) * g,
        lambda torch, x, g: torch.nn.functional.rms_norm(x, x.shape[2:], g, 1e-6),
    ),
    "local_response_normalization": (
        ["image"],
        lambda tf, x: tf.nn.local_response_normalization(x, 2, 1.0, 1e-4 / 5, 0.75),
        lambda torch, x: torch.nn.functional.local_response_norm(first(x), 5),
    ),
    "sparse cross entropy of three": (
        ["cube", "i_many"],
        lambda tf, a, i: tf.nn.sparse_softmax_cross_entropy_with_logits(
            tf.reshape(i[: a.shape[0] * a.shape[1]] % a.shape[2], a.shape[:2]), a
        ),
        lambda torch, a, i: torch.nn.functional.cross_entropy(
            a.reshape(-1, a.shape[2]), i[: a.shape[0] * a.shape[1]] % a.shape[2], reduction="none"
        ),
    ),
    "sparse cross entropy short": (
        ["short", "i_vector"],
        lambda tf, a, i: tf.nn.sparse_softmax_cross_entropy_with_logits(i[: a.shape[0]] % 5, a),
        lambda torch, a, i: torch.nn.functional.cross_entropy(a, i[: a.shape[0]] % 5, reduction="none"),
    ),
    "huber": (
        ["v", "w"],
        lambda tf, a, b: tf.where(tf.abs(a - b) < 1.0, 0.5 * tf.square(a - b), tf.abs(a - b) - 0.5),
        lambda torch, a, b: torch.nn.functional.huber_loss(a, b, reduction="none"),
    ),
    "absolute error": (
        ["v", "w"],
        lambda tf, a, b: tf.reduce_mean(tf.abs(a - b)),
        lambda torch, a, b: torch.nn.functional.l1_loss(a, b),
    ),
    "relu6": (["v"], lambda tf, a: tf.nn.relu6(a), lambda torch, a: torch.nn.functional.relu6(a)),
    "softsign": (["v"], lambda tf, a: tf.nn.softsign(a), lambda torch, a: torch.nn.functional.softsign(a)),
    "log_sigmoid": (["v"], lambda tf, a: tf.math.log_sigmoid(a), lambda torch, a: torch.nn.functional.logsigmoid(a)),
    "resize bicubic": (
        ["image"],
        lambda tf, x: tf.image.resize(x, [2 * x.shape[1], 2 * x.shape[2]], "bicubic"),
        lambda torch, x: torch.nn.functional.interpolate(first(x), scale_factor=2, mode="bicubic"),
    ),
    "resize bilinear down": (
        ["image"],
        lambda tf, x: tf.image.resize(x, [x.shape[1] // 2, x.shape[2] // 2]),
        lambda torch, x: torch.nn.functional.interpolate(first(x), scale_factor=0.5, mode="bilinear"),
    ),
    "resize bilinear rgb": (
        ["rgb"],
        lambda tf, x: tf.image.resize(x, [2 * x.shape[1], 2 * x.shape[2]]),
        lambda torch, x: torch.nn.functional.interpolate(first(x), scale_factor=2, mode="bilinear"),
    ),
    "random gamma": (
        ["p"],
        lambda tf, a: tf.random.gamma([], a[:10000]),
        lambda torch, a: torch._standard_gamma(a[:10000]),
    ),
    "random poisson": (
        ["p"],
        lambda tf, a: tf.random.poisson([], a[:10000]),
        lambda torch, a: torch.poisson(a[:10000]),
    ),
    "random truncated": (
        ["v"],
        lambda tf, a: tf.random.truncated_normal(a.shape),
        lambda torch, a: torch.nn.init.trunc_normal_(torch.empty(a.shape)),
    ),
    "random uniform float64": (
        ["v"],
        lambda tf, a: tf.random.uniform(a.shape, dtype=tf.float64),
        lambda torch, a: torch.rand(a.shape, dtype=torch.float64),
    ),
    "random shuffle vector": (
        ["v"],
        lambda tf, a: tf.random.shuffle(a),
        lambda torch, a: a[torch.randperm(a.shape[0])],
    ),
}
