"""The TensorFlow 1 signatures of neural network functions."""

from __future__ import annotations

from tapeflow._src.compat.v1.signatures.declaration import v1_signature

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
