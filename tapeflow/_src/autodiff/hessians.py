"""`tf.hessians`: second derivatives."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tapeflow._src import _core, primitives
from tapeflow._src._core import Tensor
from tapeflow._src.autodiff.gradient_tape import GradientTape
from tapeflow._src.autodiff.graph_gradients import graph_hessians
from tapeflow._src.namespace import public
from tapeflow._src.ops.arrays.constants import zeros
from tapeflow._src.ops.arrays.conversion import convert_to_tensor

_EAGER = """tf.hessians: tf.gradients is not supported when eager execution is enabled. Use tf.GradientTape instead.
An eager tensor does not record how it was computed. Give the function in place of its result:

    tf.hessians(f, x)            # f(x) -> the value, or f(x1, x2) for xs = [x1, x2]

or record it twice:

    with tf.GradientTape() as outer:
        outer.watch(x)
        with tf.GradientTape() as inner:
            inner.watch(x)
            y = f(x)
        gradient = inner.gradient(y, x)
    hessian = outer.jacobian(gradient, x)"""


@public("hessians")
def hessians(
    ys: Any, xs: Any, gate_gradients: bool = False, aggregation_method: Any = None, name: str = "hessians"
) -> list[Any]:
    """The Hessian of the sum of the results of the function `ys` by each of the tensors `xs` it is called with.

    A list, one for each x, of tensors of the shape of x twice. (A tensor as `ys` has a meaning in a graph alone.)

    >>> tf.hessians(lambda x: x[0] ** 2 * x[1], tf.constant([3., 2.]))
    [<tf.Tensor: shape=(2, 2), dtype=float32, numpy=
    array([[4., 6.],
           [6., 0.]], dtype=float32)>]
    """
    if not callable(ys) and _core.is_tracing():
        return graph_hessians(ys, xs, gate_gradients=gate_gradients, aggregation_method=aggregation_method)
    if not callable(ys):
        raise RuntimeError(_EAGER)
    given = [convert_to_tensor(x) for x in (xs if isinstance(xs, list | tuple) else [xs])]
    return [_hessian(ys, given, i) for i in range(len(given))]


def _hessian(function: Callable[..., Any], given: list[Any], which: int) -> Tensor:
    # A tensor of its own, so that two xs that are one tensor are distinguished.
    x = primitives.Identity(given[which])
    arguments = [*given[:which], x, *given[which + 1 :]]
    with GradientTape() as outer:
        outer.watch(x)
        with GradientTape() as inner:
            inner.watch(x)
            y = function(*arguments)
        gradient = convert_to_tensor(inner.gradient(y, x, unconnected_gradients="zero"))  # one of a gather is sparse
    found = outer.jacobian(gradient, x)
    return zeros([*x.shape, *x.shape], x.dtype) if found is None else found
