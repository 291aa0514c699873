"""Raw operations on pairs of equal shapes, such as gradients of elementwise functions; the cross entropy."""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Callable
from typing import Any

from tapeflow._src import primitives
from tapeflow._src.ops.arrays.conversion import convert_to_tensor
from tapeflow._src.ops.arrays.shaping import broadcast_static_shape
from tapeflow._src.ops.math import arithmetic
from tapeflow._src.types.errors import InvalidArgumentError

SoftmaxCrossEntropyWithLogits = namedtuple("SoftmaxCrossEntropyWithLogits", ["loss", "backprop"])


def _pair(name: str, x: Any, y: Any) -> tuple[Any, Any]:
    """Two tensors, which must have the same shape: TensorFlow's gradients of elementwise functions do not broadcast."""
    x, y = convert_to_tensor(x), convert_to_tensor(y)
    if not x.shape.is_compatible_with(y.shape):
        raise InvalidArgumentError.of(
            f"{name}: Inputs to operation {name} must have the same size and shape. Input 0: {x.shape} != input 1: "
            f"{y.shape}"
        )
    return x, y


def _of_pair(name: str, operation: Callable[..., Any], conjugates: bool = False) -> Callable[..., Any]:
    """An operation that does not broadcast; of complex numbers, the rules of the core are given the conjugate."""

    def run(first: Any, second: Any) -> Any:
        first, second = _pair(name, first, second)
        return operation(arithmetic.conj(first) if conjugates else first, second)

    run.__name__ = name
    return run


def _leaky_relu_gradient(gradients: Any, features: Any, alpha: float) -> Any:
    dy, x = _pair("LeakyReluGrad", gradients, features)
    return primitives.SelectV2(primitives.Greater(x, 0), dy, dy * alpha)


def _softmax_entropy(features: Any, labels: Any) -> SoftmaxCrossEntropyWithLogits:
    """The loss of each row, and its gradient by the features; a single row of either serves all rows of the other."""
    x, p = convert_to_tensor(features), convert_to_tensor(labels)
    if None not in (x.shape.rank, p.shape.rank) and max(x.shape.rank, p.shape.rank) != 2:
        raise InvalidArgumentError.of(
            "SoftmaxCrossEntropyWithLogits: logits and labels must be matrices, or one a row for the other: Shape must "
            f"be rank 2, but is rank {max(x.shape.rank, p.shape.rank)}"
        )
    if x.shape != p.shape and x.shape.is_fully_defined() and p.shape.is_fully_defined():
        try:
            shape = broadcast_static_shape(x.shape, p.shape).as_list()
        except ValueError:
            shape = []
        if len(shape) != 2:
            raise InvalidArgumentError.of(
                "SoftmaxCrossEntropyWithLogits: logits and labels must be broadcastable: "
                f"logits_size={x.shape} labels_size={p.shape}"
            )
        x, p = primitives.BroadcastTo(x, shape), primitives.BroadcastTo(p, shape)
    loss = primitives.SoftmaxCrossEntropyWithLogits(x, p)
    return SoftmaxCrossEntropyWithLogits(loss, primitives.Softmax(x) - p)


ROWS: list[tuple[str, str, Any]] = [
    ("EluGrad", "gradients, outputs", _of_pair("EluGrad", primitives.EluGrad)),
    ("InvGrad", "y, dy", _of_pair("InvGrad", primitives.ReciprocalGrad, conjugates=True)),
    ("LeakyReluGrad", "gradients, features, alpha=0.2", _leaky_relu_gradient),
    ("ReciprocalGrad", "y, dy", _of_pair("ReciprocalGrad", primitives.ReciprocalGrad, conjugates=True)),
    ("Relu6Grad", "gradients, features", _of_pair("Relu6Grad", primitives.Relu6Grad)),
    ("ReluGrad", "gradients, features", _of_pair("ReluGrad", primitives.ReluGrad)),
    ("RsqrtGrad", "y, dy", _of_pair("RsqrtGrad", primitives.RsqrtGrad, conjugates=True)),
    ("SeluGrad", "gradients, outputs", _of_pair("SeluGrad", primitives.SeluGrad)),
    ("SigmoidGrad", "y, dy", _of_pair("SigmoidGrad", primitives.SigmoidGrad)),
    ("SoftmaxCrossEntropyWithLogits", "features, labels", _softmax_entropy),
    ("SoftplusGrad", "gradients, features", _of_pair("SoftplusGrad", primitives.SoftplusGrad)),
    ("SoftsignGrad", "gradients, features", _of_pair("SoftsignGrad", primitives.SoftsignGrad)),
    ("SqrtGrad", "y, dy", _of_pair("SqrtGrad", primitives.SqrtGrad, conjugates=True)),
    ("TanhGrad", "y, dy", _of_pair("TanhGrad", primitives.TanhGrad)),
]
