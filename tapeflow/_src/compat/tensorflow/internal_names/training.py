"""`tf.__internal__.train` and `ops`: small functions that optimizers and metrics use."""

from __future__ import annotations

import os
from typing import Any

from tapeflow._src.compat.v1.train.checkpoint_files import update_checkpoint_state
from tapeflow._src.compat.v1.train.weights import require_broadcastable
from tapeflow._src.namespace import find_public, public
from tapeflow._src.ops.arrays.constants import ones_like
from tapeflow._src.ops.arrays.conversion import cast, convert_to_tensor
from tapeflow._src.ops.arrays.passing import no_op


@public("__internal__.train.assign_moving_average")
def assign_moving_average(
    variable: Any, value: Any, decay: Any, zero_debias: bool = True, name: str | None = None
) -> Any:
    """Assigns `variable * decay + value * (1 - decay)`.

    >>> v = tf.Variable(2.)
    >>> _ = tf.__internal__.train.assign_moving_average(v, 4., 0.5, zero_debias=False)
    >>> v.numpy()
    np.float32(3.0)
    """
    if zero_debias:
        raise NotImplementedError("assign_moving_average: zero_debias=True needs variables of its own; use False.")
    dtype = variable.dtype
    rate = cast(1.0 - decay, dtype)
    return variable.assign_sub((variable - cast(value, dtype)) * rate)


@public("__internal__.train.update_checkpoint_state")
def update_checkpoint_state_internal(
    save_dir: Any,
    model_checkpoint_path: str,
    all_model_checkpoint_paths: Any = None,
    latest_filename: str | None = None,
    save_relative_paths: bool = False,
    all_model_checkpoint_timestamps: Any = None,
    last_preserved_timestamp: float | None = None,
) -> None:
    """Writes which checkpoints a folder holds, and which is the last; with paths from the folder, if asked for.

    >>> tf.__internal__.train.update_checkpoint_state("logs", "logs/model-7", save_relative_paths=True)
    >>> tf.train.latest_checkpoint("logs") is None  # there is no such file
    True
    """
    folder = os.fspath(save_dir)
    os.makedirs(folder or os.curdir, exist_ok=True)

    def shown(path: str) -> str:
        return os.path.relpath(path, folder) if save_relative_paths and os.path.isabs(path) else path

    paths = [shown(path) for path in all_model_checkpoint_paths or [model_checkpoint_path]]
    update_checkpoint_state(
        folder, shown(model_checkpoint_path), paths, latest_filename, all_model_checkpoint_timestamps,
        last_preserved_timestamp,
    )  # fmt: skip


def assert_broadcastable(weights: Any, values: Any) -> Any:
    """An operation that fails unless weights are a number, or have the rank of the values with sizes equal or 1.

    Where the shapes are known, a ValueError at once.
    """
    return require_broadcastable(convert_to_tensor(values), convert_to_tensor(weights)) or no_op()


@public("__internal__.ops.broadcast_weights")
def broadcast_weights(weights: Any, values: Any) -> Any:
    """The weights in the shape of the values: they are a number, or have the same rank and sizes that are equal or 1.

    >>> tf.__internal__.ops.broadcast_weights([[1.], [2.]], tf.ones([2, 2]))
    <tf.Tensor: shape=(2, 2), dtype=float32, numpy=
    array([[1., 1.],
           [2., 2.]], dtype=float32)>
    """
    values = convert_to_tensor(values)
    weights = convert_to_tensor(weights, dtype=values.dtype)
    known = weights.shape.is_fully_defined() and values.shape.is_fully_defined()
    if known and weights.shape.is_compatible_with(values.shape):
        return weights
    check = assert_broadcastable(weights, values)
    with find_public("control_dependencies")([] if check is None else [check]):
        return weights * ones_like(values)
