"""The values that branches and loops carry: which are tensors, and whether two states agree."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tapeflow._src import _core
from tapeflow._src.control_flow.tensor_array import TensorArray
from tapeflow._src.function.autograph.jumps import VALUE
from tapeflow._src.ops.arrays.constants import zeros
from tapeflow._src.ops.arrays.conversion import convert_to_tensor, is_tensor
from tapeflow._src.types import nest
from tapeflow._src.types.tensor_spec import CompositeTensor

_PLAIN = (bool, int, float, complex, str, bytes, np.ndarray, np.generic)


class Undefined:
    """Stands for the value of a variable that has none."""

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name

    def __repr__(self) -> str:
        return f"<undefined {self.name!r}>"


no_value = Undefined(VALUE)
not_yet = Undefined(VALUE)


def is_undefined(value: Any) -> bool:
    """Whether a variable has no value.

    What a function returns has marks of its own, which are written like values: none, or none so far.
    """
    return type(value) is Undefined and value is not no_value and value is not not_yet


def is_missing(value: Any) -> bool:
    """Whether there is no value, or none yet."""
    return type(value) is Undefined


def copied(values: Sequence[Any]) -> tuple[Any, ...]:
    """The same values in lists and dictionaries of their own, which a block may change that is only tried out."""
    return tuple(nest.map_structure(lambda leaf: leaf, v) if isinstance(v, list | dict | tuple) else v for v in values)


def is_carried(leaf: Any) -> bool:
    """Whether a leaf travels as a tensor; others must stay the same object."""
    return is_tensor(leaf) or isinstance(leaf, (*_PLAIN, TensorArray, CompositeTensor))


def as_carried(leaf: Any) -> Any:
    """The leaf as a tensor, unless it is built of tensors."""
    if isinstance(leaf, _PLAIN) or (_core.is_tensor(leaf) and not isinstance(leaf, _core.Tensor)):
        return convert_to_tensor(leaf)
    return leaf


class Packed:
    """A state as the flat list of what travels, and the structure to put new values into."""

    def __init__(self, values: Sequence[Any]) -> None:
        self.values = [v if is_missing(v) else nest.map_structure(_carried_or_same, v) for v in values]
        leaves = [leaf for value in self.values for leaf in nest.flatten(value)]
        self.travelling = [leaf for leaf in leaves if is_carried(leaf)]

    def with_new(self, travelling: Sequence[Any]) -> tuple[Any, ...]:
        """The same structures with other travelling leaves."""
        rest = iter(travelling)
        return tuple(nest.map_structure(lambda leaf: next(rest) if is_carried(leaf) else leaf, v) for v in self.values)


def _carried_or_same(leaf: Any) -> Any:
    return as_carried(leaf) if is_carried(leaf) else leaf


def dtype_of(leaf: Any) -> Any:
    """The dtype of a leaf; None where it has none."""
    return getattr(leaf, "dtype", None)


def check_branches(names: Sequence[str], main: Packed, other: Packed) -> None:
    """Raises TensorFlow's errors where two branches leave a variable in different kinds of state."""
    for name, first, second in zip(names, main.values, other.values):
        if name == VALUE and is_missing(first) and is_missing(second):  # no branch returns
            continue
        for value, partner, branch in ((first, second, "main"), (second, first, "else")):
            if is_missing(value):
                if name == VALUE:
                    raise ValueError(f"the {branch} branch must also have a return statement.")
                raise ValueError(f"'{name}' must also be initialized in the {branch} branch")
            if value is None and partner is not None and not is_missing(partner):
                raise ValueError(f"'{shown(name)}' is None at the end of the {branch} branch.")
        try:
            nest.assert_same_structure(first, second)
        except (ValueError, TypeError) as error:
            raise TypeError(
                f"'{shown(name)}' must have the same nested structure in the main and else branches:\n\n{error}"
            ) from None
        for one, two in zip(nest.flatten(first), nest.flatten(second)):
            _check_leaf(shown(name), one, two)


def shown(name: str) -> str:
    """The name as messages give it."""
    return "retval_" if name == VALUE else name


def _check_leaf(name: str, one: Any, two: Any) -> None:
    if is_carried(one) != is_carried(two) or (not is_carried(one) and one is not two and one != two):
        which = two if is_carried(one) else one
        raise TypeError(
            f"'{name}' must be a tensor, or the same object, in the main and else branches; found a value of type "
            f"{type(which).__name__}, which is not a Tensor or ExtensionType."
        )
    if dtype_of(one) != dtype_of(two):
        raise TypeError(
            f"'{name}' has dtype {_name(dtype_of(one))} in the main branch, but dtype {_name(dtype_of(two))} in the "
            "else branch"
        )


def _name(dtype: Any) -> str:
    return getattr(dtype, "name", str(dtype))


def check_iteration(names: Sequence[str], before: Packed, after: Packed, invariants: Sequence[Any]) -> None:
    """Raises TensorFlow's errors where one iteration of a loop changes what kind of value a variable holds."""
    number = 0
    for name, first, second in zip(names, before.values, after.values):
        if is_missing(second) and not is_missing(first):
            raise ValueError(f"'{shown(name)}' must also be defined at the end of the iteration")
        if second is None and first is not None:
            raise ValueError(f"'{shown(name)}' is None at the end of the iteration.")
        try:
            nest.assert_same_structure(first, second)
        except (ValueError, TypeError) as error:
            raise TypeError(
                f"'{shown(name)}' does not have the same nested structure after one iteration.\n\n{error}"
            ) from None
        for one, two in zip(nest.flatten(first), nest.flatten(second)):
            if is_carried(one) != is_carried(two) or (not is_carried(one) and one is not two and one != two):
                raise TypeError(
                    f"'{shown(name)}' changes in the loop, so it must be a tensor: failed to convert {two!r} to Tensor."
                )
            if is_carried(one):
                _check_round(shown(name), one, two, invariants[number])
                number += 1


def _check_round(name: str, one: Any, two: Any, invariant: Any) -> None:
    if dtype_of(one) != dtype_of(two):
        raise TypeError(
            f"'{name}' has dtype {_name(dtype_of(one))} before the loop, but dtype {_name(dtype_of(two))} after one "
            "iteration"
        )
    if not (isinstance(one, _core.Tensor) and isinstance(two, _core.Tensor)):
        return
    if invariant is not None:
        if not invariant.is_compatible_with(two.shape):
            raise ValueError(
                f"'{name}' has shape {two.shape} after one iteration, which does not conform with the shape invariant "
                f"{invariant}."
            )
    elif not _at_least_as_known(two.shape, one.shape):
        raise ValueError(
            f"'{name}' has shape {one.shape} before the loop, but shape {two.shape} after one iteration. Use "
            "tf.autograph.experimental.set_loop_options to set shape invariants."
        )


def _at_least_as_known(shape: Any, wanted: Any) -> bool:
    """Whether every size that `wanted` fixes is the same in `shape`."""
    if wanted.rank is None:
        return True
    if shape.rank != wanted.rank:
        return False
    return all(w is None or s == w for s, w in zip(shape.as_list(), wanted.as_list()))


def placeholder_like(value: Any) -> Any:
    """Zeros in place of the leaves: what a variable holds that no iteration of a loop has set."""

    def blank(leaf: Any) -> Any:
        leaf = as_carried(leaf) if is_carried(leaf) else leaf
        if not isinstance(leaf, _core.Tensor):
            return leaf
        known = leaf.shape.rank is not None
        sizes = [0 if size is None else size for size in leaf.shape.as_list()] if known else []
        if leaf.dtype.name == "string":
            return convert_to_tensor(np.full(sizes, b"", dtype=object))
        return zeros(sizes, leaf.dtype)

    return nest.map_structure(blank, value)
