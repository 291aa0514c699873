"""Operations run by name, as the generated functions of TensorFlow run them: `tensorflow.python.eager.execute`."""

from __future__ import annotations

import numbers
from collections.abc import Callable, Sequence
from typing import Any

from tapeflow._src import _core
from tapeflow._src.compat.graph_def.op_defs import Attribute, OpDef, find_op_def
from tapeflow._src.compat.graph_def.program import flat_outputs
from tapeflow._src.compat.raw_ops.operation import find_raw_operation, has_raw_operation
from tapeflow._src.namespace import find_public
from tapeflow._src.types import nest
from tapeflow._src.types.dtypes import DType, as_dtype
from tapeflow._src.types.errors import InvalidArgumentError, NotFoundError, UnimplementedError
from tapeflow._src.types.tensor_shape import TensorShape, as_shape

# The kinds of attributes, by the numbers of TensorFlow's C interface.
NUMBER_BY_KIND = {"string": 0, "int": 1, "float": 2, "bool": 3, "type": 4, "shape": 5, "tensor": 6}


def _find(op_name: str) -> OpDef:
    found = find_op_def(op_name)
    if found is None:
        raise NotFoundError.of(f"Op type not registered '{op_name}'")
    return found


def execute(
    op_name: str | bytes, num_outputs: int, inputs: Sequence[Any], attrs: Sequence[Any] | None, ctx: Any,
    name: str | None = None,
) -> list[Any]:  # fmt: skip
    """The outputs of an operation that is given by its name, with attributes as `(name, value, name, value, ...)`."""
    if not isinstance(num_outputs, int):
        raise TypeError(f"expected an integer as num_outputs; got {num_outputs!r}")
    op_name = op_name.decode() if isinstance(op_name, bytes) else op_name
    definition = _find(op_name)
    attributes = _read(definition, attrs or ())
    if not has_raw_operation(op_name):
        raise UnimplementedError.of(f"Tapeflow has no operation '{op_name}'")
    operation = find_raw_operation(op_name)
    accepted = {parameter for parameter, _ in operation._parameters}
    given = {
        definition.attributes[key].python_name: value
        for key, value in attributes.items()
        if definition.attributes[key].python_name in accepted
    }
    outputs = flat_outputs(operation(**_grouped(definition, attributes, inputs), **given))
    if len(outputs) > num_outputs:
        raise InvalidArgumentError.of(f"Expecting {len(outputs)} outputs, but *num_retvals is {num_outputs}")
    return outputs


def _grouped(definition: OpDef, attributes: dict[str, Any], inputs: Sequence[Any]) -> dict[str, Any]:
    """The inputs by name; those of a list together."""
    rest = iter([x if _core.is_tensor(x) else find_public("convert_to_tensor")(x) for x in inputs])
    found: dict[str, Any] = {}
    try:
        for argument in definition.inputs:
            size = argument.size(attributes)
            found[argument.python_name] = [next(rest) for _ in range(size)] if argument.is_list else next(rest)
    except (StopIteration, RuntimeError):
        raise InvalidArgumentError.of(f"{definition.name}: got {len(inputs)} inputs, which is too few") from None
    return found


def _read(definition: OpDef, attrs: Sequence[Any]) -> dict[str, Any]:
    """The attributes by name, as raw operations take them."""
    found = {}
    for key, value in zip(attrs[::2], attrs[1::2]):
        key = key.decode() if isinstance(key, bytes) else key
        attribute = definition.attributes.get(key)
        if attribute is None:
            raise InvalidArgumentError.of(f"Operation '{definition.name}' has no attr named '{key}'.")
        found[key] = _value(attribute, value)
    return found


def _value(attribute: Attribute, value: Any) -> Any:
    if not attribute.kind.startswith("list("):
        return _single(attribute.name, attribute.kind, value)
    if not isinstance(value, list | tuple):
        raise InvalidArgumentError.of(f"Expecting sequence value for attr {attribute.name}, got {_kind_of(value)}")
    return [_single(attribute.name, attribute.kind[5:-1], item) for item in value]


def _single(name: str, kind: str, value: Any) -> Any:
    accepted, what = {
        "string": ((str, bytes), "a string"),
        "int": (numbers.Integral, "int"),
        "float": (numbers.Real, "float"),
        "bool": ((bool, numbers.Integral), "bool"),
        "type": ((numbers.Integral, DType), "DataType"),
    }.get(kind, (object, kind))
    if not isinstance(value, accepted):  # type: ignore[arg-type]
        raise InvalidArgumentError.of(f"Expecting {what} value for attr {name}, got {_kind_of(value)}")
    if kind == "type":
        return as_dtype(value)
    return _shape(name, value) if kind == "shape" else value


def _shape(name: str, value: Any) -> TensorShape:
    if value is not None and not isinstance(value, list | tuple | TensorShape):
        raise InvalidArgumentError.of(f"Expecting a sequence of dimensions for attr {name}, got {_kind_of(value)}")
    for size in value or ():
        if size is not None and not hasattr(size, "__index__"):
            raise InvalidArgumentError.of(f"Expecting a Dimension for attr {name}, got {_kind_of(size)}")
    return as_shape(value)


def _kind_of(value: Any) -> str:
    return type(value).__name__


def op_attr_type(op_type: str, attr_name: str) -> int | list[int]:
    """The number of an attribute's kind, in a list if the attribute is one."""
    definition = _find(op_type)
    if attr_name not in definition.attributes:
        raise InvalidArgumentError.of(f"Attribute '{attr_name}' does not exist for this operation")
    kind = definition.attributes[attr_name].kind
    return [NUMBER_BY_KIND[kind[5:-1]]] if kind.startswith("list(") else NUMBER_BY_KIND[kind]


def make_attr(attr_type: int | list[int], value: Any) -> Any:
    """The value of an attribute as `Operation.get_attr` gives it."""
    if isinstance(attr_type, list):
        if attr_type[0] in (NUMBER_BY_KIND["type"], NUMBER_BY_KIND["shape"]):
            return [make_attr(attr_type[0], item) for item in value]
    elif attr_type == NUMBER_BY_KIND["type"]:
        return as_dtype(value)
    elif attr_type == NUMBER_BY_KIND["shape"]:
        return as_shape(value).as_proto()  # type: ignore[attr-defined]
    return nest.map_structure(lambda v: v.encode() if isinstance(v, str) else v, value)


# ---- arguments of generated functions


def args_to_matching_eager(
    l: Sequence[Any], ctx: Any, allowed_dtypes: Sequence[Any], default_dtype: Any = None  # noqa: E741
) -> tuple[Any, list[Any]]:  # fmt: skip
    """Values as tensors of one dtype, and its number: that of the first tensor, or of the first value."""
    if not l and default_dtype is not None:
        return default_dtype, []
    convert = find_public("convert_to_tensor")
    dtype = next((x.dtype for x in l if _core.is_tensor(x)), None)
    tensors = []
    for x in l:
        tensor = convert(x) if dtype is None and allowed_dtypes else None
        if tensor is None or (tensor.dtype not in allowed_dtypes and dtype is None):
            tensor = convert(x, dtype, dtype_hint=default_dtype)
        dtype = tensor.dtype if dtype is None else dtype
        tensors.append(tensor)
    return as_dtype(dtype).as_datatype_enum, tensors


def convert_to_mixed_eager_tensors(values: Sequence[Any], ctx: Any) -> tuple[list[int], list[Any]]:
    """Values as tensors, and the numbers of their dtypes."""
    tensors = [find_public("convert_to_tensor")(value) for value in values]
    return [tensor.dtype.as_datatype_enum for tensor in tensors], tensors


def args_to_mixed_eager_tensors(lists: Sequence[Sequence[Any]], ctx: Any) -> tuple[list[int], list[list[Any]]]:
    """Lists of equal length as tensors: those in one position have one dtype."""
    for given in lists[1:]:
        if len(given) != len(lists[0]):
            raise ValueError(
                f"Expected list arguments to be the same length: {len(lists[0])} != {len(given)} "
                f"({lists[0]!r} vs. {given!r})."
            )
    columns = [args_to_matching_eager(column, ctx, []) for column in zip(*lists)]
    return [kind for kind, _ in columns], [list(row) for row in zip(*(tensors for _, tensors in columns))]


def _expected(what: str, arg_name: str, v: Any) -> TypeError:
    return TypeError(f"Expected {what} for argument '{arg_name}' not {v!r}.")


def make_float(v: Any, arg_name: str) -> float:
    """A number as a float."""
    if not isinstance(v, numbers.Real):
        raise _expected("float", arg_name, v)
    return float(v)


def make_int(v: Any, arg_name: str) -> int:
    """A number as an integer."""
    if isinstance(v, str):
        raise _expected("int", arg_name, v)
    try:
        return int(v)
    except (ValueError, TypeError):
        raise _expected("int", arg_name, v) from None


def make_str(v: Any, arg_name: str) -> bytes:
    """A string as bytes."""
    if not isinstance(v, str | bytes):
        raise _expected("string", arg_name, v)
    return v.encode() if isinstance(v, str) else v


def make_bool(v: Any, arg_name: str) -> bool:
    """A boolean."""
    if not isinstance(v, bool):
        raise _expected("bool", arg_name, v)
    return v


def make_type(v: Any, arg_name: str) -> int:
    """The number of a dtype."""
    try:
        return int(as_dtype(v).base_dtype.as_datatype_enum)
    except TypeError:
        raise _expected("DataType", arg_name, v) from None


def make_shape(v: Any, arg_name: str) -> list[int | None] | None:
    """A shape as a list, None if the rank is unknown."""
    try:
        shape = as_shape(v)
    except (TypeError, ValueError) as error:
        raise type(error)(f"Error converting {arg_name} to a TensorShape: {error}.") from None
    return None if shape.rank is None else shape.as_list()


_ARGUMENTS: list[Callable[..., Any]] = [
    args_to_matching_eager, args_to_mixed_eager_tensors, convert_to_mixed_eager_tensors, execute, make_bool,
    make_float, make_int, make_shape, make_str, make_type,
]  # fmt: skip

names_by_path: dict[str, dict[str, Any]] = {
    "python.eager.backprop": {"make_attr": make_attr, "op_attr_type": op_attr_type},
    "python.eager.execute": {**{f.__name__: f for f in _ARGUMENTS}, "quick_execute": execute},
    "python.pywrap_tfe": {f"TF_ATTR_{kind.upper()}": number for kind, number in NUMBER_BY_KIND.items()},
}
