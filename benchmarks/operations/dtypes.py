"""The same operations for float64, complex64, int32, int64 and bool; casts; rounding and remainders."""


def same(arguments, function):
    return (arguments, lambda tf, *a: function(*a), lambda torch, *a: function(*a), lambda np, *a: function(*a))


def named(arguments, tf_name, torch_name=None, numpy_name=None):
    def of(module, name):
        for part in name.split("."):
            module = getattr(module, part)
        return module

    return (
        arguments,
        lambda tf, *a: of(tf, tf_name)(*a),
        lambda torch, *a: of(torch, torch_name or tf_name.split(".")[-1])(*a),
        (lambda np, *a: of(np, numpy_name)(*a)) if numpy_name else None,
    )


FUNCTIONS = ("sqrt", "sin", "cos", "tan", "log", "log1p", "expm1", "atan", "sinh", "asinh", "erf", "rsqrt")
ROWS = {
    **{
        f"{name} float64": named(
            ["d_p"], f"math.{name}", name, name if name not in ("erf", "rsqrt", "atan", "asinh") else None
        )
        for name in FUNCTIONS
    },
    **{
        f"complex {name}": named(["c_v"], f"math.{name}", name, name)
        for name in ("sqrt", "log", "sin", "cos", "tanh", "square")
    },
    "erfc float64": named(["d_p"], "math.erfc", "erfc"),
    "sigmoid float64": named(["d_v"], "sigmoid"),
    "softplus float64": (["d_v"], lambda tf, a: tf.nn.softplus(a), lambda torch, a: torch.nn.functional.softplus(a)),
    "gelu float64": (["d_v"], lambda tf, a: tf.nn.gelu(a), lambda torch, a: torch.nn.functional.gelu(a)),
    "asin": named(["u"], "asin", "asin", "arcsin"),
    "acos": named(["u"], "acos", "acos", "arccos"),
    "atanh": named(["u"], "atanh", "atanh", "arctanh"),
    "acosh": (
        ["p"],
        lambda tf, a: tf.acosh(a + 1),
        lambda torch, a: torch.acosh(a + 1),
        lambda np, a: np.arccosh(a + 1),
    ),
    "cosh": named(["v"], "cosh", "cosh", "cosh"),
    "log": named(["p"], "math.log", "log", "log"),
    "tanh": named(["v"], "tanh", "tanh", "tanh"),
    "reciprocal": named(["p"], "math.reciprocal", "reciprocal", "reciprocal"),
    "atan2": named(["v", "w"], "math.atan2", "atan2", "atan2"),
    "hypot": (
        ["v", "w"],
        lambda tf, a, b: tf.sqrt(a * a + b * b),
        lambda torch, a, b: torch.hypot(a, b),
        lambda np, a, b: np.hypot(a, b),
    ),
    "fmod": (
        ["v", "p"],
        lambda tf, a, b: tf.truncatemod(a, b),
        lambda torch, a, b: torch.fmod(a, b),
        lambda np, a, b: np.fmod(a, b),
    ),
    "floormod": (["v", "p"], lambda tf, a, b: a % b, lambda torch, a, b: a % b, lambda np, a, b: a % b),
    "round": named(["v"], "round", "round", "round"),
    "igamma": named(["p", "u"], "math.igamma", "igamma"),
    "bessel_i0e": named(["p"], "math.bessel_i0e", "special.i0e"),
    "bessel_i1e": named(["p"], "math.bessel_i1e", "special.i1e"),
    "xlogy": named(["u", "p"], "math.xlogy", "xlogy"),
    "zeta": (["p", "u"], lambda tf, a, b: tf.math.zeta(a + 2, b), lambda torch, a, b: torch.special.zeta(a + 2, b)),
    "polygamma": (["p"], lambda tf, a: tf.math.polygamma(1.0, a), lambda torch, a: torch.polygamma(1, a)),
    "multiply float64": same(["d_v", "d_p"], lambda a, b: a * b),
    "divide float64": same(["d_v", "d_p"], lambda a, b: a / b),
    "pow float64": same(["d_p", "d_v"], lambda a, b: a**b),
    "sum float64": (["d_x"], lambda tf, a: tf.reduce_sum(a), lambda torch, a: a.sum(), lambda np, a: np.sum(a)),
    "sum axis 0 float64": (
        ["d_x"],
        lambda tf, a: tf.reduce_sum(a, 0),
        lambda torch, a: a.sum(0),
        lambda np, a: np.sum(a, 0),
    ),
    "max axis 1 float64": (
        ["d_x"],
        lambda tf, a: tf.reduce_max(a, 1),
        lambda torch, a: a.amax(1),
        lambda np, a: np.max(a, 1),
    ),
    "cumsum float64": (["d_v"], lambda tf, a: tf.cumsum(a), lambda torch, a: a.cumsum(0), lambda np, a: np.cumsum(a)),
    "sort float64": (["d_v"], lambda tf, a: tf.sort(a), lambda torch, a: a.sort()[0], lambda np, a: np.sort(a)),
    "softmax float64": (["d_x"], lambda tf, a: tf.nn.softmax(a), lambda torch, a: a.softmax(1)),
    "matmul float64": (
        ["d_x", "d_x"],
        lambda tf, a, b: tf.matmul(a, b, transpose_b=True),
        lambda torch, a, b: a @ b.T,
        lambda np, a, b: a @ b.T,
    ),
    "transpose float64": (
        ["d_x"],
        lambda tf, a: tf.transpose(a),
        lambda torch, a: a.T.contiguous(),
        lambda np, a: np.array(a.T, order="C"),
    ),
    "variance float64": (
        ["d_x"],
        lambda tf, a: tf.math.reduce_variance(a, 1),
        lambda torch, a: a.var(1, correction=0),
        lambda np, a: np.var(a, 1),
    ),
    "complex add": same(["c_v", "c_w"], lambda a, b: a + b),
    "complex sum": (["c_x"], lambda tf, a: tf.reduce_sum(a), lambda torch, a: a.sum(), lambda np, a: np.sum(a)),
    "complex sum axis 0": (
        ["c_x"],
        lambda tf, a: tf.reduce_sum(a, 0),
        lambda torch, a: a.sum(0),
        lambda np, a: np.sum(a, 0),
    ),
    "complex conj": (
        ["c_v"],
        lambda tf, a: tf.math.conj(a),
        lambda torch, a: torch.conj_physical(a),
        lambda np, a: np.conj(a),
    ),
    "complex real": (
        ["c_v"],
        lambda tf, a: tf.math.real(a),
        lambda torch, a: a.real.contiguous(),
        lambda np, a: np.copy(a.real),
    ),
    "complex angle": named(["c_v"], "math.angle", "angle", "angle"),
    "complex of parts": (["v", "w"], lambda tf, a, b: tf.complex(a, b), lambda torch, a, b: torch.complex(a, b)),
    "complex matmul": (
        ["c_x", "c_x"],
        lambda tf, a, b: tf.matmul(a, b, transpose_b=True),
        lambda torch, a, b: a @ b.T,
        lambda np, a, b: a @ b.T,
    ),
    "complex transpose": (
        ["c_x"],
        lambda tf, a: tf.transpose(a),
        lambda torch, a: a.T.contiguous(),
        lambda np, a: np.array(a.T, order="C"),
    ),
    "fft rows": (
        ["c_x"],
        lambda tf, a: tf.signal.fft(a),
        lambda torch, a: torch.fft.fft(a),
        lambda np, a: np.fft.fft(a),
    ),
    "fft2d": (
        ["c_x"],
        lambda tf, a: tf.signal.fft2d(a),
        lambda torch, a: torch.fft.fft2(a),
        lambda np, a: np.fft.fft2(a),
    ),
    "fft prime": (
        ["c_prime"],
        lambda tf, a: tf.signal.fft(a),
        lambda torch, a: torch.fft.fft(a),
        lambda np, a: np.fft.fft(a),
    ),
    "fft 2 3 5": (
        ["c_smooth"],
        lambda tf, a: tf.signal.fft(a),
        lambda torch, a: torch.fft.fft(a),
        lambda np, a: np.fft.fft(a),
    ),
    "fft lines of 50": (
        ["c_lines"],
        lambda tf, a: tf.signal.fft(a),
        lambda torch, a: torch.fft.fft(a),
        lambda np, a: np.fft.fft(a),
    ),
    "ifft": (
        ["c_x"],
        lambda tf, a: tf.signal.ifft(a),
        lambda torch, a: torch.fft.ifft(a),
        lambda np, a: np.fft.ifft(a),
    ),
    "rfft plain": (
        ["x"],
        lambda tf, a: tf.signal.rfft(a),
        lambda torch, a: torch.fft.rfft(a),
        lambda np, a: np.fft.rfft(a),
    ),
    "irfft": (
        ["c_x"],
        lambda tf, a: tf.signal.irfft(a),
        lambda torch, a: torch.fft.irfft(a),
        lambda np, a: np.fft.irfft(a),
    ),
    **{
        f"{name} {kind}": same([first, second], function)
        for kind, first, second in (("int32", "j_vector", "j_other"), ("int64", "i_vector", "i_other"))
        for name, function in (
            ("add", lambda a, b: a + b),
            ("multiply", lambda a, b: a * b),
            ("floordiv", lambda a, b: a // b),
            ("mod", lambda a, b: a % b),
            ("less", lambda a, b: a < b),
        )
    },
    **{
        f"{name} {kind}": row
        for kind, x, v in (("int32", "j_x", "j_vector"), ("int64", "i_x", "i_vector"))
        for name, row in {
            "maximum": named([v, v], "maximum", "maximum", "maximum"),
            "sum": (([x], lambda tf, a: tf.reduce_sum(a), lambda torch, a: a.sum(), lambda np, a: np.sum(a))),
            "sum axis 0": (
                [x],
                lambda tf, a: tf.reduce_sum(a, 0),
                lambda torch, a: a.sum(0),
                lambda np, a: np.sum(a, 0),
            ),
            "sum axis 1": (
                [x],
                lambda tf, a: tf.reduce_sum(a, 1),
                lambda torch, a: a.sum(1),
                lambda np, a: np.sum(a, 1),
            ),
            "mean": ([x], lambda tf, a: tf.reduce_mean(a, 1), None, lambda np, a: np.mean(a, 1, dtype=np.int64)),
            "max": ([x], lambda tf, a: tf.reduce_max(a), lambda torch, a: a.max(), lambda np, a: np.max(a)),
            "max axis 1": (
                [x],
                lambda tf, a: tf.reduce_max(a, 1),
                lambda torch, a: a.amax(1),
                lambda np, a: np.max(a, 1),
            ),
            "argmax 1": (
                [x],
                lambda tf, a: tf.argmax(a, 1),
                lambda torch, a: a.argmax(1),
                lambda np, a: np.argmax(a, 1),
            ),
            "cumsum": ([v], lambda tf, a: tf.cumsum(a), lambda torch, a: a.cumsum(0), lambda np, a: np.cumsum(a)),
            "sort": ([v], lambda tf, a: tf.sort(a), lambda torch, a: a.sort()[0], lambda np, a: np.sort(a)),
            "argsort": ([v], lambda tf, a: tf.argsort(a), lambda torch, a: a.argsort(), lambda np, a: np.argsort(a)),
            "abs": named([v], "abs", "abs", "abs"),
            "where": (
                [v, v],
                lambda tf, a, b: tf.where(a > 50, a, b),
                lambda torch, a, b: torch.where(a > 50, a, b),
                lambda np, a, b: np.where(a > 50, a, b),
            ),
            "cast float32": (
                [v],
                lambda tf, a: tf.cast(a, tf.float32),
                lambda torch, a: a.float(),
                lambda np, a: a.astype(np.float32),
            ),
            "transpose": (
                [x],
                lambda tf, a: tf.transpose(a),
                lambda torch, a: a.T.contiguous(),
                lambda np, a: np.array(a.T, order="C"),
            ),
        }.items()
    },
    "sort wide int32": (["j_wide"], lambda tf, a: tf.sort(a), lambda torch, a: a.sort()[0], lambda np, a: np.sort(a)),
    "unique int32": (
        ["j_wide"],
        lambda tf, a: tf.unique(a)[0],
        lambda torch, a: torch.unique(a),
        lambda np, a: np.unique(a),
    ),
    "matmul int32": (
        ["j_x", "j_x"],
        lambda tf, a, b: tf.matmul(a[:100], b, transpose_b=True),
        lambda torch, a, b: a[:100] @ b.T,
        lambda np, a, b: a[:100] @ b.T,
    ),
    "bitwise and": (
        ["j_vector", "j_other"],
        lambda tf, a, b: tf.bitwise.bitwise_and(a, b),
        lambda torch, a, b: a & b,
        lambda np, a, b: a & b,
    ),
    "shift left": (
        ["j_vector", "j_other"],
        lambda tf, a, b: tf.bitwise.left_shift(a, b),
        lambda torch, a, b: a << b,
        lambda np, a, b: a << b,
    ),
    "logical_not": named(["b_mask"], "logical_not", "logical_not", "logical_not"),
    "is_nan": named(["v"], "math.is_nan", "isnan", "isnan"),
    "cast bool": (
        ["b_mask"],
        lambda tf, a: tf.cast(a, tf.float32),
        lambda torch, a: a.float(),
        lambda np, a: a.astype(np.float32),
    ),
    "cast to bool": (["v"], lambda tf, a: tf.cast(a, tf.bool), lambda torch, a: a.bool(), lambda np, a: a.astype(bool)),
    "cast float16": (
        ["v"],
        lambda tf, a: tf.cast(a, tf.float16),
        lambda torch, a: a.half(),
        lambda np, a: a.astype(np.float16),
    ),
    "cast bfloat16": (["v"], lambda tf, a: tf.cast(a, tf.bfloat16), lambda torch, a: a.bfloat16()),
    "cast from float64": (
        ["d_v"],
        lambda tf, a: tf.cast(a, tf.float32),
        lambda torch, a: a.float(),
        lambda np, a: a.astype(np.float32),
    ),
    "cast uint8": (
        ["i_vector"],
        lambda tf, a: tf.cast(a, tf.uint8),
        lambda torch, a: a.byte(),
        lambda np, a: a.astype(np.uint8),
    ),
    "cast int64 of float64": (
        ["d_v"],
        lambda tf, a: tf.cast(a, tf.int64),
        lambda torch, a: a.long(),
        lambda np, a: a.astype(np.int64),
    ),
}
