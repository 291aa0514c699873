"""Functions of `tensorflow.python.ops.ragged` without a public name."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

from tapeflow._src.namespace import find_public
from tapeflow._src.ops.arrays.conversion import convert_to_tensor
from tapeflow._src.ops.effects.host_call import host_call
from tapeflow._src.ops.ragged.ragged_tensor import RaggedTensor

_shape, _reshape, _concat = find_public("shape"), find_public("reshape"), find_public("concat")
_ESCAPES = str.maketrans({"\\": "\\\\", "'": "\\'"})


def fill_empty_rows(ragged_input: Any, default_value: Any, name: str | None = None) -> tuple[Any, Any]:
    """A ragged tensor of rank 2 whose empty rows hold `default_value`, and which rows they were."""
    if not isinstance(ragged_input, RaggedTensor):
        raise TypeError(f"ragged_input must be RaggedTensor, got {type(ragged_input)}")
    default = convert_to_tensor(default_value, ragged_input.dtype)
    if default.shape.rank not in (0, None):
        raise ValueError(f"Shape must be rank 0: default_value must be a scalar; got shape {default.shape}")
    lengths = ragged_input.row_lengths()
    is_empty = find_public("equal")(lengths, 0)
    fillers = RaggedTensor.from_row_lengths(
        find_public("fill")(_reshape(find_public("reduce_sum")(find_public("cast")(is_empty, "int32")), [1]), default),
        find_public("cast")(is_empty, lengths.dtype),
        validate=False,
    )
    return _concat([ragged_input, fillers], axis=1), is_empty


def repeat_ranges(params: Any, splits: Any, repeats: Any) -> Any:
    """Each range `params[splits[i]:splits[i + 1]]`, repeated so many times."""
    splits, repeats = convert_to_tensor(splits), convert_to_tensor(repeats)
    for name, x in (("splits", splits), ("repeats", repeats)):
        if not x.dtype.is_integer:
            raise TypeError(f"Input argument '{name}' must be integer, but got {x.dtype} instead")
        message = f"Input argument '{name}' must be non-negative"
        find_public("debugging.assert_non_negative")(x, message=message)
    rows = RaggedTensor.from_row_splits(params, splits, validate=False)
    count = rows.nrows()
    times = find_public("broadcast_to")(find_public("cast")(repeats, count.dtype), _reshape(count, [1]))
    chosen = find_public("repeat")(find_public("range")(count), times)
    return find_public("gather")(rows, chosen).values


def batch_gather_with_default(params: Any, indices: Any, default_value: Any = "", name: str | None = None) -> Any:
    """From each row of `params` the elements at the same row of `indices`; `default_value` where there is none."""
    ragged = params if isinstance(params, RaggedTensor) else RaggedTensor.from_tensor(params)
    indices = indices if isinstance(indices, RaggedTensor) else convert_to_tensor(indices)
    default = convert_to_tensor(default_value, ragged.dtype)
    flat = indices.flat_values if isinstance(indices, RaggedTensor) else _reshape(indices, [-1])
    if isinstance(indices, RaggedTensor):
        rows = indices.value_rowids()
    else:
        width = _shape(indices)[1]
        rows = find_public("repeat")(find_public("range")(_shape(indices)[0]), width)
    flat, rows = (find_public("cast")(x, "int64") for x in (flat, rows))
    starts, lengths = (find_public("cast")(x, "int64") for x in (ragged.row_starts(), ragged.row_lengths()))
    is_inside = (flat >= 0) & (flat < find_public("gather")(lengths, rows))
    values = ragged.values
    if isinstance(values, RaggedTensor):
        fillers = RaggedTensor.from_row_splits(_reshape(default, [-1]), [0, find_public("size")(default)])
    else:
        fillers = find_public("broadcast_to")(default, _concat([[1], _shape(values)[1:]], 0))
    missing = find_public("cast")(ragged.row_splits[-1], "int64")
    source = _concat([values, find_public("cast")(fillers, values.dtype)], 0)
    at = find_public("where")(is_inside, find_public("gather")(starts, rows) + flat, missing)
    taken = find_public("gather")(source, at)
    if isinstance(indices, RaggedTensor):
        return indices.with_values(taken)
    return _unflattened(taken, _shape(indices))


def _unflattened(taken: Any, sizes: Any) -> Any:
    if isinstance(taken, RaggedTensor):
        return RaggedTensor.from_uniform_row_length(taken, find_public("cast")(sizes[1], taken.row_splits.dtype))
    return _reshape(taken, _concat([sizes, _shape(taken)[1:]], 0))


def ragged_tensor_to_string(rt: Any, summarize: int | None = None) -> Any:
    """The elements of a ragged tensor as one text, with brackets; of each dimension at most 2 * `summarize` parts."""
    if summarize is not None and summarize != -1 and not (isinstance(summarize, int) and summarize > 0):
        raise ValueError(f"Expected summarize to be -1 or a positive int, got {summarize!r}")
    if rt.shape.rank is None:
        raise ValueError("RaggedTensor to_string requires that rt.shape.rank is not None")
    count = 0 if summarize in (None, -1) else int(summarize or 0)
    texts = rt.flat_values if rt.dtype == find_public("string") else find_public("strings.as_string")(rt.flat_values)
    quote = "'" if rt.dtype == find_public("string") else ""

    def run(flat: Any, *splits: Any) -> list[Any]:
        rows = flat.numpy().tolist()
        for split in reversed(splits):
            ends = split.numpy()
            rows = [rows[start:end] for start, end in pairwise(ends)]
        return [convert_to_tensor(_written(rows, count, quote), "string")]

    return host_call(run, [texts, *rt.nested_row_splits], [("string", [])])[0]


def _written(value: Any, count: int, quote: str) -> str:
    """Nested lists as a text, with `...` for the middle of long ones."""
    if not isinstance(value, list):
        text = value.decode("utf8", "backslashreplace")
        return f"'{text.translate(_ESCAPES)}'" if quote else text
    parts = [_written(part, count, quote) for part in value]
    if count and len(parts) > 2 * count:
        parts = [*parts[:count], "...", *parts[-count:]]
    return f"[{', '.join(parts)}]"
