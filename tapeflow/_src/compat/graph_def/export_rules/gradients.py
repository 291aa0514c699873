"""How custom gradients are written: as an `IdentityN` with a name, and a function for the gradient of that name."""

from __future__ import annotations

import uuid
from typing import Any, NamedTuple

from tapeflow._src.compat.graph_def.emitter import Ref
from tapeflow._src.compat.graph_def.exporter import ExportedNode, GraphWriter, writes
from tapeflow._src.io.protos import messages
from tapeflow._src.types.dtypes import as_dtype
from tapeflow._src.types.tensor_shape import TensorShape
from tapeflow._src.types.tensor_spec import TensorSpec


class GradientFunction(NamedTuple):
    """A function of a library that computes a custom gradient.

    It takes the cotangents of all outputs of the node, then the tensors `captured` ("node:0") of the function `holder`
    in which the node stands, then resources. It gives a gradient, or nothing, for each input of the node.
    """

    name: str
    op_type: str
    holder: str
    captured: list[str]
    resources: list[Any]
    cotangents: list[TensorSpec]
    gradients: list[TensorSpec | None]


@writes("CustomGradient")
def _custom_gradient(n: ExportedNode) -> Any:
    functions, rule = n.writer.functions, n._params[0][1]
    if functions.gradients is None:
        return n.e.node("IdentityN", n.inputs[: n.count])
    op_type = f"CustomGradient-{uuid.uuid4().hex}"
    attribute = messages.AttrValue(s=op_type.encode())
    if isinstance(rule, tuple):
        graph, outputs, inputs, kinds = rule
        both = n.inputs[: outputs + inputs]
        results = n.e.node("IdentityN", both, _gradient_op_type=attribute)[: n.count]
        functions.gradients.append(_write_rule(n, op_type, graph, outputs, inputs, kinds))
        return results
    if not n.writer.is_gradient:
        raise ValueError(
            f"{n.writer.where}: the rule of a custom gradient cannot be traced, so it cannot be saved. Save "
            "without it: tf.saved_model.SaveOptions(experimental_custom_gradients=False)"
        )
    return n.e.node("IdentityN", n.inputs, _gradient_op_type=attribute)[: n.count]


def _write_rule(
    n: ExportedNode, op_type: str, graph: Any, outputs: int, inputs: int, kinds: list[int]
) -> GradientFunction:
    functions, refs = n.writer.functions, n.inputs
    if any(node[0] == "PhiloxAdvance" for node in graph[2]):
        raise n.unsupported("a rule that draws the same random numbers again")
    sources, taken = refs[outputs : outputs + inputs], list(zip(refs[outputs + inputs :], graph[0][outputs:]))
    streams = [given[0] for ref, given in taken if ref.node == "stream"]  # states of streams, which are not saved
    taken = [(ref, given) for ref, given in taken if ref.node != "stream"]
    captured = [ref for ref, _ in taken]
    # The cotangents of the inputs, which the node also gives, have numbers that the graph does not use.
    unused = [(-1 - i, ref.dtype.name, ref.shape) for i, ref in enumerate(sources)]
    whole = [i for i, kind in enumerate(kinds) if kind == 2]
    shaped = [(-1 - inputs - k, sources[i].dtype.name, sources[i].shape) for k, i in enumerate(whole)]
    captured += [sources[i] for i in whole]
    data = ([*graph[0][:outputs], *unused, *(given for _, given in taken), *shaped], *graph[1:])
    place_by_source = {i: shaped[k][0] for k, i in enumerate(whole)}

    def body(w: GraphWriter) -> list[Ref]:
        w.is_gradient = True
        for number in streams:
            w.give(number, Ref("stream", "state", 0, 0, as_dtype("int64"), TensorShape([3])))
        results, found = iter(w.write()), []
        for i, kind in enumerate(kinds):
            if kind == 1:
                found.append(next(results))
            elif kind == 2:
                found.append(_dense(w, next(results), next(results), w.value(place_by_source[i])))
        return found

    name = functions.fresh_name("internal_grad_fn")
    resources = functions.add(data, name, body=body)
    gradients: list[TensorSpec | None] = [None] * outputs
    gradients += [TensorSpec(x.shape, x.dtype) if kind else None for x, kind in zip(sources, kinds)]
    return GradientFunction(
        name,
        op_type,
        n.writer.name,
        [f"{ref.node}:{ref.flat_place}" for ref in captured],
        list(resources),
        [TensorSpec(ref.shape, ref.dtype) for ref in refs[: outputs + inputs]],
        gradients,
    )


def _dense(w: GraphWriter, values: Ref, rows: Ref, x: Ref) -> Ref:
    """Rows that are added up at their places in zeros of the shape of `x`."""
    e = w.emitter
    shape = e.one("Shape", x, out_type="int32")
    count = e.one("StridedSlice", shape, e.ints([0]), e.ints([1]), e.ints([1]), shrink_axis_mask=1)
    return e.one("UnsortedSegmentSum", values, rows, count)
