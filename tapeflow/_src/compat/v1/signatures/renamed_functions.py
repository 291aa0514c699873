"""Functions of TensorFlow 1 whose arguments or names are others now."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from tapeflow._src import primitives
from tapeflow._src.namespace import find_public, older_paths, public
from tapeflow._src.ops.arrays.conversion import cast, convert_to_tensor
from tapeflow._src.ops.effects.program_order import effect
from tapeflow._src.types.dtypes import as_dtype

_MATH = (
    "acos", "acosh", "angle", "asin", "asinh", "atan", "atan2", "atanh", "betainc", "bincount", "ceil", "conj",
    "cosh", "cumprod", "cumsum", "digamma", "erf", "erfc", "exp", "expm1", "floor", "floordiv", "igamma",
    "igammac", "imag", "is_finite", "is_inf", "is_nan", "lbeta", "lgamma", "log", "log1p", "log_sigmoid",
    "polygamma", "polyval", "real", "reciprocal", "rint", "round", "rsqrt", "segment_max", "segment_mean",
    "segment_min", "segment_prod", "segment_sum", "sign", "sin", "sinh", "softplus", "sqrt", "square",
    "squared_difference", "tan", "tanh", "truediv", "unsorted_segment_max", "unsorted_segment_min",
    "unsorted_segment_prod", "unsorted_segment_sum", "zeta", "top_k",
)  # fmt: skip
older_paths.update({name: f"math.{name}" for name in _MATH})
_ASSERTIONS = (
    "positive", "negative", "non_negative", "non_positive", "none_equal", "less_equal", "greater_equal", "rank",
    "rank_at_least", "rank_in", "integer", "type", "scalar", "near", "shapes",
)  # fmt: skip
older_paths.update({f"assert_{name}": f"debugging.assert_{name}" for name in _ASSERTIONS})
older_paths.update({f"matrix_{name}": f"linalg.{name}" for name in ("solve", "triangular_solve")})
older_paths.update(
    {
        "matrix_inverse": "linalg.inv",
        "matrix_determinant": "linalg.det",
        "matrix_transpose": "linalg.matrix_transpose",
        "matrix_band_part": "linalg.band_part",
        "cholesky": "linalg.cholesky",
        "cross": "linalg.cross",
        "trace": "linalg.trace",
        "log_determinant": "linalg.logdet",
        "self_adjoint_eig": "linalg.eigh",
        "mod": "math.floormod",
        "floor_mod": "math.floormod",
        "floormod": "math.floormod",
        "invert_permutation": "math.invert_permutation",
        "is_numeric_tensor": "debugging.is_numeric_tensor",
        "random_shuffle": "random.shuffle",
        "random_gamma": "random.gamma",
        "random_poisson": "random.poisson",
        "random_crop": "image.random_crop",
        "multinomial": "random.categorical",
        "sparse_tensor_to_dense": "sparse.to_dense",
        "sparse_tensor_dense_matmul": "sparse.sparse_dense_matmul",
        "sparse_reduce_sum": "sparse.reduce_sum",
        "sparse_add": "sparse.add",
        "sparse_to_indicator": "sparse.to_indicator",
        "nn.log_softmax": "nn.log_softmax",
        "nn.softmax_cross_entropy_with_logits_v2": "nn.softmax_cross_entropy_with_logits",
        "nn.static_rnn": "nn.static_rnn",
        "string_join": "strings.join",
        "as_string": "strings.as_string",
        "confusion_matrix": "math.confusion_matrix",
        "in_top_k": "math.in_top_k",
        "batch_to_space_nd": "batch_to_space",
        "space_to_depth": "nn.space_to_depth",
        "depth_to_space": "nn.depth_to_space",
        "py_func": "numpy_function",
        "global_norm": "linalg.global_norm",
        "lin_space": "linspace",
        "train.global_norm": "linalg.global_norm",
        "accumulate_n": "math.accumulate_n",
        "logical_xor": "math.logical_xor",
        "div_no_nan": "math.divide_no_nan",
        "check_numerics": "debugging.check_numerics",
        "floor_div": "math.floordiv",
        "decode_base64": "io.decode_base64",
        "encode_base64": "io.encode_base64",
        "debugging.is_finite": "math.is_finite",
        "debugging.is_inf": "math.is_inf",
        "debugging.is_nan": "math.is_nan",
        "debugging.is_non_decreasing": "math.is_non_decreasing",
        "debugging.is_strictly_increasing": "math.is_strictly_increasing",
        "assert_same_float_dtype": "debugging.assert_same_float_dtype",
        "assert_proper_iterable": "debugging.assert_proper_iterable",
        "dequantize": "quantization.dequantize",
        "dtypes.as_string": "strings.as_string",
        "linalg.transpose": "linalg.matrix_transpose",
        "initialize_all_tables": "compat.v1.tables_initializer",
        "gfile.FastGFile": "io.gfile.GFile",
        "VERSION": "version.VERSION",
        "GIT_VERSION": "version.GIT_VERSION",
        "COMPILER_VERSION": "version.COMPILER_VERSION",
        "GRAPH_DEF_VERSION": "version.GRAPH_DEF_VERSION",
        "QUANTIZED_DTYPES": "dtypes.QUANTIZED_DTYPES",
        "reverse_v2": "reverse",
        "where_v2": "where",
        "regex_replace": "strings.regex_replace",
        "string_strip": "strings.strip",
        "string_to_hash_bucket_fast": "strings.to_hash_bucket_fast",
        "string_to_hash_bucket_strong": "strings.to_hash_bucket_strong",
        "unsorted_segment_mean": "math.unsorted_segment_mean",
        "unsorted_segment_sqrt_n": "math.unsorted_segment_sqrt_n",
        "tensor_scatter_add": "tensor_scatter_nd_add",
        "tensor_scatter_sub": "tensor_scatter_nd_sub",
        "tensor_scatter_update": "tensor_scatter_nd_update",
        "summary.Summary": "compat.v1.Summary",
        "summary.Event": "compat.v1.Event",
    }
)
_SPARSE = ("fill_empty_rows", "mask", "maximum", "minimum", "reorder", "reset_shape", "reshape", "retain", "slice",
           "softmax", "transpose")  # fmt: skip
older_paths.update({f"sparse_{name}": f"sparse.{name}" for name in _SPARSE})
older_paths.update({f"sets.set_{name}": f"sets.{name}" for name in ("difference", "intersection", "size", "union")})
older_paths.update(
    {f"manip.{name}": name for name in ("reshape", "reverse", "roll", "scatter_nd", "space_to_batch_nd", "tile")}
)
_FAKE = ("args", "args_gradient", "vars", "vars_gradient", "vars_per_channel", "vars_per_channel_gradient")
older_paths.update({f"fake_quant_with_min_max_{n}": f"quantization.fake_quant_with_min_max_{n}" for n in _FAKE})


def _either(new_name: str, new: Any, old_name: str, old: Any) -> Any:
    if new is not None and old is not None:
        raise ValueError(f"Cannot specify both '{old_name}' and '{new_name}'.")
    return old if new is None else new


@public("compat.v1.expand_dims")
def expand_dims(input: Any, axis: Any = None, name: str | None = None, dim: Any = None) -> Any:
    """A dimension of size one more, at `axis` (older: `dim`).

    >>> tf.compat.v1.expand_dims([1., 2.], dim=0)
    [[1., 2.]]
    """
    axis = _either("axis", axis, "dim", dim)
    if axis is None:
        raise ValueError("Must specify an axis argument to tf.expand_dims()")
    return primitives.ExpandDims(input, axis, name=name)


@public("compat.v1.squeeze")
def squeeze(input: Any, axis: Any = None, name: str | None = None, squeeze_dims: Any = None) -> Any:
    """Without the dimensions of size one, or those at `axis` (older: `squeeze_dims`).

    >>> tf.compat.v1.squeeze([[1., 2.]], squeeze_dims=[0])
    [1., 2.]
    """
    return find_public("squeeze")(input, _either("axis", axis, "squeeze_dims", squeeze_dims), name=name)


@public("compat.v1.norm", "compat.v1.linalg.norm")
def norm(
    tensor: Any,
    ord: Any = "euclidean",
    axis: Any = None,
    keepdims: bool | None = None,
    name: str | None = None,
    keep_dims: bool | None = None,
) -> Any:
    """The norm of vectors or matrices.

    >>> tf.compat.v1.norm([3., 4.])
    5.0
    """
    return find_public("norm")(tensor, ord, axis, bool(_either("keepdims", keepdims, "keep_dims", keep_dims)), name)


@public("compat.v1.div")
def div(x: Any, y: Any, name: str | None = None) -> Any:
    """Division as in Python 2: whole numbers give whole numbers.

    >>> tf.compat.v1.div(7, 2)
    3
    """
    x = convert_to_tensor(x)
    return x // y if x.dtype.is_integer else primitives.RealDiv(x, y, name=name)


@public("compat.v1.nn.xw_plus_b")
def xw_plus_b(x: Any, weights: Any, biases: Any, name: str | None = None) -> Any:
    """A layer without an activation: `x @ weights + biases`.

    >>> tf.compat.v1.nn.xw_plus_b([[1., 2.]], [[3.], [4.]], [0.5])
    [[11.5]]
    """
    return find_public("nn.bias_add")(find_public("matmul")(x, weights), biases, name=name or "xw_plus_b")


@public("compat.v1.clip_by_average_norm")
def clip_by_average_norm(t: Any, clip_norm: Any, name: str | None = None) -> Any:
    """The tensor, made shorter if its norm for each element is more than `clip_norm`.

    >>> tf.compat.v1.clip_by_average_norm([3., 4.], 1.25)
    [1.5, 2.]
    """
    t = convert_to_tensor(t)
    count = cast(find_public("size")(t), t.dtype)
    norm = primitives.Sqrt(find_public("reduce_sum")(t * t)) / count
    return find_public("multiply")(t, clip_norm / primitives.Maximum(norm, cast(clip_norm, t.dtype)), name=name)


@public("compat.v1.setdiff1d")
def setdiff1d(x: Any, y: Any, index_dtype: Any = "int32", name: str | None = None) -> Any:
    """The elements of `x` that are not in `y`, and where they stand.

    >>> tf.compat.v1.setdiff1d([1, 2, 3], [2]).out
    [1, 3]
    """
    return find_public("raw_ops.ListDiff")(x=x, y=y, out_idx=as_dtype(index_dtype))


@public("compat.v1.batch_gather")
def batch_gather(params: Any, indices: Any, name: str | None = None) -> Any:
    """From each row of `params` the elements at the same row of `indices`.

    >>> tf.compat.v1.batch_gather([[1, 2], [3, 4]], [[1], [0]])
    [[2], [3]]
    """
    indices = convert_to_tensor(indices)
    return find_public("gather")(params, indices, axis=-1, batch_dims=indices.shape.rank - 1, name=name)


@public("compat.v1.sparse_to_dense")
def sparse_to_dense(
    sparse_indices: Any,
    output_shape: Any,
    sparse_values: Any,
    default_value: Any = 0,
    validate_indices: bool = True,
    name: str | None = None,
) -> Any:
    """A tensor with the values at the indices, and `default_value` elsewhere.

    >>> tf.compat.v1.sparse_to_dense([0, 2], [3], 7)
    [7, 0, 7]
    """
    indices = convert_to_tensor(sparse_indices)
    if indices.shape.rank != 2:
        indices = primitives.Reshape(indices, [-1, 1])
    values = convert_to_tensor(sparse_values)
    count = find_public("shape")(indices)[:1]
    filled = find_public("fill")(output_shape, cast(default_value, values.dtype))
    return find_public("tensor_scatter_nd_update")(filled, indices, find_public("broadcast_to")(values, count))


def _cast_to(name: str, dtype: str) -> None:
    def to(x: Any, name: str = name) -> Any:
        return cast(x, as_dtype(dtype))

    to.__name__ = to.__qualname__ = name
    to.__doc__ = f"""The elements as {dtype}.

    >>> tf.compat.v1.{name}([1, 2]).dtype.name
    '{dtype}'
    """
    public(f"compat.v1.{name}")(to)


for _name, _dtype in (
    ("to_float", "float32"), ("to_double", "float64"), ("to_int32", "int32"), ("to_int64", "int64"),
    ("to_bfloat16", "bfloat16"), ("to_complex64", "complex64"), ("to_complex128", "complex128"),
):  # fmt: skip
    _cast_to(_name, _dtype)


@public("compat.v1.where")
def where(condition: Any, x: Any = None, y: Any = None, name: str | None = None) -> Any:
    """Elements of `x` where the condition holds, else of `y`; a vector of conditions chooses rows.

    >>> tf.compat.v1.where([True, False], [[1., 2.], [3., 4.]], [[0., 0.], [0., 0.]])
    [[1., 2.], [0., 0.]]
    """
    if x is None or y is None:
        return find_public("where")(condition, x, y, name=name)
    condition, x = convert_to_tensor(condition), convert_to_tensor(x)
    if condition.shape.rank == 1 and x.shape.rank is not None and x.shape.rank > 1:
        condition = primitives.Reshape(condition, [-1] + [1] * (x.shape.rank - 1))
    return primitives.SelectV2(condition, x, y, name=name or "Select")


@public("compat.v1.Print")
def Print(  # noqa: N802
    input_: Any,
    data: Any,
    message: str | None = None,
    first_n: int | None = None,
    summarize: int | None = None,
    name: str | None = None,
) -> Any:
    """The tensor itself; whenever it is computed, `message` and `data` are written to the standard error stream.

    >>> tf.compat.v1.Print(tf.constant(3.), [tf.constant(1)], "data: ")
    3.0
    """
    count = [0]

    def write(*values: Any) -> None:
        count[0] += 1
        if first_n is None or first_n < 0 or count[0] <= first_n:
            limit = 3 if summarize is None else summarize
            parts = [_shown(np.asarray(value), limit) for value in values]
            print((message or "") + "".join(parts), file=sys.stderr)

    operation = effect(write)(*[convert_to_tensor(x) for x in data])
    with find_public("control_dependencies")([] if operation is None else [operation]):
        return find_public("identity")(input_, name=name)


def _shown(values: Any, limit: int) -> str:
    flat = values.reshape(-1)
    shown = flat if limit < 0 else flat[:limit]
    return "[" + " ".join(str(v) for v in shown) + ("..." if len(shown) < len(flat) else "") + "]"
