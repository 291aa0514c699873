"""`tf.__internal__.tracking` and `saved_model.load`: what checkpoints and saved models ask of objects of a library."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tapeflow._src.function import spec_messages
from tapeflow._src.namespace import public
from tapeflow._src.train.checkpoint.object_graph import children_of


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

    def breadth_first_traversal(self) -> tuple[list[Any], dict[Any, Any]]:
        """The objects, nearest first, and the path to each."""
        objects: list[Any] = [self.root]
        path_by_id: dict[int, tuple[TrackableReference, ...]] = {id(self.root): ()}
        for thing in objects:
            for reference in self.list_children(thing):
                if id(reference.ref) not in path_by_id:
                    path_by_id[id(reference.ref)] = (*path_by_id[id(thing)], reference)
                    objects.append(reference.ref)
        return objects, _ByIdentity(objects, path_by_id)


class _ByIdentity(dict[Any, Any]):
    """Values by object, found by identity."""

    def __init__(self, objects: Sequence[Any], value_by_id: dict[int, Any]) -> None:
        super().__init__()
        self._kept, self._value_by_id = list(objects), value_by_id

    def __getitem__(self, key: Any) -> Any:
        return self._value_by_id[id(key)]

    def __contains__(self, key: Any) -> bool:
        return id(key) in self._value_by_id

    def __len__(self) -> int:
        return len(self._kept)

    def keys(self) -> Any:
        """The objects."""
        return iter(self._kept)

    def items(self) -> Any:
        """The objects and their values."""
        return ((thing, self._value_by_id[id(thing)]) for thing in self._kept)


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
        return self.checkpoint_position

    restore_uid = property(lambda self: None)


@public("__internal__.tracking.DelegatingTrackableMixin")
class DelegatingTrackableMixin:
    """Lets an object stand for another one in checkpoints: what tracks is done by that one.

    >>> holder = tf.__internal__.tracking.AutoTrackable()
    >>> holder.x = tf.Variable(1.)
    >>> list(tf.__internal__.tracking.DelegatingTrackableMixin(holder)._trackable_children())
    ['x']
    """

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


_session_providers: list[Callable[[], Any]] = []


@public("__internal__.tracking.register_session_provider")
def register_session_provider(session_provider: Callable[[], Any]) -> None:
    """Says which function gives the session in which checkpoints of a graph are read and written.

    >>> tf.__internal__.tracking.register_session_provider(lambda: None)
    """
    _session_providers[:] = [session_provider]


def get_session() -> Any:
    """The session of the provider that was registered, or None."""
    return _session_providers[0]() if _session_providers else None


# ---- structures of specs as messages


@public("__internal__.saved_model.encode_structure")
def encode_structure(nested_structure: Any) -> Any:
    """A structure of specs, shapes, dtypes and Python values as a message, which `decode_proto` reads.

    >>> message = tf.__internal__.saved_model.encode_structure({"x": tf.TensorSpec([2])})
    >>> tf.__internal__.saved_model.decode_proto(message)
    {'x': TensorSpec(shape=(2,), dtype=tf.float32, name=None)}
    """
    return spec_messages.encode(nested_structure)


@public("__internal__.saved_model.decode_proto")
def decode_proto(proto: Any) -> Any:
    """The structure that `encode_structure` wrote.

    >>> tf.__internal__.saved_model.decode_proto(tf.__internal__.saved_model.encode_structure((1, "a")))
    (1, 'a')
    """
    return spec_messages.decode(proto)


# ---- types that a saved model gives back


@public("__internal__.saved_model.load.VersionedTypeRegistration")
class VersionedTypeRegistration:
    """One version of a type that a saved model names, and how it is made.

    >>> tf.__internal__.saved_model.load.VersionedTypeRegistration(tf.Module, 1, 1, 1).version
    1
    """

    def __init__(
        self,
        object_factory: Callable[..., Any],
        version: int,
        min_producer_version: int,
        min_consumer_version: int,
        bad_consumers: Sequence[int] | None = None,
        setter: Callable[..., None] = setattr,
    ) -> None:
        self.object_factory, self.version, self.setter = object_factory, version, setter
        self.min_producer_version, self.min_consumer_version = min_producer_version, min_consumer_version
        self.bad_consumers = list(bad_consumers or ())
        self.identifier: str | None = None


_revived_types: dict[str, tuple[Callable[[Any], bool], list[VersionedTypeRegistration]]] = {}


@public("__internal__.saved_model.load.register_revived_type")
def register_revived_type(
    identifier: str, predicate: Callable[[Any], bool], versions: Sequence[VersionedTypeRegistration]
) -> None:
    """Registers a type under the name that a saved model has for it.

    >>> version = tf.__internal__.saved_model.load.VersionedTypeRegistration(tf.Module, 1, 1, 1)
    >>> tf.__internal__.saved_model.load.register_revived_type("my_module", lambda x: False, [version])
    >>> "my_module" in tf.__internal__.saved_model.load.registered_identifiers()
    True
    """
    ordered = sorted(versions, key=lambda registration: registration.version, reverse=True)
    if identifier in _revived_types:
        raise AssertionError(f"Duplicate registrations for type '{identifier}'")
    for registration in ordered:
        registration.identifier = identifier
    _revived_types[identifier] = (predicate, ordered)


@public("__internal__.saved_model.load.registered_identifiers")
def registered_identifiers() -> Any:
    """The names of the types that are registered.

    >>> isinstance(list(tf.__internal__.saved_model.load.registered_identifiers()), list)
    True
    """
    return _revived_types.keys()


@public("__internal__.saved_model.load.get_setter")
def get_setter(proto: Any) -> Callable[..., None] | None:
    """How the attributes of an object that a saved model describes are set, or None.

    >>> class Description:
    ...     identifier = "unknown"
    >>> tf.__internal__.saved_model.load.get_setter(Description()) is None
    True
    """
    _, versions = _revived_types.get(proto.identifier, (None, []))
    return versions[0].setter if versions else None
