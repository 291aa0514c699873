"""The TensorFlow 1 signatures of assertions. `data`, which TensorFlow prints with the message, is ignored."""

from __future__ import annotations

from tapeflow._src.compat.v1.signatures.declaration import v1_signature

_OPTIONS = "data=None, summarize=None, message=None, name=None"

for _name, _parameters, _example in (
    ("equal", "x, y", "1, 1"),
    ("none_equal", "x, y", "1, 2"),
    ("greater", "x, y", "2, 1"),
    ("greater_equal", "x, y", "1, 1"),
    ("less", "x, y", "1, 2"),
    ("less_equal", "x, y", "1, 1"),
    ("near", "x, y, rtol=None, atol=None", "1., 1."),
    ("positive", "x", "1"),
    ("negative", "x", "-1"),
    ("non_negative", "x", "0"),
    ("non_positive", "x", "0"),
):
    v1_signature(
        f"assert_{_name}({_parameters}, {_OPTIONS})",
        f"debugging.assert_{_name}",
        also=[f"debugging.assert_{_name}"],
        ignored=["data"],
        example=f"tf.compat.v1.assert_{_name}({_example}, message='not {_name}') => None",
    )
for _name, _parameters, _example in (
    ("rank", "x, rank", "[1, 2], 1"),
    ("rank_at_least", "x, rank", "[1, 2], 1"),
    ("rank_in", "x, ranks", "[1, 2], (1, 2)"),
):
    v1_signature(
        f"assert_{_name}({_parameters}, {_OPTIONS})",
        f"debugging.assert_{_name}",
        also=[f"debugging.assert_{_name}"],
        ignored=["data", "summarize"],
        example=f"tf.compat.v1.assert_{_name}({_example}) => None",
    )
v1_signature(
    "debugging.assert_all_finite(t=None, msg=None, name=None, x=None, message=None)",
    "debugging.assert_all_finite",
    also=["verify_tensor_all_finite"],
    renamed={"t": "x", "msg": "message"},
    example="tf.compat.v1.debugging.assert_all_finite([1.], 'not finite') => [1.]",
)
