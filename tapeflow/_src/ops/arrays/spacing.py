"""Blocks of space moved to the batch or to the depth, and back."""

from __future__ import annotations

from typing import Any

import numpy as np

from tapeflow._src import _core, primitives
from tapeflow._src._core import Tensor
from tapeflow._src.namespace import public
from tapeflow._src.ops.arrays.constants import dims_of, dynamic_dims
from tapeflow._src.ops.arrays.conversion import convert_to_tensor
from tapeflow._src.ops.arrays.shaping import ensure_shape
from tapeflow._src.types.errors import InvalidArgumentError
from tapeflow._src.types.tensor_spec import TensorSpec


def _pairs(who: str, what: str, pairs: Any, count: int) -> list[list[int]]:
    values = np.asarray(pairs)
    if values.shape != (count, 2):
        raise InvalidArgumentError.of(f"{who}: {what} should have shape [{count}, 2] instead of {list(values.shape)}")
    if values.size and values.min() < 0:
        raise InvalidArgumentError.of(f"{who}: {what} must be non-negative; got {values.tolist()}")
    found: list[list[int]] = values.tolist()
    return found


def _blocks(who: str, block_shape: Any, x: Any) -> list[int]:
    blocks = dims_of(block_shape)
    if x.shape.rank < 1 + len(blocks):
        raise InvalidArgumentError.of(f"{who}: input rank should be >= {1 + len(blocks)} instead of {x.shape.rank}")
    if any(b < 1 for b in blocks):
        raise InvalidArgumentError.of(f"{who}: block_shape must be positive; got {blocks}")
    return blocks


@public("space_to_batch", "space_to_batch_nd", "nn.space_to_batch")
def space_to_batch(input: Any, block_shape: Any, paddings: Any, name: str | None = None) -> Tensor:
    """Each position of a block of space, after padding with zeros, as a batch of its own.

    Shape [b, s1, ..., rest] to [b * prod(block_shape), s1 / block_shape[0], ..., rest].

    >>> tf.space_to_batch([[[1.], [2.], [3.], [4.]]], [2], [[0, 0]])
    <tf.Tensor: shape=(2, 2, 1), dtype=float32, numpy=
    array([[[1.],
            [3.]],
           [[2.],
            [4.]]], dtype=float32)>
    """
    x = convert_to_tensor(input)
    blocks = _blocks("space_to_batch", block_shape, x)
    pairs = _pairs("space_to_batch", "paddings", paddings, len(blocks))
    rest = x.shape.rank - 1 - len(blocks)
    if any(sum(p) for p in pairs):
        zero = _core.convert_to_tensor(0, x.dtype, None, "space_to_batch")
        x = primitives.PadV2(x, [0, 0, *(n for pair in pairs for n in pair), *([0, 0] * rest)], zero)
    dims = x.shape.as_list()
    split = [dims[0]]
    for size, block in zip(dims[1:], blocks):
        if size % block:
            raise InvalidArgumentError.of(
                f"space_to_batch: padded_shape[{len(split) // 2}]={size} is not divisible by "
                f"block_shape[{len(split) // 2}]={block}",
            )
        split += [size // block, block]
    count = len(blocks)
    tail = dims[1 + count :]
    order = [*range(2, 2 + 2 * count, 2), 0, *range(1, 1 + 2 * count, 2), *range(1 + 2 * count, 1 + 2 * count + rest)]
    y = primitives.Transpose(primitives.Reshape(x, [*split, *tail]), order)
    return primitives.Reshape(y, [dims[0] * int(np.prod(blocks)), *(s // b for s, b in zip(dims[1:], blocks)), *tail])


@public("batch_to_space")
def batch_to_space(input: Any, block_shape: Any, crops: Any, name: str | None = None) -> Tensor:
    """The inverse of `tf.space_to_batch`: batches woven into blocks of space, which are then cropped.

    >>> tf.batch_to_space([[[1.], [3.]], [[2.], [4.]]], [2], [[0, 0]])
    <tf.Tensor: shape=(1, 4, 1), dtype=float32, numpy=
    array([[[1.],
            [2.],
            [3.],
            [4.]]], dtype=float32)>
    """
    x = convert_to_tensor(input)
    block_shape = [block_shape] * 2 if isinstance(block_shape, int) else block_shape
    blocks = _blocks("batch_to_space", block_shape, x)
    pairs = _pairs("batch_to_space", "crops", crops, len(blocks))
    dims, count = x.shape.as_list(), len(blocks)
    product = int(np.prod(blocks))
    if dims[0] % product:
        raise InvalidArgumentError.of(
            f"batch_to_space: Input batch dimension ({dims[0]}) is not divisible by product of block sizes ({product})",
        )
    tail = dims[1 + count :]
    order = [count]
    for i in range(count):
        order += [count + 1 + i, i]
    order += range(2 * count + 1, 2 * count + 1 + len(tail))
    y = primitives.Transpose(primitives.Reshape(x, [*blocks, dims[0] // product, *dims[1:]]), order)
    full = [s * b for s, b in zip(dims[1:], blocks)]
    y = primitives.Reshape(y, [dims[0] // product, *full, *tail])
    sizes = [size - start - end for size, (start, end) in zip(full, pairs)]
    if any(size < 0 for size in sizes):
        raise InvalidArgumentError.of(f"batch_to_space: cropped size must be non-negative; got crops {pairs} of {full}")
    if sizes == full:
        return y
    begin = [0, *(start for start, _ in pairs), *([0] * len(tail))]
    return primitives.StridedSlice(y, begin, [1] * len(begin), [dims[0] // product, *sizes, *tail])


def _result_spec(moved_to_batch: bool) -> Any:
    """What is known of a result while the paddings or the sizes of the input are not."""

    def spec(input: Any, block_shape: Any, paddings: Any = None, *_: Any, **named: Any) -> TensorSpec:
        x = convert_to_tensor(input)
        known = block_shape if isinstance(block_shape, int) else _core.known_value(convert_to_tensor(block_shape))
        if x.shape.rank is None or known is None:
            return TensorSpec(None if x.shape.rank is None else [None] * x.shape.rank, x.dtype)
        blocks = [known] * 2 if isinstance(known, int) else dims_of(known)
        batch, product = x.shape[0], int(np.prod(blocks))
        if batch is not None:
            batch = batch * product if moved_to_batch else batch // product
        pairs = _core.known_value(convert_to_tensor(named.get("crops", paddings)))
        space: list[int | None] = [None] * len(blocks)
        if pairs is not None and None not in (inner := x.shape.as_list()[1 : 1 + len(blocks)]):
            ends = [sum(pair) for pair in pairs.numpy().tolist()]
            if moved_to_batch:
                space = [(size + end) // block for size, end, block in zip(inner, ends, blocks)]
            else:
                space = [size * block - end for size, end, block in zip(inner, ends, blocks)]
        return TensorSpec([batch, *space, *x.shape[1 + len(blocks) :]], x.dtype)

    return spec


space_to_batch.result_specs = _result_spec(True)  # type: ignore[attr-defined]
batch_to_space.result_specs = _result_spec(False)  # type: ignore[attr-defined]


@public("required_space_to_batch_paddings")
def required_space_to_batch_paddings(
    input_shape: Any, block_shape: Any, base_paddings: Any = None, name: str | None = None
) -> tuple[Any, Any]:
    """The paddings and crops with which `block_shape` divides a shape.

    >>> tf.required_space_to_batch_paddings([5], [2])
    (<tf.Tensor: shape=(1, 2), dtype=int32, numpy=array([[0, 1]], dtype=int32)>, <tf.Tensor: shape=(1, 2),
     dtype=int32, numpy=array([[0, 1]], dtype=int32)>)
    """
    sizes, blocks = np.asarray(input_shape), np.asarray(block_shape)
    base = np.zeros((blocks.size, 2), np.int64) if base_paddings is None else np.asarray(base_paddings)
    if sizes.ndim != 1 or blocks.shape != sizes.shape or base.shape != (blocks.size, 2) or (blocks < 1).any():
        raise ValueError(
            "required_space_to_batch_paddings: input_shape and block_shape must be vectors of one length with positive "
            f"blocks, and base_paddings pairs for them; got shapes {sizes.shape}, {blocks.shape} and {base.shape}"
        )
    extra = -(sizes + base.sum(1)) % blocks
    paddings = np.stack([base[:, 0], base[:, 1] + extra], 1)
    crops = np.stack([np.zeros_like(extra), extra], 1)
    return convert_to_tensor(paddings.astype(np.int32)), convert_to_tensor(crops.astype(np.int32))


def _channels_last(x: Any, data_format: str, who: str) -> tuple[Any, bool]:
    if x.shape.rank is None:
        x = ensure_shape(x, [None] * 4)
    if x.shape.rank != 4:
        raise InvalidArgumentError.of(f"{who}: Input rank should be 4 instead of {x.shape.rank}")
    if data_format not in ("NHWC", "NCHW"):
        raise InvalidArgumentError.of(f"{who}: data_format must be NHWC or NCHW; got {data_format}")
    first = data_format == "NCHW"
    return (primitives.Transpose(x, [0, 2, 3, 1]) if first else x), first


@public("nn.space_to_depth")
def space_to_depth(input: Any, block_size: int, data_format: str = "NHWC", name: str | None = None) -> Tensor:
    """Blocks of space moved to the channels: [b, h, w, c] to [b, h / s, w / s, s * s * c].

    >>> tf.nn.space_to_depth([[[[1.], [2.]], [[3.], [4.]]]], 2)
    <tf.Tensor: shape=(1, 1, 1, 4), dtype=float32, numpy=array([[[[1., 2., 3., 4.]]]], dtype=float32)>
    """
    x, channels_first = _channels_last(convert_to_tensor(input), data_format, "space_to_depth")
    size = int(block_size)
    batch, height, width, depth = dynamic_dims(x)
    if size < 2 or any(not _core.is_tensor(length) and length % size for length in (height, width)):
        raise InvalidArgumentError.of(
            f"space_to_depth: Image width {width} and height {height} should be divisible by block_size: {size}",
        )
    y = primitives.Reshape(x, [batch, height // size, size, width // size, size, depth])
    y = primitives.Transpose(y, [0, 1, 3, 2, 4, 5])
    y = primitives.Reshape(y, [batch, height // size, width // size, size * size * depth])
    return primitives.Transpose(y, [0, 3, 1, 2]) if channels_first else y


@public("nn.depth_to_space")
def depth_to_space(input: Any, block_size: int, data_format: str = "NHWC", name: str | None = None) -> Tensor:
    """Channels moved to blocks of space: [b, h, w, s * s * c] to [b, s * h, s * w, c].

    >>> tf.nn.depth_to_space([[[[1., 2., 3., 4.]]]], 2)
    <tf.Tensor: shape=(1, 2, 2, 1), dtype=float32, numpy=
    array([[[[1.],
             [2.]],
            [[3.],
             [4.]]]], dtype=float32)>
    """
    x, channels_first = _channels_last(convert_to_tensor(input), data_format, "depth_to_space")
    size = int(block_size)
    batch, height, width, depth = dynamic_dims(x)
    if size < 2 or (not _core.is_tensor(depth) and depth % (size * size)):
        raise InvalidArgumentError.of(
            f"depth_to_space: Input depth dimension {depth} should be divisible by: {size * size}"
        )
    inner = depth // (size * size)
    y = primitives.Transpose(primitives.Reshape(x, [batch, height, width, size, size, inner]), [0, 1, 3, 2, 4, 5])
    y = primitives.Reshape(y, [batch, height * size, width * size, inner])
    return primitives.Transpose(y, [0, 3, 1, 2]) if channels_first else y
