"""Reductions, scans, sorts and broadcasts on shapes that are long, thin, short, transposed or broadcast."""

SHAPES = {
    "short rows": "short",
    "pairs": "pairs",
    "triples": "triples",
    "four long rows": "wide",
    "rows of 16": "columns_of_16",
}


def over_shapes(name, tf_function, torch_function, numpy_function=None):
    return {
        f"{name}, {shape}": ([argument], tf_function, torch_function, numpy_function)
        for shape, argument in SHAPES.items()
    }


ROWS = {
    **over_shapes("sum 1", lambda tf, a: tf.reduce_sum(a, 1), lambda torch, a: a.sum(1), lambda np, a: np.sum(a, 1)),
    **over_shapes("sum 0", lambda tf, a: tf.reduce_sum(a, 0), lambda torch, a: a.sum(0), lambda np, a: np.sum(a, 0)),
    **over_shapes("max 1", lambda tf, a: tf.reduce_max(a, 1), lambda torch, a: a.amax(1), lambda np, a: np.max(a, 1)),
    **over_shapes("max 0", lambda tf, a: tf.reduce_max(a, 0), lambda torch, a: a.amax(0), lambda np, a: np.max(a, 0)),
    **over_shapes(
        "prod 1", lambda tf, a: tf.reduce_prod(a, 1), lambda torch, a: a.prod(1), lambda np, a: np.prod(a, 1)
    ),
    **over_shapes(
        "argmax 1", lambda tf, a: tf.argmax(a, 1), lambda torch, a: a.argmax(1), lambda np, a: np.argmax(a, 1)
    ),
    **over_shapes(
        "argmax 0", lambda tf, a: tf.argmax(a, 0), lambda torch, a: a.argmax(0), lambda np, a: np.argmax(a, 0)
    ),
    **over_shapes("softmax", lambda tf, a: tf.nn.softmax(a), lambda torch, a: a.softmax(1)),
    **over_shapes("log_softmax", lambda tf, a: tf.nn.log_softmax(a), lambda torch, a: a.log_softmax(1)),
    **over_shapes("logsumexp", lambda tf, a: tf.reduce_logsumexp(a, 1), lambda torch, a: a.logsumexp(1)),
    **over_shapes(
        "variance",
        lambda tf, a: tf.math.reduce_variance(a, 1),
        lambda torch, a: a.var(1, correction=0),
        lambda np, a: np.var(a, 1),
    ),
    **over_shapes(
        "norm",
        lambda tf, a: tf.norm(a, axis=1),
        lambda torch, a: torch.linalg.norm(a, dim=1),
        lambda np, a: np.linalg.norm(a, axis=1),
    ),
    **over_shapes("cumsum", lambda tf, a: tf.cumsum(a, 1), lambda torch, a: a.cumsum(1), lambda np, a: np.cumsum(a, 1)),
    **over_shapes(
        "cumprod", lambda tf, a: tf.math.cumprod(a, 1), lambda torch, a: a.cumprod(1), lambda np, a: np.cumprod(a, 1)
    ),
    **over_shapes("sort", lambda tf, a: tf.sort(a), lambda torch, a: a.sort(1)[0], lambda np, a: np.sort(a)),
    **over_shapes("argsort", lambda tf, a: tf.argsort(a), lambda torch, a: a.argsort(1), lambda np, a: np.argsort(a)),
    **over_shapes("top_k", lambda tf, a: tf.math.top_k(a, 2)[0], lambda torch, a: a.topk(2)[0]),
    **over_shapes(
        "transpose",
        lambda tf, a: tf.transpose(a),
        lambda torch, a: a.T.contiguous(),
        lambda np, a: np.array(a.T, order="C"),
    ),
    **over_shapes(
        "add its sum",
        lambda tf, a: a + tf.reduce_sum(a, 1, keepdims=True),
        lambda torch, a: a + a.sum(1, keepdim=True),
        lambda np, a: a + np.sum(a, 1, keepdims=True),
    ),
    **over_shapes(
        "divide by its maximum",
        lambda tf, a: a / tf.reduce_max(a, 0),
        lambda torch, a: a / a.amax(0),
        lambda np, a: a / np.max(a, 0),
    ),
    **over_shapes(
        "pad",
        lambda tf, a: tf.pad(a, [[0, 0], [1, 1]]),
        lambda torch, a: torch.nn.functional.pad(a, (1, 1)),
        lambda np, a: np.pad(a, [[0, 0], [1, 1]]),
    ),
    **over_shapes(
        "reverse",
        lambda tf, a: tf.reverse(a, [1]),
        lambda torch, a: a.flip(1),
        lambda np, a: np.array(a[:, ::-1], order="C"),
    ),
    **over_shapes(
        "concat",
        lambda tf, a: tf.concat([a, a], 1),
        lambda torch, a: torch.cat([a, a], 1),
        lambda np, a: np.concatenate([a, a], 1),
    ),
    **over_shapes(
        "column", lambda tf, a: a[:, 1], lambda torch, a: a[:, 1].contiguous(), lambda np, a: np.copy(a[:, 1])
    ),
    "broadcast middle": (["cube", "middle"], lambda tf, a, b: a + b, lambda torch, a, b: a + b, lambda np, a, b: a + b),
    "broadcast both sides": (
        ["cube", "outer"],
        lambda tf, a, b: a * b,
        lambda torch, a, b: a * b,
        lambda np, a, b: a * b,
    ),
    "outer sum": (["middle", "outer"], lambda tf, a, b: a + b, lambda torch, a, b: a + b, lambda np, a, b: a + b),
    "pairwise differences": (
        ["row"],
        lambda tf, a: a[:, None] - a[None, :],
        lambda torch, a: a[:, None] - a[None, :],
        lambda np, a: a[:, None] - a[None, :],
    ),
    "pairwise distances": (
        ["short"],
        lambda tf, a: tf.reduce_sum(tf.square(a[:1000, None] - a[None, :100]), -1),
        lambda torch, a: ((a[:1000, None] - a[None, :100]) ** 2).sum(-1),
        lambda np, a: np.sum((a[:1000, None] - a[None, :100]) ** 2, -1),
    ),
    "sum middle": (["cube"], lambda tf, a: tf.reduce_sum(a, 1), lambda torch, a: a.sum(1), lambda np, a: np.sum(a, 1)),
    "sum outer two": (
        ["cube"],
        lambda tf, a: tf.reduce_sum(a, [0, 1]),
        lambda torch, a: a.sum((0, 1)),
        lambda np, a: np.sum(a, (0, 1)),
    ),
    "max middle": (["cube"], lambda tf, a: tf.reduce_max(a, 1), lambda torch, a: a.amax(1), lambda np, a: np.max(a, 1)),
    "max inner two": (
        ["cube"],
        lambda tf, a: tf.reduce_max(a, [1, 2]),
        lambda torch, a: a.amax((1, 2)),
        lambda np, a: np.max(a, (1, 2)),
    ),
    "min all": (["x"], lambda tf, a: tf.reduce_min(a), lambda torch, a: a.min(), lambda np, a: np.min(a)),
    "argmin all": (["v"], lambda tf, a: tf.argmin(a), lambda torch, a: a.argmin(), lambda np, a: np.argmin(a)),
    "argmax middle": (
        ["cube"],
        lambda tf, a: tf.argmax(a, 1),
        lambda torch, a: a.argmax(1),
        lambda np, a: np.argmax(a, 1),
    ),
    "softmax middle": (["cube"], lambda tf, a: tf.nn.softmax(a, 1), lambda torch, a: a.softmax(1)),
    "sort middle": (["cube"], lambda tf, a: tf.sort(a, 1), lambda torch, a: a.sort(1)[0], lambda np, a: np.sort(a, 1)),
    "cumsum middle": (
        ["cube"],
        lambda tf, a: tf.cumsum(a, 1),
        lambda torch, a: a.cumsum(1),
        lambda np, a: np.cumsum(a, 1),
    ),
    "cumprod": (["v"], lambda tf, a: tf.math.cumprod(a), lambda torch, a: a.cumprod(0), lambda np, a: np.cumprod(a)),
    "cumprod axis 0": (
        ["x"],
        lambda tf, a: tf.math.cumprod(a, 0),
        lambda torch, a: a.cumprod(0),
        lambda np, a: np.cumprod(a, 0),
    ),
    "cumulative_logsumexp": (
        ["x"],
        lambda tf, a: tf.math.cumulative_logsumexp(a, 1),
        lambda torch, a: a.logcumsumexp(1),
    ),
    "cumsum reverse": (
        ["x"],
        lambda tf, a: tf.cumsum(a, 1, reverse=True),
        lambda torch, a: a.flip(1).cumsum(1).flip(1),
    ),
    "std all": (
        ["x"],
        lambda tf, a: tf.math.reduce_std(a),
        lambda torch, a: a.std(correction=0),
        lambda np, a: np.std(a),
    ),
    "mean all": (["x"], lambda tf, a: tf.reduce_mean(a), lambda torch, a: a.mean(), lambda np, a: np.mean(a)),
    "variance axis 0": (
        ["x"],
        lambda tf, a: tf.math.reduce_variance(a, 0),
        lambda torch, a: a.var(0, correction=0),
        lambda np, a: np.var(a, 0),
    ),
    "any": (["b_x"], lambda tf, a: tf.reduce_any(a, 1), lambda torch, a: a.any(1), lambda np, a: np.any(a, 1)),
    "all axis 0": (["b_x"], lambda tf, a: tf.reduce_all(a, 0), lambda torch, a: a.all(0), lambda np, a: np.all(a, 0)),
    "count_nonzero": (
        ["x"],
        lambda tf, a: tf.math.count_nonzero(a),
        lambda torch, a: torch.count_nonzero(a),
        lambda np, a: np.count_nonzero(a),
    ),
    "norm 1": (
        ["x"],
        lambda tf, a: tf.norm(a, 1),
        lambda torch, a: torch.linalg.vector_norm(a, 1),
        lambda np, a: np.sum(np.abs(a)),
    ),
    "norm inf": (
        ["x"],
        lambda tf, a: tf.norm(a, float("inf"), axis=1),
        lambda torch, a: torch.linalg.vector_norm(a, float("inf"), 1),
        lambda np, a: np.max(np.abs(a), 1),
    ),
    "sum of a transpose": (
        ["x"],
        lambda tf, a: tf.reduce_sum(tf.transpose(a), 1),
        lambda torch, a: a.T.sum(1),
        lambda np, a: np.sum(a.T, 1),
    ),
    "add a transpose": (
        ["spd", "spd"],
        lambda tf, a, b: a + tf.transpose(b),
        lambda torch, a, b: a + b.T,
        lambda np, a, b: a + b.T,
    ),
    "sin of a strided slice": (
        ["x"],
        lambda tf, a: tf.sin(a[:, ::2]),
        lambda torch, a: torch.sin(a[:, ::2]),
        lambda np, a: np.sin(a[:, ::2]),
    ),
    "sum of a slice": (
        ["x"],
        lambda tf, a: tf.reduce_sum(a[:, 1:-1]),
        lambda torch, a: a[:, 1:-1].sum(),
        lambda np, a: np.sum(a[:, 1:-1]),
    ),
    "where row": (
        ["b_x", "x", "row"],
        lambda tf, c, a, b: tf.where(c, a, b),
        lambda torch, c, a, b: torch.where(c, a, b),
        lambda np, c, a, b: np.where(c, a, b),
    ),
    "where column": (
        ["b_x", "x", "column"],
        lambda tf, c, a, b: tf.where(c, a, b),
        lambda torch, c, a, b: torch.where(c, a, b),
        lambda np, c, a, b: np.where(c, a, b),
    ),
    "where mask of rows": (
        ["b_rows", "x"],
        lambda tf, c, a: tf.where(c[:, None], a, 0.0),
        lambda torch, c, a: torch.where(c[:, None], a, 0.0),
        lambda np, c, a: np.where(c[:, None], a, np.float32(0)),
    ),
}
