"""Operations that TensorFlow shows at its top without a friendlier function: `tf.conv`, `tf.ragged_fill_empty_rows`."""

from __future__ import annotations

from typing import Any, NamedTuple

from tapeflow._src import _core, primitives
from tapeflow._src.namespace import public
from tapeflow._src.ops.arrays import sorting
from tapeflow._src.ops.arrays.conversion import cast, convert_to_tensor
from tapeflow._src.ops.nn.convolutions import conv2d_backprop_filter, conv2d_backprop_input, convolution
from tapeflow._src.types.dtypes import int64
from tapeflow._src.types.errors import InvalidArgumentError


@public("conv")
def conv(
    input: Any,
    filter: Any,
    strides: Any,
    padding: str,
    explicit_paddings: Any = (),
    data_format: str = "CHANNELS_LAST",
    dilations: Any = (),
    batch_dims: int = 1,
    groups: int = 1,
    name: str | None = None,
) -> Any:
    """A convolution in 2 or 3 dimensions behind any number of batch dimensions.

    >>> tf.conv(tf.ones([2, 1, 4, 4, 1]), tf.ones([2, 2, 1, 1]), [1, 1, 1, 1], "VALID", batch_dims=2).shape
    TensorShape([2, 1, 3, 3, 1])
    """
    x, filters = convert_to_tensor(input), convert_to_tensor(filter)
    spatial = filters.shape.rank - 2
    if spatial not in (2, 3):
        raise InvalidArgumentError.of(f"conv: The input must have 2 or 3 spatial dimensions but got {spatial}")
    if len(strides) != spatial + 2:
        raise InvalidArgumentError.of(
            f"conv: Sliding window strides field must specify {spatial + 2} dimensions; got {list(strides)}"
        )
    first = data_format == "CHANNELS_FIRST"
    layout = ("NCHW" if spatial == 2 else "NCDHW") if first else ("NHWC" if spatial == 2 else "NDHWC")
    if x.shape.rank != batch_dims + spatial + 1:
        raise InvalidArgumentError.of(f"conv: the input must have rank {batch_dims + spatial + 1}; got shape {x.shape}")
    pads = [explicit_paddings[i : i + 2] for i in range(0, len(explicit_paddings), 2)]
    return convolution(x, filters, strides, pads if padding == "EXPLICIT" else padding, layout, list(dilations) or None)


def _padding(padding: str, explicit_paddings: Any) -> Any:
    return [explicit_paddings[i : i + 2] for i in range(0, 8, 2)] if padding == "EXPLICIT" else padding


@public("conv2d_backprop_filter_v2")
def conv2d_backprop_filter_v2(
    input: Any,
    filter: Any,
    out_backprop: Any,
    strides: Any,
    padding: str,
    use_cudnn_on_gpu: bool = True,
    explicit_paddings: Any = (),
    data_format: str = "NHWC",
    dilations: Any = (1, 1, 1, 1),
    name: str | None = None,
) -> Any:
    """The gradient of a 2-D convolution by its filters; of `filter` only the shape counts.

    >>> x = tf.ones([1, 2, 2, 1])
    >>> tf.conv2d_backprop_filter_v2(x, tf.ones([1, 1, 1, 1]), x, [1, 1, 1, 1], "SAME")
    [[[[4.]]]]
    """
    sizes = convert_to_tensor(filter).shape.as_list()
    pads = _padding(padding, explicit_paddings)
    return conv2d_backprop_filter(input, sizes, out_backprop, strides, pads, True, data_format, dilations)


@public("conv2d_backprop_input_v2")
def conv2d_backprop_input_v2(
    input: Any,
    filter: Any,
    out_backprop: Any,
    strides: Any,
    padding: str,
    use_cudnn_on_gpu: bool = True,
    explicit_paddings: Any = (),
    data_format: str = "NHWC",
    dilations: Any = (1, 1, 1, 1),
    name: str | None = None,
) -> Any:
    """The gradient of a 2-D convolution by its input; of `input` only the shape counts.

    >>> x = tf.ones([1, 1, 2, 1])
    >>> tf.conv2d_backprop_input_v2(x, 3 * tf.ones([1, 1, 1, 1]), x, [1, 1, 1, 1], "SAME")
    [[[[3.], [3.]]]]
    """
    sizes = convert_to_tensor(input).shape.as_list()
    pads = _padding(padding, explicit_paddings)
    return conv2d_backprop_input(sizes, filter, out_backprop, strides, pads, True, data_format, dilations)


class RaggedFillEmptyRows(NamedTuple):
    """Rows and values with one value for each row that was empty, which rows those were, and where values went."""

    output_value_rowids: Any
    output_values: Any
    empty_row_indicator: Any
    reverse_index_map: Any


@public("ragged_fill_empty_rows")
def ragged_fill_empty_rows(
    value_rowids: Any, values: Any, nrows: Any, default_value: Any, name: str | None = None
) -> RaggedFillEmptyRows:
    """Values with sorted row numbers, and `default_value` in each of the `nrows` rows that has none.

    >>> tf.ragged_fill_empty_rows([0, 2], [5., 6.], 3, -1.).output_values
    [5., -1., 6.]
    """
    rows = convert_to_tensor(value_rowids, None if _core.is_tensor(value_rowids) else int64)
    values = convert_to_tensor(values)
    default = convert_to_tensor(default_value, values.dtype)
    ones = primitives.BroadcastTo(convert_to_tensor(1, int64), primitives.Shape(rows))
    empty = primitives.Equal(primitives.UnsortedSegmentSum(ones, rows, nrows), 0)
    missing = cast(primitives.Reshape(primitives.Where(empty), [-1]), rows.dtype)
    filled = primitives.BroadcastTo(default, primitives.Shape(missing))
    together = primitives.ConcatV2([rows, missing], 0)
    order = sorting.argsort(together, stable=True)
    places = cast(sorting.argsort(order), int64)
    return RaggedFillEmptyRows(
        primitives.GatherV2(together, order),
        primitives.GatherV2(primitives.ConcatV2([values, filled], 0), order),
        empty,
        places[: primitives.Shape(rows)[0]],
    )


class RaggedFillEmptyRowsGrad(NamedTuple):
    """The gradients by the values and by the default value."""

    d_values: Any
    d_default_value: Any


@public("ragged_fill_empty_rows_grad")
def ragged_fill_empty_rows_grad(
    reverse_index_map: Any, grad_values: Any, name: str | None = None
) -> RaggedFillEmptyRowsGrad:
    """The gradient of `tf.ragged_fill_empty_rows`.

    >>> tf.ragged_fill_empty_rows_grad([0, 2], [5., 7., 6.])
    ([5., 6.], 7.)
    """
    places, dy = convert_to_tensor(reverse_index_map), convert_to_tensor(grad_values)
    d_values = primitives.GatherV2(dy, places)
    one = convert_to_tensor(1, dy.dtype)
    taken = primitives.UnsortedSegmentSum(
        primitives.BroadcastTo(one, primitives.Shape(places)), places, primitives.Shape(dy)[0]
    )
    return RaggedFillEmptyRowsGrad(d_values, primitives.Sum(dy * (1 - taken), None, False))


@public("random_index_shuffle")
def random_index_shuffle(index: Any, seed: Any, max_index: Any, rounds: int = 4, name: str | None = None) -> Any:
    """Where `index` goes in a permutation of 0 to `max_index` that three numbers as `seed` choose.

    >>> tf.sort(tf.random_index_shuffle(tf.range(4), [1, 2, 3], 3))
    [0, 1, 2, 3]
    """
    index = convert_to_tensor(index)
    return primitives.RandomIndexShuffle(
        index, convert_to_tensor(seed), convert_to_tensor(max_index, dtype_hint=index.dtype), rounds
    )
