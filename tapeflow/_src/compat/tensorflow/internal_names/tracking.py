"""`tf.__internal__.tracking`: what checkpoints ask of objects of a library."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from tapeflow._src.compat.v1.graph.eager_switch import executing_eagerly
from tapeflow._src.namespace import find_public, public
from tapeflow._src.train.checkpoint.graph_sessions import current_session, needed_session, session_providers
from tapeflow._src.train.checkpoint.object_graph import children_of, slots_of
from tapeflow._src.types.dtypes import float32
from tapeflow._src.types.identity import ObjectIdentityDictionary
from tapeflow._src.variables import Variable


@public("__internal__.tracking.TrackableReference")
class TrackableReference(tuple[str, Any]):
    """The name under which an object holds another one, and that one.

    >>> tf.__internal__.tracking.TrackableReference("x", 1).name
    'x'
    """

    def __new__(cls, name: str, ref: Any) -> TrackableReference:
        return tuple.__new__(cls, (name, ref))

    name = property(lambda self: self[0])
    ref = property(lambda self: self[1])


@public("__internal__.tracking.ObjectGraphView")
class ObjectGraphView:
    """The objects below a root, as a checkpoint sees them.

    >>> module = tf.Module()
    >>> module.x = tf.Variable(1.)
    >>> [child.name for child in tf.__internal__.tracking.ObjectGraphView(module).list_children(module)]
    ['x']
    """

    def __init__(self, root: Any, attached_dependencies: Any = None) -> None:
        self.root = root
        self.attached_dependencies = attached_dependencies

    def list_children(self, obj: Any, save_type: str = "checkpoint", **kwargs: Any) -> list[TrackableReference]:
        """What an object holds."""
        return [TrackableReference(name, ref) for name, ref in self.children(obj, save_type).items()]

    def children(self, obj: Any, save_type: str = "checkpoint", **kwargs: Any) -> dict[str, Any]:
        """What an object holds, by name."""
        return children_of(obj)

    def breadth_first_traversal(self) -> tuple[list[Any], ObjectIdentityDictionary]:
        """The objects, nearest first, and the path to each."""
        objects: list[Any] = [self.root]
        path_by_object = ObjectIdentityDictionary()
        path_by_object[self.root] = ()
        for thing in objects:
            for reference in self.list_children(thing):
                if reference.ref not in path_by_object:
                    path_by_object[reference.ref] = (*path_by_object[thing], reference)
                    objects.append(reference.ref)
        return objects, path_by_object


def list_objects(root: Any) -> list[Any]:
    """The objects that a checkpoint of a root, or of the root of a view, would hold, nearest first."""
    view = root if isinstance(root, ObjectGraphView) else ObjectGraphView(root)
    objects = list(view.breadth_first_traversal()[0])
    variables = [thing for thing in objects if isinstance(thing, Variable)]
    return objects + [kept for thing in objects for _, _, kept in slots_of(thing, variables)]


def add_variable(
    trackable: Any, name: str, shape: Any = None, dtype: Any = float32, initializer: Any = None, trainable: bool = True
) -> Any:
    """A new variable that an object holds under a name, whatever scopes are open."""

    def make(name: str, shape: Any, dtype: Any, initializer: Any, trainable: bool) -> Any:
        first = initializer if shape is None or initializer is None else partial(initializer, shape, dtype=dtype)
        if first is None:
            first = partial(find_public("zeros"), shape, dtype)
        return Variable(first, trainable=trainable, dtype=dtype, name=name)

    return trackable._add_variable_with_custom_getter(
        name=name, shape=shape, dtype=dtype, initializer=initializer, getter=make, trainable=trainable
    )


def gather_initializers(root_trackable: Any) -> list[Any]:
    """The initializers of all that a checkpoint of the root would hold."""
    return [thing.initializer for thing in list_objects(root_trackable) if getattr(thing, "initializer", None)]


@public("__internal__.tracking.streaming_restore")
def streaming_restore(status: Any, session: Any = None) -> None:
    """Gives the variables of a session the values of a checkpoint; eagerly they have them already.

    >>> v = tf.Variable(1.)
    >>> status = tf.train.Checkpoint(v=v).read(tf.train.Checkpoint(v=v).write("model"))
    >>> tf.__internal__.tracking.streaming_restore(status)
    """
    if not executing_eagerly():
        session = needed_session(session)
        status.restore_later_objects(session)
        status.run_restore_ops(session)


@public("__internal__.tracking.CheckpointInitialValue")
class CheckpointInitialValue:
    """The value with which a variable begins, read from a checkpoint.

    >>> tf.__internal__.tracking.CheckpointInitialValue(1.).wrapped_value
    1.0
    """

    def __init__(self, wrapped_value: Any, shape: Any = None) -> None:
        self.wrapped_value, self.shape = wrapped_value, shape


@public("__internal__.tracking.CheckpointInitialValueCallable")
class CheckpointInitialValueCallable:
    """Gives the value with which a variable begins, read from a checkpoint.

    >>> tf.__internal__.tracking.CheckpointInitialValueCallable(3.)()
    3.0
    """

    def __init__(self, checkpoint_position: Any) -> None:
        self.checkpoint_position = checkpoint_position

    def __call__(self, shape: Any = None, dtype: Any = None, shard_info: Any = None) -> Any:
        position = self.checkpoint_position
        return position.value() if hasattr(position, "value") else position

    restore_uid = property(lambda self: None)


@public("__internal__.tracking.DelegatingTrackableMixin")
class DelegatingTrackableMixin:
    """Lets an object stand for another one in checkpoints: what tracks is done by that one.

    >>> holder = tf.__internal__.tracking.AutoTrackable()
    >>> holder.x = tf.Variable(1.)
    >>> list(tf.__internal__.tracking.DelegatingTrackableMixin(holder)._trackable_children())
    ['x']
    """

    _delegates_tracking = True  # a checkpoint restores `_trackable` for this object

    def __init__(self, trackable_obj: Any) -> None:
        self._trackable = trackable_obj

    def _no_dependency(self, *args: Any, **kwargs: Any) -> Any:
        return self._trackable._no_dependency(*args, **kwargs)

    def _lookup_dependency(self, *args: Any, **kwargs: Any) -> Any:
        return self._trackable._lookup_dependency(*args, **kwargs)

    def _track_trackable(self, *args: Any, **kwargs: Any) -> Any:
        return self._trackable._track_trackable(*args, **kwargs)

    def _handle_deferred_dependencies(self, name: str, trackable: Any) -> Any:
        return self._trackable._handle_deferred_dependencies(name, trackable)

    def _add_variable_with_custom_getter(self, *args: Any, **kwargs: Any) -> Any:
        return self._trackable._add_variable_with_custom_getter(*args, **kwargs)

    def _trackable_children(self, *args: Any, **kwargs: Any) -> Any:
        return self._trackable._trackable_children(*args, **kwargs)


@public("__internal__.tracking.register_session_provider")
def register_session_provider(session_provider: Callable[[], Any]) -> None:
    """Says which function gives the session in which checkpoints of a graph are read and written.

    >>> tf.__internal__.tracking.register_session_provider(lambda: None)
    """
    session_providers[:] = [session_provider]


def get_session() -> Any:
    """The default session, or the one of the provider that was registered; None without one."""
    return current_session()
