"""Derivatives of functions: `tf.autodiff.grad`, `value_and_grad`, `vjp`, `jvp`, `hvp`, `linearize`, `hook_gradient`.

Arguments and results are any structures of tensors. Everything is written with tapes and accumulators, so the results
can be differentiated again, and work eagerly, in a `tf.function` and in a `tf.vectorized_map`.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable
from typing import Any, NamedTuple

from tapeflow._src import _core, primitives
from tapeflow._src._core import Tensor
from tapeflow._src.autodiff.custom_gradient import custom_gradient
from tapeflow._src.autodiff.forward_accumulator import ForwardAccumulator
from tapeflow._src.autodiff.gradient_tape import GradientTape
from tapeflow._src.namespace import public
from tapeflow._src.ops.arrays.constants import ones_like, zeros_like
from tapeflow._src.ops.arrays.conversion import convert_to_tensor
from tapeflow._src.types import nest
from tapeflow._src.types.enums import UnconnectedGradients
from tapeflow._src.types.indexed_slices import IndexedSlices

Function = Callable[..., Any]


def _leaf(name: str, value: Any) -> Any:
    """A tensor of its own, so that one that is given twice counts twice; a variable stays itself."""
    leaf = value if isinstance(value, _core.Variable) else primitives.Identity(convert_to_tensor(value))
    if not (leaf.dtype.is_floating or leaf.dtype.is_complex):
        raise TypeError(
            f"{name}: the arguments to differentiate by must be floating or complex; got {leaf.dtype.name}. "
            "Write 3.0 in place of 3, or cast with tf.cast."
        )
    return leaf


def _leaves(name: str, structure: Any) -> Any:
    return nest.map_structure(functools.partial(_leaf, name), structure)


def _watching_tape(structures: Any, persistent: bool = False) -> GradientTape:
    tape = GradientTape(persistent=persistent, watch_accessed_variables=False)
    with tape:
        for leaf in nest.flatten(structures):
            tape.watch(leaf)
    return tape


class _Choice(NamedTuple):
    """Which arguments of a function are differentiated by."""

    numbers: tuple[int, ...]
    single: bool

    @classmethod
    def of(cls, name: str, argnums: Any) -> _Choice:
        single = not isinstance(argnums, list | tuple)
        try:
            return cls(tuple(operator.index(i) for i in ([argnums] if single else argnums)), single)
        except TypeError:
            raise TypeError(f"{name}: argnums must be an integer or integers; got {argnums!r}") from None

    def taken(self, name: str, args: tuple[Any, ...]) -> tuple[list[Any], list[Any]]:
        """The arguments with leaves in place of those that are differentiated by, and these."""
        for i in self.numbers:
            if not -len(args) <= i < len(args):
                raise ValueError(f"{name}: argnums has {i}, but the call has {len(args)} positional arguments")
        numbers = [i % len(args) for i in self.numbers]
        given = list(args)
        for i in dict.fromkeys(numbers):
            given[i] = _leaves(name, given[i])
        return given, [given[i] for i in numbers]

    def given_back(self, gradients: list[Any]) -> Any:
        return gradients[0] if self.single else tuple(gradients)


def _with_aux(name: str, result: Any, has_aux: bool) -> tuple[Any, Any]:
    if not has_aux:
        return result, None
    if not isinstance(result, tuple) or len(result) != 2:
        raise TypeError(f"{name}: with has_aux=True the function must return (value, aux); got {type(result).__name__}")
    return result


def _scalar(name: str, value: Any) -> Any:
    value = convert_to_tensor(value)
    if value.shape.rank not in (0, None):
        raise ValueError(
            f"{name}: the function must return a scalar; got shape {value.shape}. Reduce it, for example by "
            "tf.reduce_mean, or use tf.autodiff.vjp or tape.jacobian."
        )
    return value


@public("autodiff.value_and_grad")
def value_and_grad(
    fun: Function,
    argnums: int | tuple[int, ...] = 0,
    has_aux: bool = False,
    unconnected_gradients: Any = UnconnectedGradients.NONE,
) -> Function:
    """A function that gives the value of `fun`, a scalar, and its gradient by the arguments `argnums`.

    Args:
      fun: a function of tensors, variables or structures of them.
      argnums: the number of the positional argument to differentiate by, or several.
      has_aux: whether `fun` returns `(value, aux)`; then the result is `((value, aux), gradient)`.
      unconnected_gradients: None or zeros where the value does not depend on an argument, as for `tape.gradient`.

    Returns:
      A function with the arguments of `fun`. A gradient has the structure of its argument; several are a tuple.

    >>> tf.autodiff.value_and_grad(lambda x: x ** 2)(3.)
    (<tf.Tensor: shape=(), dtype=float32, numpy=9.0>, <tf.Tensor: shape=(), dtype=float32, numpy=6.0>)
    """
    return _value_and_grad("value_and_grad", fun, argnums, has_aux, unconnected_gradients)


def _value_and_grad(name: str, fun: Function, argnums: Any, has_aux: bool, unconnected: Any) -> Function:
    choice = _Choice.of(name, argnums)

    @functools.wraps(fun, assigned=("__module__", "__name__", "__qualname__", "__doc__"), updated=())
    def value_and_gradient(*args: Any, **kwargs: Any) -> Any:
        given, sources = choice.taken(name, args)
        with _watching_tape(sources) as tape:
            value, aux = _with_aux(name, fun(*given, **kwargs), has_aux)
            value = _scalar(name, value)
        gradients = tape.gradient(value, sources, unconnected_gradients=unconnected)
        return ((value, aux) if has_aux else value), choice.given_back(gradients)

    return value_and_gradient


@public("autodiff.grad")
def grad(
    fun: Function,
    argnums: int | tuple[int, ...] = 0,
    has_aux: bool = False,
    unconnected_gradients: Any = UnconnectedGradients.NONE,
) -> Function:
    """A function that gives the gradient of `fun`, a scalar, by the arguments `argnums`.

    With `has_aux`, `fun` returns `(value, aux)` and the result is `(gradient, aux)`. See `tf.autodiff.value_and_grad`.

    >>> cube = lambda x: x ** 3
    >>> tf.autodiff.grad(tf.autodiff.grad(cube))(2.)
    <tf.Tensor: shape=(), dtype=float32, numpy=12.0>
    """
    both = _value_and_grad("grad", fun, argnums, has_aux, unconnected_gradients)

    @functools.wraps(both, updated=())
    def gradient(*args: Any, **kwargs: Any) -> Any:
        value, gradients = both(*args, **kwargs)
        return (gradients, value[1]) if has_aux else gradients

    return gradient


def _same_structure(name: str, what: str, given: Any, expected: Any) -> None:
    try:
        nest.assert_same_structure(expected, given)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{name}: {what} must have the structure of what they belong to. {error}") from None


def _check_tangent(name: str, primal: Any, tangent: Any) -> Any:
    tangent = convert_to_tensor(tangent, dtype=primal.dtype)
    if not primal.shape.is_compatible_with(tangent.shape):
        raise ValueError(f"{name}: a tangent must have the shape of its primal; got {tangent.shape} for {primal.shape}")
    return tangent


@public("autodiff.vjp")
def vjp(fun: Function, *primals: Any, has_aux: bool = False) -> Any:
    """The value of `fun(*primals)` and a function from cotangents of the value to cotangents of the primals.

    Args:
      fun: a function of tensors, variables or structures of them, with any structure as its result.
      *primals: the arguments.
      has_aux: whether `fun` returns `(value, aux)`; then the result is `(value, vjp_fun, aux)`.

    Returns:
      `(value, vjp_fun)`. `vjp_fun` can be called more than once; it gives a tuple with one result for each primal,
      zeros where the value does not depend on it.

    >>> y, pullback = tf.autodiff.vjp(tf.square, tf.constant([1., 2.]))
    >>> pullback(tf.constant([1., 10.]))
    (<tf.Tensor: shape=(2,), dtype=float32, numpy=array([ 2., 40.], dtype=float32)>,)
    """
    sources = [_leaves("vjp", primal) for primal in primals]
    with _watching_tape(sources, persistent=True) as tape:
        value, aux = _with_aux("vjp", fun(*sources), has_aux)
        value = nest.map_structure(convert_to_tensor, value)

    def vjp_fun(cotangents: Any) -> tuple[Any, ...]:
        _same_structure("vjp", "cotangents", cotangents, value)
        cotangents = [_check_tangent("vjp", y, dy) for y, dy in zip(nest.flatten(value), nest.flatten(cotangents))]
        return tuple(tape.gradient(nest.flatten(value), sources, cotangents, unconnected_gradients="zero"))

    return (value, vjp_fun, aux) if has_aux else (value, vjp_fun)


@public("autodiff.jvp")
def jvp(fun: Function, primals: Any, tangents: Any, has_aux: bool = False) -> Any:
    """The value of `fun(*primals)` and its derivative along `tangents`, by forward mode.

    Args:
      fun: a function of tensors, variables or structures of them, with any structure as its result.
      primals: a list or tuple of its arguments.
      tangents: the direction, with the structure of `primals`.
      has_aux: whether `fun` returns `(value, aux)`; then the result is `(value, tangent, aux)`.

    Returns:
      `(value, tangent)`; zeros where the value does not depend on the primals.

    >>> tf.autodiff.jvp(tf.square, [3.], [1.])
    (<tf.Tensor: shape=(), dtype=float32, numpy=9.0>, <tf.Tensor: shape=(), dtype=float32, numpy=6.0>)
    """
    sources, directions = _directed("jvp", primals, tangents)
    with ForwardAccumulator(nest.flatten(sources), nest.flatten(directions)) as accumulator:
        value, aux = _with_aux("jvp", fun(*sources), has_aux)
        value = nest.map_structure(convert_to_tensor, value)
        tangent = accumulator.jvp(value, unconnected_gradients="zero")
    return (value, tangent, aux) if has_aux else (value, tangent)


def _directed(name: str, primals: Any, tangents: Any) -> tuple[list[Any], list[Any]]:
    for what, given in (("primals", primals), ("tangents", tangents)):
        if not isinstance(given, list | tuple):
            raise TypeError(
                f"{name}: {what} must be a list or tuple, one for each argument; got {type(given).__name__}"
            )
    sources = [_leaves(name, primal) for primal in primals]
    _same_structure(name, "tangents", list(tangents), list(primals))
    flat = [_check_tangent(name, x, x_dot) for x, x_dot in zip(nest.flatten(sources), nest.flatten(list(tangents)))]
    return sources, nest.pack_sequence_as(sources, flat)


@public("autodiff.hvp")
def hvp(fun: Function, primals: Any, tangents: Any) -> tuple[Tensor]:
    """The Hessian of `fun`, a scalar, times `tangents`: forward mode over the gradient, at about twice its cost.

    Args:
      fun: a function of tensors, variables or structures of them that gives a scalar.
      primals: a list or tuple of its arguments.
      tangents: the vector, with the structure of `primals`.

    Returns:
      A tuple with one product for each primal.

    >>> tf.autodiff.hvp(lambda x: tf.reduce_sum(x ** 3), [tf.constant([1., 2.])], [tf.constant([1., 1.])])
    (<tf.Tensor: shape=(2,), dtype=float32, numpy=array([ 6., 12.], dtype=float32)>,)
    """
    sources, directions = _directed("hvp", primals, tangents)
    with ForwardAccumulator(nest.flatten(sources), nest.flatten(directions)) as accumulator:
        with _watching_tape(sources) as tape:
            value = _scalar("hvp", fun(*sources))
        gradients = tape.gradient(value, sources, unconnected_gradients="zero")
        # The gradient of a gather is sparse; its tangent is wanted as a tensor.
        dense = nest.map_structure(lambda g: convert_to_tensor(g) if isinstance(g, IndexedSlices) else g, gradients)
        return tuple(accumulator.jvp(dense, unconnected_gradients="zero"))


@public("autodiff.linearize")
def linearize(fun: Function, *primals: Any) -> tuple[Any, Function]:
    """The value of `fun(*primals)` and its derivative as a linear function of tangents, without running `fun` again.

    >>> y, derivative = tf.autodiff.linearize(tf.square, tf.constant([1., 2.]))
    >>> derivative(tf.constant([1., 0.]))
    <tf.Tensor: shape=(2,), dtype=float32, numpy=array([2., 0.], dtype=float32)>
    """
    sources = [_leaves("linearize", primal) for primal in primals]
    with _watching_tape(sources, persistent=True) as tape:
        value = nest.map_structure(convert_to_tensor, fun(*sources))
    flat = [y for y in nest.flatten(value) if y.dtype.is_floating or y.dtype.is_complex]
    # The VJP is linear in its cotangents, so its own VJP by them is the JVP, wherever it is taken.
    with GradientTape(persistent=True, watch_accessed_variables=False) as transposed:
        cotangents = [ones_like(y) for y in flat]
        for dy in cotangents:
            transposed.watch(dy)
        pulled = tape.gradient(flat, nest.flatten(sources), cotangents, unconnected_gradients="zero")
        pulled = [convert_to_tensor(g) for g in pulled]

    def derivative(*tangents: Any) -> Any:
        _, directions = _directed("linearize", primals, tangents)
        found = transposed.gradient(pulled, cotangents, nest.flatten(directions), unconnected_gradients="zero")
        taken = iter(found)
        return nest.map_structure(
            lambda y: next(taken) if y.dtype.is_floating or y.dtype.is_complex else zeros_like(y), value
        )

    return value, derivative


@public("autodiff.hook_gradient")
def hook_gradient(x: Any, hook: Callable[[Any], Any]) -> Any:
    """`x`, with `hook` called on the gradient that reaches it in a backward pass.

    Args:
      x: a tensor or variable.
      hook: receives the gradient. What it returns takes the gradient's place; None leaves it as it is.

    Returns:
      A tensor equal to `x`; use it in place of `x`.

    >>> x = tf.Variable(2.)
    >>> with tf.GradientTape() as tape:
    ...     y = 100. * tf.autodiff.hook_gradient(x, lambda dy: tf.clip_by_value(dy, -1., 1.))
    >>> tape.gradient(y, x)
    <tf.Tensor: shape=(), dtype=float32, numpy=1.0>
    """

    @custom_gradient
    def hooked(value: Any) -> Any:
        def rule(dy: Any) -> Any:
            replaced = hook(dy)
            return dy if replaced is None else replaced

        return primitives.Identity(value), rule

    return hooked(convert_to_tensor(x))
