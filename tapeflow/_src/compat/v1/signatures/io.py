"""The TensorFlow 1 signatures of functions that read examples, text and files."""

from __future__ import annotations

from tapeflow._src.compat.v1.signatures.declaration import v1_signature

v1_signature(
    "io.decode_csv(records, record_defaults, field_delim=',', use_quote_delim=True, name=None, na_value='', "
    "select_cols=None)",
    "io.decode_csv",
    also=["decode_csv"],
    example="tf.compat.v1.decode_csv(['1,2'], [[0], [0]]) => [[1], [2]]",
)
v1_signature(
    "io.parse_example(serialized, features, name=None, example_names=None)",
    "io.parse_example",
    also=["parse_example"],
    example="tf.compat.v1.parse_example([b''], {'a': tf.io.VarLenFeature(tf.int64)})['a'].dense_shape => [1, 0]",
)
v1_signature(
    "io.parse_single_example(serialized, features, name=None, example_names=None)",
    "io.parse_single_example",
    also=["parse_single_example"],
    example="features = {'a': tf.io.FixedLenFeature([], tf.int64, default_value=3)}\n"
    "tf.compat.v1.parse_single_example(b'', features) => {'a': 3}",
)
v1_signature(
    "gfile.Copy(oldpath, newpath, overwrite=False)",
    "io.gfile.copy",
    renamed={"oldpath": "src", "newpath": "dst"},
    example="tf.io.write_file('a', 'x')\ntf.compat.v1.gfile.Copy('a', 'b') => None",
)
v1_signature(
    "gfile.Rename(oldname, newname, overwrite=False)",
    "io.gfile.rename",
    renamed={"oldname": "src", "newname": "dst"},
    example="tf.io.write_file('a', 'x')\ntf.compat.v1.gfile.Rename('a', 'b') => None",
)
v1_signature(
    "gfile.Glob(filename)",
    "io.gfile.glob",
    renamed={"filename": "pattern"},
    example="tf.io.write_file('a.txt', '')\ntf.compat.v1.gfile.Glob('*.txt') => ['a.txt']",
)
v1_signature(
    "gfile.Walk(top, in_order=True)",
    "io.gfile.walk",
    renamed={"in_order": "topdown"},
    example="tf.io.gfile.makedirs('a/b')\nlist(tf.compat.v1.gfile.Walk('a')) => [('a', ['b'], []), ('a/b', [], [])]",
)
