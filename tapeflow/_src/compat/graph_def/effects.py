"""Nodes with an effect beside tables and plain variables: streams of random numbers, slices that are set, printing."""

from __future__ import annotations

import inspect
from typing import Any

from tapeflow._src import primitives
from tapeflow._src.compat.graph_def.program import Context, Step, handles
from tapeflow._src.compat.raw_ops.adapters import update_slice
from tapeflow._src.ops.arrays.constants import zeros
from tapeflow._src.ops.arrays.conversion import cast
from tapeflow._src.ops.effects.host_call import WithCall, host_effect
from tapeflow._src.ops.effects.printing import print_
from tapeflow._src.random_generator import Generator
from tapeflow._src.types.errors import UnimplementedError

_MASKS = ("begin_mask", "end_mask", "ellipsis_mask", "new_axis_mask", "shrink_axis_mask")


@handles("ResourceStridedSliceAssign")
def _assign_slice(step: Step, values: list[Any], context: Context) -> Any:
    variable, begin, end, strides, value = values
    masks = [step.attributes.get(name, 0) for name in _MASKS]
    variable.assign(update_slice(variable.read_value(), begin, end, strides, value, *masks), read_value=False)
    return []


@handles("ResourceScatterNdMax", "ResourceScatterNdMin")
def _scatter_extremes(step: Step, values: list[Any], context: Context) -> Any:
    variable, indices, updates = values
    primitive = primitives.TensorScatterMax if step.op.endswith("Max") else primitives.TensorScatterMin
    variable.assign(primitive(variable.read_value(), indices, updates), read_value=False)
    return []


# ---- streams of random numbers


def _stream(variable: Any, algorithm: Any) -> Generator:
    return Generator(state=variable, alg=int(algorithm))


@handles("RngReadAndSkip")
def _read_and_skip(step: Step, values: list[Any], context: Context) -> Any:
    variable, algorithm, delta = values
    return [_stream(variable, algorithm).skip(cast(delta, "int64"))]


@handles("RngSkip")
def _skip(step: Step, values: list[Any], context: Context) -> Any:
    variable, algorithm, delta = values
    _stream(variable, algorithm).skip(delta)
    return []


@handles("StatefulStandardNormalV2")
def _normal(step: Step, values: list[Any], context: Context) -> Any:
    variable, algorithm, shape = values
    return [_stream(variable, algorithm).normal(shape, dtype=step.attributes["dtype"])]


@handles("StatefulTruncatedNormal")
def _truncated_normal(step: Step, values: list[Any], context: Context) -> Any:
    variable, algorithm, shape = values
    return [_stream(variable, algorithm).truncated_normal(shape, dtype=step.attributes["dtype"])]


@handles("StatefulUniform")
def _uniform(step: Step, values: list[Any], context: Context) -> Any:
    variable, algorithm, shape = values
    return [_stream(variable, algorithm).uniform(shape, dtype=step.attributes["dtype"])]


@handles("StatefulUniformInt")
def _uniform_int(step: Step, values: list[Any], context: Context) -> Any:
    variable, algorithm, shape, low, high = values
    return [_stream(variable, algorithm).uniform(shape, low, high, dtype=low.dtype)]


@handles("StatefulUniformFullInt")
def _uniform_full_int(step: Step, values: list[Any], context: Context) -> Any:
    variable, algorithm, shape = values
    return [_stream(variable, algorithm).uniform_full_int(shape, step.attributes["dtype"])]


@handles("StatefulRandomBinomial")
def _binomial(step: Step, values: list[Any], context: Context) -> Any:
    variable, algorithm, shape, counts, probs = values
    return [_stream(variable, algorithm).binomial(shape, counts, probs, step.attributes["dtype"])]


# ---- printing, and what only the caller's program has


@handles("PrintV2")
def _print(step: Step, values: list[Any], context: Context) -> Any:
    stream, end = step.attributes.get("output_stream", "stderr"), step.attributes.get("end", "\n")

    def run(text: Any) -> None:
        print_(text.numpy().decode("utf-8", "replace"), output_stream=stream, end=end)

    options = {"output_stream": stream, "end": end}
    host_effect(WithCall(run, inspect.unwrap(print_), 1, options), [values[0]])
    return []


@handles("Print")
def _print_and_pass(step: Step, values: list[Any], context: Context) -> Any:
    print_(step.attributes.get("message", ""), *values[1:], summarize=step.attributes.get("summarize", 3))
    return [primitives.Identity(values[0])]


@handles("FakeParam")
def _placeholder_value(step: Step, values: list[Any], context: Context) -> Any:
    """A value that the branch of a condition must give and that nobody reads."""
    shape = step.attributes["shape"]
    dims = [] if shape.rank is None else [n or 0 for n in shape.as_list()]
    return [zeros(dims, step.attributes["dtype"])]


@handles("EagerPyFunc", "PyFunc", "PyFuncStateless")
def _python(step: Step, values: list[Any], context: Context) -> Any:
    raise UnimplementedError.of(
        f"the node runs the Python function {step.attributes.get('token', '')!r} of the program that saved the model, "
        "and the file does not hold it"
    )
