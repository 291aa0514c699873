"""`gradients` and `hessians` with the arguments of TensorFlow 1."""

from __future__ import annotations

from typing import Any

from tapeflow._src.autodiff.graph_gradients import gradients as find_gradients
from tapeflow._src.autodiff.hessians import hessians as find_hessians
from tapeflow._src.namespace import public
from tapeflow._src.types.enums import UnconnectedGradients


@public("compat.v1.gradients")
def gradients(
    ys: Any,
    xs: Any,
    grad_ys: Any = None,
    name: str = "gradients",
    colocate_gradients_with_ops: bool = False,
    gate_gradients: bool = False,
    aggregation_method: Any = None,
    stop_gradients: Any = None,
    unconnected_gradients: Any = UnconnectedGradients.NONE,
) -> list[Any]:
    """The derivative of the sum of `ys` by each of `xs`, in a graph.

    >>> with tf.Graph().as_default(), tf.compat.v1.Session() as session:
    ...     x = tf.constant(2.)
    ...     session.run(tf.compat.v1.gradients(x ** 3, x))
    [np.float32(12.0)]
    """
    return find_gradients(
        ys, xs, grad_ys, name, gate_gradients, aggregation_method, stop_gradients, unconnected_gradients
    )


@public("compat.v1.hessians")
def hessians(
    ys: Any,
    xs: Any,
    name: str = "hessians",
    colocate_gradients_with_ops: bool = False,
    gate_gradients: bool = False,
    aggregation_method: Any = None,
) -> list[Any]:
    """The second derivatives of the sum of `ys` by each of `xs`, in a graph.

    >>> with tf.Graph().as_default(), tf.compat.v1.Session() as session:
    ...     x = tf.constant([2.])
    ...     session.run(tf.compat.v1.hessians(x ** 3, x))[0].tolist()
    [[12.0]]
    """
    return find_hessians(ys, xs, gate_gradients, aggregation_method, name)
