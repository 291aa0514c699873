"""The TensorFlow 1 signatures of reductions, norms and counts."""

from __future__ import annotations

from tapeflow._src.compat.v1.signatures.declaration import v1_signature

for _name, _example, _value in (
    ("sum", "[1., 2.]", "3.0"),
    ("mean", "[1., 3.]", "2.0"),
    ("prod", "[2., 3.]", "6.0"),
    ("max", "[1., 3.]", "3.0"),
    ("min", "[1., 3.]", "1.0"),
    ("any", "[True, False]", "True"),
    ("all", "[True, False]", "False"),
    ("logsumexp", "[0., 0.]", "0.6931472"),
):
    v1_signature(
        f"reduce_{_name}(input_tensor, axis=None, keepdims=None, name=None, reduction_indices=None, keep_dims=None)",
        f"math.reduce_{_name}",
        also=[f"math.reduce_{_name}"],
        renamed={"reduction_indices": "axis", "keep_dims": "keepdims"},
        example=f"tf.compat.v1.reduce_{_name}({_example}, reduction_indices=0) => {_value}",
    )
v1_signature(
    "count_nonzero(input_tensor=None, axis=None, keepdims=None, dtype=int64, name=None, reduction_indices=None, "
    "keep_dims=None, input=None)",
    "math.count_nonzero",
    also=["math.count_nonzero"],
    renamed={"input_tensor": "input", "reduction_indices": "axis", "keep_dims": "keepdims"},
    example="tf.compat.v1.count_nonzero([0, 1, 2]) => 2",
)
for _name, _value in (("max", "1"), ("min", "0")):
    v1_signature(
        f"arg{_name}(input, axis=None, name=None, dimension=None, output_type=int64)",
        f"math.arg{_name}",
        also=[f"math.arg{_name}"],
        renamed={"dimension": "axis"},
        example=f"tf.compat.v1.arg{_name}([1., 3., 2.], dimension=0) => {_value}",
    )
    v1_signature(
        f"arg_{_name}(input, dimension, output_type=int64, name=None)",
        f"math.arg{_name}",
        renamed={"dimension": "axis"},
        example=f"tf.compat.v1.arg_{_name}([1., 3., 2.], 0) => {_value}",
    )
v1_signature(
    "norm(tensor, ord='euclidean', axis=None, keepdims=None, name=None, keep_dims=None)",
    "norm",
    also=["linalg.norm"],
    renamed={"keep_dims": "keepdims"},
    example="tf.compat.v1.norm([3., 4.], keep_dims=True) => [5.0]",
)
v1_signature(
    "math.bincount(arr, weights=None, minlength=None, maxlength=None, dtype=int32)",
    "math.bincount",
    also=["bincount"],
    example="tf.compat.v1.bincount([0, 1, 1]) => [1, 2]",
)
v1_signature(
    "math.confusion_matrix(labels, predictions, num_classes=None, dtype=int32, name=None, weights=None)",
    "math.confusion_matrix",
    also=["confusion_matrix"],
    example="tf.compat.v1.confusion_matrix([0, 1], [1, 1], 2, tf.float32) => [[0., 1.], [0., 1.]]",
)
v1_signature(
    "math.in_top_k(predictions, targets, k, name=None)",
    "math.in_top_k",
    also=["nn.in_top_k"],
    example="tf.compat.v1.nn.in_top_k([[0.1, 0.9]], [1], 1) => [True]",
)
