"""`tf.train.Checkpoint`: saves the values of objects that hold variables, and restores them."""

from __future__ import annotations

import inspect
import os
import weakref
from typing import Any

import numpy as np

from tapeflow._src import _core
from tapeflow._src.namespace import find_public, public
from tapeflow._src.ops.arrays.conversion import convert_to_tensor
from tapeflow._src.ops.effects.host_call import host_call
from tapeflow._src.train.checkpoint.graph_sessions import initialize, is_in_graph, needed_session, values_of
from tapeflow._src.train.checkpoint.load_status import (
    CheckpointLoadStatus,
    InitializationOnlyStatus,
    NameBasedSaverStatus,
)
from tapeflow._src.train.checkpoint.object_graph import (
    GRAPH_KEY,
    ObjectGraph,
    children_of,
    encode_graph,
    is_trackable,
)
from tapeflow._src.train.checkpoint.restoration import Restoration
from tapeflow._src.train.checkpoint.state import CheckpointState, write_checkpoint_state
from tapeflow._src.train.checkpoint.tensor_bundle import Bundle, write_bundle
from tapeflow._src.types.errors import NotFoundError
from tapeflow._src.types.trackable import Trackable
from tapeflow._src.variables import Variable


@public("train.CheckpointOptions")
class CheckpointOptions:
    """Settings for checkpoints: what to call when one is written, and whether to restore what optimizers keep.

    The others say on which device and when files are written; that is at once, on the only one.

    Args:
        experimental_io_device: Without effect.
        experimental_enable_async_checkpoint: Without effect, as is `enable_async`.
        experimental_write_callbacks: Functions to call after a checkpoint was written, with its path or nothing.
        enable_async: Without effect.
        experimental_skip_slot_variables: Whether restoring leaves out the slots of optimizers.
        experimental_sharding_callback: Without effect: a checkpoint is one file.

    >>> tf.train.CheckpointOptions(enable_async=False).enable_async
    False
    """

    def __init__(
        self,
        experimental_io_device: Any = None,
        experimental_enable_async_checkpoint: bool = False,
        experimental_write_callbacks: Any = None,
        enable_async: bool = False,
        experimental_skip_slot_variables: bool = False,
        experimental_sharding_callback: Any = None,
    ) -> None:
        self.experimental_io_device = experimental_io_device
        self.experimental_enable_async_checkpoint = enable_async or experimental_enable_async_checkpoint
        for callback in experimental_write_callbacks or []:
            if (count := len(inspect.signature(callback).parameters)) > 1:
                raise AssertionError(
                    f"Callback functions for checkpoint are required to have 0 or 1 parameters, but this has {count} "
                    f"parameters: {callback}"
                )
        self.experimental_write_callbacks = experimental_write_callbacks
        self.enable_async = self.experimental_enable_async_checkpoint
        self.experimental_skip_slot_variables = experimental_skip_slot_variables
        self.experimental_sharding_callback = experimental_sharding_callback

    def __copy__(self) -> CheckpointOptions:
        callbacks = self.experimental_write_callbacks
        return CheckpointOptions(
            self.experimental_io_device,
            self.experimental_enable_async_checkpoint,
            None if callbacks is None else list(callbacks),
            self.enable_async,
            self.experimental_skip_slot_variables,
            self.experimental_sharding_callback,
        )


def _report_written(path: str, options: CheckpointOptions | None) -> str:
    """Calls what the options name for a checkpoint that was written; gives its path."""
    for callback in (options and options.experimental_write_callbacks) or []:
        callback(*[path][: len(inspect.signature(callback).parameters)])
    return path


def _is_in_function() -> bool:
    """Whether a function is being traced; the graphs of TensorFlow 1 have sessions."""
    graph = _core.current_graph()
    return graph is not None and not graph.graph_mode


@public("train.Checkpoint")
class Checkpoint(Trackable):
    """Saves and restores the values of variables, modules, optimizers, and lists and dictionaries of them, by name.

    >>> v = tf.Variable([1., 2.])
    >>> checkpoint = tf.train.Checkpoint(v=v)
    >>> path = checkpoint.save("model")
    >>> v.assign([0., 0.]).numpy()
    array([0., 0.], dtype=float32)
    >>> checkpoint.restore(path).assert_consumed() and v.numpy()
    array([1., 2.], dtype=float32)
    """

    def __init__(self, root: Any = None, **kwargs: Any) -> None:
        self.__dict__.update(_children={}, _given_root=root, _save_counter=None, _restoration=None)
        root = self._root
        if root is not None and not is_trackable(root):
            raise ValueError(
                "`Checkpoint` was expecting root to be a trackable object (an object derived from `Trackable`), got "
                f"{root}. If you believe this object should be trackable (i.e. it is part of the TensorFlow Python API "
                "and manages state), please open an issue."
            )
        below = {} if root is None else children_of(root)
        for name, value in sorted(kwargs.items()):
            if name in below and below[name] is not value:
                raise ValueError(
                    f"Cannot create a Checkpoint with keyword argument {name} if root.{name} already exists."
                )
            if not is_trackable(value) and value not in ([], {}, ()):
                raise ValueError(
                    f"`Checkpoint` was expecting {name} to be a trackable object (an object derived from `Trackable`), "
                    f"got {value}. If you believe this object should be trackable (i.e. it is part of the TensorFlow "
                    "Python API and manages state), please open an issue."
                )
            setattr(self, name, value)

    # A subclass need not call `__init__`.
    _children: dict[str, Any]
    _restoration: Any = None
    _given_root: Any = None
    _save_counter: Any = None
    _count_operation: Any = None  # in a graph

    @property
    def _root(self) -> Any:
        """The object whose attributes are saved; it may be given by a weak reference."""
        given = self._given_root
        return given() if isinstance(given, weakref.ref) else given

    def __setattr__(self, name: str, value: Any) -> None:
        if type(value) in (list, dict):  # so that what is added later takes its value from a checkpoint restored before
            value = find_public("__internal__.tracking.wrap")(value)
        self.__dict__[name] = value
        self.__dict__.setdefault("_children", {})[name] = value
        if self._restoration is not None:
            self._restoration.attribute_set(self, name, value)

    def _trackable_children(self, *args: Any, **kwargs: Any) -> dict[str, Any]:
        below = {} if self._root is None else children_of(self._root)
        return {
            **below,
            **self.__dict__.get("_children", {}),
            **({} if self._save_counter is None else {"save_counter": self._save_counter}),
        }

    @property
    def save_counter(self) -> Variable:
        """How often `save` was called."""
        if self._save_counter is None:
            counter = Variable(0, dtype="int64", trainable=False, name="save_counter")
            self.__dict__["_save_counter"] = counter
        variable: Variable = self._save_counter
        return variable

    def write(self, file_prefix: Any, options: CheckpointOptions | None = None) -> Any:
        """Writes the values to files that begin with `file_prefix`; gives it back, in a function as a tensor."""
        if _is_in_function():
            return self._write_when_run(file_prefix, options)
        return _report_written(self._write_in(file_prefix, None), options)

    def _write_when_run(self, file_prefix: Any, options: CheckpointOptions | None) -> Any:
        """A node that writes the values which the variables have when the function runs."""

        def write(prefix: Any) -> list[Any]:
            stage = _core.swap_stage(None)
            try:
                path = self._write_in(prefix.numpy().decode(), None)
            finally:
                _core.swap_stage(stage)
            return [convert_to_tensor(_report_written(path, options))]

        return host_call(write, [convert_to_tensor(file_prefix)], [("string", [])], effect=True)[0]

    def _write_in(self, file_prefix: Any, session: Any) -> str:
        prefix = os.fspath(file_prefix)
        folder = os.path.dirname(prefix)
        if folder:
            os.makedirs(folder, exist_ok=True)
        graph = ObjectGraph(self)
        values = values_of(graph.leaf_by_key, session)
        values[GRAPH_KEY] = np.array(encode_graph(graph.nodes), object)
        write_bundle(prefix, values)
        return str(prefix)

    def save(self, file_prefix: Any, options: CheckpointOptions | None = None) -> str:
        """Writes the values to files that begin with `file_prefix` and a number; gives their common path."""
        if _is_in_function():
            raise NotImplementedError(
                "Calling tf.train.Checkpoint.save() from a function is not supported, as save() modifies saving "
                "metadata in ways not supported by TensorFlow Operations. Consider using tf.train.Checkpoint.write(), "
                "a lower-level API which does not update metadata. tf.train.latest_checkpoint and related APIs will "
                "not see this checkpoint."
            )
        return _report_written(self._save_in(file_prefix, None), options)

    def _save_in(self, file_prefix: Any, session: Any) -> str:
        path = self._write_in(f"{os.fspath(file_prefix)}-{self._count_save(session)}", session)
        write_checkpoint_state(os.path.dirname(path), CheckpointState(path, [path]))
        return path

    def _count_save(self, session: Any) -> int:
        is_new = self._save_counter is None
        counter = self.save_counter
        if not is_in_graph(counter):
            return int(counter.assign_add(1))
        if is_new:
            initialize([counter], session)
        if self._count_operation is None:
            self.__dict__["_count_operation"] = counter.assign_add(1)
        return int(needed_session(session).run(self._count_operation))

    def read(self, save_path: Any, options: CheckpointOptions | None = None) -> CheckpointLoadStatus:
        """Puts the values of a checkpoint into the objects; either all fit, or nothing is changed."""
        if save_path is None:
            return InitializationOnlyStatus(self)
        path = os.fspath(save_path)
        if os.path.isfile(os.path.join(path, "saved_model.pb")):
            path = os.path.join(path, "variables", "variables")
        try:
            bundle = Bundle(path)
        except NotFoundError as error:
            raise NotFoundError.of(
                f"Error when restoring from checkpoint or SavedModel at {path}: {error.message}\nPlease double-check "
                "that the path is correct. You may be missing the checkpoint suffix (e.g. the '-1' in "
                "'path/to/ckpt-1').",
            ) from None
        if GRAPH_KEY not in bundle:
            return NameBasedSaverStatus(bundle, self, [self._save_counter])
        restoration = Restoration(bundle, self, bool(options and options.experimental_skip_slot_variables))
        self.__dict__["_restoration"] = restoration
        return CheckpointLoadStatus(restoration)

    def restore(self, save_path: Any, options: CheckpointOptions | None = None) -> CheckpointLoadStatus:
        """Like `read`, with the number of saves; None restores nothing."""
        if save_path is not None:
            _ = self.save_counter
        return self.read(save_path, options)

    def sync(self) -> None:
        """Waits for files that are being written: none are."""
