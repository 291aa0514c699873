"""Tensors as text: `tf.print`, `tf.strings.format`, `tf.as_string`."""

from __future__ import annotations

import logging
import math
import sys
from typing import Any

import numpy as np

from tapeflow._src import _core
from tapeflow._src._core import Tensor
from tapeflow._src.namespace import public
from tapeflow._src.ops.arrays.conversion import convert_to_tensor
from tapeflow._src.ops.effects.program_order import effect
from tapeflow._src.types.errors import InvalidArgumentError, ResourceExhaustedError
from tapeflow._src.types.logging import get_logger

_LEVELS = {
    "log(info)": logging.INFO,
    "log(warning)": logging.WARNING,
    "log(error)": logging.ERROR,
}
_LEVEL_BY_NUMBER = {n: n for n in (logging.INFO, logging.WARNING, logging.ERROR)}
_LEVEL_BY_NUMBER |= {0: logging.INFO, -1: logging.WARNING, -2: logging.ERROR}  # absl's numbers

_MOST_CHARACTERS = 1 << 20  # of a number; a float64 has at most 1,100


def element_text(value: Any) -> str:
    """One element: the shortest of two precisions that gives the number back."""
    if isinstance(value, bytes):
        return '"' + value.decode("utf-8", "backslashreplace") + '"'
    if isinstance(value, bool | np.bool_):
        return str(int(value))
    if isinstance(value, np.integer):
        return str(int(value))
    if isinstance(value, np.complexfloating):
        return f"({element_text(value.real)},{element_text(value.imag)})"
    digits = (15, 17) if isinstance(value, np.float64) else (6, 9)
    text = f"{float(value):.{digits[0]}g}"
    return text if type(value)(text) == value else f"{float(value):.{digits[1]}g}"


def tensor_text(tensor: Any, summarize: int = 3) -> str:
    """The elements in brackets; of a long dimension only the first and the last `summarize` (all if it is -1)."""
    values = np.asarray(tensor.numpy(), dtype=object) if tensor.dtype.name == "string" else np.asarray(tensor.numpy())

    def lines(block: Any, depth: int) -> str:
        if not isinstance(block, np.ndarray) or block.ndim == 0:
            return element_text(
                block.item()
                if isinstance(block, np.ndarray) and block.dtype == object
                else block[()]
                if isinstance(block, np.ndarray)
                else block
            )
        count = len(block)
        short = summarize >= 0 and count > 2 * summarize
        places = [*range(summarize), None, *range(count - summarize, count)] if short else list(range(count))
        parts = ["..." if i is None else lines(block[i], depth + 1) for i in places]
        gap = " " if block.ndim == 1 else "\n" * (block.ndim - 1) + " " * (depth + 1)
        return "[" + gap.join(parts) + "]"

    return lines(values, 0)


def _input_text(value: Any, summarize: int) -> str:
    """What `tf.print` shows of one argument: text as it is, tensors by their elements, structures with both."""
    if isinstance(value, str):
        return value
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    return _inner_text(value, summarize)


def _inner_text(value: Any, summarize: int) -> str:
    if isinstance(value, str):
        return repr(value)
    if hasattr(value, "row_splits"):
        return ragged_text(value, summarize)
    if hasattr(value, "indices") and hasattr(value, "dense_shape") and hasattr(value, "values"):
        parts = (tensor_text(convert_to_tensor(t), summarize) for t in (value.indices, value.values, value.dense_shape))
        return "'SparseTensor(indices={}, values={}, shape={})'".format(*parts)
    if _core.is_tensor(value):
        return tensor_text(convert_to_tensor(value), summarize)
    if isinstance(value, dict):
        items = (f"{key!r}: {_inner_text(item, summarize)}" for key, item in value.items())
        return "{" + ", ".join(items) + "}"
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        items = (f"{key}={_inner_text(item, summarize)}" for key, item in zip(value._fields, value))
        return type(value).__name__ + "(" + ", ".join(items) + ")"
    if isinstance(value, list | tuple):
        text = ", ".join(_inner_text(item, summarize) for item in value)
        if isinstance(value, list):
            return f"[{text}]"
        return f"({text},)" if len(value) == 1 else f"({text})"
    return repr(value)


def _is_text(value: Any) -> bool:
    """Whether a value is one string tensor, which is printed without quotes when it is printed alone."""
    return isinstance(value, Tensor) and value.dtype.name == "string" and value.shape.rank == 0


def ragged_text(value: Any, summarize: int) -> str:
    """Rows of a ragged tensor, with commas."""
    rows = value.to_list()

    def text(part: Any) -> str:
        if not isinstance(part, list):
            return element_text(part if isinstance(part, bytes) else value.dtype.as_numpy_dtype(part))
        parts = [text(p) for p in part]
        if summarize >= 0 and len(parts) > 2 * summarize:
            parts = [*parts[:summarize], "...", *parts[len(parts) - summarize :]]
        return "[" + ", ".join(parts) + "]"

    return text(rows)


@public("print")
@effect
def print_(*inputs: Any, **kwargs: Any) -> None:
    """Prints its arguments, tensors by their elements, to standard error or to `output_stream`.

    `output_stream` is `sys.stderr`, `sys.stdout`, a logging function or level such as `logging.info` or `logging.INFO`
    (of `logging`, `tf.compat.v1.logging` or absl), or "file://path", to which the text is appended. Of a long dimension
    the first and last `summarize` elements are shown.

    Args:
        inputs: What to print: tensors, numbers, strings or structures of them.
        kwargs: `output_stream`, `summarize` (how many elements of a dimension to show), `sep`, `end` and `name`.

    Returns:
        None; in a graph, the operation that prints.

    >>> import sys
    >>> tf.print("x =", [1, 2], output_stream=sys.stdout)
    x = [1, 2]
    """
    stream = kwargs.pop("output_stream", sys.stderr)
    kwargs.pop("name", None)
    summarize = kwargs.pop("summarize", 3)
    separator, end = kwargs.pop("sep", " "), kwargs.pop("end", "\n")
    if kwargs:
        raise ValueError(f"Unrecognized keyword arguments for tf.print: {list(kwargs)}")
    summarize = 3 if summarize is None else int(summarize)
    if len(inputs) == 1 and _is_text(inputs[0]):
        text = inputs[0].numpy().decode("utf-8", "replace")
    else:
        text = separator.join(_input_text(value, summarize) for value in inputs)
    if isinstance(stream, str):
        if stream.startswith("file://"):
            with open(stream[len("file://") :], "a", encoding="utf-8") as file:
                file.write(text + end)
            return
        if stream in _LEVELS:
            get_logger().log(_LEVELS[stream], text)
            return
        stream = {"stdout": sys.stdout, "stderr": sys.stderr}.get(stream)
        if stream is None:
            raise ValueError("Unknown output stream, or logging level. Use sys.stdout, sys.stderr or 'file://...'.")
    if isinstance(stream, int) and stream in _LEVEL_BY_NUMBER:
        get_logger().log(_LEVEL_BY_NUMBER[stream], text)
    elif hasattr(stream, "write"):
        stream.write(text + end)
        stream.flush()
    elif callable(stream):
        stream(text)
    else:
        raise ValueError(f"Unknown output stream {stream!r}. Use sys.stdout, sys.stderr or 'file://...'.")


@public("strings.format")
def format_(template: str, inputs: Any, placeholder: str = "{}", summarize: int = 3, name: str | None = None) -> Any:
    """The template with each placeholder replaced by the elements of a tensor.

    >>> tf.strings.format("x = {}", tf.constant([1, 2]))
    <tf.Tensor: shape=(), dtype=string, numpy=b'x = [1 2]'>
    """
    tensors = [convert_to_tensor(t) for t in (inputs if isinstance(inputs, list | tuple) else [inputs])]
    for argument in (template, placeholder):
        if not isinstance(argument, str):
            raise TypeError(f"strings.format: the template and the placeholder must be texts; got {argument!r}")
    parts = template.split(placeholder)
    if len(parts) != len(tensors) + 1:
        raise ValueError(
            f"The template expects {len(parts) - 1} tensors, but the inputs only has {len(tensors)}. Please ensure the "
            "number of placeholders in template matches inputs length."
        )
    text = parts[0] + "".join(tensor_text(t, summarize) + part for t, part in zip(tensors, parts[1:]))
    return convert_to_tensor(text)


@public("as_string", "strings.as_string")
def as_string(
    input: Any,
    precision: int = -1,
    scientific: bool = False,
    shortest: bool = False,
    width: int = -1,
    fill: str = "",
    name: str | None = None,
) -> Tensor:
    """Each element as text.

    >>> tf.as_string([1.5, 2.0], precision=2)
    <tf.Tensor: shape=(2,), dtype=string, numpy=array([b'1.50', b'2.00'], dtype=object)>
    """
    tensor = convert_to_tensor(input)
    dtype = tensor.dtype
    if scientific and shortest:
        raise InvalidArgumentError.of("as_string: Cannot select both scientific and shortest notation")
    number = dtype.is_floating or dtype.is_complex
    if (precision >= 0 or scientific or shortest) and not number:
        what = "precision" if precision >= 0 else "scientific and shortest format"
        raise InvalidArgumentError.of(f"as_string: {what} not supported for datatype {dtype.name}")
    if max(precision, width) > _MOST_CHARACTERS:
        raise ResourceExhaustedError.of(
            f"as_string: width and precision must be at most {_MOST_CHARACTERS}; got {width} and {precision}"
        )
    if len(fill) > 1:
        raise InvalidArgumentError.of("as_string: Fill string must be one or fewer characters")
    pattern = "%" + fill + (str(width) if width > -1 else "")
    if number:
        pattern += f".{precision}" if precision > -1 else ""
        pattern += "e" if scientific else "g" if shortest else "f"
    elif dtype.is_integer:
        pattern += "d"

    def text(value: Any) -> Any:
        if isinstance(value, bytes):
            return value
        if dtype.is_bool:
            return "true" if value else "false"
        if dtype.is_complex:
            return f"({pattern % value.real},{pattern % value.imag})"
        if isinstance(value, float) and not math.isfinite(value):  # C pads these with blanks
            return pattern.replace("%0", "%") % value
        return pattern % value

    values = np.asarray(tensor.numpy())
    texts = [text(v) for v in values.reshape(-1).tolist()]
    flat = (
        convert_to_tensor(texts, dtype="string") if texts else _core.convert_to_tensor([], "string", None, "as_string")
    )
    return flat if values.ndim == 1 else _reshaped(flat, values.shape)


def _reshaped(flat: Any, shape: tuple[int, ...]) -> Any:
    return convert_to_tensor(np.asarray(flat.numpy(), dtype=object).reshape(shape), dtype="string")
