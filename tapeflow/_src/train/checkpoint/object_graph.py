"""Objects that hold variables, as graphs: those of a program, and the one that a checkpoint keeps beside the values."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from tapeflow._src import _core
from tapeflow._src.io.protos import messages
from tapeflow._src.module import Module
from tapeflow._src.train.checkpoint.serialized import SerializedTensor, serializes, tensors_of
from tapeflow._src.types.errors import DataLossError

GRAPH_KEY = "_CHECKPOINTABLE_OBJECT_GRAPH"
_WITH_A_VALUE = (
    "_serialize_to_tensors",
    "_checkpoint_value",
)  # methods of objects that are no variables


# ---- the objects of a program


def variable_of(thing: Any) -> Any:
    """The variable that an object is, or stands for (as those of Keras do); None if it is none."""
    if isinstance(thing, _core.Variable):
        return getattr(thing, "handle", thing)  # of Keras 2, an object of a subclass may stand for another variable
    if hasattr(type(thing), "_serialize_to_tensors") and not serializes(thing):
        own = getattr(thing, "_value", None)  # `value` may be another tensor while Keras works out shapes
        return own if isinstance(own, _core.Variable) else thing.value
    return None


def is_leaf(thing: Any) -> bool:
    """Whether an object has a value of its own."""
    kind = type(thing)
    if issubclass(kind, _core.Variable):
        return True
    return any(hasattr(kind, name) for name in _WITH_A_VALUE) and getattr(thing, "_is_checkpointed", True)


def _is_optimizer(thing: Any) -> bool:
    return hasattr(thing, "_slot_by_key") and hasattr(thing, "get_slot_names")


def is_trackable(thing: Any) -> bool:
    """Whether an object is, or may hold, something to be saved."""
    if is_leaf(thing) or isinstance(thing, Module) or _is_optimizer(thing):
        return True
    if hasattr(type(thing), "_trackable_children"):  # also a container that is still empty
        return True
    if isinstance(thing, list | tuple):
        return any(map(is_trackable, thing))
    if isinstance(thing, Mapping):
        return any(map(is_trackable, thing.values()))
    return False


def children_of(thing: Any, save_type: str = "checkpoint", **kwargs: Any) -> dict[str, Any]:
    """The objects below an object, by the names under which it holds them for this kind of file."""
    if is_leaf(thing) and not serializes(thing):
        return {}
    if hasattr(type(thing), "_trackable_children"):
        found = thing._trackable_children(save_type, **kwargs)
        return {name: child for name, child in found.items() if is_trackable(child)}
    if isinstance(thing, list | tuple):
        return {str(i): child for i, child in enumerate(thing) if is_trackable(child)}
    if isinstance(thing, Mapping):
        return {key: child for key, child in thing.items() if isinstance(key, str) and is_trackable(child)}
    if _is_optimizer(thing):
        slots = {id(slot) for slot in thing._slot_by_key.values()}
        return {_last_name(v): v for v in thing.variables() if id(v) not in slots}
    return {name: child for name, child in vars(thing).items() if is_trackable(child)}


def slots_of(thing: Any, variables: list[Any]) -> list[tuple[Any, str, Any]]:
    """What an optimizer keeps for these variables: the variable, the name, and what is kept."""
    if not hasattr(type(thing), "get_slot_names"):
        return []
    found = [(v, name, _slot_of(thing, v, name)) for v in variables for name in thing.get_slot_names()]
    return [one for one in found if one[2] is not None]


def _slot_of(optimizer: Any, variable: Any, name: str) -> Any:
    try:
        return optimizer.get_slot(variable, name)
    except (AttributeError, KeyError):  # Keras 2, for what it does not train
        return None


def _last_name(variable: Any) -> str:
    return str(variable.name.rpartition(":")[0].rpartition("/")[2])


def value_of(leaf: Any) -> Any:
    """The value of a leaf, as an array; arrays by the end of their names, if it has several (`_checkpoint_parts`)."""
    if isinstance(leaf, SerializedTensor):
        tensor = leaf.tensor()
        return tensor.numpy() if hasattr(tensor, "numpy") else np.asarray(tensor)
    variable = variable_of(leaf)
    return leaf._checkpoint_value() if variable is None else variable.numpy()


def attribute_of(leaf: Any) -> str:
    """The name under which the value of a leaf is kept."""
    return leaf._checkpoint_attribute if variable_of(leaf) is None else "VARIABLE_VALUE"


class Node:
    """One object of a graph: `children` by name, `keys` of its values by attribute, `slots` of an optimizer."""

    def __init__(self) -> None:
        self.children: dict[str, int] = {}
        self.keys: dict[str, str] = {}
        self.slots: list[tuple[int, str, int]] = []
        self.full_name = ""


def encode_graph(nodes: list[Node]) -> bytes:
    """The graph as it stands in a checkpoint."""
    graph = messages.TrackableObjectGraph()
    for node in nodes:
        saved = graph.nodes.add()
        for name, number in node.children.items():
            saved.children.add(node_id=number, local_name=name)
        for name, key in node.keys.items():
            saved.attributes.add(name=name, full_name=node.full_name, checkpoint_key=key)
        for original, name, slot in node.slots:
            saved.slot_variables.add(original_variable_node_id=original, slot_name=name, slot_variable_node_id=slot)
        saved.has_checkpoint_values.value = True
    content: bytes = graph.SerializeToString()
    return content


def decode_graph(data: Any) -> list[Node]:
    """The graph that a checkpoint keeps; DataLossError if it refers to nodes that are not there."""
    data = data.item() if hasattr(data, "item") else data
    try:
        graph = messages.TrackableObjectGraph.FromString(data)
    except messages.decode_errors() as error:
        raise DataLossError.of(f"{GRAPH_KEY}: {error}") from None
    nodes = []
    for saved in graph.nodes:
        node = Node()
        nodes.append(node)
        node.children = {child.local_name: child.node_id for child in saved.children}
        node.keys = {attribute.name: attribute.checkpoint_key for attribute in saved.attributes}
        node.full_name = next((attribute.full_name for attribute in saved.attributes), "")
        node.slots = [
            (slot.original_variable_node_id, slot.slot_name, slot.slot_variable_node_id)
            for slot in saved.slot_variables
        ]
    for node in nodes:
        numbers = [*node.children.values(), *(n for slot in node.slots for n in (slot[0], slot[2]))]
        if any(not 0 <= number < len(nodes) for number in numbers):
            raise DataLossError.of(f"{GRAPH_KEY}: an object that is referred to is not there")
    return nodes


class ObjectGraph:
    """The objects below a root, nearest first, each once; those with values by the key under which they are saved."""

    def __init__(self, root: Any) -> None:
        self.objects: list[Any] = [root]
        self.nodes: list[Node] = [Node()]
        self.leaf_by_key: dict[str, Any] = {}
        self._paths: list[str] = [""]
        self._number_by_id: dict[int, int] = {id(root): 0}
        place = 0
        while place < len(self.objects):
            for name, child in children_of(self.objects[place]).items():
                number = self._number_by_id.get(id(child))
                if number is None:
                    number = self._add(child, f"{self._paths[place]}/{_escaped(name)}".lstrip("/"))
                self.nodes[place].children[name] = number
            place += 1
        self._add_values(
            getattr(root, "_root", None) if type(root).__name__ == "Checkpoint" else root, self.nodes[0], ""
        )
        self._add_slots()

    def _add(self, thing: Any, path: str) -> int:
        number = self._number_by_id[id(thing)] = len(self.objects)
        self.objects.append(thing)
        self._paths.append(path)
        node = Node()
        self.nodes.append(node)
        self._add_values(thing, node, path)
        return number

    def _add_values(self, thing: Any, node: Node, path: str) -> None:
        """Gives a node the keys of what a checkpoint keeps for its object."""
        if serializes(thing):
            for name, part in tensors_of(thing).items():
                node.keys[name] = key = f"{path}/.ATTRIBUTES/{name}"
                node.full_name = str(getattr(thing, "name", path)).removesuffix(":0")
                self.leaf_by_key[key] = part
        elif path and is_leaf(thing):
            attribute = attribute_of(thing)
            key = f"{path}/.ATTRIBUTES/{attribute}"
            node.keys[attribute] = key
            node.full_name = getattr(thing, "name", path).removesuffix(":0")
            self.leaf_by_key[key] = thing

    def _add_slots(self) -> None:
        variables = [thing for thing in self.objects if isinstance(thing, _core.Variable)]
        for place, thing in enumerate(list(self.objects)):
            for variable, name, slot in slots_of(thing, variables):
                original = self._number_by_id[id(variable)]
                path = f"{self._paths[original]}/.OPTIMIZER_SLOT/{self._paths[place]}/{_escaped(name)}"
                number = self._number_by_id.get(id(slot))
                number = self._add(slot, path) if number is None else number
                self.nodes[place].slots.append((original, name, number))


def _escaped(name: str) -> str:
    return name.replace(".", "..").replace("/", ".S")
