"""Nodes that use the tensor arrays of TensorFlow 1: the flow between the nodes is the `tf.TensorArray` itself."""

from __future__ import annotations

from typing import Any

from tapeflow._src import _core
from tapeflow._src.compat.graph_def.program import Context, Step, handles
from tapeflow._src.control_flow.tensor_array import TensorArray


class Handle:
    """What nodes of TensorFlow 1 know an array by; the content travels with the flow."""

    is_graph_resource = True


@handles("TensorArrayV3", "TensorArrayV2")
def _make(step: Step, values: list[Any], context: Context) -> Any:
    size = values[0] if _core.is_symbolic(values[0]) else int(values[0])
    shape = step.attributes.get("element_shape")
    grows = step.attributes.get("dynamic_size", False)
    array = TensorArray(
        step.attributes["dtype"], size, dynamic_size=grows, clear_after_read=False,
        element_shape=None if shape is None or shape.rank is None else shape,
    )  # fmt: skip
    return [Handle(), array]


@handles("TensorArrayWriteV3", "TensorArrayWriteV2")
def _write(step: Step, values: list[Any], context: Context) -> Any:
    _, index, value, flow = values
    return [flow.write(index, value)]


@handles("TensorArrayReadV3", "TensorArrayReadV2")
def _read(step: Step, values: list[Any], context: Context) -> Any:
    _, index, flow = values
    return [flow.read(index)]


@handles("TensorArrayGatherV3", "TensorArrayGatherV2")
def _gather(step: Step, values: list[Any], context: Context) -> Any:
    _, indices, flow = values
    return [flow.gather(indices)]


@handles("TensorArrayScatterV3", "TensorArrayScatterV2")
def _scatter(step: Step, values: list[Any], context: Context) -> Any:
    _, indices, value, flow = values
    return [flow.scatter(indices, value)]


@handles("TensorArraySizeV3", "TensorArraySizeV2")
def _size(step: Step, values: list[Any], context: Context) -> Any:
    return [values[1].size()]


@handles("TensorArrayConcatV3", "TensorArrayConcatV2")
def _concat(step: Step, values: list[Any], context: Context) -> Any:
    return [values[1].concat(), values[1].size()]


@handles("TensorArraySplitV3", "TensorArraySplitV2")
def _split(step: Step, values: list[Any], context: Context) -> Any:
    _, value, lengths, flow = values
    return [flow.split(value, lengths)]


@handles("TensorArrayCloseV3", "TensorArrayCloseV2")
def _close(step: Step, values: list[Any], context: Context) -> Any:
    return []
