"""`tf.compat.v1.train.Saver`: the values of variables in files: a NumPy archive, `<path>.npz`, for each checkpoint."""

from __future__ import annotations

import json
import os
import time
import zipfile
from typing import Any

import numpy as np

from tapeflow.namespace import public
from tapeflow.types.errors import NotFoundError
from tapeflow.v1.collections import GraphKeys
from tapeflow.v1.graph import get_default_graph

_SUFFIX = ".npz"


class CheckpointState:
    """Which checkpoints a folder holds."""

    def __init__(self, model_checkpoint_path: str, all_model_checkpoint_paths: list[str]) -> None:
        self.model_checkpoint_path = model_checkpoint_path
        self.all_model_checkpoint_paths = all_model_checkpoint_paths


def _state_file(folder: str, latest_filename: str | None) -> str:
    return os.path.join(folder, latest_filename or "checkpoint")


def _write_whole(path: str, data: bytes) -> None:
    """Writes beside and renames, so that nobody ever sees half a file."""
    beside = f"{path}.tmp{os.getpid()}"
    with open(beside, "wb") as file:
        file.write(data)
    os.replace(beside, path)


@public("compat.v1.train.get_checkpoint_state")
def get_checkpoint_state(checkpoint_dir: str, latest_filename: str | None = None) -> CheckpointState | None:
    """Which checkpoints a folder holds, or None.

    >>> tf.compat.v1.train.get_checkpoint_state("/no/such/folder")
    """
    try:
        with open(_state_file(checkpoint_dir, latest_filename), encoding="utf-8") as file:
            content = json.load(file)
    except (OSError, ValueError):
        return None
    paths = [os.path.join(checkpoint_dir, name) for name in content["all"]]
    return CheckpointState(paths[-1], paths) if paths else None


@public("compat.v1.train.latest_checkpoint")
def latest_checkpoint(checkpoint_dir: str, latest_filename: str | None = None) -> str | None:
    """The path of the last checkpoint in a folder, or None.

    >>> tf.compat.v1.train.latest_checkpoint("/no/such/folder")
    """
    state = get_checkpoint_state(checkpoint_dir, latest_filename)
    if state is None or not checkpoint_exists(state.model_checkpoint_path):
        return None
    return state.model_checkpoint_path


@public("compat.v1.train.checkpoint_exists")
def checkpoint_exists(checkpoint_prefix: str) -> bool:
    """Whether there is a checkpoint at this path.

    >>> tf.compat.v1.train.checkpoint_exists("/no/such/file")
    False
    """
    return os.path.exists(checkpoint_prefix + _SUFFIX)


@public("compat.v1.train.Saver")
class Saver:
    """Saves and restores variables of a graph.

    >>> import tempfile
    >>> with tf.Graph().as_default(), tf.compat.v1.Session() as session:
    ...     v = tf.compat.v1.Variable([1., 2.])
    ...     session.run(v.initializer)
    ...     saver = tf.compat.v1.train.Saver()
    ...     path = saver.save(session, tempfile.mkdtemp() + "/model", global_step=7)
    ...     v.load([0., 0.], session)
    ...     saver.restore(session, path)
    ...     session.run(v)
    array([1., 2.], dtype=float32)
    """

    def __init__(
        self,
        var_list: Any = None,
        reshape: bool = False,
        sharded: bool = False,
        max_to_keep: int | None = 5,
        keep_checkpoint_every_n_hours: float = 10000.0,
        name: str | None = None,
        restore_sequentially: bool = False,
        saver_def: Any = None,
        builder: Any = None,
        defer_build: bool = False,
        allow_empty: bool = False,
        write_version: int = 2,
        pad_step_number: bool = False,
        save_relative_paths: bool = False,
        filename: str | None = None,
    ) -> None:
        self._given, self._reshape, self._pad = var_list, reshape, pad_step_number
        self._max_to_keep, self._keep_seconds = max_to_keep or 0, keep_checkpoint_every_n_hours * 3600.0
        self._next_to_keep = time.time() + self._keep_seconds
        self.last_checkpoints: list[str] = []
        self._allow_empty = allow_empty
        self._variable_by_name: dict[str, Any] = {} if defer_build else self._build()

    def build(self) -> None:
        """Decides which variables are saved, if that was deferred."""
        self._variable_by_name = self._build()

    def _build(self) -> dict[str, Any]:
        given = self._given
        if given is None:
            graph = get_default_graph()
            given = graph.get_collection(GraphKeys.GLOBAL_VARIABLES) + graph.get_collection("saveable_objects")
        if not isinstance(given, dict):
            given = {v.name.rpartition(":")[0]: v for v in given}
        if not given and not self._allow_empty:
            raise ValueError("No variables to save")
        return dict(given)

    def save(
        self,
        sess: Any,
        save_path: str,
        global_step: Any = None,
        latest_filename: str | None = None,
        meta_graph_suffix: str = "meta",
        write_meta_graph: bool = True,
        write_state: bool = True,
        strip_default_attrs: bool = False,
        save_debug_info: bool = False,
    ) -> str:
        """Writes the values to a file; gives its path (without the ending), with the step in it."""
        save_path = os.fspath(save_path)
        path = save_path if global_step is None else f"{save_path}-{self._step_text(sess, global_step)}"
        folder = os.path.dirname(path)
        if folder and not os.path.isdir(folder):
            raise ValueError(f"Parent directory of {save_path} doesn't exist, can't save.")
        names = list(self._variable_by_name)
        values = self._values(sess, names)
        beside = f"{path}.tmp{os.getpid()}{_SUFFIX}"
        np.savez(
            beside,
            **{f"{i:06d}": value for i, value in enumerate(values)},
            names=np.array(names, dtype=object).astype("U"),
        )
        os.replace(beside, path + _SUFFIX)
        if write_state:
            self._note(path, latest_filename)
        return path

    def _values(self, sess: Any, names: list[str]) -> list[Any]:
        variables = [self._variable_by_name[name] for name in names]
        if sess is None:
            return [variable.numpy() for variable in variables]
        return sess.run(variables)

    def _step_text(self, sess: Any, global_step: Any) -> str:
        step = global_step if isinstance(global_step, int | np.integer) else None
        if step is None:
            step = int(global_step.numpy()) if sess is None else int(sess.run(global_step))
        return f"{int(step):08d}" if self._pad else str(int(step))

    def _note(self, path: str, latest_filename: str | None) -> None:
        if path in self.last_checkpoints:
            self.last_checkpoints.remove(path)
        self.last_checkpoints.append(path)
        if self._max_to_keep and len(self.last_checkpoints) > self._max_to_keep:
            oldest = self.last_checkpoints.pop(0)
            if time.time() > self._next_to_keep:
                self._next_to_keep += self._keep_seconds
            elif os.path.exists(oldest + _SUFFIX):
                os.remove(oldest + _SUFFIX)
        folder = os.path.dirname(path)
        content = {"all": [os.path.relpath(p, folder or ".") for p in self.last_checkpoints]}
        _write_whole(_state_file(folder, latest_filename), json.dumps(content).encode())

    def restore(self, sess: Any, save_path: str) -> None:
        """Puts the values of a file into the variables, which need not be initialised before."""
        if save_path is None:
            raise ValueError("Can't load save_path when it is None.")
        save_path = os.fspath(save_path)
        if not checkpoint_exists(save_path):
            raise ValueError(f"The passed save_path is not a valid checkpoint: {save_path}")
        value_by_name = _read(save_path)
        for name, variable in self._variable_by_name.items():
            if name not in value_by_name:
                raise NotFoundError(None, None, f"Key {name} not found in checkpoint {save_path}")
            value = value_by_name[name]
            if self._reshape and variable.shape.is_fully_defined():
                value = value.reshape(variable.shape.as_list())
            if not variable.shape.is_compatible_with(value.shape):
                raise ValueError(
                    f"restore: variable {name} has shape {variable.shape}, and the checkpoint {save_path} holds shape "
                    f"{tuple(value.shape)}"
                )
        for name, variable in self._variable_by_name.items():
            value = value_by_name[name]
            if self._reshape and variable.shape.is_fully_defined():
                value = value.reshape(variable.shape.as_list())
            if sess is None:
                variable.assign(value)
            else:
                sess.set_variable(variable, value)


def _read(path: str) -> dict[str, Any]:
    try:
        with np.load(path + _SUFFIX, allow_pickle=False) as archive:
            return {str(name): archive[f"{i:06d}"] for i, name in enumerate(archive["names"])}
    except (zipfile.BadZipFile, KeyError, EOFError, OSError, ValueError) as error:
        raise ValueError(f"The passed save_path is not a valid checkpoint: {path} ({error})") from None


@public("compat.v1.train.list_variables")
def list_variables(ckpt_dir_or_file: str) -> list[tuple[str, list[int]]]:
    """The names and shapes of the variables in a checkpoint.

    >>> import tempfile
    >>> saver = tf.compat.v1.train.Saver([tf.Variable([1., 2.], name="v")])
    >>> tf.compat.v1.train.list_variables(saver.save(None, tempfile.mkdtemp() + "/model"))
    [('v', [2])]
    """
    path = latest_checkpoint(ckpt_dir_or_file) or ckpt_dir_or_file
    return sorted((name, list(value.shape)) for name, value in _read(path).items())


@public("compat.v1.train.load_variable")
def load_variable(ckpt_dir_or_file: str, name: str) -> Any:
    """The value of one variable in a checkpoint.

    >>> import tempfile
    >>> saver = tf.compat.v1.train.Saver([tf.Variable([1., 2.], name="v")])
    >>> tf.compat.v1.train.load_variable(saver.save(None, tempfile.mkdtemp() + "/model"), "v")
    array([1., 2.], dtype=float32)
    """
    path = latest_checkpoint(ckpt_dir_or_file) or ckpt_dir_or_file
    return _read(path)[name.removesuffix(":0")]
