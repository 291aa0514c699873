"""Functions of TensorFlow 1 that do what today's do, with other names or another order of arguments."""

from __future__ import annotations

import inspect
import re
from typing import Any

from tapeflow._src.namespace import find_public, public
from tapeflow._src.types.dtypes import float32, int32

_REQUIRED = inspect.Parameter.empty


def _older(
    paths: tuple[str, ...],
    target: str,
    parameters: dict[str, Any],
    example: str,
    renamed: dict[str, str] | None = None,
    ignored: tuple[str, ...] = (),
    finish: Any = None,
) -> None:
    """Defines `compat.v1.*` at the given paths: today's function under older argument names, in the older order.

    `renamed` tells today's name of an argument; two that mean the same cannot both be given. `finish` changes the
    arguments of the call in place, knowing all of them.
    """
    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    signature = inspect.Signature([inspect.Parameter(n, kind, default=d) for n, d in parameters.items()])
    name = paths[0].rsplit(".", 1)[-1]

    def call(*args: Any, **kwargs: Any) -> Any:
        try:
            bound = signature.bind(*args, **kwargs)
        except TypeError as error:
            raise TypeError(f"{name}() {error}") from None
        bound.apply_defaults()
        given = bound.arguments
        for old, new in (renamed or {}).items():
            value = given.pop(old)
            if value is None:
                continue
            if given.get(new) is not None:
                raise ValueError(f"Cannot specify both '{old}' and '{new}'.")
            given[new] = value
        for argument in ignored:
            given.pop(argument)
        if finish:
            finish(given)
        return find_public(target)(**given)

    call.__name__ = call.__qualname__ = name
    call.__signature__ = signature  # type: ignore[attr-defined]
    shown, value = example.split(" => ")
    call.__doc__ = f"""`tf.{target}` with the arguments of TensorFlow 1.

    >>> {shown}
    {value}
    """
    public(*(f"compat.v1.{path}" for path in paths))(call)


def _names(text: str, **defaults: Any) -> dict[str, Any]:
    """The parameters in order, with their defaults: `name=` is None if it is not given."""
    parameters = {}
    for word in text.split():
        name = word.rstrip("=")
        parameters[name] = defaults.get(name, None if word.endswith("=") else _REQUIRED)
    return parameters


# ---- assertions: `data` is what TensorFlow prints beside them

_OPTIONS: dict[str, Any] = {"data": None, "summarize": None, "message": None, "name": None}
for _name, _arguments in (
    ("equal", "1, 1"), ("none_equal", "1, 2"), ("greater", "2, 1"), ("greater_equal", "1, 1"), ("less", "1, 2"),
    ("less_equal", "1, 1"),
):  # fmt: skip
    _older(
        (f"assert_{_name}", f"debugging.assert_{_name}"), f"debugging.assert_{_name}",
        {"x": _REQUIRED, "y": _REQUIRED, **_OPTIONS},
        f"tf.compat.v1.assert_{_name}({_arguments}, message='told') => None", ignored=("data",),
    )  # fmt: skip
for _name, _arguments in (("positive", "1"), ("negative", "-1"), ("non_negative", "0"), ("non_positive", "0")):
    _older(
        (f"assert_{_name}", f"debugging.assert_{_name}"), f"debugging.assert_{_name}", {"x": _REQUIRED, **_OPTIONS},
        f"tf.compat.v1.assert_{_name}({_arguments}, data=None) => None", ignored=("data",),
    )  # fmt: skip
for _name, _argument, _rank in (("rank", "rank", "1"), ("rank_at_least", "rank", "1"), ("rank_in", "ranks", "(1, 2)")):
    _older(
        (f"assert_{_name}", f"debugging.assert_{_name}"), f"debugging.assert_{_name}",
        {"x": _REQUIRED, _argument: _REQUIRED, **_OPTIONS},
        f"tf.compat.v1.assert_{_name}([1, 2], {_rank}) => None", ignored=("data", "summarize"),
    )  # fmt: skip
_older(
    ("assert_near", "debugging.assert_near"), "debugging.assert_near",
    {"x": _REQUIRED, "y": _REQUIRED, "rtol": None, "atol": None, **_OPTIONS},
    "tf.compat.v1.assert_near(1., 1.) => None", ignored=("data",),
)  # fmt: skip
_older(
    ("debugging.assert_all_finite", "verify_tensor_all_finite"), "debugging.assert_all_finite",
    _names("t= msg= name= x= message="),
    "tf.compat.v1.debugging.assert_all_finite([1.], 'not finite') => [1.]", {"t": "x", "msg": "message"},
)  # fmt: skip

# ---- arrays

_older(
    ("reverse_sequence",), "reverse_sequence",
    _names("input seq_lengths seq_axis= batch_axis= name= seq_dim= batch_dim="),
    "tf.compat.v1.reverse_sequence([[1, 2, 3]], [2], seq_dim=1) => [[2, 1, 3]]",
    {"seq_dim": "seq_axis", "batch_dim": "batch_axis"},
)  # fmt: skip
for _name, _value in (("zeros", "[0, 0]"), ("ones", "[1, 1]")):
    _older(
        (f"{_name}_like",), f"{_name}_like", _names("tensor dtype= name= optimize", optimize=True),
        f"tf.compat.v1.{_name}_like(tensor=[3, 4]) => {_value}", {"tensor": "input"}, ("optimize",),
    )  # fmt: skip
for _name, _value in (("shape", "[2]"), ("size", "2")):
    _older(
        (_name,), _name, _names("input name= out_type", out_type=int32),
        f"tf.compat.v1.{_name}([3, 4], 'n') => {_value}",
    )  # fmt: skip
_older(
    ("pad",), "pad", _names("tensor paddings mode name= constant_values", mode="CONSTANT", constant_values=0),
    "tf.compat.v1.pad([1], [[0, 1]], 'CONSTANT', 'n', 7) => [1, 7]",
)  # fmt: skip
_older(
    ("transpose",), "transpose", _names("a perm= name conjugate", name="transpose", conjugate=False),
    "tf.compat.v1.transpose([[1, 2]], [1, 0], 'n') => [[1], [2]]",
)  # fmt: skip
_older(
    ("boolean_mask",), "boolean_mask", _names("tensor mask name axis=", name="boolean_mask"),
    "tf.compat.v1.boolean_mask([1, 2], [True, False], 'n') => [1]",
)  # fmt: skip
_older(
    ("gather",), "gather",
    _names("params indices validate_indices= name= axis= batch_dims", batch_dims=0),
    "tf.compat.v1.gather([5, 6], [1], None, 'n') => [6]",
)  # fmt: skip
_older(
    ("gather_nd", "manip.gather_nd"), "gather_nd",
    _names("params indices name= batch_dims bad_indices_policy", batch_dims=0, bad_indices_policy=""),
    "tf.compat.v1.gather_nd([5, 6], [[1]], 'n') => [6]", ignored=("bad_indices_policy",),
)  # fmt: skip
_older(
    ("tuple",), "tuple", _names("tensors name= control_inputs="),
    "tf.compat.v1.tuple([1, 2], 'n') => [1, 2]",
)  # fmt: skip
_older(
    ("constant",), "constant",
    _names("value dtype= shape= name verify_shape", name="Const", verify_shape=False),
    "tf.compat.v1.constant(1, verify_shape=True) => 1", ignored=("verify_shape",),
)  # fmt: skip
_older(
    ("convert_to_tensor",), "convert_to_tensor",
    _names("value dtype= name= preferred_dtype= dtype_hint="),
    "tf.compat.v1.convert_to_tensor(1, preferred_dtype=tf.float32) => 1.0", {"preferred_dtype": "dtype_hint"},
)  # fmt: skip
for _name in ("space_to_depth", "depth_to_space"):
    _older(
        (_name, f"nn.{_name}"), f"nn.{_name}", _names("input block_size name= data_format", data_format="NHWC"),
        f"tf.compat.v1.{_name}(tf.zeros([1, 2, 2, 4]), 2, 'n').shape.rank => 4",
    )  # fmt: skip


def _square_block(given: dict[str, Any]) -> None:
    size = given.pop("block_size")
    if given["block_shape"] is None:
        given["block_shape"] = [size, size]


_older(
    ("space_to_batch", "nn.space_to_batch"), "space_to_batch",
    _names("input paddings block_size= name= block_shape="),
    "tf.compat.v1.space_to_batch([[[[1]], [[2]]]], [[0, 0], [0, 1]], 2).shape => TensorShape([4, 1, 1, 1])",
    finish=_square_block,
)  # fmt: skip
_older(
    ("batch_to_space",), "batch_to_space",
    _names("input crops block_size name= block_shape="),
    "tf.compat.v1.batch_to_space(tf.zeros([4, 1, 1, 1]), [[0, 0], [0, 0]], 2).shape => TensorShape([1, 2, 2, 1])",
    finish=_square_block,
)  # fmt: skip

# ---- counting

_older(
    ("math.bincount", "bincount"), "math.bincount",
    _names("arr weights= minlength= maxlength= dtype", dtype=int32),
    "tf.compat.v1.bincount([0, 1, 1]) => [1, 2]",
)  # fmt: skip
_older(
    ("math.confusion_matrix", "confusion_matrix"), "math.confusion_matrix",
    _names("labels predictions num_classes= dtype name= weights=", dtype=int32),
    "tf.compat.v1.confusion_matrix([0, 1], [1, 1], 2, tf.float32) => [[0., 1.], [0., 1.]]",
)  # fmt: skip
_older(
    ("math.in_top_k", "nn.in_top_k"), "math.in_top_k", _names("predictions targets k name="),
    "tf.compat.v1.nn.in_top_k([[0.1, 0.9]], [1], 1) => [True]",
)  # fmt: skip

# ---- sparse tensors

for _name, _value in (("sum", "[[3.]]"), ("mean", "[[3.]]"), ("sqrt_n", "[[3.]]")):
    _older(
        (f"sparse.segment_{_name}", f"sparse_segment_{_name}"), f"sparse.segment_{_name}",
        _names("data indices segment_ids name= num_segments= sparse_gradient", sparse_gradient=False),
        f"tf.compat.v1.sparse_segment_{_name}([[3.]], [0], [0], 'n') => {_value}",
    )  # fmt: skip
for _name in ("max", "sum"):
    _older(
        (f"sparse.reduce_{_name}", f"sparse_reduce_{_name}"), f"sparse.reduce_{_name}",
        _names("sp_input axis= keepdims= reduction_axes= keep_dims="),
        f"tf.compat.v1.sparse_reduce_{_name}(tf.sparse.from_dense([[1, 2]]), reduction_axes=0) => [1, 2]",
        {"reduction_axes": "axis", "keep_dims": "keepdims"},
    )  # fmt: skip


def _no_threshold(given: dict[str, Any]) -> None:
    if given["threshold"] is None:
        given["threshold"] = 0


_older(
    ("sparse.add", "sparse_add"), "sparse.add", _names("a b threshold= thresh="),
    "tf.compat.v1.sparse_add([1], tf.sparse.from_dense([2]), thresh=0) => [3]",
    {"thresh": "threshold"}, finish=_no_threshold,
)  # fmt: skip


def _expanding(given: dict[str, Any]) -> None:
    given["expand_nonconcat_dims"] = bool(given.pop("expand_nonconcat_dim") or given["expand_nonconcat_dims"])


_older(
    ("sparse.concat", "sparse_concat"), "sparse.concat",
    _names("axis sp_inputs name= expand_nonconcat_dim concat_dim= expand_nonconcat_dims=", expand_nonconcat_dim=False),
    "tf.sparse.to_dense(tf.compat.v1.sparse_concat(0, [tf.sparse.from_dense([2])] * 2, 'n')) => [2, 2]",
    {"concat_dim": "axis"}, finish=_expanding,
)  # fmt: skip
_older(
    ("sparse.split", "sparse_split"), "sparse.split",
    _names("keyword_required= sp_input= num_split= axis= name= split_dim="),
    "len(tf.compat.v1.sparse_split(sp_input=tf.sparse.from_dense([1, 2]), num_split=2, axis=0)) => 2",
    {"split_dim": "axis"}, ("keyword_required",),
)  # fmt: skip

# ---- text

_older(
    ("strings.length",), "strings.length", _names("input name= unit", unit="BYTE"),
    "tf.compat.v1.strings.length('abc', 'n') => 3",
)  # fmt: skip
_older(
    ("strings.substr", "substr"), "strings.substr", _names("input pos len name= unit", unit="BYTE"),
    "tf.compat.v1.substr('abc', 1, 2, 'n').numpy() => b'bc'",
)  # fmt: skip
_older(
    ("strings.to_hash_bucket", "string_to_hash_bucket"), "strings.to_hash_bucket",
    _names("string_tensor= num_buckets= name= input="),
    "tf.compat.v1.string_to_hash_bucket('a', 1) => 0", {"string_tensor": "input"},
)  # fmt: skip
_older(
    ("strings.to_number", "string_to_number"), "strings.to_number",
    _names("string_tensor= out_type name= input=", out_type=float32),
    "tf.compat.v1.string_to_number('1.5') => 1.5", {"string_tensor": "input"},
)  # fmt: skip


def _keep(given: dict[str, Any]) -> None:
    given["keepdims"] = bool(given["keepdims"])


_older(
    ("strings.reduce_join", "reduce_join"), "strings.reduce_join",
    _names("inputs axis= keep_dims= separator name= reduction_indices= keepdims=", separator=""),
    "tf.compat.v1.reduce_join([['a', 'b']], reduction_indices=1).numpy().tolist() => [b'ab']",
    {"keep_dims": "keepdims", "reduction_indices": "axis"}, finish=_keep,
)  # fmt: skip


_older(
    ("decode_raw", "io.decode_raw"), "io.decode_raw",
    _names("input_bytes= out_type= little_endian= name= bytes=", little_endian=True),
    "tf.compat.v1.decode_raw(b'ab', tf.uint8) => [97, 98]", {"bytes": "input_bytes"},
)  # fmt: skip


@public("compat.v1.string_split")
def string_split(
    source: Any, sep: str | None = None, skip_empty: bool = True, delimiter: str = " ",
    result_type: str = "SparseTensor", name: str | None = None,
) -> Any:  # fmt: skip
    """The words of a vector of texts; each character of `delimiter` (newer: the text `sep`) ends a word.

    >>> tf.compat.v1.string_split(["a b", "c"]).values.numpy().tolist()
    [b'a', b'b', b'c']
    """
    texts = find_public("convert_to_tensor")(source)
    ends = [delimiter] if sep is None else [sep]
    if sep is None and len(delimiter) > 1:
        pattern = "[" + re.escape(delimiter) + "]"
        texts, ends = find_public("strings.regex_replace")(texts, pattern, delimiter[0]), [delimiter[0]]
    words = find_public("strings.split")(texts, ends[0])
    if skip_empty:
        words = find_public("ragged.boolean_mask")(words, find_public("not_equal")(words, ""))
    return words.to_sparse() if result_type == "SparseTensor" else words


@public("compat.v1.strings.split")
def split(
    input: Any = None,
    sep: str | None = None,
    maxsplit: int = -1,
    result_type: str = "SparseTensor",
    source: Any = None,
    name: str | None = None,
) -> Any:
    """The words of texts, as a `tf.SparseTensor` or, with `result_type="RaggedTensor"`, a ragged one.

    >>> tf.compat.v1.strings.split(["a b", "c"]).values.numpy().tolist()
    [b'a', b'b', b'c']
    """
    if (input is None) == (source is None):
        raise ValueError("strings.split: exactly one of 'input' and 'source' must be given")
    if result_type not in ("SparseTensor", "RaggedTensor"):
        raise ValueError("result_type must be 'RaggedTensor' or 'SparseTensor'.")
    texts = find_public("convert_to_tensor")(source if input is None else input)
    if texts.shape.rank == 0:
        texts = find_public("reshape")(texts, [1])
    words = find_public("strings.split")(texts, sep, maxsplit)
    return words.to_sparse() if result_type == "SparseTensor" else words


@public("compat.v1.assert_scalar", "compat.v1.debugging.assert_scalar")
def assert_scalar(tensor: Any, name: str | None = None, message: str | None = None) -> Any:
    """`tensor` as a tensor; a ValueError unless it is a scalar.

    >>> tf.compat.v1.assert_scalar(5)
    5
    """
    tensor = find_public("convert_to_tensor")(tensor)
    find_public("debugging.assert_scalar")(tensor, message)
    return tensor
