"""The TensorFlow 1 signatures of functions of sparse tensors."""

from __future__ import annotations

from tapeflow._src.compat.v1.signatures.declaration import Arguments, v1_signature

for _name in ("sum", "mean", "sqrt_n"):
    v1_signature(
        f"sparse.segment_{_name}(data, indices, segment_ids, name=None, num_segments=None, sparse_gradient=False)",
        f"sparse.segment_{_name}",
        also=[f"sparse_segment_{_name}"],
        example=f"tf.compat.v1.sparse_segment_{_name}([[3.]], [0], [0], 'n') => [[3.]]",
    )
for _name in ("max", "sum"):
    v1_signature(
        f"sparse.reduce_{_name}(sp_input, axis=None, keepdims=None, reduction_axes=None, keep_dims=None)",
        f"sparse.reduce_{_name}",
        also=[f"sparse_reduce_{_name}"],
        renamed={"reduction_axes": "axis", "keep_dims": "keepdims"},
        example=f"tf.compat.v1.sparse_reduce_{_name}(tf.sparse.from_dense([[1, 2]]), reduction_axes=0) => [1, 2]",
    )
v1_signature(
    "sparse.add(a, b, threshold=None, thresh=None)",
    "sparse.add",
    also=["sparse_add"],
    renamed={"thresh": "threshold"},
    example="tf.compat.v1.sparse_add([1], tf.sparse.from_dense([2]), thresh=0) => [3]",
)


def _expand(arguments: Arguments) -> None:
    expand = arguments.pop("expand_nonconcat_dim")
    arguments["expand_nonconcat_dims"] = bool(expand or arguments["expand_nonconcat_dims"])


v1_signature(
    "sparse.concat(axis, sp_inputs, name=None, expand_nonconcat_dim=False, concat_dim=None, "
    "expand_nonconcat_dims=None)",
    "sparse.concat",
    also=["sparse_concat"],
    renamed={"concat_dim": "axis"},
    adapt=_expand,
    example="tf.sparse.to_dense(tf.compat.v1.sparse_concat(0, [tf.sparse.from_dense([2])] * 2, 'n')) => [2, 2]",
)
v1_signature(
    "sparse.split(keyword_required=None, sp_input=None, num_split=None, axis=None, name=None, split_dim=None)",
    "sparse.split",
    also=["sparse_split"],
    renamed={"split_dim": "axis"},
    ignored=["keyword_required"],
    example="len(tf.compat.v1.sparse_split(sp_input=tf.sparse.from_dense([1, 2]), num_split=2, axis=0)) => 2",
)
