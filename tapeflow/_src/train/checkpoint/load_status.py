"""What comes of restoring a checkpoint: which objects and values matched, and the restoring in sessions."""

from __future__ import annotations

from typing import Any

import numpy as np

from tapeflow._src import _core
from tapeflow._src.train.checkpoint.graph_sessions import initialize, is_in_graph, needed_session
from tapeflow._src.train.checkpoint.object_graph import ObjectGraph
from tapeflow._src.train.checkpoint.restoration import Restoration
from tapeflow._src.train.checkpoint.tensor_bundle import Bundle


class CheckpointLoadStatus:
    """What came of restoring a checkpoint; objects that are made later are restored when a module gets them."""

    def __init__(self, restoration: Restoration) -> None:
        self._restoration = restoration

    def assert_consumed(self) -> CheckpointLoadStatus:
        """Raises AssertionError unless every object was restored and every value used."""
        self.assert_existing_objects_matched()
        for path, node in self._restoration.unmatched_nodes():
            raise AssertionError(f"Unresolved object in checkpoint {path}: {', '.join(node.keys.values())}")
        if unused := self._restoration.unused_attributes():
            raise AssertionError(
                f"Unused attributes in these objects (the attributes exist in the checkpoint but were not restored): "
                f"{'; '.join(unused)}"
            )
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
            unmatched = self._restoration.unmatched_objects()
            if not unmatched:
                raise AssertionError(
                    f"Nothing to load. No dependencies have been added to {self._restoration.root} yet."
                )
            raise AssertionError(
                "Nothing except the root object matched a checkpointed value. Typically this means that the checkpoint "
                "does not match the Python program. The following objects have no matching checkpointed value: "
                f"{unmatched}"
            )
        return self

    def expect_partial(self) -> CheckpointLoadStatus:
        """Says that values may be left over."""
        return self

    def initialize_or_restore(self, session: Any = None) -> None:
        """Gives the variables of a graph the values of the checkpoint, or their first values if it has none.

        Eager variables are restored already.
        """
        self._restoration.sync()
        initialize(self._restoration.unmatched_objects(), session)
        self.run_restore_ops(session)

    def run_restore_ops(self, session: Any = None) -> None:
        """Gives the variables of a graph the values of the checkpoint; eager variables have them already."""
        self._restoration.sync()
        self._restoration.load_into(session)

    def restore_later_objects(self, session: Any) -> None:
        """Gives the variables of a graph that come later their values at once, in this session."""
        self._restoration.session_of_later_objects = needed_session(session)


class InitializationOnlyStatus(CheckpointLoadStatus):
    """What comes of restoring nothing."""

    def __init__(self, root: Any) -> None:
        self._root = root

    def assert_consumed(self) -> CheckpointLoadStatus:
        """Raises AssertionError."""
        raise AssertionError("No checkpoint specified (save_path=None); nothing is being restored.")

    assert_existing_objects_matched = assert_nontrivial_match = assert_consumed

    def run_restore_ops(self, session: Any = None) -> None:
        """Raises AssertionError."""
        self.assert_consumed()

    def initialize_or_restore(self, session: Any = None) -> None:
        """Gives the variables of a graph their first values; eager variables have them already."""
        initialize(list(ObjectGraph(self._root).leaf_by_key.values()), session)

    def restore_later_objects(self, session: Any) -> None:
        """Does nothing."""


class NameBasedSaverStatus(CheckpointLoadStatus):
    """What came of restoring a checkpoint of TensorFlow 1, which knows names alone."""

    def __init__(self, bundle: Bundle, root: Any, optional: list[Any]) -> None:
        self._bundle, self._root, self._optional = bundle, root, optional
        self._restored: list[Any] = []
        self._restore([v for v in self._variables() if not is_in_graph(v)], None)

    def _variables(self) -> list[Any]:
        leaves = ObjectGraph(self._root).leaf_by_key.values()
        return [leaf for leaf in leaves if isinstance(leaf, _core.Variable)]

    def _restore(self, variables: list[Any], session: Any) -> None:
        found = [(v, name) for v in variables if (name := v.name.removesuffix(":0")) in self._bundle]
        for variable, name in found:
            if not variable.shape.is_compatible_with(self._bundle.shape(name)):
                raise ValueError(
                    f"Received incompatible tensor with shape {tuple(self._bundle.shape(name))} when attempting to "
                    f"restore variable with shape {variable.shape} and name {variable.name}."
                )
        for variable, name in found:
            value = np.asarray(self._bundle.value(name))
            if is_in_graph(variable):
                session.set_variable(variable, value)
            else:
                variable.assign(value)
            self._restored.append(variable)

    def assert_consumed(self) -> CheckpointLoadStatus:
        """Raises AssertionError unless every variable was restored."""
        known = {id(v) for v in (*self._restored, *self._optional)}
        missing = [v for v in self._variables() if id(v) not in known]
        if missing:
            raise AssertionError(f"Some objects had attributes which were not restored: {missing}")
        return self

    assert_existing_objects_matched = assert_nontrivial_match = assert_consumed

    def initialize_or_restore(self, session: Any = None) -> None:
        """Gives the variables of a graph the values of the checkpoint, and first values to those that it lacks."""
        initialize([v for v in self._variables() if v.name.removesuffix(":0") not in self._bundle], session)
        self.run_restore_ops(session)

    def run_restore_ops(self, session: Any = None) -> None:
        """Gives the variables of a graph the values of the checkpoint."""
        variables = [v for v in self._variables() if is_in_graph(v)]
        if variables:
            self._restore(variables, needed_session(session))

    def restore_later_objects(self, session: Any) -> None:
        """Raises NotImplementedError: names do not say which objects will come."""
        raise NotImplementedError(
            "Streaming restore not supported from name-based checkpoints when graph building. File a feature request "
            "if this limitation bothers you. As a workaround, consider either using tf.train.Checkpoint to load "
            "name-based checkpoints or enabling eager execution."
        )
