"""The objects of a model as nodes of a SavedModel: variables, functions, tables, assets, and what holds them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tapeflow._src import _core
from tapeflow._src.compat.saved_model import revived_types
from tapeflow._src.compat.saved_model.loading import Asset, LoadedObject, SignatureMap
from tapeflow._src.function.concrete import ConcreteFunction
from tapeflow._src.function.function import Function
from tapeflow._src.io.protos import messages
from tapeflow._src.io.protos.tensor_messages import shape_message
from tapeflow._src.module import Module
from tapeflow._src.ops.lookup.tables import LookupInterface
from tapeflow._src.train.checkpoint.object_graph import children_of, is_trackable, slots_of, variable_of
from tapeflow._src.types.identity import ObjectIdentityDictionary
from tapeflow._src.types.trackable import Trackable
from tapeflow._src.variables import Variable

# Keras makes these anew.
_OF_TRAINING = frozenset({"train_function", "train_tf_function", "test_function", "predict_function"})
_CONTAINERS = {list: "trackable_list_wrapper", tuple: "trackable_tuple_wrapper", dict: "trackable_dict_wrapper"}


def functions_of(thing: Any) -> dict[str, Any]:
    """The functions and concrete functions among the attributes of an object."""
    if isinstance(thing, list | tuple | Mapping | _core.Variable):
        return {}
    kind = type(thing)
    names = [name for name in dir(kind) if not isinstance(getattr(kind, name, None), property)]
    names += [name for name in getattr(thing, "__dict__", ()) if name not in names]
    attributes = {name: _attribute(thing, name) for name in names if name not in _OF_TRAINING}
    return {name: found for name, found in attributes.items() if isinstance(found, Function | ConcreteFunction)}


def _attribute(thing: Any, name: str) -> Any:
    """An attribute, or None if it cannot be read: a class may hold methods of C types that are not for its objects."""
    try:
        return getattr(thing, name, None)
    except TypeError:
        return None


def held_by(thing: Any, cache: Any) -> dict[str, Any]:
    """Everything below an object that is saved, by the names under which it is held.

    Objects of libraries may make functions for the file; `cache` is theirs, one for each model that is written.
    """
    if isinstance(thing, Asset | LookupInterface | Function | ConcreteFunction) or variable_of(thing) is not None:
        return {}
    if isinstance(thing, SignatureMap):
        return {}
    if isinstance(thing, Trackable):
        found = dict(thing._trackable_children("savedmodel", cache=cache))
    else:
        found = dict(children_of(thing))
    empty: dict[str, Any] = {}
    if isinstance(thing, list | tuple):
        found = {str(i): child for i, child in enumerate(thing) if _is_saved(child)}
    elif isinstance(thing, Mapping):
        found = {key: child for key, child in thing.items() if isinstance(key, str) and _is_saved(child)}
    else:
        attributes = getattr(thing, "__dict__", {})
        more = {k: v for k, v in attributes.items() if isinstance(v, Asset | LookupInterface)}
        found = {**found, **more, **functions_of(thing)}
        if isinstance(thing, Module | LoadedObject):  # TensorFlow's keep also lists and dictionaries without objects
            empty = {k: v for k, v in attributes.items() if isinstance(v, list | dict) and not _is_internal(k)}
            found = {**empty, **found}
    found.pop("signatures", None)
    return {name: child for name, child in found.items() if _is_saved(child) or name in empty}


def _is_internal(name: str) -> bool:
    return name.startswith("_self_") or name == "signatures"


def _is_saved(thing: Any) -> bool:
    return isinstance(thing, Function | ConcreteFunction | Asset | Trackable) or is_trackable(thing)


class ObjectList:
    """All objects below a root, numbered, the root first.

    Objects such as Keras's make functions for saving, and keep them in the cache: one save has one cache.
    """

    def __init__(self, root: Any, cache: Any = None) -> None:
        self.things: list[Any] = []
        self.children: list[dict[str, int]] = []
        self.paths: list[tuple[tuple[str, int], ...]] = []  # the names that lead to an object, and the numbers
        self.slots: dict[int, list[tuple[int, str, int]]] = {}  # by optimizer: a variable, a name, what is kept for it
        self._number_by_id: dict[int, int] = {}
        self.cache = ObjectIdentityDictionary() if cache is None else cache
        waiting = [root]
        self.add(root)
        while waiting:
            thing = waiting.pop(0)
            number = self._number_by_id[id(_identity(thing))]
            for name, child in held_by(thing, self.cache).items():
                known = id(_identity(child)) in self._number_by_id
                added = self.children[number][name] = self.add(child)
                if not known:
                    self.paths[added] = (*self.paths[number], (name, added))
                    waiting.append(child)

        self._add_slots()

    def _add_slots(self) -> None:
        variables = [thing for thing in self.things if isinstance(thing, _core.Variable)]
        for number, thing in enumerate(list(self.things)):
            for variable, name, kept in slots_of(thing, variables):
                slot = (self._number_by_id[id(variable)], name, self.add(kept))
                self.slots.setdefault(number, []).append(slot)

    def add(self, thing: Any) -> int:
        """The number of an object."""
        thing = _identity(thing)
        if id(thing) not in self._number_by_id:
            self._number_by_id[id(thing)] = len(self.things)
            self.things.append(thing)
            self.children.append({})
            self.paths.append(())
        return self._number_by_id[id(thing)]

    def number_of(self, thing: Any) -> int | None:
        """The number of an object that is saved; None if no attribute leads to it."""
        return self._number_by_id.get(id(_identity(thing)))


def _identity(thing: Any) -> Any:
    """The object that stands for others: the variable inside of one of Keras, the traces of a bound method."""
    variable = variable_of(thing)
    return thing if variable is None else variable


def described(thing: Any, node: Any) -> None:
    """Says in a node what kind of object it is; functions, tables and assets are described where they are written."""
    if isinstance(thing, Variable):
        saved = node.variable
        saved.dtype = thing.dtype.as_datatype_enum
        saved.shape.CopyFrom(shape_message(thing.shape))
        saved.trainable = bool(thing.trainable)
        saved.synchronization, saved.aggregation = thing.synchronization.value, thing.aggregation.value
        saved.name = thing.name.removesuffix(":0")
        return
    registered = revived_types.describe(thing)
    if registered is not None:
        node.user_object.CopyFrom(registered)
        return
    plain = getattr(thing, "_object_identifier", "_generic_user_object")
    identifier = next((name for kind, name in _CONTAINERS.items() if isinstance(thing, kind)), plain)
    if isinstance(thing, Mapping):
        identifier = "trackable_dict_wrapper"
    node.user_object.identifier = "signature_map" if isinstance(thing, SignatureMap) else identifier
    node.user_object.version.CopyFrom(messages.VersionDef(producer=1, min_consumer=1))
