"""Types of libraries that a saved model names: how an object is described in the file, and made again from it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tapeflow._src.io.protos import messages
from tapeflow._src.namespace import public


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


def describe(thing: Any) -> Any:
    """The message for an object of a type that is registered, or None."""
    for identifier, (predicate, versions) in _revived_types.items():
        if predicate(thing):
            version = messages.VersionDef(
                producer=versions[0].version,
                min_consumer=versions[0].min_consumer_version,
                bad_consumers=versions[0].bad_consumers,
            )
            return messages.SavedUserObject(identifier=identifier, version=version)
    return None


def revive(proto: Any) -> tuple[Any, Callable[..., None]] | None:
    """An object of the type that a message names, and how its attributes are set; None if none is registered."""
    _, versions = _revived_types.get(proto.identifier, (None, []))
    for registration in versions:
        fits = (
            proto.version.producer >= registration.min_producer_version
            and registration.version >= proto.version.min_consumer
            and registration.version not in proto.version.bad_consumers
        )
        if fits:
            return registration.object_factory(proto), registration.setter
    return None
