"""What names of parameters and words of docs say about types, for the stubs: TensorFlow uses one name for one thing."""

from __future__ import annotations

import re
from typing import Any

# The kinds of arguments that an entry of the core declares.
ARGUMENT_KINDS = {
    "tensor": "TensorLike",
    "tensors": "TensorLike | Sequence[TensorLike]",
    "flag": "BoolLike",
    "integer": "IntLike",
    "real": "FloatLike",
    "dtype": "DTypeLike | None",
    "axes": "AxisLike | None",
    "ints": "ShapeLike",
    "text": "str",
}

_NAMES_BY_TYPE = {
    "TensorLike": """
        x y a b input inputs tensor value image images labels logits data weights input_tensor params indices updates
        values predictions segment_ids t real imag matrix rhs boxes scores true_classes sequence_length
        contents serialized condition crops out_backprop grad start stop limit delta mean stddev minval maxval alpha
        beta lower upper x1 x2 signal signals magnitudes frames mask paddings filters kernel bias variance
    """,
    "AxisLike": "axis axes perm",
    "ShapeLike": "shape dims output_shape size block_shape noise_shape batch_shape",
    "DTypeLike": """
        dtype out_type output_type Tout row_splits_dtype tf_dtype out_dtype index_dtype dtype_hint preferred_dtype
    """,
    "IntLike | Sequence[IntLike]": "strides dilations ksize",
    "str | Sequence[Sequence[int]] | int": "padding",
}
_TYPE_BY_NAME = {name: kind for kind, names in _NAMES_BY_TYPE.items() for name in names.split()}

_TYPE_BY_WORDS = {"A tensor": "Tensor", "A list of tensors": "list[Tensor]", "A bool": "bool"}


def type_of_parameter(name: str, default: Any) -> str:
    """The type of a parameter without an annotation of its own.

    >>> type_of_parameter("axis", None)
    'AxisLike | None'
    """
    if name == "name":
        return "str | None"
    found = _TYPE_BY_NAME.get(name)
    if found is None:
        return "BoolLike" if isinstance(default, bool) else "str" if isinstance(default, str) else "Any"
    return f"{found} | None" if default is None else found


def type_of_result(doc: str) -> str:
    """The type of what a function returns, from the first words of the section `Returns:`.

    >>> type_of_result("Ones.\\n\\nReturns:\\n  A tensor of shape `shape`.")
    'Tensor'
    """
    section = re.search(r"^\s*Returns:\s+(.*)", doc, re.MULTILINE)
    words = section.group(1) if section else ""
    return next((kind for start, kind in _TYPE_BY_WORDS.items() if re.match(rf"{start}\b", words)), "Any")
