"""Checkpoint files apart from savers: first values that come from one, and the file that lists those of a folder."""

from __future__ import annotations

import os
from typing import Any

from tapeflow._src.compat.v1.graph.graph import get_default_graph
from tapeflow._src.compat.v1.variables.variables import global_variables
from tapeflow._src.namespace import public
from tapeflow._src.train.checkpoint.state import CheckpointState, latest_checkpoint, write_checkpoint_state
from tapeflow._src.train.checkpoint.tensor_bundle import Bundle, delete_bundle


@public("compat.v1.train.init_from_checkpoint")
def init_from_checkpoint(ckpt_dir_or_file: Any, assignment_map: Any) -> None:
    """From now on the initializers of variables give them the values of a checkpoint.

    The map goes from names in the checkpoint to variables or their names, or from scopes ("old/") to scopes ("new/").

    >>> import tempfile
    >>> with tf.Graph().as_default(), tf.compat.v1.Session() as session:
    ...     v = tf.compat.v1.get_variable("v", initializer=[1., 2.])
    ...     session.run(v.initializer)
    ...     path = tf.compat.v1.train.Saver().save(session, tempfile.mkdtemp() + "/model")
    ...     w = tf.compat.v1.get_variable("w", [2])
    ...     tf.compat.v1.train.init_from_checkpoint(path, {"v": w})
    ...     session.run(w.initializer)
    ...     session.run(w).tolist()
    [1.0, 2.0]
    """
    path = os.fspath(ckpt_dir_or_file)
    bundle = Bundle(latest_checkpoint(path) or path if os.path.isdir(path) else path)
    variable_by_name = {v.op.name: v for v in global_variables()}
    pairs = assignment_map.items() if hasattr(assignment_map, "items") else assignment_map
    for saved, target in pairs:
        for name, variable in _targets(saved, target, variable_by_name, bundle):
            _begin_with(variable, name, bundle)


def _targets(saved: str, target: Any, variable_by_name: dict[str, Any], bundle: Bundle) -> list[tuple[str, Any]]:
    """The pairs of a name in the checkpoint and a variable that one entry of the map means."""
    if not isinstance(target, str):
        return [(saved, variable) for variable in (target if isinstance(target, list | tuple) else [target])]
    if target in variable_by_name:
        return [(saved, variable_by_name[target])]
    if not saved.endswith("/") or not (target.endswith("/") or not target):
        raise ValueError(
            f"Assignment map with scope only name {target} should map to scope only {saved}. Should be "
            "'scope/': 'other_scope/'."
        )
    old, new = ("" if saved == "/" else saved), ("" if target == "/" else target)
    inside = {name: v for name, v in variable_by_name.items() if name.startswith(new)}
    pairs = [(old + name[len(new) :], variable) for name, variable in inside.items()]
    missing = [name for name, _ in pairs if name not in bundle]
    if missing or not pairs:
        names = sorted(missing) or target
        raise ValueError(f"Tensor {missing[0] if missing else target} is not found in the checkpoint; scope {names}")
    return pairs


def _begin_with(variable: Any, name: str, bundle: Bundle) -> None:
    if name not in bundle:
        raise ValueError(f"Tensor {name} is not found in {bundle.prefix} checkpoint")
    value = bundle.value(name)
    if not variable.shape.is_compatible_with(value.shape):
        raise ValueError(
            f"Shape of variable {variable.name} ({variable.shape}) doesn't match with shape of tensor {name} "
            f"({list(value.shape)}) from checkpoint reader."
        )
    get_default_graph().begin_variable_with(variable, value)


@public("compat.v1.train.update_checkpoint_state")
def update_checkpoint_state(
    save_dir: Any, model_checkpoint_path: str, all_model_checkpoint_paths: Any = None,
    latest_filename: str | None = None, all_model_checkpoint_timestamps: Any = None,
    last_preserved_timestamp: float | None = None,
) -> None:  # fmt: skip
    """Writes which checkpoints a folder holds, and which is the last.

    >>> import tempfile
    >>> folder = tempfile.mkdtemp()
    >>> tf.compat.v1.train.update_checkpoint_state(folder, folder + "/model-7")
    >>> tf.train.get_checkpoint_state(folder).model_checkpoint_path == folder + "/model-7"
    True
    """
    state = generate_checkpoint_state_proto(
        save_dir, model_checkpoint_path, all_model_checkpoint_paths, all_model_checkpoint_timestamps,
        last_preserved_timestamp,
    )  # fmt: skip
    write_checkpoint_state(os.fspath(save_dir), state, latest_filename)


@public("compat.v1.train.generate_checkpoint_state_proto")
def generate_checkpoint_state_proto(
    save_dir: Any, model_checkpoint_path: str, all_model_checkpoint_paths: Any = None,
    all_model_checkpoint_timestamps: Any = None, last_preserved_timestamp: float | None = None,
) -> CheckpointState:  # fmt: skip
    """The same as an object; the last checkpoint is among all.

    >>> tf.compat.v1.train.generate_checkpoint_state_proto("f", "f/m-1").all_model_checkpoint_paths
    ['m-1']
    """
    folder, paths = os.fspath(save_dir), list(all_model_checkpoint_paths or [])
    if not os.path.isabs(folder):  # paths that are relative are relative to the folder
        model_checkpoint_path, *paths = [
            path if os.path.isabs(path) else os.path.relpath(path, folder) for path in (model_checkpoint_path, *paths)
        ]
    if model_checkpoint_path not in paths:
        paths.append(model_checkpoint_path)
    times = list(all_model_checkpoint_timestamps or [])
    if times and len(times) != len(paths):
        raise ValueError(
            "Checkpoint timestamps, if provided, must match the number of checkpoints; got "
            f"{len(times)} and {len(paths)}"
        )
    return CheckpointState(model_checkpoint_path, paths, times, last_preserved_timestamp or 0.0)


@public("compat.v1.train.get_checkpoint_mtimes")
def get_checkpoint_mtimes(checkpoint_prefixes: Any) -> list[float]:
    """When each checkpoint was written, in seconds.

    >>> times = tf.compat.v1.train.get_checkpoint_mtimes([])
    >>> times
    []
    """
    return [os.path.getmtime(f"{os.fspath(prefix)}.index") for prefix in checkpoint_prefixes]


@public("compat.v1.train.remove_checkpoint")
def remove_checkpoint(
    checkpoint_prefix: Any, checkpoint_format_version: int = 2, meta_graph_suffix: str = "meta"
) -> None:
    """Deletes the files of a checkpoint.

    >>> tf.compat.v1.train.remove_checkpoint("no-such-file")
    """
    delete_bundle(os.fspath(checkpoint_prefix))
