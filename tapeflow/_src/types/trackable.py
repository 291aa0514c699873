"""Objects that know which others they hold, so that checkpoints find them: `tf.__internal__.tracking`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import Any

from tapeflow._src.namespace import find_public, public

_CONTAINERS = frozenset({list, dict, tuple})  # what they hold is found when a checkpoint is written
HELD = "_self_unconditional_dependency_names"  # Keras knows the attribute by this name, and does not save it


class NoDependency:
    """A value on its way into an attribute that checkpoints shall leave out."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value


@public("__internal__.types.Tensor")
class TensorLike:
    """A base for classes of others whose objects stand for tensors: `tf.is_tensor` is true of them.

    >>> class Parameter(tf.__internal__.types.Tensor):
    ...     pass
    >>> tf.is_tensor(Parameter())
    True
    """

    __slots__ = ()
    is_tensor_like = True


@public("__internal__.tracking.Trackable")
class Trackable:
    """An object that can be saved in a checkpoint; `_track_trackable` registers the objects that it holds.

    >>> class Pair(tf.__internal__.tracking.Trackable):
    ...     pass
    >>> pair = Pair()
    >>> _ = pair._track_trackable(tf.Variable(1.), "left")
    >>> list(pair._trackable_children())
    ['left']
    """

    def _track_trackable(self, trackable: Any, name: str, overwrite: bool = False) -> Any:
        """Records that this object holds another one under a name, and gives that one back."""
        held = self.__dict__.setdefault(HELD, {})
        if not overwrite and held.get(name, trackable) is not trackable:
            raise ValueError(
                f"Called Trackable._track_trackable() with name='{name}', but a Trackable with this name is already "
                "declared as a dependency. Names must be unique (or overwrite=True)."
            )
        held[name] = trackable
        restoration = self.__dict__.get("_restoration")
        if restoration is not None:  # a checkpoint holds values for what comes later
            restoration.attribute_set(self, name, trackable)
        return trackable

    _object_identifier = "_generic_user_object"  # what a saved model calls an object of this type
    _tracking_metadata = ""  # what a saved model keeps about it

    _unconditional_dependency_names = property(lambda self: self.__dict__.setdefault(HELD, {}))

    @property
    def _unconditional_checkpoint_dependencies(self) -> list[Any]:
        """The objects that this one holds, each with its name."""
        reference = find_public("__internal__.tracking.TrackableReference")
        return [reference(name, held) for name, held in find_public("train.TrackableView").children(self).items()]

    @property
    def _setattr_tracking(self) -> bool:
        """Whether attributes that are set are tracked."""
        return bool(self.__dict__.get("_self_setattr_tracking", True))

    @_setattr_tracking.setter
    def _setattr_tracking(self, value: bool) -> None:
        self.__dict__["_self_setattr_tracking"] = value

    def _maybe_initialize_trackable(self) -> None:
        """Prepares for what this object will hold: the first object does."""

    def _add_variable_with_custom_getter(
        self,
        name: str,
        shape: Any = None,
        dtype: Any = "float32",
        initializer: Any = None,
        getter: Any = None,
        overwrite: bool = False,
        **kwargs_for_getter: Any,
    ) -> Any:
        """A variable that `getter` makes and this object holds; a checkpoint may have a value for it."""
        variable = getter(name=name, shape=shape, dtype=dtype, initializer=initializer, **kwargs_for_getter)
        if (overwrite and not isinstance(variable, Trackable)) or not self.__dict__.get("_manual_tracking", True):
            return variable
        return self._track_trackable(variable, name, overwrite=overwrite)

    def _handle_deferred_dependencies(self, name: str, trackable: Any) -> None:
        """Restores an object that this one now gives under a name, if a checkpoint has values for it."""
        restoration = self.__dict__.get("_restoration")
        if restoration is not None:
            restoration.attribute_set(self, name, trackable)

    def _preload_simple_restoration(self, name: str) -> None:
        """The first value of a variable, read before it is made: values are restored when it is there."""

    def _gather_saveables_for_checkpoint(self) -> dict[str, Any]:
        """What this object saves of itself, by name: nothing, beside `_serialize_to_tensors`."""
        return {}

    def _no_dependency(self, value: Any) -> Any:
        """What to set an attribute to, so that it is `value` but is not saved."""
        return value

    def _lookup_dependency(self, name: str, cached_dependencies: Any = None) -> Any:
        """What this object holds under a name, or None."""
        return self.__dict__.get(HELD, {}).get(name)

    def _trackable_children(self, save_type: str = "checkpoint", **kwargs: Any) -> dict[str, Any]:
        """The objects that this one holds, by name."""
        return dict(self.__dict__.get(HELD, {}))


@contextmanager
def no_manual_dependency_tracking_scope(obj: Any) -> Iterator[None]:
    """Variables that `obj` adds inside are not tracked: the caller tracks them under names of its own."""
    before = getattr(obj, "_manual_tracking", True)
    obj._manual_tracking = False
    try:
        yield
    finally:
        obj._manual_tracking = before


@public("saved_model.experimental.TrackableResource")
class TrackableResource(Trackable):
    """A base for objects that hold something which is neither variable nor function, as tables do.

    >>> isinstance(tf.Variable(1.), tf.saved_model.experimental.TrackableResource)
    False
    """


@public("__internal__.tracking.AutoTrackable")
class AutoTrackable(Trackable):
    """An object that holds what its attributes are set to.

    >>> class Layer(tf.__internal__.tracking.AutoTrackable):
    ...     pass
    >>> layer = Layer()
    >>> layer.kernel = tf.Variable(1.)
    >>> list(layer._trackable_children())
    ['kernel']
    """

    def _no_dependency(self, value: Any) -> Any:
        return NoDependency(value)

    def __setattr__(self, name: str, value: Any) -> None:
        if type(value) is NoDependency:
            self.__dict__.get(HELD, {}).pop(name, None)
            super().__setattr__(name, value.value)
            return
        held = isinstance(value, Trackable) or type(value) in _CONTAINERS
        if held and self.__dict__.get("_self_setattr_tracking", True):
            if type(value) in (list, dict):  # so that what is added later takes its value from a checkpoint
                value = find_public("__internal__.tracking.wrap")(value)
            self._track_trackable(value, name, overwrite=True)
        super().__setattr__(name, value)

    def _delete_tracking(self, name: str) -> None:
        """Lets checkpoints leave out what an attribute holds."""
        self.__dict__.get(HELD, {}).pop(name, None)

    def __delattr__(self, name: str) -> None:
        self._delete_tracking(name)
        super().__delattr__(name)


@contextmanager
def untracked_attributes(obj: Any) -> Iterator[None]:
    """Attributes of an object that are set inside are not tracked."""
    before = obj.__dict__.get("_self_setattr_tracking", True)
    object.__setattr__(obj, "_self_setattr_tracking", False)
    try:
        yield
    finally:
        object.__setattr__(obj, "_self_setattr_tracking", before)


@public("__internal__.tracking.no_automatic_dependency_tracking")
def no_automatic_dependency_tracking(method: Callable[..., Any]) -> Callable[..., Any]:
    """A method during which attributes that are set are not tracked.

    >>> class Layer(tf.__internal__.tracking.AutoTrackable):
    ...     @tf.__internal__.tracking.no_automatic_dependency_tracking
    ...     def __init__(self):
    ...         self.kernel = tf.Variable(1.)
    >>> list(Layer()._trackable_children())
    []
    """

    @wraps(method)
    def untracked(self: Any, *args: Any, **kwargs: Any) -> Any:
        with untracked_attributes(self):
            return method(self, *args, **kwargs)

    return untracked
