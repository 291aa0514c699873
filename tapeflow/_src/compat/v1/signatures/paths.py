"""Names of TensorFlow 1 whose functions have another public path today, with the same signature."""

from __future__ import annotations

from tapeflow._src.namespace import path_by_v1_path

_MATH = (
    "acos", "acosh", "angle", "asin", "asinh", "atan", "atan2", "atanh", "betainc", "bincount", "ceil", "conj",
    "cosh", "cumprod", "cumsum", "digamma", "erf", "erfc", "exp", "expm1", "floor", "floordiv", "igamma",
    "igammac", "imag", "is_finite", "is_inf", "is_nan", "lbeta", "lgamma", "log", "log1p", "log_sigmoid",
    "polygamma", "polyval", "real", "reciprocal", "rint", "round", "rsqrt", "segment_max", "segment_mean",
    "segment_min", "segment_prod", "segment_sum", "sign", "sin", "sinh", "softplus", "sqrt", "square",
    "squared_difference", "tan", "tanh", "truediv", "unsorted_segment_max", "unsorted_segment_min",
    "unsorted_segment_prod", "unsorted_segment_sum", "zeta", "top_k",
)  # fmt: skip
path_by_v1_path.update({name: f"math.{name}" for name in _MATH})
_ASSERTIONS = (
    "positive", "negative", "non_negative", "non_positive", "none_equal", "less_equal", "greater_equal", "rank",
    "rank_at_least", "rank_in", "integer", "type", "scalar", "near", "shapes",
)  # fmt: skip
path_by_v1_path.update({f"assert_{name}": f"debugging.assert_{name}" for name in _ASSERTIONS})
path_by_v1_path.update({f"matrix_{name}": f"linalg.{name}" for name in ("solve", "triangular_solve")})
path_by_v1_path.update(
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
        "summary.SessionLog": "compat.v1.SessionLog",
    }
)
_SPARSE = ("fill_empty_rows", "mask", "maximum", "minimum", "reorder", "reset_shape", "reshape", "retain", "slice",
           "softmax", "transpose")  # fmt: skip
path_by_v1_path.update({f"sparse_{name}": f"sparse.{name}" for name in _SPARSE})
path_by_v1_path.update({f"sets.set_{name}": f"sets.{name}" for name in ("difference", "intersection", "size", "union")})
path_by_v1_path.update(
    {f"manip.{name}": name for name in ("reshape", "reverse", "roll", "scatter_nd", "space_to_batch_nd", "tile")}
)
_FAKE = ("args", "args_gradient", "vars", "vars_gradient", "vars_per_channel", "vars_per_channel_gradient")
path_by_v1_path.update({f"fake_quant_with_min_max_{n}": f"quantization.fake_quant_with_min_max_{n}" for n in _FAKE})
