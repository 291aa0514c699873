"""The TensorFlow 1 signatures of functions of strings and bytes."""

from __future__ import annotations

from tapeflow._src.compat.v1.signatures.declaration import v1_signature

v1_signature(
    "strings.length(input, name=None, unit='BYTE')",
    "strings.length",
    example="tf.compat.v1.strings.length('abc', 'n') => 3",
)
v1_signature(
    "strings.substr(input, pos, len, name=None, unit='BYTE')",
    "strings.substr",
    also=["substr"],
    example="tf.compat.v1.substr('abc', 1, 2, 'n').numpy() => b'bc'",
)
v1_signature(
    "strings.to_hash_bucket(string_tensor=None, num_buckets=None, name=None, input=None)",
    "strings.to_hash_bucket",
    also=["string_to_hash_bucket"],
    renamed={"string_tensor": "input"},
    example="tf.compat.v1.string_to_hash_bucket('a', 1) => 0",
)
v1_signature(
    "strings.to_number(string_tensor=None, out_type=float32, name=None, input=None)",
    "strings.to_number",
    also=["string_to_number"],
    renamed={"string_tensor": "input"},
    example="tf.compat.v1.string_to_number('1.5') => 1.5",
)
v1_signature(
    "strings.reduce_join(inputs, axis=None, keep_dims=None, separator='', name=None, reduction_indices=None, "
    "keepdims=None)",
    "strings.reduce_join",
    also=["reduce_join"],
    renamed={"keep_dims": "keepdims", "reduction_indices": "axis"},
    example="tf.compat.v1.reduce_join([['a', 'b']], reduction_indices=1).numpy().tolist() => [b'ab']",
)
v1_signature(
    "decode_raw(input_bytes=None, out_type=None, little_endian=True, name=None, bytes=None)",
    "io.decode_raw",
    also=["io.decode_raw"],
    renamed={"bytes": "input_bytes"},
    example="tf.compat.v1.decode_raw(b'ab', tf.uint8) => [97, 98]",
)
