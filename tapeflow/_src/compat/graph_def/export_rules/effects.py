"""How assertions and printing are written: as `Assert` and `PrintV2`, in the order of the program."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from tapeflow._src import primitives
from tapeflow._src.compat.graph_def.emitter import Ref
from tapeflow._src.compat.graph_def.export_rules.arrays import key_arguments
from tapeflow._src.compat.graph_def.export_rules.python import Parts, as_ref, rule_by_function
from tapeflow._src.compat.graph_def.exporter import ExportedNode, raw_call_of
from tapeflow._src.compat.graph_def.inlining import inlined
from tapeflow._src.ops.arrays.conversion import cast, convert_to_tensor
from tapeflow._src.ops.arrays.shaping import rank
from tapeflow._src.ops.effects import assertions, printing
from tapeflow._src.ops.ragged import rows
from tapeflow._src.ops.sparse import sparse
from tapeflow._src.types.errors import UnimplementedError
from tapeflow._src.variable_slices import assign_slice, key_from

Holds = Callable[..., Any]


def _arguments(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
    bound = inspect.signature(function).bind(*args, **kwargs)
    bound.apply_defaults()
    return dict(bound.arguments)


def _assertion(function: Any, holds: Holds) -> None:
    """Registers an assertion: `holds` says by its arguments, tensors among them, whether it is true."""
    plain = inspect.unwrap(function)

    def write(n: ExportedNode, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[Ref]:
        given = _arguments(plain, args, kwargs)
        refs: list[Ref] = []
        _replaced(given, refs.append)

        def run(*tensors: Any) -> Any:
            rest = iter(tensors)
            return primitives.All(holds(**_replaced(given, lambda ref: next(rest))))

        (condition,) = inlined(n, run, refs)
        texts = [given.get("message") or f"{plain.__name__} did not hold"]
        return _write_assert(n, condition, [*texts, *refs], given.get("summarize"))

    rule_by_function[plain] = write


def _replaced(value: Any, replace: Callable[[Ref], Any]) -> Any:
    """Arguments with something else in place of each reference."""
    if isinstance(value, Ref):
        return replace(value)
    if isinstance(value, dict):
        return {key: _replaced(item, replace) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_replaced(item, replace) for item in value]
    return value


def _write_assert(n: ExportedNode, condition: Ref, data: list[Any], summarize: Any) -> list[Ref]:
    values = [as_ref(n.e, x, None) for x in data]
    n.act("Assert", condition, values, summarize=3 if summarize is None else summarize)
    return [n.e.constant(True)] * n.count


def _pair(x: Any, y: Any) -> tuple[Any, Any]:
    hint = next((v.dtype for v in (x, y) if hasattr(v, "dtype")), None)
    x = convert_to_tensor(x, dtype_hint=hint)
    return x, convert_to_tensor(y, dtype_hint=x.dtype)


def _comparison(operation: Any) -> Holds:
    return lambda x, y, **_: operation(*_pair(x, y))


def _against_zero(operation: Any) -> Holds:
    return lambda x, **_: operation(x, cast(0, x.dtype))


def _near(x: Any, y: Any, rtol: Any, atol: Any, **_: Any) -> Any:
    x, y = _pair(x, y)
    kind = x.dtype.real_dtype
    epsilon = 2.0**-7 if kind.name == "bfloat16" else float(np.finfo(kind.as_numpy_dtype).eps)
    rtol, atol = (convert_to_tensor(10 * epsilon if t is None else t, dtype=kind) for t in (rtol, atol))
    size = primitives.ComplexAbs if x.dtype.is_complex else primitives.Abs
    return primitives.LessEqual(size(x - y), atol + rtol * size(y))


for _function, _operation in {
    assertions.assert_equal: primitives.Equal,
    assertions.assert_none_equal: primitives.NotEqual,
    assertions.assert_greater: primitives.Greater,
    assertions.assert_greater_equal: primitives.GreaterEqual,
    assertions.assert_less: primitives.Less,
    assertions.assert_less_equal: primitives.LessEqual,
}.items():
    _assertion(_function, _comparison(_operation))
for _function, _operation in {
    assertions.assert_positive: primitives.Greater,
    assertions.assert_negative: primitives.Less,
    assertions.assert_non_negative: primitives.GreaterEqual,
    assertions.assert_non_positive: primitives.LessEqual,
}.items():
    _assertion(_function, _against_zero(_operation))
_assertion(assertions.assert_near, _near)


def _assert(n: ExportedNode, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[Ref]:
    given = _arguments(_PLAIN_ASSERT, args, kwargs)
    return _write_assert(n, as_ref(n.e, given["condition"], "bool"), list(given["data"]), given["summarize"])


_PLAIN_ASSERT = inspect.unwrap(assertions.Assert)
rule_by_function[_PLAIN_ASSERT] = _assert


# ---- shapes that are unknown while tracing


def _sizes_agree(shapes: Any, **_: Any) -> Any:
    """Whether all tensors have the sizes given, where equal letters are equal sizes."""
    pairs = list(shapes.items()) if isinstance(shapes, dict) else shapes
    known: dict[Any, Any] = {}
    found: list[Any] = [convert_to_tensor(True)]
    for tensor, symbols in pairs:
        if symbols is None:
            continue
        free, wanted = assertions.sizes_of(symbols)
        sizes, count = primitives.Shape(tensor), len(wanted)
        dims = primitives.GreaterEqual(rank(tensor), count) if free else primitives.Equal(rank(tensor), count)
        found.append(dims)
        for place, symbol in enumerate(wanted):
            if symbol is None:
                continue
            size = sizes[place - count] if free else sizes[place]
            expected = symbol if isinstance(symbol, int) else known.setdefault(symbol, size)
            found.append(primitives.Equal(size, expected))
    return primitives.Pack(found, 0)


_assertion(assertions.assert_rank, lambda x, rank, **_: primitives.Equal(_rank(x), rank))
_assertion(assertions.assert_rank_at_least, lambda x, rank, **_: primitives.GreaterEqual(_rank(x), rank))
_assertion(assertions.assert_rank_in, lambda x, ranks, **_: primitives.Any(primitives.Equal(_rank(x), list(ranks))))
_assertion(assertions.assert_scalar, lambda tensor, **_: primitives.Equal(_rank(tensor), 0))
_assertion(assertions.assert_shapes, _sizes_agree)


def _rank(x: Any) -> Any:
    return rank(x)


# ---- rows of ragged tensors


def _splits_hold(splits: Any, count: Any) -> Any:
    ordered = primitives.All(splits[1:] >= splits[:-1])
    return primitives.Pack([splits[0] == cast(0, splits.dtype), ordered, splits[-1] == cast(count, splits.dtype)], 0)


def _rowids_hold(rowids: Any, nrows: Any, count: Any) -> Any:
    ordered = primitives.All(rowids[1:] >= rowids[:-1])
    inside = primitives.LogicalAnd(rowids >= cast(0, rowids.dtype), rowids < cast(nrows, rowids.dtype))
    fits = primitives.Equal(primitives.Shape(rowids)[0], cast(count, "int32"))
    return primitives.Pack([ordered, primitives.All(inside), fits], 0)


_assertion(rows.check_splits, _splits_hold)
_assertion(rows.check_lengths, lambda lengths: lengths >= cast(0, lengths.dtype))
_assertion(rows.check_rowids, _rowids_hold)


# ---- sizes of sparse tensors


def _reshape_holds(old: Any, new: Any) -> Any:
    total, one = primitives.Prod(old, [0], False), cast(1, old.dtype)
    known = primitives.Prod(primitives.SelectV2(new < 0, one, new), [0], False)
    inferred = primitives.Sum(cast(new < 0, old.dtype), [0], False)
    rest = total - known * primitives.FloorDiv(total, primitives.Maximum(known, one))
    fits = primitives.LogicalAnd(primitives.Equal(rest, cast(0, old.dtype)), known > 0)
    exact = primitives.LogicalAnd(primitives.Equal(inferred, cast(0, old.dtype)), primitives.Equal(total, known))
    return primitives.LogicalOr(exact, primitives.LogicalAnd(primitives.Equal(inferred, one), fits))


_assertion(sparse.check_reshaped, _reshape_holds)


# ---- slices of variables that are set


def _set_slice(n: ExportedNode, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[Ref]:
    parts, are_slices, value = args
    variable = raw_call_of(n._params).resource
    ends, masks = key_arguments(n.e, [_key_numbers(item) for item in key_from(parts, are_slices)])
    written = as_ref(n.e, value, variable.dtype)
    resource = n.writer.resource(variable)
    n.act("ResourceStridedSliceAssign", resource, *ends, written, **masks)
    return [n.e.constant(True)] * n.count


def _key_numbers(item: Any) -> list[Any]:
    """Five numbers for a part of an index expression, as the key of `GetItem` has them."""
    if isinstance(item, slice):
        present = (item.start is not None) + 2 * (item.stop is not None)
        return [1, item.start or 0, item.stop or 0, 1 if item.step is None else item.step, present]
    if item is Ellipsis or item is None:
        return [2 if item is Ellipsis else 3, 0, 0, 1, 0]
    return [0, item, 0, 1, 0]


rule_by_function[assign_slice] = _set_slice


# ---- printing


_PLACEHOLDER = "[_placeholder_]"


def _text(n: ExportedNode, value: Any, refs: list[Ref], top: bool) -> str:
    """What is printed of an argument, with a placeholder for each tensor."""
    if isinstance(value, Ref):
        refs.append(value)
        return _PLACEHOLDER
    if isinstance(value, Parts):
        raise UnimplementedError.of(f"{n.writer.where}: tf.print of sparse and ragged tensors cannot be written")
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key!r}: {_text(n, item, refs, False)}" for key, item in value.items()) + "}"
    if isinstance(value, list | tuple):
        inner = ", ".join(_text(n, item, refs, False) for item in value)
        return f"[{inner}]" if isinstance(value, list) else f"({inner}{',' if len(value) == 1 else ''})"
    if isinstance(value, str):
        return value if top else repr(value)
    return value.decode("utf-8", "replace") if isinstance(value, bytes) and top else repr(value)


def _print(n: ExportedNode, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[Ref]:
    refs: list[Ref] = []
    template = (kwargs.get("sep") or " ").join(_text(n, value, refs, True) for value in args)
    summarize = kwargs.get("summarize")
    text = n.e.one(
        "StringFormat",
        refs,
        template=template,
        placeholder=_PLACEHOLDER,
        summarize=3 if summarize is None else int(summarize),
    )
    stream = kwargs.get("output_stream", sys.stderr)
    name = stream if isinstance(stream, str) else "stdout" if stream is sys.stdout else "stderr"
    n.act("PrintV2", text, output_stream=name, end=kwargs.get("end", "\n"))
    return [n.e.constant(True)] * n.count


rule_by_function[inspect.unwrap(printing.print_)] = _print
