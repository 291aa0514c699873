"""Functions of neural networks that are made of other operations, or that bring their arguments to a primitive's form."""

from __future__ import annotations

from typing import Any

from tapeflow import primitives
from tapeflow.namespace import public
from tapeflow.ops.arrays import gather
from tapeflow.ops.conversion import cast, convert_to_tensor
from tapeflow.types.dtypes import float32
from tapeflow.types.errors import InvalidArgumentError


@public("nn.gelu")
def gelu(features: Any, approximate: bool = False, name: str | None = None) -> Any:
    """`features` times the probability that a normal number lies below it; with `approximate`, by a tanh.

    >>> tf.nn.gelu([-1., 1.])
    [-0.15865526, 0.8413447]
    """
    features = convert_to_tensor(features)
    if not features.dtype.is_floating:
        raise ValueError(f"`features.dtype` must be a floating point tensor. Received:features.dtype={features.dtype}")
    return primitives.GeluTanh(features) if approximate else primitives.GeluErf(features)


@public("nn.leaky_relu")
def leaky_relu(features: Any, alpha: Any = 0.2, name: str | None = None) -> Any:
    """`features` where positive, `alpha * features` elsewhere.

    >>> tf.nn.leaky_relu([-1., 2.])
    [-0.2, 2.]
    """
    features = convert_to_tensor(features)
    if features.dtype.is_integer:
        features = cast(features, float32)
    return primitives.SelectV2(features > 0, features, features * alpha)


def _along_last_axis(function: Any, logits: Any, axis: int) -> Any:
    """Applies a function of the last dimension along another one."""
    logits = convert_to_tensor(logits)
    rank = logits.shape.rank
    if rank == 0 or not -rank <= axis < rank:
        raise InvalidArgumentError(None, None, f"softmax: `axis` must be in the range [{-rank}, {rank}); got {axis}")
    axis = axis % rank
    if axis == rank - 1:
        return function(logits)
    order = list(range(rank))
    order[axis], order[-1] = order[-1], order[axis]
    return primitives.Transpose(function(primitives.Transpose(logits, order)), order)


@public("nn.softmax", "math.softmax")
def softmax(logits: Any, axis: int | None = None, name: str | None = None) -> Any:
    """`exp(logits)` scaled so that the sum along `axis` is 1.

    >>> tf.nn.softmax([0., 0.])
    [0.5, 0.5]
    """
    return _along_last_axis(primitives.Softmax, logits, -1 if axis is None else axis)


@public("nn.log_softmax", "math.log_softmax")
def log_softmax(logits: Any, axis: int | None = None, name: str | None = None) -> Any:
    """The logarithm of softmax, without loss of accuracy.

    >>> tf.nn.log_softmax([0., 0.])
    [-0.6931472, -0.6931472]
    """
    return _along_last_axis(primitives.LogSoftmax, logits, -1 if axis is None else axis)


@public("nn.softmax_cross_entropy_with_logits")
def softmax_cross_entropy_with_logits(labels: Any, logits: Any, axis: int = -1, name: str | None = None) -> Any:
    """The cross entropy between probabilities `labels` and softmax of `logits`, one number per row.

    >>> tf.nn.softmax_cross_entropy_with_logits([[1., 0.]], [[0., 0.]])
    [0.6931472]
    """
    logits = convert_to_tensor(logits)
    labels = convert_to_tensor(labels, dtype_hint=logits.dtype)
    if labels.dtype != logits.dtype:
        labels = cast(labels, logits.dtype)
    rank = logits.shape.rank
    axis = axis % rank if rank else 0
    if axis != rank - 1:
        order = [i for i in range(rank) if i != axis] + [axis]
        labels, logits = primitives.Transpose(labels, order), primitives.Transpose(logits, order)
    if labels.shape != logits.shape and labels.shape.rank == rank:
        target = [max(a, b) if 1 in (a, b) else a for a, b in zip(labels.shape, logits.shape)]
        if all(a in (1, t) and b in (1, t) for a, b, t in zip(labels.shape, logits.shape, target)):
            labels, logits = primitives.BroadcastTo(labels, target), primitives.BroadcastTo(logits, target)
    return primitives.SoftmaxCrossEntropyWithLogits(logits, labels)


@public("nn.sparse_softmax_cross_entropy_with_logits")
def sparse_softmax_cross_entropy_with_logits(labels: Any, logits: Any, name: str | None = None) -> Any:
    """The cross entropy between class numbers `labels` and softmax of `logits`, one number per row.

    >>> tf.nn.sparse_softmax_cross_entropy_with_logits([0], [[0., 0.]])
    [0.6931472]
    """
    return primitives.SparseSoftmaxCrossEntropyWithLogits(logits, labels)


@public("nn.sigmoid_cross_entropy_with_logits")
def sigmoid_cross_entropy_with_logits(labels: Any = None, logits: Any = None, name: str | None = None) -> Any:
    """The cross entropy of independent probabilities `labels` and sigmoid of `logits`, element by element.

    >>> tf.nn.sigmoid_cross_entropy_with_logits([1.], [0.])
    [0.6931472]
    """
    logits = convert_to_tensor(logits)
    labels = convert_to_tensor(labels, dtype_hint=logits.dtype)
    if labels.shape != logits.shape:
        raise ValueError(
            f"`logits` and `labels` must have the same shape, received ({logits.shape} vs {labels.shape})."
        )
    # max(x, 0) - x z + log(1 + exp(-|x|)), with a derivative that is right at 0.
    positive = logits >= 0
    zero = cast(0, logits.dtype)
    negative_size = primitives.SelectV2(positive, -logits, logits)
    kept = primitives.SelectV2(positive, logits, zero)
    return kept - logits * labels + primitives.Log1p(primitives.Exp(negative_size))


@public("nn.bias_add")
def bias_add(value: Any, bias: Any, data_format: str | None = None, name: str | None = None) -> Any:
    """`value + bias` along the channels.

    >>> tf.nn.bias_add([[1., 2.]], [10., 20.])
    [[11., 22.]]
    """
    value = convert_to_tensor(value)
    bias = convert_to_tensor(bias, dtype_hint=value.dtype)
    first = data_format is not None and data_format.startswith("NC")
    if data_format is not None and not data_format.startswith("N"):
        raise ValueError(f"`data_format` must be of the form `N...C` or `NC...`. Received: data_format={data_format}")
    channel = 1 if first else -1
    if bias.shape.rank != 1 or value.shape.rank < 2 or bias.shape[0] != value.shape[channel]:
        raise InvalidArgumentError(
            None, None, "nn.bias_add: Must provide as many biases as the last dimension of the input tensor: "
            f"biases {bias.shape.as_list()} vs. value {value.shape.as_list()}",
        )
    if first and value.shape.rank > 2:
        bias = primitives.Reshape(bias, [-1] + [1] * (value.shape.rank - 2))
    return value + bias


# ---- convolutions and pools


def _per_dimension(value: Any, spatial: int, channels_first: bool, what: str) -> list[int]:
    """Strides, dilations or window sizes as one number per spatial dimension."""
    if value is None:
        return [1] * spatial
    numbers = [int(value)] if isinstance(value, int) else [int(v) for v in value]
    if len(numbers) == 1:
        return numbers * spatial
    if len(numbers) == spatial:
        return numbers
    if len(numbers) == spatial + 2:
        outer = (numbers[0], numbers[1] if channels_first else numbers[-1])
        if outer != (1, 1):
            raise InvalidArgumentError(None, None, f"{what} in the batch and depth dimensions must be 1; got {numbers}")
        return numbers[2:] if channels_first else numbers[1:-1]
    raise ValueError(f"{what} should be of length 1, {spatial} or {spatial + 2} but was {len(numbers)}")


def _padding(padding: Any, spatial: int, channels_first: bool) -> tuple[str, list[int]]:
    """The kind of padding and, if explicit, before and after for each spatial dimension."""
    if isinstance(padding, str):
        kind = padding.upper()
        if kind not in ("SAME", "VALID"):
            raise ValueError(f'`padding` must be "SAME", "VALID" or a list; got {padding!r}')
        return kind, []
    pairs = [[int(p) for p in pair] for pair in padding]
    if len(pairs) == spatial + 2:
        outer = (pairs[0], pairs[1] if channels_first else pairs[-1])
        if outer != ([0, 0], [0, 0]):
            raise ValueError(f"padding of the batch and depth dimensions must be 0; got {pairs}")
        pairs = pairs[2:] if channels_first else pairs[1:-1]
    if len(pairs) != spatial:
        raise ValueError(f"explicit padding must have {spatial + 2} pairs; got {len(pairs)}")
    return "EXPLICIT", [p for pair in pairs for p in pair]


def _is_channels_first(data_format: str | None) -> bool:
    return data_format is not None and data_format.startswith("NC")


def to_channels_last(x: Any) -> Any:
    """(N, C, spatial...) to (N, spatial..., C)."""
    rank = x.shape.rank
    return primitives.Transpose(x, [0, *range(2, rank), 1])


def to_channels_first(x: Any) -> Any:
    """(N, spatial..., C) to (N, C, spatial...)."""
    rank = x.shape.rank
    return primitives.Transpose(x, [0, rank - 1, *range(1, rank - 1)])


def convolve(x: Any, filters: Any, strides: Any, padding: Any, data_format: str | None, dilations: Any, spatial: int) -> Any:
    """A convolution with `spatial` spatial dimensions; further leading dimensions are batches."""
    x = convert_to_tensor(x)
    filters = convert_to_tensor(filters, dtype_hint=x.dtype)
    first = _is_channels_first(data_format)
    if x.shape.rank < spatial + 2 or filters.shape.rank != spatial + 2:
        raise InvalidArgumentError(
            None, None, f"convolution: input must have rank {spatial + 2} and filters rank {spatial + 2}; got "
            f"{x.shape.as_list()} and {filters.shape.as_list()}",
        )
    batch = x.shape.as_list()[: x.shape.rank - spatial - 1]
    if len(batch) > 1:
        x = primitives.Reshape(x, [-1, *x.shape.as_list()[len(batch) :]])
    kind, pads = _padding(padding, spatial, first)
    steps = _per_dimension(strides, spatial, first, "strides")
    spread = _per_dimension(dilations, spatial, first, "dilations")
    if first:
        x = to_channels_last(x)
    y = primitives.Conv(x, filters, steps, kind, pads, spread)
    if first:
        y = to_channels_first(y)
    if len(batch) > 1:
        y = primitives.Reshape(y, [*batch, *y.shape.as_list()[1:]])
    return y


@public("nn.conv2d")
def conv2d(
    input: Any,  # noqa: A002
    filters: Any,
    strides: Any,
    padding: Any,
    data_format: str = "NHWC",
    dilations: Any = None,
    name: str | None = None,
) -> Any:
    """A 2-D convolution of images (N, H, W, C) with filters (height, width, in, out).

    >>> tf.nn.conv2d(tf.ones([1, 3, 3, 1]), tf.ones([2, 2, 1, 1]), 1, "VALID").shape
    TensorShape([1, 2, 2, 1])
    """
    return convolve(input, filters, strides, padding, data_format, dilations, 2)


def pool(primitive: Any, x: Any, ksize: Any, strides: Any, padding: Any, data_format: str | None, spatial: int, dilations: Any = None) -> Any:
    """A pool over windows of `spatial` spatial dimensions."""
    x = convert_to_tensor(x)
    first = _is_channels_first(data_format)
    if x.shape.rank != spatial + 2:
        raise ValueError(f"the input of a {spatial}-D pool must have rank {spatial + 2}; got shape {x.shape}")
    kind, pads = _padding(padding, spatial, first)
    window = _per_dimension(ksize, spatial, first, "ksize")
    steps = _per_dimension(strides, spatial, first, "strides")
    y = primitive(to_channels_last(x) if first else x, window, steps, kind, pads, _per_dimension(dilations, spatial, first, "dilations"))
    return to_channels_first(y) if first else y


@public("nn.max_pool2d")
def max_pool2d(input: Any, ksize: Any, strides: Any, padding: Any, data_format: str = "NHWC", name: str | None = None) -> Any:  # noqa: A002
    """The largest value in each window of an image.

    >>> tf.nn.max_pool2d(tf.ones([1, 4, 4, 1]), 2, 2, "VALID").shape
    TensorShape([1, 2, 2, 1])
    """
    return pool(primitives.MaxPool, input, ksize, strides, padding, data_format, 2)


@public("nn.avg_pool2d")
def avg_pool2d(input: Any, ksize: Any, strides: Any, padding: Any, data_format: str = "NHWC", name: str | None = None) -> Any:  # noqa: A002
    """The mean of each window of an image.

    >>> tf.nn.avg_pool2d(tf.ones([1, 4, 4, 1]), 2, 2, "VALID").shape
    TensorShape([1, 2, 2, 1])
    """
    return pool(primitives.AvgPool, input, ksize, strides, padding, data_format, 2)


@public("nn.embedding_lookup")
def embedding_lookup(params: Any, ids: Any, max_norm: Any = None, name: str | None = None) -> Any:
    """The rows of `params` with the numbers `ids`.

    >>> tf.nn.embedding_lookup([[1., 2.], [3., 4.]], [1])
    [[3., 4.]]
    """
    if isinstance(params, list | tuple) and len(params) == 1:
        params = params[0]
    rows = gather(params, ids)
    if max_norm is None:
        return rows
    axes = list(range(convert_to_tensor(ids).shape.rank, rows.shape.rank))
    norm = primitives.Sqrt(primitives.Sum(primitives.Square(rows), axes, True))
    limit = convert_to_tensor(max_norm, dtype=rows.dtype)
    return rows * limit / primitives.Maximum(norm, limit)
