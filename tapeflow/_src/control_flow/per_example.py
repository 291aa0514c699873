"""`tf.autodiff.per_example_gradients`: the gradient of every example of a batch, for all examples at once."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from tapeflow._src.autodiff.functional import grad
from tapeflow._src.control_flow.vectorized_map import vectorized_map
from tapeflow._src.namespace import public


@public("autodiff.per_example_gradients")
def per_example_gradients(fun: Callable[..., Any], has_aux: bool = False) -> Callable[..., Any]:
    """A function that gives the gradients of `fun(params, *example)` by `params`, one for each example of a batch.

    Args:
      fun: the loss, a scalar, of parameters (a structure of tensors and variables) and one example (one or more
        structures of tensors, without a batch dimension).
      has_aux: whether `fun` returns `(loss, aux)`; then the result is `(gradients, aux)`, both for each example.

    Returns:
      A function of the parameters and the batch. Its gradients have the structure of `params` with a leading batch
      dimension.

    >>> w = tf.Variable([1., 2.])
    >>> loss = lambda w, x, y: (tf.reduce_sum(w * x) - y) ** 2
    >>> tf.autodiff.per_example_gradients(loss)(w, tf.eye(2), tf.zeros(2))
    <tf.Tensor: shape=(2, 2), dtype=float32, numpy=
    array([[2., 0.],
           [0., 4.]], dtype=float32)>
    """
    gradient = grad(fun, has_aux=has_aux, unconnected_gradients="zero")

    @functools.wraps(gradient, updated=())
    def gradients(params: Any, *batch: Any) -> Any:
        if not batch:
            raise TypeError("per_example_gradients: the function needs parameters and at least one batch of examples")
        return vectorized_map(lambda example: gradient(params, *example), batch)

    return gradients
