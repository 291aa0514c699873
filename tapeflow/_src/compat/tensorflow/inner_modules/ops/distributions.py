"""The functions of `tensorflow.python.ops.distributions.util`: checks of parameters, static values, triangles."""

from __future__ import annotations

import hashlib
import inspect
from types import FrameType
from typing import Any

import numpy as np

from tapeflow._src.compat.v1.distributions.discrete import logits_and_probs
from tapeflow._src.compat.v1.distributions.distribution import require
from tapeflow._src.namespace import find_public
from tapeflow._src.ops.arrays.conversion import convert_to_tensor
from tapeflow._src.ops.arrays.passing import after

_static = find_public("get_static_value")
_cast = find_public("cast")
_where = find_public("where")
_debugging = "compat.v1.debugging."


def maybe_get_static_value(x: Any, dtype: Any = None) -> Any:
    """The value of a tensor if it is known already, as an array of `dtype`; else None."""
    if x is None:
        return None
    found = _static(x) if find_public("is_tensor")(x) else x
    return found if found is None or dtype is None else np.array(found, dtype)


def prefer_static_value(x: Any) -> Any:
    """The value of a tensor if it is known already, else the tensor."""
    found = _static(x)
    return x if found is None else found


def prefer_static_shape(x: Any) -> Any:
    """The shape of a tensor: an array if it is known already, else a tensor."""
    return prefer_static_value(find_public("shape")(convert_to_tensor(x)))


def prefer_static_rank(x: Any) -> Any:
    """The rank of a tensor: an array if it is known already, else a tensor."""
    return prefer_static_value(find_public("rank")(convert_to_tensor(x)))


def prefer_static_broadcast_shape(shape1: Any, shape2: Any, name: str = "prefer_static_broadcast_shape") -> Any:
    """The shape to which two shapes broadcast, as a TensorShape if both are known already."""
    known = [_known_shape(shape) for shape in (shape1, shape2)]
    if None not in known:
        return find_public("broadcast_static_shape")(*known)
    return find_public("broadcast_dynamic_shape")(*(convert_to_tensor(shape, "int32") for shape in (shape1, shape2)))


def _known_shape(shape: Any) -> Any:
    kind = find_public("TensorShape")
    if isinstance(shape, kind):
        return shape if shape.is_fully_defined() else None
    found = _static(convert_to_tensor(shape))
    return None if found is None else kind(found)


def same_dynamic_shape(a: Any, b: Any) -> Any:
    """Whether two tensors have the same shape, as a boolean tensor."""
    a, b = convert_to_tensor(a), convert_to_tensor(b)
    shape, equal, cond = find_public("shape"), find_public("equal"), find_public("cond")
    every = find_public("reduce_all")
    if not a.shape.is_compatible_with(b.shape):
        return convert_to_tensor(False)
    ranks_equal = equal(find_public("rank")(a), find_public("rank")(b))
    return cond(ranks_equal, lambda: every(equal(shape(a), shape(b))), lambda: convert_to_tensor(False))


def assert_integer_form(
    x: Any,
    data: Any = None,
    summarize: int | None = None,
    message: str | None = None,
    int_dtype: Any = None,
    name: str = "assert_integer_form",
) -> Any:
    """An operation that raises unless each element is an integer, whatever the dtype is."""
    x = convert_to_tensor(x)
    if x.dtype.is_integer:
        return find_public("no_op")()
    message = message or f"{x.op.name if hasattr(x, 'op') else 'x'} has non-integer components"
    if int_dtype is None:
        integers = {"float16": "int16", "float32": "int32", "float64": "int64"}
        if x.dtype.base_dtype.name not in integers:
            raise TypeError(f"Unrecognized type {x.dtype.name}")
        int_dtype = integers[x.dtype.base_dtype.name]
    rounded = _cast(_cast(x, int_dtype), x.dtype)
    return find_public(f"{_debugging}assert_equal")(x, rounded, data, summarize, message)


def assert_symmetric(matrix: Any) -> Any:
    """The matrix, once it equals its transpose."""
    transposed = find_public("linalg.matrix_transpose")(matrix)
    return after(find_public(f"{_debugging}assert_equal")(matrix, transposed), matrix)


def embed_check_nonnegative_integer_form(x: Any, name: str = "embed_check_nonnegative_integer_form") -> Any:
    """`x`, once its elements are not negative and are integers."""
    x = require(convert_to_tensor(x), "assert_non_negative", message="x must be non-negative.")
    return x if x.dtype.is_integer else after(assert_integer_form(x, message="x cannot contain fractions."), x)


def embed_check_categorical_event_shape(
    categorical_param: Any, name: str = "embed_check_categorical_event_shape"
) -> Any:
    """Logits or probabilities, once there are at least 2 classes and the dtype can count them."""
    x = convert_to_tensor(categorical_param)
    dtype = x.dtype.base_dtype
    if dtype.is_floating:
        largest = 2 ** (find_public("experimental.numpy.finfo")(dtype.as_numpy_dtype).nmant + 1)
    elif dtype.is_integer and not dtype.is_quantized:
        largest = dtype.max
    else:
        raise TypeError(f"Unable to validate size of unrecognized dtype ({dtype.name}).")
    few, many = (
        "A categorical-distributed event must have at least 2 events.",
        "Number of classes exceeds `dtype` precision",
    )
    too_many = f"{many}, i.e., {dtype.name} implies shape cannot exceed {largest}."
    if x.shape.rank == 0:
        raise ValueError("A categorical-distributed parameter must have at least 1 dimension.")
    count = x.shape[-1] if x.shape.rank is not None else None
    if count is not None:
        if count < 2:
            raise ValueError(few)
        if count > largest:
            raise ValueError(too_many)
        return x
    count = find_public("shape")(x, "int64")[-1]
    x = after(find_public(f"{_debugging}assert_greater_equal")(count, np.int64(2), message=few), x)
    bound = np.int64(min(largest, 2**63 - 1))
    return after(find_public(f"{_debugging}assert_less_equal")(count, bound, message=too_many), x)


def embed_check_integer_casting_closed(
    x: Any, target_dtype: Any, assert_nonnegative: bool = True, name: str = "embed_check_casting_closed"
) -> Any:
    """`x`, once a cast to the integer dtype `target_dtype` changes no element."""
    x, target = convert_to_tensor(x), find_public("as_dtype")(target_dtype)
    if not (x.dtype.is_integer or x.dtype.is_floating):
        raise TypeError(f"{x.dtype.name} must be floating- or integer-type.")
    if not (target.is_integer or target.is_floating):
        raise TypeError(f"target_dtype={target.name} must be floating- or integer-type.")
    if x.dtype.is_floating and not target.is_integer and x.dtype != target:
        raise TypeError(f"At least one of {x.dtype.name} and {target.name} must be integer-type.")
    if assert_nonnegative:
        x = require(x, "assert_non_negative", message="Elements must be non-negative.")
    if x.dtype.is_floating:
        return after(assert_integer_form(x, int_dtype=target, message=f"Elements must be {target.name}-equivalent."), x)
    if x.dtype.max > target.max:
        x = require(x, "assert_less_equal", _limit(x, target.max), message=f"Elements cannot exceed {target.max}.")
    if not assert_nonnegative and x.dtype.min < target.min:
        message = f"Elements cannot be smaller than {target.min}."
        x = require(x, "assert_greater_equal", _limit(x, target.min), message=message)
    return x


def _limit(x: Any, value: int) -> Any:
    return convert_to_tensor(value, x.dtype)


def get_logits_and_probs(
    logits: Any = None,
    probs: Any = None,
    multidimensional: bool = False,
    validate_args: bool = False,
    name: str = "get_logits_and_probs",
    dtype: Any = None,
) -> tuple[Any, Any]:
    """Both logits and probabilities, of whichever was given."""
    if (logits is None) == (probs is None):
        raise ValueError("Must pass probs or logits, but not both.")
    given = convert_to_tensor(probs if logits is None else logits, dtype)
    if multidimensional and validate_args:
        given = embed_check_categorical_event_shape(given)
    if logits is None:
        return logits_and_probs(None, given, validate_args, multidimensional)
    return logits_and_probs(given, None, validate_args, multidimensional)


def log_combinations(n: Any, counts: Any, name: str = "log_combinations") -> Any:
    """log(n! / (k1! k2! ...)), where the counts are along the last axis."""
    n, counts = convert_to_tensor(n), convert_to_tensor(counts)
    lgamma = find_public("math.lgamma")
    return lgamma(n + 1) - find_public("reduce_sum")(lgamma(counts + 1), axis=-1)


def matrix_diag_transform(matrix: Any, transform: Any = None, name: str | None = None) -> Any:
    """A matrix whose diagonal went through `transform`."""
    matrix = convert_to_tensor(matrix)
    if transform is None:
        return matrix
    return find_public("linalg.set_diag")(matrix, transform(find_public("linalg.diag_part")(matrix)))


def rotate_transpose(x: Any, shift: Any, name: str = "rotate_transpose") -> Any:
    """`x` with its axes moved round by `shift`: the shape is that of `np.roll(x.shape, shift)`."""
    x = convert_to_tensor(x)
    known = maybe_get_static_value(shift)
    if known is not None and x.shape.rank is not None:
        return find_public("transpose")(x, [*np.roll(np.arange(x.shape.rank), int(known))])
    axes = find_public("range")(find_public("rank")(x))
    return find_public("transpose")(x, find_public("roll")(axes, convert_to_tensor(shift, "int32"), 0))


def pick_vector(cond: Any, true_vector: Any, false_vector: Any, name: str = "pick_vector") -> Any:
    """One of two vectors, which may have other lengths."""
    known = maybe_get_static_value(cond)
    if known is not None:
        return true_vector if known else false_vector
    return find_public("cond")(cond, lambda: convert_to_tensor(true_vector), lambda: convert_to_tensor(false_vector))


def gen_new_seed(seed: int | None, salt: str) -> int | None:
    """A seed of 31 bits that follows from a seed and a text; None of None."""
    if seed is None:
        return None
    digest = hashlib.md5(f"{seed}{salt}".encode(), usedforsecurity=False).hexdigest()
    return int(digest[:8], 16) & 0x7FFFFFFF


def fill_triangular(x: Any, upper: bool = False, name: str | None = None) -> Any:
    """Square triangular matrices of vectors of n (n + 1) / 2 elements, filled clockwise as a spiral.

    The n * n elements of an upper matrix are `x` and then, backwards, what follows its first n elements; a lower one is
    the same turned by half a circle. What is not in the triangle is then set to zero.
    """
    x = convert_to_tensor(x)
    concat, reverse = find_public("concat"), find_public("reverse")
    count = x.shape[-1] if x.shape.rank is not None else None
    if count is None:
        length = _cast(find_public("shape")(x)[-1], "float64")
        side: Any = _cast(find_public("round")(find_public("sqrt")(0.25 + 2.0 * length) - 0.5), "int32")
    else:
        side = round(np.sqrt(0.25 + 2.0 * count) - 0.5)
        if side * (side + 1) // 2 != count:
            raise ValueError(f"Input right-most shape ({count}) does not correspond to a triangular matrix.")
    flat = concat([x, reverse(x[..., side:], [-1])], -1)
    flat = flat if upper else reverse(flat, [-1])
    matrix = find_public("reshape")(flat, concat([find_public("shape")(x)[:-1], [side, side]], 0))
    if count is not None:
        matrix = find_public("ensure_shape")(matrix, [*x.shape[:-1], side, side])
    return find_public("linalg.band_part")(matrix, *((0, -1) if upper else (-1, 0)))


def fill_triangular_inverse(x: Any, upper: bool = False, name: str | None = None) -> Any:
    """The vectors of which `fill_triangular` makes these matrices."""
    x = convert_to_tensor(x)
    concat, reverse = find_public("concat"), find_public("reverse")
    known = x.shape[-1] if x.shape.rank is not None else None
    side = find_public("shape")(x)[-1] if known is None else known
    triangle = find_public("linalg.band_part")(x if upper else reverse(x, [-2, -1]), 0, -1)
    rest = triangle[..., 1:, :]
    rows = concat([triangle[..., :1, :], rest + reverse(rest, [-2, -1])], -2)
    flat = find_public("reshape")(rows, concat([find_public("shape")(x)[:-2], [side * side]], 0))
    vectors = flat[..., : side * (side + 1) // 2]
    return vectors if known is None else find_public("ensure_shape")(vectors, [*x.shape[:-2], known * (known + 1) // 2])


def tridiag(below: Any = None, diag: Any = None, above: Any = None, name: str | None = None) -> Any:
    """Matrices with these three diagonals, each of which may be left out."""
    make = find_public("linalg.diag")
    parts = [make(convert_to_tensor(part), k=k) for part, k in ((below, -1), (diag, 0), (above, 1)) if part is not None]
    if not parts:
        raise ValueError("Must specify at least one of `below`, `diag`, and `above`.")
    return find_public("add_n")(parts)


def reduce_weighted_logsumexp(
    logx: Any,
    w: Any = None,
    axis: Any = None,
    keep_dims: bool = False,
    return_sign: bool = False,
    name: str | None = None,
) -> Any:
    """log|sum(w exp(logx))| without overflow, and with `return_sign` the sign of the sum."""
    logx = convert_to_tensor(logx)
    if w is None:
        found = find_public("reduce_logsumexp")(logx, axis=axis, keepdims=keep_dims)
        return (found, find_public("ones_like")(found)) if return_sign else found
    w = convert_to_tensor(w, logx.dtype)
    log_abs = logx + find_public("math.log")(find_public("abs")(w))
    largest = find_public("reduce_max")(log_abs, axis=axis, keepdims=True)
    finite = _where(find_public("math.is_finite")(largest), largest, find_public("zeros_like")(largest))
    largest = find_public("stop_gradient")(finite)
    scaled = find_public("sign")(w) * find_public("exp")(log_abs - largest)
    total = find_public("reduce_sum")(scaled, axis=axis, keepdims=keep_dims)
    sign = find_public("sign")(total)
    if not keep_dims:
        largest = find_public("reshape")(largest, find_public("shape")(total))
    found = largest + find_public("math.log")(sign * total)
    return (found, sign) if return_sign else found


def softplus_inverse(x: Any, name: str | None = None) -> Any:
    """The y with softplus(y) = x: log(exp(x) - 1), without overflow or cancellation."""
    x = convert_to_tensor(x)
    threshold = np.log(np.finfo(x.dtype.as_numpy_dtype).eps) + 2.0
    small, large = x < np.exp(threshold), x > -threshold
    inner = _where(small | large, find_public("ones_like")(x), x)  # so that no gradient is infinite times zero
    y = inner + find_public("math.log")(-find_public("math.expm1")(-inner))
    return _where(small, find_public("math.log")(x), _where(large, x, y))


def dimension_size(x: Any, axis: int) -> Any:
    """The size of a dimension: a number if it is known already, else a tensor."""
    known = x.shape[axis] if x.shape.rank is not None else None
    return find_public("shape")(x)[axis] if known is None else known


def pad(
    x: Any, axis: int, front: bool = False, back: bool = False, value: Any = 0, count: int = 1, name: str | None = None
) -> Any:
    """`x` with `count` elements `value` before or behind one axis."""
    x = convert_to_tensor(x)
    if not front and not back:
        raise ValueError("At least one of {front, back} must be True.")
    if x.shape.rank is None:
        axes = find_public("range")(find_public("rank")(x))
        here = find_public("equal")(axes, axis % find_public("rank")(x))
        paddings = _cast(here, "int32")[:, None] * [[count * bool(front), count * bool(back)]]
    else:
        paddings = np.zeros([x.shape.rank, 2], np.int32)
        paddings[axis] = count * bool(front), count * bool(back)
    return find_public("pad")(x, paddings, constant_values=convert_to_tensor(value, x.dtype))


def parent_frame_arguments() -> dict[str, Any]:
    """The arguments of the function that calls this one, with their present values; none of `*args`."""
    here = inspect.currentframe()
    caller: FrameType | None = here and here.f_back
    if caller is None:
        raise RuntimeError("parent_frame_arguments: this Python keeps no frames of callers")
    names, _, keywords, values = inspect.getargvalues(caller)
    found = {name: values[name] for name in names}
    return found | (values[keywords] if keywords else {})


names = {
    function.__name__: function
    for function in (
        *(assert_integer_form, assert_symmetric, dimension_size, embed_check_categorical_event_shape),
        *(embed_check_integer_casting_closed, embed_check_nonnegative_integer_form, fill_triangular),
        *(fill_triangular_inverse, gen_new_seed, get_logits_and_probs, log_combinations, matrix_diag_transform),
        *(maybe_get_static_value, pad, parent_frame_arguments, pick_vector, prefer_static_broadcast_shape),
        *(prefer_static_rank, prefer_static_shape, prefer_static_value, reduce_weighted_logsumexp, rotate_transpose),
        *(same_dynamic_shape, softplus_inverse, tridiag),
    )
}
