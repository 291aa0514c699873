"""`tf.experimental.to_onnx`: a function with the values of its variables as an ONNX model."""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from tapeflow._src import _core
from tapeflow._src.compat.graph_def import graphs  # noqa: F401  register rules
from tapeflow._src.compat.graph_def.exporter import FunctionWriter
from tapeflow._src.compat.onnx import network_rules, rules, signal_rules  # noqa: F401  register rules
from tapeflow._src.compat.onnx.graph_builder import OPSET, Builder, Names
from tapeflow._src.compat.onnx.network_rules import shape_of
from tapeflow._src.function.concrete import ConcreteFunction
from tapeflow._src.function.function import Function
from tapeflow._src.function.function import function as make_function
from tapeflow._src.function.trace import running_at_once
from tapeflow._src.io.atomic_files import write_atomically
from tapeflow._src.namespace import public
from tapeflow._src.ops.lookup.tables import LookupInterface
from tapeflow._src.types.errors import UnimplementedError
from tapeflow._src.types.tensor_spec import TensorSpec


def _onnx() -> Any:
    try:
        import onnx
    except ImportError:
        raise UnimplementedError.of(
            "experimental.to_onnx: the package onnx is not installed: pip install tapeflow[onnx]"
        ) from None
    return onnx


def _concrete(function: Any, signature: Any) -> ConcreteFunction:
    if isinstance(function, ConcreteFunction):
        return function
    if signature is None and isinstance(function, Function):
        return function.get_concrete_function()
    if signature is None:
        shapes = getattr(function, "input_shape", None)
        dtypes = getattr(function, "input_dtype", None) or "float32"
        if shapes is None or not isinstance(shapes, tuple):
            raise ValueError(
                "experimental.to_onnx: give `input_signature`, a list of tf.TensorSpec, or a function that has one"
            )
        signature = [TensorSpec(shapes, dtypes)]
    traced = function if isinstance(function, Function) else make_function(lambda *args: function(*args))
    return traced.get_concrete_function(*signature)


@public("experimental.to_onnx")
def to_onnx(function: Any, input_signature: Any = None, path: Any = None) -> Any:
    """A function as an ONNX model (opset 18), with the values that its variables have; it needs the package onnx.

    Args:
        function: A `tf.function`, a concrete function, or anything that can be called with tensors, such as a model.
        input_signature: A list of `tf.TensorSpec`; a function that has one, or a model with one input, needs none.
        path: A file to write the model to as well.

    Returns:
        The model, an `onnx.ModelProto`.

    Raises:
        UnimplementedError: for an operation that has no rule; the error names its node.

    >>> tf.experimental.to_onnx
    <function to_onnx at ...>
    """
    onnx, concrete = _onnx(), _concrete(function, input_signature)
    graph = concrete.graph
    writer = FunctionWriter("experimental.to_onnx")
    held = writer.add(_core.graph_data(graph), "main", list(graph.input_names))
    library = {f.signature.name: f for f in writer.library.function}
    names = Names()
    builder = Builder(onnx, library, names, "experimental.to_onnx")
    specs = concrete.signature.tensor_specs
    given: list[Any] = [names.fresh(name) for name in graph.input_names[: len(specs)]]
    inputs = [
        onnx.helper.make_tensor_value_info(
            name, builder.onnx_dtype(s.dtype), None if s.shape.rank is None else shape_of(s.shape.as_list())
        )
        for name, s in zip(given, specs)
    ]
    with running_at_once():
        values = [builder.constant(np.asarray(t.numpy()), hint="captured") for t in graph.captures]
        values += [_variable(builder, thing) for thing in held]
    results = builder.run(library["main"], [*given, *values])
    outputs = []
    for number, (result, tensor) in enumerate(zip(results, graph.outputs)):
        name = names.fresh(f"output_{number}")
        builder.nodes.append(onnx.helper.make_node("Identity", [result], [name]))
        dims = None if tensor.shape.rank is None else shape_of(tensor.shape.as_list())
        outputs.append(onnx.helper.make_tensor_value_info(name, builder.onnx_dtype(tensor.dtype), dims))
    made = onnx.helper.make_graph(builder.nodes, graph.name or "function", inputs, outputs, builder.initializers)
    imports = [onnx.helper.make_opsetid("", OPSET)]
    if builder.table_by_name:
        imports.append(onnx.helper.make_opsetid("ai.onnx.ml", 4))
    model = onnx.helper.make_model(made, opset_imports=imports, producer_name="tapeflow", ir_version=9)
    if path is not None:
        write_atomically(os.fspath(path), model.SerializeToString())
    return model


def _variable(builder: Builder, thing: Any) -> str:
    if isinstance(thing, _core.Variable):
        return builder.constant(np.asarray(thing.numpy()), hint=thing.name.removesuffix(":0"))
    if not isinstance(thing, LookupInterface):
        raise UnimplementedError.of(
            f"experimental.to_onnx: a function that uses {type(thing).__name__} cannot be written as ONNX"
        )
    name = builder.names.fresh("table")
    builder.table_by_name[name] = thing
    return name
