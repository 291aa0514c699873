"""`tf.compat.v1.train.Saver`: the values of variables in checkpoint files, by name."""

from __future__ import annotations

import os
import threading
import time
from contextlib import suppress
from typing import Any

import numpy as np

from tapeflow._src.compat.v1.graph.collections import GraphKeys
from tapeflow._src.compat.v1.graph.graph import get_default_graph
from tapeflow._src.compat.v1.train.meta_graph_export import (
    check_export_scope,
    export_meta_graph,
    meta_graph_of,
    write_meta_graph,
)
from tapeflow._src.compat.v1.train.parts import SavedParts
from tapeflow._src.data.session_iterators import IteratorSaveable
from tapeflow._src.namespace import public
from tapeflow._src.train.checkpoint.object_graph import GRAPH_KEY, decode_graph
from tapeflow._src.train.checkpoint.state import CheckpointState, checkpoint_exists, write_checkpoint_state
from tapeflow._src.train.checkpoint.tensor_bundle import Bundle, delete_bundle, write_bundle
from tapeflow._src.types.dtypes import as_dtype
from tapeflow._src.types.errors import DataLossError, InvalidArgumentError, NotFoundError
from tapeflow._src.variables import session_graph


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
        if defer_build and var_list:
            raise ValueError(
                "If `var_list` is provided then build cannot be deferred. Either set defer_build=False or "
                "var_list=None."
            )
        self._given, self._reshape, self._pad = var_list, reshape, pad_step_number
        self._max_to_keep, self._keep_seconds = max_to_keep or 0, keep_checkpoint_every_n_hours * 3600.0
        self._next_to_keep = time.time() + self._keep_seconds
        self._last_checkpoints: list[str] = []
        self._allow_empty, self._sharded, self._one_writer = allow_empty, sharded, threading.Lock()
        self._parts = SavedParts()
        self._is_built = not defer_build
        self._variable_by_name: dict[str, Any] = {} if defer_build else self._build()

    def build(self) -> None:
        """Decides which variables are saved, if that was deferred."""
        self._variable_by_name, self._is_built = self._build(), True

    def export_meta_graph(
        self,
        filename: Any = None,
        collection_list: Any = None,
        as_text: bool = False,
        export_scope: str | None = None,
        clear_devices: bool = False,
        clear_extraneous_savers: bool = False,
        strip_default_attrs: bool = False,
        save_debug_info: bool = False,
    ) -> Any:
        """The default graph as a `MetaGraphDef`, with nodes that save the variables of this saver."""
        check_export_scope(export_scope)
        variables, places = self._saved_variables()
        meta = meta_graph_of(get_default_graph(), variables, places, collection_list, clear_devices)
        if filename is not None:
            write_meta_graph(meta, filename, as_text)
        return meta

    def _saved_variables(self) -> tuple[list[Any], list[tuple[str, str]]]:
        """The variables, and under which name each is saved, and which part of that value it is."""
        saved = [(v, self._parts.place(name)) for name, v in self._variable_by_name.items() if not _is_iterator(v)]
        return [v for v, _ in saved], [place for _, place in saved]

    def __repr__(self) -> str:
        return f"<tf.train.Saver of {', '.join(self._variable_by_name) or 'nothing'}>"

    def _build(self) -> dict[str, Any]:
        given = self._given
        if given is None:
            graph = get_default_graph()
            given = graph.get_collection(GraphKeys.GLOBAL_VARIABLES) + graph.get_collection("saveable_objects")
        if not given and not self._allow_empty:
            raise ValueError("No variables to save")
        self._parts = SavedParts()
        self._parts.add_all(given)
        return self._parts.variable_by_name

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
    ) -> str | None:
        """Writes the values to a file; gives its path (without the ending), with the step in it.

        A saver that may be empty and is writes the graph alone, and gives None.
        """
        if not self._is_built:
            raise RuntimeError("`build()` should be called before save if defer_build==True")
        if sess is None and session_graph() is not None:
            raise TypeError(f"'sess' must be a Session; {sess}")
        with self._one_writer:
            path = self._save(sess, os.fspath(save_path), global_step, latest_filename)
            if write_state and self._variable_by_name:
                self._record(path, latest_filename)
            graph = getattr(sess, "graph", None)  # a session of eager tests has none
            if write_meta_graph and graph is not None:
                export_meta_graph(f"{path}.{meta_graph_suffix}", graph=graph)
            return path if self._variable_by_name else None

    def _save(self, sess: Any, save_path: str, global_step: Any, latest_filename: str | None) -> str:
        path = save_path if global_step is None else f"{save_path}-{self._step_text(sess, global_step)}"
        folder = os.path.dirname(path) or "."
        if not self._sharded and os.path.basename(path) == (latest_filename or "checkpoint"):
            raise ValueError(
                f"'latest_filename' collides with 'save_path': '{os.path.basename(path)}' and '{save_path}'"
            )
        try:
            if not os.path.isdir(folder):
                os.mkdir(folder)
        except OSError as error:
            raise ValueError(f"Parent directory of {save_path} doesn't exist, can't save.") from error
        if names := list(self._variable_by_name):
            write_bundle(path, self._parts.joined(self._values(sess, names)))
        return path

    def _values(self, sess: Any, names: list[str]) -> list[Any]:
        variables = [self._variable_by_name[name] for name in names]
        if sess is None:
            return [variable.numpy() for variable in variables]
        plain = [variable for variable in variables if not _is_iterator(variable)]
        found = iter(sess.run(plain))
        return [v.value_in_session(sess) if _is_iterator(v) else next(found) for v in variables]

    def _step_text(self, sess: Any, global_step: Any) -> str:
        step = global_step if isinstance(global_step, int | np.integer) else None
        if step is None:
            step = int(global_step.numpy()) if sess is None else int(sess.run(global_step))
        return f"{int(step):08d}" if self._pad else str(int(step))

    def _record(self, path: str, latest_filename: str | None) -> None:
        if not self._max_to_keep:  # all are kept, and nobody counts them
            self._write_state(path, latest_filename)
            return
        if path in self._last_checkpoints:
            self._last_checkpoints.remove(path)
        self._last_checkpoints.append(path)
        self._write_state(path, latest_filename)  # before a reader can miss the one that it named
        if len(self._last_checkpoints) > self._max_to_keep:
            oldest = self._last_checkpoints.pop(0)
            if time.time() > self._next_to_keep:
                self._next_to_keep += self._keep_seconds
            else:
                delete_bundle(oldest)
                with suppress(FileNotFoundError):
                    os.remove(f"{oldest}.meta")
            self._write_state(path, latest_filename)

    def _write_state(self, path: str, latest_filename: str | None) -> None:
        write_checkpoint_state(os.path.dirname(path), CheckpointState(path, self._last_checkpoints), latest_filename)

    # ---- the checkpoints that are kept

    @property
    def last_checkpoints(self) -> list[str]:
        """The checkpoints that are kept, oldest first."""
        return list(self._last_checkpoints)

    def set_last_checkpoints(self, last_checkpoints: list[str]) -> None:
        """The checkpoints of an earlier run, which count among those that are kept."""
        if not isinstance(last_checkpoints, list):
            raise TypeError(f"last_checkpoints must be a list; got {type(last_checkpoints).__name__}")
        self._last_checkpoints = list(last_checkpoints)

    def set_last_checkpoints_with_time(self, last_checkpoints_with_time: list[tuple[str, float]]) -> None:
        """The same, with the time of each."""
        self.set_last_checkpoints([path for path, _ in last_checkpoints_with_time])

    def recover_last_checkpoints(self, checkpoint_paths: list[str]) -> None:
        """The same, for those of the checkpoints whose files are there."""
        self.set_last_checkpoints([path for path in checkpoint_paths if checkpoint_exists(path)])

    def restore(self, sess: Any, save_path: str) -> None:
        """Puts the values of a file into the variables, which need not be initialised before."""
        if save_path is None:
            raise ValueError("Can't load save_path when it is None.")
        if self._is_built and not self._variable_by_name:
            return
        save_path = os.fspath(save_path)
        if not checkpoint_exists(save_path):
            raise ValueError(f"The passed save_path is not a valid checkpoint: {save_path}")
        try:
            bundle = Bundle(save_path)
        except DataLossError as error:
            raise ValueError(f"The passed save_path is not a valid checkpoint: {save_path} ({error})") from None
        try:
            key_by_name = _keys_of_objects(bundle)
            value_by_name = {name: self._parts.read(bundle, key_by_name, name) for name in self._variable_by_name}
        except NotFoundError as error:
            raise NotFoundError.of(
"Restoring from checkpoint failed. This is most likely due to a Variable name or other graph key that "
                "is missing from the checkpoint. Please ensure that you have not altered the graph expected based on "
                f"the checkpoint. Original error:\n\n{error.message}",
            ) from None  # fmt: skip
        for name, variable in self._variable_by_name.items():
            if _is_iterator(variable):
                continue
            value = np.asarray(value_by_name[name])
            if self._reshape and variable.shape.is_fully_defined():
                value = value.reshape(variable.shape.as_list())
            if value.dtype != object and (found := as_dtype(value.dtype)) != variable.dtype.base_dtype:
                raise InvalidArgumentError.of(
                    f"Restoring from checkpoint failed: tensor_name = {name}; expected dtype "
                    f"{variable.dtype.base_dtype.name} does not equal original dtype {found.name}"
                )
            if not variable.shape.is_compatible_with(value.shape):
                raise InvalidArgumentError.of(
"Restoring from checkpoint failed. This is most likely due to a mismatch between the current graph "
                    "and the graph from the checkpoint. Please ensure that you have not altered the graph expected "
                    f"based on the checkpoint. Original error:\n\nAssign requires shapes of both tensors to match. lhs "
                    f"shape= {variable.shape.as_list()} rhs shape= {list(value.shape)}, for variable {name}",
                )  # fmt: skip
        for name, variable in self._variable_by_name.items():
            value = value_by_name[name]
            if _is_iterator(variable):
                variable.restore_in_session(sess, value)
                continue
            if self._reshape and variable.shape.is_fully_defined():
                value = np.reshape(value, variable.shape.as_list())
            if sess is None:
                variable.assign(value)
            else:
                sess.set_variable(variable, value)


def _is_iterator(thing: Any) -> bool:
    """Whether a saver is to save where an iterator is: sessions hold that, and it has no shape."""
    return isinstance(thing, IteratorSaveable)


def _keys_of_objects(bundle: Bundle) -> dict[str, str]:
    """The keys of values by the names of variables, in a checkpoint that keeps objects."""
    nodes = decode_graph(bundle.value(GRAPH_KEY)) if GRAPH_KEY in bundle else []
    return {node.full_name: key for node in nodes for key in node.keys.values() if node.full_name}
