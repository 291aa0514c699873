"""The switch between TensorFlow 1's shapes, of `tf.compat.v1.Dimension`s, and TensorFlow 2's, of sizes."""

from __future__ import annotations

from tapeflow._src.namespace import public
from tapeflow._src.types.tensor_shape import set_dimension_shapes


@public("compat.v1.disable_v2_tensorshape")
def disable_v2_tensorshape() -> None:
    """From now on elements of a TensorShape are `Dimension`s, with a `value`.

    >>> tf.compat.v1.disable_v2_tensorshape()
    >>> tf.TensorShape([None, 3])[1].value
    3
    >>> tf.compat.v1.enable_v2_tensorshape()
    """
    set_dimension_shapes(True)


@public("compat.v1.enable_v2_tensorshape")
def enable_v2_tensorshape() -> None:
    """From now on elements of a TensorShape are numbers or None.

    >>> tf.compat.v1.enable_v2_tensorshape()
    >>> tf.TensorShape([None, 3])[1]
    3
    """
    set_dimension_shapes(False)
