"""How nodes that run Python are written: as the operation of TensorFlow that the function they run stands for."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

from tapeflow._src.compat.graph_def.emitter import Emitter, Ref
from tapeflow._src.compat.graph_def.exporter import ExportedNode, raw_call_of, writes
from tapeflow._src.compat.graph_def.op_defs import find_op_def
from tapeflow._src.compat.raw_ops.operation import find_raw_operation
from tapeflow._src.compat.raw_ops.table import raw_name_by_adapter, raw_name_by_function
from tapeflow._src.ops.effects.host_call import CompositePlace, CompositionCall, Place
from tapeflow._src.ops.linalg.einsum import einsum
from tapeflow._src.ops.lookup.tables import TableCall
from tapeflow._src.types import nest
from tapeflow._src.types.errors import UnimplementedError

# What writes nodes whose functions say what they mean in other ways, by the class of what they say.
rule_by_call: dict[type, Callable[[ExportedNode, Any], Any]] = {}


@writes("Composition", "EagerPyFunc")
def _python(n: ExportedNode) -> Any:
    call = raw_call_of(n._params)
    if isinstance(call, TableCall):
        return _table(n, call)
    if isinstance(call, CompositionCall):
        return _composition(n, call)
    rule = rule_by_call.get(type(call))
    if rule is not None:
        return rule(n, call)
    raise _refused(n, call)


def _refused(n: ExportedNode, call: Any) -> Exception:
    held = n._params[0][1]
    function, of = held[0] if isinstance(held, tuple) else held, ""
    gradient = getattr(function, "gradient_of", None)
    if gradient is not None:
        function, of = gradient.run, "the gradient of "
        call = getattr(function, "raw_call", None)
    function = getattr(call, "function", None) or function
    function = getattr(function, "_run", function)
    name = of + getattr(function, "__qualname__", type(function).__qualname__)
    return UnimplementedError.of(
        f"{n.writer.where} runs Python when it is called ({name}), which a graph in a file cannot"
    )


# ---- tables


def _table(n: ExportedNode, call: TableCall) -> Any:
    e, table = n.e, n.writer.resource(call.resource)
    values = call.resource.value_dtype
    match call.method:
        case "lookup":
            default = e.constant(call.default) if call.default is not None else n[1]
            return n.read("LookupTableFindV2", table, n[0], default, Tout=values)
        case "number":
            return _number(n, call, table)
        case "size":
            return n.read("LookupTableSizeV2", table)
        case "export":
            keys = call.resource.key_dtype
            return n.read("LookupTableExportV2", table, Tkeys=keys, Tvalues=values)
        case "initialize":
            content = getattr(call.resource, "_table", call.resource)
            if content is not None:
                n.act("LookupTableImportV2", table, *map(e.constant, content.export()))
            return _done(n)
        case "insert":
            n.act("LookupTableInsertV2", table, n[0], n[1])
            return _done(n)
        case "remove":
            n.act("LookupTableRemoveV2", table, n[0])
            return _done(n)
    raise _refused(n, call)


def _done(n: ExportedNode) -> list[Ref]:
    """What a node gives that runs for its effect: true, after the effect."""
    return [n.e.one("Identity", n.e.constant(True), controls=n.writer.effects)] * n.count if n.count else []


def _number(n: ExportedNode, call: TableCall, table: Ref) -> Ref:
    """The number of a word; other words share further numbers by their fingerprint."""
    e, keys = n.e, n[0]
    missing = e.constant(-1, "int64")
    (found,) = n.read("LookupTableFindV2", table, keys, missing, Tout="int64")
    texts = keys if keys.dtype.name == "string" else e.one("AsString", keys)
    bucket = e.one("StringToHashBucketFast", texts, num_buckets=call.buckets)
    other = e.one("AddV2", bucket, e.constant(call.first, "int64"))
    return e.one("SelectV2", e.one("NotEqual", found, e.constant(-1, "int64")), found, other)


# ---- public functions

# Raw operations whose function is one host call: its outputs are those of the operation.
_DIRECT = frozenset(
    ("UnicodeDecode", "UnicodeDecodeWithOffsets", "UnicodeEncode", "StringNGrams", "SparseCross", "DecodeCSV")
    + ("DecodeImage", "DecodeJpeg", "ListDiff", "RaggedCross", "Mfcc", "UniqueV2", "UniqueWithCountsV2")
    + ("DecodePaddedRaw", "SparseBincount", "RaggedBincount")
)
Rule = Callable[[ExportedNode, tuple[Any, ...], dict[str, Any]], Any]


def _composition(n: ExportedNode, call: CompositionCall) -> Any:
    args, kwargs = nest.map_structure(functools.partial(_taken, n), [list(call.args), call.kwargs])
    rule = rule_by_function.get(call.function)
    if rule is not None:
        return rule(n, tuple(args), kwargs)
    if _has_parts([*args, *kwargs.values()]):
        raise _refused(n, call)
    raw = raw_name_by_adapter.get((id(call.function), len(args)))
    if raw is not None and find_op_def(raw) is not None and (call.whole or raw in _DIRECT):
        keys = [key for key, _ in find_raw_operation(raw)._parameters]
        return _raw_node(n, raw, dict(zip(keys, args)), call.effect)
    name, count = raw_name_by_function.get(id(call.function), (None, None))
    if name is None or find_op_def(name) is None:
        raise _refused(n, call)
    bound = inspect.signature(call.function).bind(*args, **kwargs)
    bound.apply_defaults()
    names = [key for key, _ in find_raw_operation(name)._parameters]
    given = dict(zip(names, list(bound.arguments.values())[:count]))
    parameters = list(bound.signature.parameters.values())
    for parameter in parameters[len(given) :]:  # the operation of TensorFlow has no such argument
        if parameter.name != "name" and bound.arguments[parameter.name] is not parameter.default:
            raise _refused(n, call)
    return _raw_node(n, name, given, call.effect)


class Parts(list[Ref]):
    """The parts of a sparse tensor (indices, values, shape) or of a ragged one (values, splits)."""


def _has_parts(value: Any) -> bool:
    return isinstance(value, Parts) or (isinstance(value, list | tuple) and any(map(_has_parts, value)))


def _taken(n: ExportedNode, leaf: Any) -> Any:
    """An argument: the reference of a tensor, a list of those of a sparse or ragged one, or what it is."""
    if isinstance(leaf, CompositePlace):
        return Parts(as_ref(n.e, _taken(n, part), None) for part in leaf.parts)
    return n[leaf.number] if isinstance(leaf, Place) else leaf


def _raw_node(n: ExportedNode, name: str, given: dict[str, Any], effect: bool) -> list[Ref]:
    """A node of this operation with the arguments of `tf.raw_ops`."""
    definition = find_op_def(name)
    assert definition is not None
    inputs: list[Any] = []
    for argument in definition.inputs:
        value = given[argument.python_name]
        if argument.is_list:
            inputs.append([as_ref(n.e, x, None) for x in value])
        else:
            kind = None if argument.kind in definition.attributes else argument.kind
            inputs.append(as_ref(n.e, value, kind))
    attributes = {
        key: given[attribute.python_name]
        for key, attribute in definition.attributes.items()
        if given.get(attribute.python_name) is not None
    }
    return (n.act if effect else n.e.node)(name, *inputs, **attributes)


def as_ref(e: Emitter, value: Any, dtype: Any) -> Ref:
    return value if isinstance(value, Ref) else e.constant(value, dtype)


def _einsum(n: ExportedNode, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """TensorFlow's operation takes one or two tensors: more are contracted one after the other."""
    equation, *inputs = args
    left, arrow, output = equation.replace(" ", "").partition("->")
    terms, refs = left.split(","), [as_ref(n.e, x, None) for x in inputs]
    if not arrow:
        once = sorted(c for c in set(left) if c.isalpha() and left.count(c) == 1)
        output = ("..." if "..." in left else "") + "".join(once)
    while len(terms) > 2:
        first, second, *others = terms
        needed = set("".join([output, *others]))
        kept = [c for c in dict.fromkeys(first + second) if c.isalpha() and c in needed]
        inner = ("..." if "..." in first + second else "") + "".join(kept)
        refs = [n.e.one("Einsum", refs[:2], equation=f"{first},{second}->{inner}"), *refs[2:]]
        terms = [inner, *others]
    return n.e.one("Einsum", refs, equation=f"{','.join(terms)}->{output}")


rule_by_function: dict[Any, Rule] = {einsum: _einsum}
