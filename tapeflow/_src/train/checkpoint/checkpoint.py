"""`tf.train.Checkpoint`: saves the values of objects that hold variables, and restores them."""

from __future__ import annotations

import os
import weakref
from typing import Any

import numpy as np

from tapeflow._src.namespace import find_public, public
from tapeflow._src.train.checkpoint.object_graph import (
    GRAPH_KEY,
    ObjectGraph,
    children_of,
    encode_graph,
    is_trackable,
    value_of,
)
from tapeflow._src.train.checkpoint.restoration import Restoration, restore_by_names
from tapeflow._src.train.checkpoint.state import CheckpointState, write_checkpoint_state
from tapeflow._src.train.checkpoint.tensor_bundle import Bundle, write_bundle
from tapeflow._src.types.errors import NotFoundError
from tapeflow._src.types.trackable import Trackable
from tapeflow._src.variables import Variable


@public("train.CheckpointOptions")
class CheckpointOptions:
    """Settings for checkpoints: accepted, and without effect.

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
        self.experimental_write_callbacks = experimental_write_callbacks
        self.enable_async = self.experimental_enable_async_checkpoint
        self.experimental_skip_slot_variables = experimental_skip_slot_variables
        self.experimental_sharding_callback = experimental_sharding_callback


class CheckpointLoadStatus:
    """What came of restoring a checkpoint; objects that are made later are restored when a module gets them."""

    def __init__(self, restoration: Restoration) -> None:
        self._restoration = restoration

    def assert_consumed(self) -> CheckpointLoadStatus:
        """Raises AssertionError unless every object was restored and every value used."""
        self.assert_existing_objects_matched()
        for path, node in self._restoration.unmatched_nodes():
            raise AssertionError(f"Unresolved object in checkpoint {path}: {', '.join(node.keys.values())}")
        return self

    def assert_existing_objects_matched(self) -> CheckpointLoadStatus:
        """Raises AssertionError unless every object was restored; values may be left over."""
        self._restoration.sync()
        unmatched = self._restoration.unmatched_objects()
        if unmatched:
            raise AssertionError(
                f"Found {len(unmatched)} Python objects that were not bound to checkpointed values, likely due to "
                f"changes in the Python program. Showing {min(10, len(unmatched))} of {len(unmatched)} unmatched "
                f"objects: {unmatched[:10]}"
            )
        return self

    def assert_nontrivial_match(self) -> CheckpointLoadStatus:
        """Raises AssertionError if nothing but the root was found in the checkpoint."""
        self._restoration.sync()
        if len(self._restoration.object_by_node) <= 1 < len(self._restoration.nodes):
            raise AssertionError(
                "Nothing except the root object matched a checkpointed value. Typically this means that the checkpoint "
                "does not match the Python program. The following objects have no matching checkpointed value: "
                f"{self._restoration.unmatched_objects()}"
            )
        return self

    def expect_partial(self) -> CheckpointLoadStatus:
        """Says that values may be left over."""
        return self

    def initialize_or_restore(self, session: Any = None) -> None:
        """Does nothing: values are restored already."""

    def run_restore_ops(self, session: Any = None) -> None:
        """Does nothing: values are restored already."""


class InitializationOnlyStatus(CheckpointLoadStatus):
    """What comes of restoring nothing."""

    def __init__(self) -> None:
        pass

    def assert_consumed(self) -> CheckpointLoadStatus:
        """Raises AssertionError."""
        raise AssertionError("No checkpoint specified (save_path=None); nothing is being restored.")

    assert_existing_objects_matched = assert_nontrivial_match = assert_consumed


class NameBasedSaverStatus(CheckpointLoadStatus):
    """What came of restoring a checkpoint of TensorFlow 1, which knows names alone."""

    def __init__(self, missing: list[Any]) -> None:
        self._missing = missing

    def assert_consumed(self) -> CheckpointLoadStatus:
        """Raises AssertionError unless every variable was restored."""
        if self._missing:
            raise AssertionError(f"Some objects had attributes which were not restored: {self._missing}")
        return self

    assert_existing_objects_matched = assert_nontrivial_match = assert_consumed


@public("train.Checkpoint", "compat.v1.train.Checkpoint")
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

    _children: dict[str, Any]
    _restoration: Any
    _given_root: Any
    _save_counter: Any

    @property
    def _root(self) -> Any:
        """The object whose attributes are saved; it may be given by a weak reference."""
        given = self._given_root
        return given() if isinstance(given, weakref.ref) else given

    def __setattr__(self, name: str, value: Any) -> None:
        if type(value) in (list, dict):  # so that what is added later takes its value from a checkpoint restored before
            value = find_public("__internal__.tracking.wrap")(value)
        self.__dict__[name] = value
        self._children[name] = value
        if self._restoration is not None:
            self._restoration.attribute_set(self, name, value)

    def _trackable_children(self, *args: Any, **kwargs: Any) -> dict[str, Any]:
        below = {} if self._root is None else children_of(self._root)
        return {
            **below,
            **self._children,
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

    def write(self, file_prefix: Any, options: CheckpointOptions | None = None) -> str:
        """Writes the values to files that begin with `file_prefix`; gives it back."""
        prefix = os.fspath(file_prefix)
        folder = os.path.dirname(prefix)
        if folder:
            os.makedirs(folder, exist_ok=True)
        graph = ObjectGraph(self)
        values = {key: value_of(leaf) for key, leaf in graph.leaf_by_key.items()}
        values[GRAPH_KEY] = np.array(encode_graph(graph.nodes), object)
        write_bundle(prefix, values)
        return str(prefix)

    def save(self, file_prefix: Any, options: CheckpointOptions | None = None) -> str:
        """Writes the values to files that begin with `file_prefix` and a number; gives their common path."""
        number = int(self.save_counter.assign_add(1))
        path = self.write(f"{os.fspath(file_prefix)}-{number}")
        write_checkpoint_state(os.path.dirname(path), CheckpointState(path, [path]))
        return path

    def read(self, save_path: Any, options: CheckpointOptions | None = None) -> CheckpointLoadStatus:
        """Puts the values of a checkpoint into the objects; either all fit, or nothing is changed."""
        if save_path is None:
            return InitializationOnlyStatus()
        path = os.fspath(save_path)
        try:
            bundle = Bundle(path)
        except NotFoundError as error:
            raise NotFoundError.of(
                f"Error when restoring from checkpoint or SavedModel at {path}: {error.message}\nPlease double-check "
                "that the path is correct. You may be missing the checkpoint suffix (e.g. the '-1' in "
                "'path/to/ckpt-1').",
            ) from None
        if GRAPH_KEY not in bundle:
            return NameBasedSaverStatus(restore_by_names(bundle, self))
        restoration = Restoration(bundle, self)
        self.__dict__["_restoration"] = restoration
        return CheckpointLoadStatus(restoration)

    def restore(self, save_path: Any, options: CheckpointOptions | None = None) -> CheckpointLoadStatus:
        """Like `read`, with the number of saves; None restores nothing."""
        if save_path is not None:
            _ = self.save_counter
        return self.read(save_path, options)

    def sync(self) -> None:
        """Waits for files that are being written: none are."""
