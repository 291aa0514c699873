"""The functions of `tensorflow.python.ops.linalg` that the linear operators of libraries call."""

from __future__ import annotations

from typing import Any

from tapeflow._src import _core
from tapeflow._src.namespace import find_public
from tapeflow._src.ops.arrays.conversion import convert_to_tensor
from tapeflow._src.ops.linalg.operators.hints import agreed_hint, is_aat_form, is_adjoint_pair

_debugging = "compat.v1.debugging."
_shape = find_public("shape")


def assert_zero_imag_part(x: Any, message: str | None = None, name: str = "assert_zero_imag_part") -> Any:
    """An operation that raises unless the numbers are real."""
    x = convert_to_tensor(x)
    if not x.dtype.is_complex:
        return find_public("no_op")()
    imaginary = find_public("math.imag")(x)
    zero = convert_to_tensor(0, imaginary.dtype)
    return find_public(f"{_debugging}assert_equal")(zero, imaginary, message=message)


def assert_no_entries_with_modulus_zero(
    x: Any, message: str | None = None, name: str = "assert_no_entries_with_modulus_zero"
) -> Any:
    """An operation that raises if a number is zero."""
    modulus = find_public("abs")(convert_to_tensor(x))
    return find_public(f"{_debugging}assert_less")(convert_to_tensor(0, modulus.dtype), modulus, message=message)


def assert_compatible_matrix_dimensions(operator: Any, x: Any) -> Any:
    """An operation that raises unless the operator can be applied to the matrices `x`."""
    message = (
        f"Dimensions are not compatible. shape[-2] of argument to be the same as this operator's domain: {operator}"
    )
    dimension = operator.domain_dimension_tensor()
    return find_public(f"{_debugging}assert_equal")(_shape(x, dimension.dtype)[-2], dimension, message=message)


def assert_is_batch_matrix(tensor: Any) -> None:
    """Raises unless the rank, as far as it is known, is 2 or more."""
    rank = tensor.shape.rank
    if rank is not None and rank < 2:
        raise ValueError(f"Expected tensor to have at least two dimensions. Found: {tensor}")


def shape_tensor(shape: Any, name: str | None = None) -> Any:
    """A shape as a tensor; numbers become int32."""
    integers = isinstance(shape, list | tuple) and not any(_core.is_tensor(size) for size in shape)
    return convert_to_tensor(shape, "int32" if integers else None)


def use_operator_or_provided_hint_unless_contradicting(
    operator: Any, hint_attr_name: str, provided_hint_value: bool | None, message: str
) -> bool | None:
    """The hint of an operator or the given one; ValueError with `message` if they differ."""
    return agreed_hint(provided_hint_value, getattr(operator, hint_attr_name), message)


def arg_is_blockwise(block_dimensions: Any, arg: Any, arg_split_dim: int) -> bool:
    """Whether an argument is a list of blocks, one for each operator, and not one tensor."""
    if not isinstance(arg, list | tuple) or len(arg) != len(block_dimensions):
        return False
    if not any(isinstance(part, list | tuple | dict) for part in arg):
        return True
    sizes = [convert_to_tensor(part).shape[arg_split_dim] for part in arg]
    wanted = [find_public("compat.v1.dimension_value")(dimension) for dimension in block_dimensions]
    equal = all(size == sizes[0] for size in sizes)
    if all(size is None for size in wanted):
        if equal and len(sizes) > 1:
            raise ValueError(
                "Parsing of the input structure is ambiguous. Please input a blockwise iterable of `Tensor`s or a "
                "single `Tensor`."
            )
        return not equal
    if all(want is None or size == want for size, want in zip(sizes, wanted)):
        return True
    if equal and sizes[0] >= sum(size for size in wanted if size is not None):
        return False
    raise ValueError("Input dimension does not match operator dimension.")


def _slice_single_param(param: Any, param_ndims_to_matrix_ndims: int, slices: Any, batch_shape: Any) -> Any:
    """The part of a parameter that `slices` take of the batch; sizes of 1 stay, since they broadcast."""
    kept, batch_rank = param_ndims_to_matrix_ndims, find_public("size")(batch_shape)
    batch_rank = int(find_public("get_static_value")(batch_rank))
    is_operator = hasattr(param, "batch_shape_tensor")
    sizes = param.batch_shape_tensor() if is_operator else _shape(param)
    missing = batch_rank - (int(find_public("get_static_value")(find_public("size")(sizes))) - kept)
    if missing > 0 and not is_operator:
        param = find_public("reshape")(param, find_public("concat")([[1] * missing, sizes], 0))
        sizes = _shape(param)
    keys = list(slices)
    if sum(key is Ellipsis for key in keys) > 1:
        raise ValueError("Found multiple `...` in slices.")
    taking = sum(key is not None and key is not Ellipsis for key in keys)
    if taking > batch_rank:
        raise ValueError(f"Too many slices: {taking} for a batch of rank {batch_rank}.")
    found: list[Any] = []
    at = 0
    for key in keys:
        if key is None:
            found.append(key)
        elif key is Ellipsis:
            found += [key]
            at = batch_rank - sum(later is not None for later in keys[len(found) :])
        else:
            found.append(_key_for(key, batch_shape[at], sizes[at]))
            at += 1
    whole = [] if Ellipsis in [key for key in found if not _core.is_tensor(key)] or not kept else [Ellipsis]
    return param[(*found, *whole, *[slice(None)] * kept)]


def _key_for(key: Any, wanted: Any, size: Any) -> Any:
    """The key of a dimension of `size` that broadcasts to `wanted`: of one element the first, or a slice of it."""
    static = find_public("get_static_value")
    is_one, is_broadcast = static(size) == 1, static(wanted) != 1
    if not (is_one and is_broadcast):
        return key
    if not isinstance(key, slice):
        return 0
    return slice(None)


util_names = {
    function.__name__: function
    for function in (
        *(arg_is_blockwise, assert_compatible_matrix_dimensions, assert_is_batch_matrix),
        *(assert_no_entries_with_modulus_zero, assert_zero_imag_part, is_aat_form, is_adjoint_pair, shape_tensor),
        use_operator_or_provided_hint_unless_contradicting,
    )
}
slicing_names = {"_slice_single_param": _slice_single_param}
