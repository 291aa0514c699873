"""The operations that most programs call, on square and flat inputs."""

from operations.in_numpy import NUMPY


def tf_gru(tf, x, h, w, u):
    for t in range(3):
        a, b = tf.split(tf.matmul(x[:, t], w), 3, axis=-1), tf.split(tf.matmul(h, u), 3, axis=-1)
        z, r = tf.sigmoid(a[0] + b[0]), tf.sigmoid(a[1] + b[1])
        h = z * h + (1 - z) * tf.tanh(a[2] + r * b[2])
    return h


def torch_gru(torch, x, h, w, u):
    for t in range(3):
        a, b = (x[:, t] @ w).chunk(3, -1), (h @ u).chunk(3, -1)
        z, r = torch.sigmoid(a[0] + b[0]), torch.sigmoid(a[1] + b[1])
        h = z * h + (1 - z) * torch.tanh(a[2] + r * b[2])
    return h


def tf_adam(tf, p, g, m, v):
    m = 0.9 * m + 0.1 * g
    v = 0.999 * v + 0.001 * tf.square(g)
    return p - 0.01 * m / (tf.sqrt(v) + 1e-7)


def torch_adam(torch, p, g, m, v):
    m = 0.9 * m + 0.1 * g
    v = 0.999 * v + 0.001 * torch.square(g)
    return p - 0.01 * m / (torch.sqrt(v) + 1e-7)


def tf_layer_norm(tf, x, g, b):
    mean, variance = tf.nn.moments(x, [-1], keepdims=True)
    return tf.nn.batch_normalization(x, mean, variance, b, g, 1e-5)


def tf_batch_norm(tf, x, g, b):
    mean, variance = tf.nn.moments(x, [0, 1, 2])
    return tf.nn.batch_normalization(x, mean, variance, b, g, 1e-5)


def torch_clip_by_global_norm(torch, *tensors):
    norm = torch.linalg.norm(torch.stack(torch._foreach_norm(tensors)))
    scale = 1.0 / torch.clamp(norm, min=1.0)
    return [t * scale for t in tensors][0]  # noqa: RUF015, all are computed


def torch_image(x):
    return x.permute(0, 3, 1, 2)


# name: (arguments, Tapeflow, PyTorch).
ELEMENTWISE = ["exp", "expm1", "log1p", "sqrt", "rsqrt", "sin", "cos", "tan", "atan", "sinh", "asinh"]
ELEMENTWISE += ["erf", "lgamma", "digamma", "sign", "floor", "abs", "square"]
ROWS = {
    **{
        name: (
            ["p"],
            lambda tf, x, n=name: getattr(tf.math, n)(x),
            lambda torch, x, n=name: getattr(torch, n)(x),
        )
        for name in ELEMENTWISE
    },
    "erfc": (["v"], lambda tf, a: tf.math.erfc(a), lambda torch, a: torch.erfc(a)),
    "erfinv": (["u"], lambda tf, a: tf.math.erfinv(a), lambda torch, a: torch.erfinv(a)),
    "ndtri": (["u"], lambda tf, a: tf.math.ndtri(a), lambda torch, a: torch.special.ndtri(a)),
    "erfinv float64": (["d_u"], lambda tf, a: tf.math.erfinv(a), lambda torch, a: torch.erfinv(a)),
    "lgamma float64": (["d_u"], lambda tf, a: tf.math.lgamma(a), lambda torch, a: torch.lgamma(a)),
    "digamma float64": (["d_u"], lambda tf, a: tf.math.digamma(a), lambda torch, a: torch.digamma(a)),
    "complex multiply": (["c_v", "c_w"], lambda tf, a, b: a * b, lambda torch, a, b: a * b),
    "complex divide": (["c_v", "c_w"], lambda tf, a, b: a / b, lambda torch, a, b: a / b),
    "complex abs": (["c_v"], lambda tf, a: tf.abs(a), lambda torch, a: torch.abs(a)),
    "complex exp": (["c_v"], lambda tf, a: tf.exp(a), lambda torch, a: torch.exp(a)),
    "fft": (["c_v"], lambda tf, a: tf.signal.fft(a), lambda torch, a: torch.fft.fft(a)),
    "add": (["v", "w"], lambda tf, a, b: a + b, lambda torch, a, b: a + b),
    "divide": (["v", "p"], lambda tf, a, b: a / b, lambda torch, a, b: a / b),
    "add float64": (["d_v", "d_v"], lambda tf, a, b: a + b, lambda torch, a, b: a + b),
    "tanh float64": (["d_v"], lambda tf, a: tf.tanh(a), lambda torch, a: torch.tanh(a)),
    "exp float64": (["d_v"], lambda tf, a: tf.exp(a), lambda torch, a: torch.exp(a)),
    "pow number": (["p"], lambda tf, a: a**3, lambda torch, a: a**3),
    "pow": (["p", "v"], lambda tf, a, b: a**b, lambda torch, a, b: a**b),
    "add row": (["x", "row"], lambda tf, a, b: a + b, lambda torch, a, b: a + b),
    "multiply column": (["x", "column"], lambda tf, a, b: a * b, lambda torch, a, b: a * b),
    "maximum": (["v", "w"], lambda tf, a, b: tf.maximum(a, b), lambda torch, a, b: torch.maximum(a, b)),
    "squared_difference": (
        ["v", "w"],
        lambda tf, a, b: tf.math.squared_difference(a, b),
        lambda torch, a, b: (a - b) ** 2,
    ),
    "integer add": (["i_vector", "i_other"], lambda tf, a, b: a + b, lambda torch, a, b: a + b),
    "integer floordiv": (["i_vector", "i_other"], lambda tf, a, b: a // b, lambda torch, a, b: a // b),
    "integer mod": (["i_vector", "i_other"], lambda tf, a, b: a % b, lambda torch, a, b: a % b),
    "equal": (["i_vector", "i_other"], lambda tf, a, b: tf.equal(a, b), lambda torch, a, b: torch.eq(a, b)),
    "greater": (["v", "w"], lambda tf, a, b: a > b, lambda torch, a, b: a > b),
    "logical_and": (
        ["b_mask", "b_mask"],
        lambda tf, a, b: tf.logical_and(a, b),
        lambda torch, a, b: torch.logical_and(a, b),
    ),
    "where": (["b_mask", "v", "w"], lambda tf, c, a, b: tf.where(c, a, b), lambda torch, c, a, b: torch.where(c, a, b)),
    "where zeros": (
        ["v"],
        lambda tf, a: tf.where(a > 0, a, tf.zeros_like(a)),
        lambda torch, a: torch.where(a > 0, a, torch.zeros_like(a)),
    ),
    "mask multiply": (
        ["b_mask", "v"],
        lambda tf, c, a: a * tf.cast(c, tf.float32),
        lambda torch, c, a: a * c.to(torch.float32),
    ),
    "cast float64": (["v"], lambda tf, a: tf.cast(a, tf.float64), lambda torch, a: a.to(torch.float64)),
    "cast int32": (["v"], lambda tf, a: tf.cast(a, tf.int32), lambda torch, a: a.to(torch.int32)),
    "clip_by_value": (["v"], lambda tf, a: tf.clip_by_value(a, -1.0, 1.0), lambda torch, a: torch.clamp(a, -1.0, 1.0)),
    "relu": (["v"], lambda tf, a: tf.nn.relu(a), lambda torch, a: torch.relu(a)),
    "leaky_relu": (["v"], lambda tf, a: tf.nn.leaky_relu(a), lambda torch, a: torch.nn.functional.leaky_relu(a, 0.2)),
    "elu": (["v"], lambda tf, a: tf.nn.elu(a), lambda torch, a: torch.nn.functional.elu(a)),
    "selu": (["v"], lambda tf, a: tf.nn.selu(a), lambda torch, a: torch.selu(a)),
    "gelu": (["v"], lambda tf, a: tf.nn.gelu(a), lambda torch, a: torch.nn.functional.gelu(a)),
    "gelu approximate": (
        ["v"],
        lambda tf, a: tf.nn.gelu(a, approximate=True),
        lambda torch, a: torch.nn.functional.gelu(a, approximate="tanh"),
    ),
    "silu": (["v"], lambda tf, a: tf.nn.silu(a), lambda torch, a: torch.nn.functional.silu(a)),
    "softplus": (["v"], lambda tf, a: tf.nn.softplus(a), lambda torch, a: torch.nn.functional.softplus(a)),
    "sigmoid": (["v"], lambda tf, a: tf.sigmoid(a), lambda torch, a: torch.sigmoid(a)),
    "softmax": (["x"], lambda tf, a: tf.nn.softmax(a), lambda torch, a: torch.softmax(a, -1)),
    "softmax axis 0": (["x"], lambda tf, a: tf.nn.softmax(a, axis=0), lambda torch, a: torch.softmax(a, 0)),
    "log_softmax": (["x"], lambda tf, a: tf.nn.log_softmax(a), lambda torch, a: torch.log_softmax(a, -1)),
    "logsumexp": (["x"], lambda tf, a: tf.reduce_logsumexp(a, -1), lambda torch, a: torch.logsumexp(a, -1)),
    "logsumexp axis 0": (["x"], lambda tf, a: tf.reduce_logsumexp(a, 0), lambda torch, a: torch.logsumexp(a, 0)),
    "sum all": (["x"], lambda tf, a: tf.reduce_sum(a), lambda torch, a: torch.sum(a)),
    "sum axis 0": (["x"], lambda tf, a: tf.reduce_sum(a, 0), lambda torch, a: torch.sum(a, 0)),
    "sum axis 1": (["x"], lambda tf, a: tf.reduce_sum(a, 1), lambda torch, a: torch.sum(a, 1)),
    "mean middle axis": (["cube"], lambda tf, a: tf.reduce_mean(a, 1), lambda torch, a: torch.mean(a, 1)),
    "mean outer axes": (["cube"], lambda tf, a: tf.reduce_mean(a, [0, 2]), lambda torch, a: torch.mean(a, (0, 2))),
    "max all": (["x"], lambda tf, a: tf.reduce_max(a), lambda torch, a: torch.amax(a)),
    "max axis 0": (["x"], lambda tf, a: tf.reduce_max(a, 0), lambda torch, a: torch.amax(a, 0)),
    "max axis 1": (["x"], lambda tf, a: tf.reduce_max(a, 1), lambda torch, a: torch.amax(a, 1)),
    "prod axis 1": (["x"], lambda tf, a: tf.reduce_prod(a, 1), lambda torch, a: torch.prod(a, 1)),
    "prod axis 0": (["x"], lambda tf, a: tf.reduce_prod(a, 0), lambda torch, a: torch.prod(a, 0)),
    "prod all": (["x"], lambda tf, a: tf.reduce_prod(a), lambda torch, a: torch.prod(a)),
    "variance": (["x"], lambda tf, a: tf.math.reduce_variance(a, 1), lambda torch, a: torch.var(a, 1, correction=0)),
    "std": (["x"], lambda tf, a: tf.math.reduce_std(a, 0), lambda torch, a: torch.std(a, 0, correction=0)),
    "moments": (["x"], lambda tf, a: tf.nn.moments(a, [0])[1], lambda torch, a: torch.var_mean(a, 0, correction=0)[0]),
    "norm": (["x"], lambda tf, a: tf.norm(a), lambda torch, a: torch.linalg.norm(a)),
    "norm axis 1": (["x"], lambda tf, a: tf.norm(a, axis=1), lambda torch, a: torch.linalg.norm(a, dim=1)),
    "l2_normalize": (
        ["x"],
        lambda tf, a: tf.math.l2_normalize(a, -1),
        lambda torch, a: torch.nn.functional.normalize(a, dim=-1),
    ),
    "all": (["b_mask"], lambda tf, a: tf.reduce_all(a), lambda torch, a: torch.all(a)),
    "argmax axis 1": (["x"], lambda tf, a: tf.argmax(a, 1), lambda torch, a: torch.argmax(a, 1)),
    "argmax axis 0": (["x"], lambda tf, a: tf.argmax(a, 0), lambda torch, a: torch.argmax(a, 0)),
    "cumsum": (["v"], lambda tf, a: tf.cumsum(a), lambda torch, a: torch.cumsum(a, 0)),
    "cumsum axis 0": (["x"], lambda tf, a: tf.cumsum(a, 0), lambda torch, a: torch.cumsum(a, 0)),
    "cumsum axis 1": (["x"], lambda tf, a: tf.cumsum(a, 1), lambda torch, a: torch.cumsum(a, 1)),
    "cumprod axis 1": (["x"], lambda tf, a: tf.math.cumprod(a, 1), lambda torch, a: torch.cumprod(a, 1)),
    "sort": (["v"], lambda tf, a: tf.sort(a), lambda torch, a: torch.sort(a)[0]),
    "sort rows": (["x"], lambda tf, a: tf.sort(a), lambda torch, a: torch.sort(a)[0]),
    "argsort": (["v"], lambda tf, a: tf.argsort(a), lambda torch, a: torch.argsort(a)),
    "top_k": (["x"], lambda tf, a: tf.math.top_k(a, 3)[0], lambda torch, a: torch.topk(a, 3)[0]),
    "unique": (["i_vector"], lambda tf, a: tf.unique(a), lambda torch, a: torch.unique(a, return_inverse=True)),
    "transpose": (["x"], lambda tf, a: tf.transpose(a), lambda torch, a: a.T.contiguous()),
    "transpose inner": (
        ["cube"],
        lambda tf, a: tf.transpose(a, [0, 2, 1]),
        lambda torch, a: a.transpose(1, 2).contiguous(),
    ),
    "reshape": (["x"], lambda tf, a: tf.reshape(a, [-1]), lambda torch, a: a.reshape(-1)),
    "expand_dims": (["x"], lambda tf, a: tf.expand_dims(a, 0), lambda torch, a: a.unsqueeze(0)),
    "concat": (["x", "y"], lambda tf, a, b: tf.concat([a, b], 1), lambda torch, a, b: torch.cat([a, b], 1)),
    "stack": (["v", "w"], lambda tf, a, b: tf.stack([a, b]), lambda torch, a, b: torch.stack([a, b])),
    "stack last": (["v", "w"], lambda tf, a, b: tf.stack([a, b], -1), lambda torch, a, b: torch.stack([a, b], -1)),
    "split": (["x"], lambda tf, a: tf.split(a, 2, 1), lambda torch, a: [p.contiguous() for p in a.chunk(2, 1)]),
    "unstack": (["column"], lambda tf, a: tf.unstack(a)[0], lambda torch, a: a.unbind()[0]),
    "pad": (
        ["x"],
        lambda tf, a: tf.pad(a, [[1, 1], [2, 2]]),
        lambda torch, a: torch.nn.functional.pad(a, (2, 2, 1, 1)),
    ),
    "pad reflect": (
        ["x"],
        lambda tf, a: tf.pad(a, [[0, 0], [2, 2]], "REFLECT"),
        lambda torch, a: torch.nn.functional.pad(a, (2, 2), "reflect"),
    ),
    "tile": (["x"], lambda tf, a: tf.tile(a, [2, 2]), lambda torch, a: torch.tile(a, (2, 2))),
    "repeat": (["x"], lambda tf, a: tf.repeat(a, 2, 0), lambda torch, a: torch.repeat_interleave(a, 2, 0)),
    "broadcast_to": (
        ["row"],
        lambda tf, a: tf.broadcast_to(a, [100, a.shape[0]]),
        lambda torch, a: a.expand(100, -1).contiguous(),
    ),
    "roll": (["x"], lambda tf, a: tf.roll(a, 1, 1), lambda torch, a: torch.roll(a, 1, 1)),
    "reverse": (["x"], lambda tf, a: tf.reverse(a, [1]), lambda torch, a: torch.flip(a, (1,))),
    "slice": (["x"], lambda tf, a: a[1:, 1:], lambda torch, a: a[1:, 1:].contiguous()),
    "strided slice": (["x"], lambda tf, a: a[:, ::2], lambda torch, a: a[:, ::2].contiguous()),
    "tril": (["x"], lambda tf, a: tf.linalg.band_part(a, -1, 0), lambda torch, a: torch.tril(a)),
    "diag_part": (["x"], lambda tf, a: tf.linalg.diag_part(a), lambda torch, a: torch.diagonal(a).contiguous()),
    "diag": (["row"], lambda tf, a: tf.linalg.diag(a), lambda torch, a: torch.diag(a)),
    "eye": ([], lambda tf: tf.eye(8), lambda torch: torch.eye(8)),
    "range": ([], lambda tf: tf.range(10), lambda torch: torch.arange(10)),
    "linspace": ([], lambda tf: tf.linspace(0.0, 1.0, 10), lambda torch: torch.linspace(0.0, 1.0, 10)),
    "zeros": ([], lambda tf: tf.zeros([8]), lambda torch: torch.zeros([8])),
    "fill": ([], lambda tf: tf.fill([8], 2.0), lambda torch: torch.full([8], 2.0)),
    "constant": ([], lambda tf: tf.constant([1.0, 2.0, 3.0]), lambda torch: torch.tensor([1.0, 2.0, 3.0])),
    "zeros_like": (["v"], lambda tf, a: tf.zeros_like(a), lambda torch, a: torch.zeros_like(a)),
    "meshgrid": (
        ["row"],
        lambda tf, a: tf.meshgrid(a, a),
        lambda torch, a: [grid.contiguous() for grid in torch.meshgrid(a, a, indexing="xy")],
    ),
    "gather": (["x", "i_row"], lambda tf, a, i: tf.gather(a, i), lambda torch, a, i: a[i]),
    "gather axis 1": (
        ["x", "i_class"],
        lambda tf, a, i: tf.gather(a, i, axis=1),
        lambda torch, a, i: a.index_select(1, i),
    ),
    "gather vector": (["row", "i_class"], lambda tf, a, i: tf.gather(a, i), lambda torch, a, i: a[i]),
    "gather batch": (
        ["x", "i_class"],
        lambda tf, a, i: tf.gather(a, i, axis=1, batch_dims=1),
        lambda torch, a, i: a.gather(1, i[:, None])[:, 0],
    ),
    "gather_nd": (
        ["x", "i_row"],
        lambda tf, a, i: tf.gather_nd(a, tf.stack([i, i], -1)),
        lambda torch, a, i: a[i, i],
    ),
    "embedding_lookup": (
        ["x", "i_row"],
        lambda tf, a, i: tf.nn.embedding_lookup(a, i),
        lambda torch, a, i: torch.nn.functional.embedding(i, a),
    ),
    "boolean_mask": (["x", "b_rows"], lambda tf, a, m: tf.boolean_mask(a, m), lambda torch, a, m: a[m]),
    "boolean_mask vector": (["v", "b_mask"], lambda tf, a, m: tf.boolean_mask(a, m), lambda torch, a, m: a[m]),
    "where indices": (["b_mask"], lambda tf, m: tf.where(m), lambda torch, m: torch.nonzero(m)),
    "scatter_nd": (
        ["x", "i_row"],
        lambda tf, a, i: tf.scatter_nd(i[:, None], a, a.shape),
        lambda torch, a, i: torch.zeros_like(a).index_add(0, i, a),
    ),
    "scatter_nd_add": (
        ["x", "i_row"],
        lambda tf, a, i: tf.tensor_scatter_nd_add(a, i[:, None], a),
        lambda torch, a, i: a.index_add(0, i, a),
    ),
    "segment_sum": (
        ["x", "i_row"],
        lambda tf, a, i: tf.math.unsorted_segment_sum(a, i, a.shape[0]),
        lambda torch, a, i: torch.zeros_like(a).index_add(0, i, a),
    ),
    "bincount": (
        ["i_vector"],
        lambda tf, a: tf.math.bincount(tf.cast(a, tf.int32)),
        lambda torch, a: torch.bincount(a),
    ),
    "one_hot": (
        ["i_class"],
        lambda tf, i: tf.one_hot(i, 10),
        lambda torch, i: torch.nn.functional.one_hot(i % 10, 10).float(),
    ),
    "searchsorted": (
        ["row", "v"],
        lambda tf, a, b: tf.searchsorted(a, b),
        lambda torch, a, b: torch.searchsorted(a, b),
    ),
    "matmul": (["x", "y"], lambda tf, a, b: tf.matmul(a, b, transpose_b=True), lambda torch, a, b: a @ b.T),
    "tensordot": (
        ["x", "y"],
        lambda tf, a, b: tf.tensordot(a, b, [[1], [1]]),
        lambda torch, a, b: torch.tensordot(a, b, ([1], [1])),
    ),
    "einsum": (
        ["cube", "keys"],
        lambda tf, a, b: tf.einsum("bqd,bkd->bqk", a, b),
        lambda torch, a, b: torch.einsum("bqd,bkd->bqk", a, b),
    ),
    "einsum heads": (
        ["cube", "weights"],
        lambda tf, a, b: tf.einsum("btd,dhk->bhtk", a, tf.reshape(b, [a.shape[2], 3, -1])),
        lambda torch, a, b: torch.einsum("btd,dhk->bhtk", a, b.reshape(a.shape[2], 3, -1)),
    ),
    "dense": (
        ["state", "weights"],
        lambda tf, a, b: tf.nn.relu(tf.matmul(a, b)),
        lambda torch, a, b: torch.relu(a @ b),
    ),
    "bias_add": (["image", "channel"], lambda tf, a, b: tf.nn.bias_add(a, b), lambda torch, a, b: a + b),
    "cholesky": (["spd"], lambda tf, a: tf.linalg.cholesky(a), lambda torch, a: torch.linalg.cholesky(a)),
    "solve": (["spd", "side"], lambda tf, a, b: tf.linalg.solve(a, b), lambda torch, a, b: torch.linalg.solve(a, b)),
    "inv": (["spd"], lambda tf, a: tf.linalg.inv(a), lambda torch, a: torch.linalg.inv(a)),
    "det": (["spd"], lambda tf, a: tf.linalg.det(a), lambda torch, a: torch.linalg.det(a)),
    "trace": (["spd"], lambda tf, a: tf.linalg.trace(a), lambda torch, a: torch.trace(a)),
    "rfft": (["x"], lambda tf, a: tf.abs(tf.signal.rfft(a)), lambda torch, a: torch.fft.rfft(a).abs()),
    "layer_norm": (
        ["x", "row", "row"],
        tf_layer_norm,
        lambda torch, a, g, b: torch.nn.functional.layer_norm(a, a.shape[1:], g, b),
    ),
    "batch_norm": (
        ["image", "channel", "channel"],
        tf_batch_norm,
        lambda torch, x, g, b: torch.nn.functional.batch_norm(torch_image(x), None, None, g, b, True),
    ),
    "dropout": (["v"], lambda tf, a: tf.nn.dropout(a, 0.5), lambda torch, a: torch.dropout(a, 0.5, True)),
    "sparse cross entropy": (
        ["x", "i_class"],
        lambda tf, a, i: tf.nn.sparse_softmax_cross_entropy_with_logits(i, a),
        lambda torch, a, i: torch.nn.functional.cross_entropy(a, i, reduction="none"),
    ),
    "softmax cross entropy": (
        ["x", "labels"],
        lambda tf, a, t: tf.nn.softmax_cross_entropy_with_logits(t, a),
        lambda torch, a, t: torch.nn.functional.cross_entropy(a, t, reduction="none"),
    ),
    "sigmoid cross entropy": (
        ["x", "labels"],
        lambda tf, a, t: tf.nn.sigmoid_cross_entropy_with_logits(t, a),
        lambda torch, a, t: torch.nn.functional.binary_cross_entropy_with_logits(a, t, reduction="none"),
    ),
    "mean squared error": (
        ["x", "y"],
        lambda tf, a, b: tf.reduce_mean(tf.square(a - b)),
        lambda torch, a, b: torch.nn.functional.mse_loss(a, b),
    ),
    "l2_loss": (["x"], lambda tf, a: tf.nn.l2_loss(a), lambda torch, a: 0.5 * torch.sum(a * a)),
    "clip_by_norm": (
        ["x"],
        lambda tf, a: tf.clip_by_norm(a, 1.0),
        lambda torch, a: a * (1.0 / torch.clamp(torch.linalg.norm(a), min=1.0)),
    ),
    "clip_by_global_norm": (
        ["x", "y", "row"],
        lambda tf, a, b, c: tf.clip_by_global_norm([a, b, c], 1.0)[0][0],
        torch_clip_by_global_norm,
    ),
    "adam formula": (["v", "w", "v", "p"], tf_adam, torch_adam),
    "gru, 3 steps": (["cube", "state", "weights", "recurrent"], tf_gru, torch_gru),
    "attention": (
        ["cube", "keys"],
        lambda tf, q, k: tf.matmul(tf.nn.softmax(tf.matmul(q, k, transpose_b=True) * 0.1), k),
        lambda torch, q, k: torch.softmax(q @ k.transpose(1, 2) * 0.1, -1) @ k,
    ),
    "conv2d": (
        ["image", "kernel"],
        lambda tf, x, k: tf.nn.conv2d(x, k, 1, "SAME"),
        lambda torch, x, k: torch.nn.functional.conv2d(torch_image(x), k.permute(3, 2, 0, 1), padding=1),
    ),
    "conv2d stride 2": (
        ["image", "kernel"],
        lambda tf, x, k: tf.nn.conv2d(x, k, 2, "VALID"),
        lambda torch, x, k: torch.nn.functional.conv2d(torch_image(x), k.permute(3, 2, 0, 1), stride=2),
    ),
    "conv1d": (
        ["signal", "filter"],
        lambda tf, x, k: tf.nn.conv1d(x, k, 1, "VALID"),
        lambda torch, x, k: torch.nn.functional.conv1d(x.transpose(1, 2), k.permute(2, 1, 0)),
    ),
    "depthwise_conv2d": (
        ["image", "depthwise"],
        lambda tf, x, k: tf.nn.depthwise_conv2d(x, k, [1, 1, 1, 1], "SAME"),
        lambda torch, x, k: torch.nn.functional.conv2d(
            torch_image(x), k.permute(2, 3, 0, 1), padding=1, groups=x.shape[3]
        ),
    ),
    "conv2d_transpose": (
        ["image", "kernel"],
        lambda tf, x, k: tf.nn.conv2d_transpose(x, k, [x.shape[0], 2 * x.shape[1], 2 * x.shape[2], x.shape[3]], 2),
        lambda torch, x, k: torch.nn.functional.conv_transpose2d(
            torch_image(x), k.permute(3, 2, 0, 1), stride=2, padding=1, output_padding=1
        ),
    ),
    "max_pool2d": (
        ["image"],
        lambda tf, x: tf.nn.max_pool2d(x, 2, 2, "VALID"),
        lambda torch, x: torch.nn.functional.max_pool2d(torch_image(x), 2),
    ),
    "avg_pool2d": (
        ["image"],
        lambda tf, x: tf.nn.avg_pool2d(x, 2, 2, "VALID"),
        lambda torch, x: torch.nn.functional.avg_pool2d(torch_image(x), 2),
    ),
    "global mean pool": (["image"], lambda tf, x: tf.reduce_mean(x, [1, 2]), lambda torch, x: torch.mean(x, (1, 2))),
    "resize bilinear": (
        ["image"],
        lambda tf, x: tf.image.resize(x, [2 * x.shape[1], 2 * x.shape[2]]),
        lambda torch, x: torch.nn.functional.interpolate(torch_image(x), scale_factor=2, mode="bilinear"),
    ),
    "resize nearest": (
        ["image"],
        lambda tf, x: tf.image.resize(x, [2 * x.shape[1], 2 * x.shape[2]], "nearest"),
        lambda torch, x: torch.nn.functional.interpolate(torch_image(x), scale_factor=2, mode="nearest"),
    ),
    "random normal": (["v"], lambda tf, a: tf.random.normal(a.shape), lambda torch, a: torch.randn(a.shape)),
    "random normal float64": (
        ["v"],
        lambda tf, a: tf.random.normal(a.shape, dtype=tf.float64),
        lambda torch, a: torch.randn(a.shape, dtype=torch.float64),
    ),
    "random uniform": (["v"], lambda tf, a: tf.random.uniform(a.shape), lambda torch, a: torch.rand(a.shape)),
    "random integers": (
        ["v"],
        lambda tf, a: tf.random.uniform(a.shape, 0, 10, tf.int32),
        lambda torch, a: torch.randint(0, 10, a.shape, dtype=torch.int32),
    ),
    "random shuffle": (["x"], lambda tf, a: tf.random.shuffle(a), lambda torch, a: a[torch.randperm(a.shape[0])]),
    "random categorical": (
        ["x"],
        lambda tf, a: tf.random.categorical(a, 1),
        lambda torch, a: torch.multinomial(torch.softmax(a, -1), 1),
    ),
}
ROWS |= {name: (*ROWS[name], function) for name, function in NUMPY.items()}
