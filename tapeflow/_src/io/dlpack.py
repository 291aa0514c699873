"""`tf.experimental.dlpack`: tensors from and to other libraries."""

from __future__ import annotations

from typing import Any

import numpy as np

from tapeflow._src.namespace import public
from tapeflow._src.ops.arrays.conversion import convert_to_tensor


class _Capsule:
    """A capsule as an object that NumPy takes one from."""

    def __init__(self, capsule: Any) -> None:
        self.capsule = capsule

    def __dlpack__(self, **_: Any) -> Any:
        return self.capsule

    def __dlpack_device__(self) -> tuple[int, int]:
        return (1, 0)


@public("experimental.dlpack.to_dlpack")
def to_dlpack(tf_tensor: Any) -> Any:
    """A capsule with the elements of a tensor, for another library.

    >>> tf.experimental.dlpack.from_dlpack(tf.experimental.dlpack.to_dlpack(tf.constant([1., 2.])))
    <tf.Tensor: shape=(2,), dtype=float32, numpy=array([1., 2.], dtype=float32)>
    """
    # A NumPy array may not share memory that is read-only.
    return np.array(convert_to_tensor(tf_tensor).numpy()).__dlpack__()


@public("experimental.dlpack.from_dlpack")
def from_dlpack(dlcapsule: Any) -> Any:
    """A tensor of what another library put in a capsule, or of an object that gives one.

    >>> tf.experimental.dlpack.from_dlpack(np.array([1, 2]))
    <tf.Tensor: shape=(2,), dtype=int64, numpy=array([1, 2])>
    """
    source = dlcapsule if hasattr(dlcapsule, "__dlpack__") else _Capsule(dlcapsule)
    return convert_to_tensor(np.from_dlpack(source))
