"""The TensorFlow 1 signatures of neural network functions."""

from __future__ import annotations

from tapeflow._src import primitives
from tapeflow._src.compat.v1.signatures.declaration import Arguments, v1_signature
from tapeflow._src.ops.arrays.conversion import convert_to_tensor

for _name, _value in (("softmax", "[0.5, 0.5]"), ("log_softmax", "[-0.6931472, -0.6931472]")):
    v1_signature(
        f"nn.{_name}(logits, axis=None, name=None, dim=None)",
        f"nn.{_name}",
        also=[f"math.{_name}"],
        renamed={"dim": "axis"},
        example=f"tf.compat.v1.nn.{_name}([0., 0.], dim=0) => {_value}",
    )
v1_signature(
    "nn.crelu(features, name=None, axis=-1)",
    "nn.crelu",
    example="tf.compat.v1.nn.crelu([-1., 2.]) => [0., 2., 1., 0.]",
)
v1_signature(
    "nn.softmax_cross_entropy_with_logits_v2(labels, logits, axis=None, name=None, dim=None)",
    "nn.softmax_cross_entropy_with_logits",
    renamed={"dim": "axis"},
    example="tf.compat.v1.nn.softmax_cross_entropy_with_logits_v2([[1., 0.]], [[0., 0.]]) => [0.6931472]",
)


def _both_given(arguments: Arguments) -> None:
    if arguments["labels"] is None or arguments["logits"] is None:
        raise ValueError("Both labels and logits must be provided.")


def _constant_labels(arguments: Arguments) -> None:
    _both_given(arguments)
    logits = convert_to_tensor(arguments["logits"])
    labels = convert_to_tensor(arguments["labels"], dtype_hint=logits.dtype)
    arguments.update(labels=primitives.StopGradient(labels), logits=logits)


v1_signature(
    "nn.softmax_cross_entropy_with_logits(labels=None, logits=None, dim=-1, name=None, axis=None)",
    "nn.softmax_cross_entropy_with_logits",
    renamed={"dim": "axis"},
    adapt=_constant_labels,
    example="tf.compat.v1.nn.softmax_cross_entropy_with_logits(labels=[[1., 0.]], logits=[[0., 0.]]) => [0.6931472]",
)
for _name, _labels, _logits in (
    ("sparse_softmax_cross_entropy_with_logits", "[0]", "[[0., 0.]]"),
    ("sigmoid_cross_entropy_with_logits", "[1.]", "[0.]"),
):
    v1_signature(
        f"nn.{_name}(labels=None, logits=None, name=None)",
        f"nn.{_name}",
        adapt=_both_given,
        example=f"tf.compat.v1.nn.{_name}(labels={_labels}, logits={_logits}) => [0.6931472]",
    )
v1_signature(
    "nn.weighted_cross_entropy_with_logits(labels=None, logits=None, pos_weight=None, name=None, targets=None)",
    "nn.weighted_cross_entropy_with_logits",
    renamed={"targets": "labels"},
    example="tf.compat.v1.nn.weighted_cross_entropy_with_logits(targets=[1.], logits=[0.], pos_weight=2.)"
    " => [1.3862944]",
)
v1_signature(
    "nn.moments(x, axes, shift=None, name=None, keep_dims=None, keepdims=None)",
    "nn.moments",
    renamed={"keep_dims": "keepdims"},
    example="tf.compat.v1.nn.moments([1., 3.], [0]) => (2.0, 1.0)",
)
v1_signature(
    "nn.weighted_moments(x, axes, frequency_weights, name=None, keep_dims=None, keepdims=None)",
    "nn.weighted_moments",
    renamed={"keep_dims": "keepdims"},
    example="tf.compat.v1.nn.weighted_moments([1., 4.], [0], [2., 1.]) => (2.0, 2.0)",
)
v1_signature(
    "nn.sufficient_statistics(x, axes, shift=None, keep_dims=None, name=None, keepdims=None)",
    "nn.sufficient_statistics",
    renamed={"keep_dims": "keepdims"},
    example="tf.compat.v1.nn.sufficient_statistics([1., 3.], [0])[:3] => (2.0, 4.0, 10.0)",
)
v1_signature(
    "nn.batch_norm_with_global_normalization(t=None, m=None, v=None, beta=None, gamma=None, variance_epsilon=None, "
    "scale_after_normalization=None, name=None, input=None, mean=None, variance=None)",
    "nn.batch_norm_with_global_normalization",
    renamed={"t": "input", "m": "mean", "v": "variance"},
    example="x = [[[[3.]]]]\n"
    "tf.compat.v1.nn.batch_norm_with_global_normalization(x, [1.], [4.], [0.], [2.], 0., True) => [[[[2.]]]]",
)


def _rate_of_keep_prob(arguments: Arguments) -> None:
    keep_prob, rate = arguments.pop("keep_prob"), arguments["rate"]
    if (keep_prob is None) == (rate is None):
        raise ValueError(f"exactly one of `keep_prob` and `rate` must be given; got {keep_prob} and {rate}")
    arguments["rate"] = 1 - keep_prob if rate is None else rate


v1_signature(
    "nn.dropout(x, keep_prob=None, noise_shape=None, seed=None, name=None, rate=None)",
    "nn.dropout",
    adapt=_rate_of_keep_prob,
    example="tf.compat.v1.nn.dropout([1., 2.], keep_prob=1.) => [1., 2.]",
)
