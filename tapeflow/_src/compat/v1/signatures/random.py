"""The TensorFlow 1 signatures of random numbers."""

from __future__ import annotations

from tapeflow._src.compat.v1.signatures.declaration import v1_signature

v1_signature(
    "random.poisson(lam, shape, dtype=float32, seed=None, name=None)",
    "random.poisson",
    also=["random_poisson"],
    example="tf.compat.v1.random.poisson([0.5, 2.], [5]).shape => TensorShape([5, 2])",
)
v1_signature(
    "random.multinomial(logits, num_samples, seed=None, name=None, output_dtype=None)",
    "random.categorical",
    also=["multinomial"],
    renamed={"output_dtype": "dtype"},
    example="tf.compat.v1.multinomial([[0., -1e9]], 3) => [[0, 0, 0]]",
)
v1_signature(
    "random.stateless_multinomial(logits, num_samples, seed, output_dtype=int64, name=None)",
    "random.stateless_categorical",
    renamed={"output_dtype": "dtype"},
    example="tf.compat.v1.random.stateless_multinomial([[0., -1e9]], 3, seed=[1, 2]) => [[0, 0, 0]]",
)
