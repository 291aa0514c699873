"""`tf.saved_model.load`: the objects of a SavedModel, with their variables, tables and functions."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Any

from tapeflow._src import _core
from tapeflow._src.compat.graph_def import import_handlers  # noqa: F401
from tapeflow._src.compat.graph_def.library import FunctionLibrary
from tapeflow._src.compat.raw_ops.variable_handles import DeclaredVariable
from tapeflow._src.compat.saved_model import dataset_nodes, dataset_stages  # noqa: F401  register handlers
from tapeflow._src.compat.saved_model.call_specs import COMPILES
from tapeflow._src.compat.saved_model.functions import (
    RestoredFunction,
    RestoredTrace,
    named_parameters,
    parameters_of,
)
from tapeflow._src.compat.saved_model.options import LoadOptions
from tapeflow._src.compat.saved_model.revived_types import revive
from tapeflow._src.function.concrete import ConcreteFunction
from tapeflow._src.function.spec_messages import decode
from tapeflow._src.function.trace import init_scope, running_at_once
from tapeflow._src.io.protos.tensor_messages import shape_of, tensor_of
from tapeflow._src.namespace import public
from tapeflow._src.ops.arrays.conversion import convert_to_tensor
from tapeflow._src.train.checkpoint.object_graph import GRAPH_KEY, Node, decode_graph, variable_of
from tapeflow._src.train.checkpoint.tensor_bundle import Bundle
from tapeflow._src.types.dtypes import as_dtype
from tapeflow._src.types.enums import VariableAggregationV2, VariableSynchronization
from tapeflow._src.types.errors import DataLossError
from tapeflow._src.types.trackable import AutoTrackable, Trackable
from tapeflow._src.variables import Variable


@public("saved_model.Asset")
class Asset(Trackable):
    """A file that belongs to a model: `tf.saved_model.save` copies it, and the loaded model finds the copy.

    >>> tf.io.write_file("words.txt", "a")
    >>> tf.saved_model.Asset("words.txt").asset_path.numpy()
    b'words.txt'
    """

    def __init__(self, path: Any) -> None:
        self._path = convert_to_tensor(os.fspath(path) if isinstance(path, os.PathLike) else path, "string")

    @property
    def asset_path(self) -> Any:
        """Where the file is, a string tensor."""
        return self._path

    def __tf_tensor__(self, dtype: Any = None, name: str | None = None) -> Any:
        return convert_to_tensor(self._path, dtype)


class LoadedObject(AutoTrackable):
    """An object of a SavedModel: it has the attributes that were saved, and no class of its own.

    Where no attribute of these names was saved, `variables` and `trainable_variables` are those below the object.
    """

    def __getattr__(self, name: str) -> Any:
        if name == "variables":
            return tuple(_variables_below(self))
        if name == "trainable_variables":
            return tuple(v for v in _variables_below(self) if v.trainable)
        raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")


class RestoredResource(LoadedObject):
    """A resource of a kind that is unknown here: it has the functions that were saved with it."""


class CallableObject(LoadedObject):
    """One that was saved with a method `__call__`."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.__dict__["__call__"](*args, **kwargs)


def _variables_below(root: Any) -> Iterator[Any]:
    seen: set[int] = set()
    waiting = [root]
    while waiting:
        thing = waiting.pop(0)
        if id(thing) in seen:
            continue
        seen.add(id(thing))
        if isinstance(thing, _core.Variable):
            yield thing
        elif isinstance(thing, list | tuple):
            waiting += thing
        elif isinstance(thing, Mapping):
            waiting += thing.values()
        elif isinstance(thing, LoadedObject):
            waiting += [v for k, v in vars(thing).items() if not k.startswith("_self_")]


class SignatureMap(Mapping[str, Any], Trackable):
    """The signatures of a model by name: functions of tensors by name that give tensors by name."""

    def __init__(self, signatures: dict[str, Any]) -> None:
        self._signatures = signatures

    def __getitem__(self, key: str) -> ConcreteFunction:
        found = self._signatures[key]
        return found.concrete if isinstance(found, _LazyConcrete) else found

    def __iter__(self) -> Iterator[str]:
        return iter(self._signatures)

    def __len__(self) -> int:
        return len(self._signatures)

    def __repr__(self) -> str:
        return f"_SignatureMap({dict(self)})"


class Loader:
    """Makes the objects of one SavedModel."""

    def __init__(
        self, meta_graph: Any, folder: str, options: LoadOptions, given: dict[int, tuple[Any, Any]] | None = None
    ) -> None:
        self._given = given or {}  # objects that stand for saved ones, and the functions that set their attributes
        self._setter_by_number = {number: setter for number, (_, setter) in self._given.items()}
        self._folder, self._graph_def = folder, meta_graph.graph_def
        self._objects, self._options = meta_graph.object_graph_def, options
        self._aliases = meta_graph.meta_info_def.function_aliases
        self._nodes = list(self._objects.nodes)
        self._assets = [asset.filename for asset in meta_graph.asset_file_def]
        self._resources: dict[str, Any] = {}
        self._library = FunctionLibrary(self._graph_def.library, f"SavedModel {folder}")
        self._made: dict[int, Any] = {}
        self._graph: Any = None  # the graph of TensorFlow 1 that the variables belong to
        self._trace_by_name: dict[str, RestoredTrace] = {}
        self._bundle, self._checkpoint = self._open_checkpoint()

    def load(self) -> Any:
        """The root, with everything below it; DataLossError if the parts of the file do not fit together."""
        try:
            return self._load()
        except (AttributeError, LookupError, StopIteration, RecursionError) as error:
            raise DataLossError.of(f"{self._library.where}: the file is damaged: {error}") from error
        except (TypeError, ValueError) as error:
            if self._folder in str(error):
                raise
            kind = TypeError if isinstance(error, TypeError) else ValueError
            raise kind(f"{self._library.where}: {error}") from error

    def object(self, number: int) -> Any:
        """One of the objects, after `load`."""
        return self._public(number)

    def _load(self) -> Any:
        self._check_operations()
        with init_scope():
            self._graph = _core.current_graph()
        with running_at_once():
            for number, node in enumerate(self._nodes):
                if node.WhichOneof("kind") in ("variable", "constant", "asset"):
                    self._make(number)
            for number in range(len(self._nodes)):
                self._make(number)
            self._add_slots()
            self._register_gradients()
            # Lists and dictionaries first: an object may keep a copy of one that it is given.
            for number in sorted(self._made, key=lambda n: not isinstance(self._made[n], list | dict)):
                self._fill(number)
            self._initialize_resources()
        if self._options.experimental_load_function_aliases:
            if hasattr(self._made[0], "function_aliases"):
                raise ValueError(
                    f"{self._library.where}: Could not load with experimental_load_function_aliases option because the "
                    "top-level object already has an attribute with name 'function_aliases'"
                )
            self._made[0].function_aliases = MappingProxyType(self._aliased_functions())  # not saved again
        return self._made[0]

    def _aliased_functions(self) -> dict[str, Any]:
        """Functions by their other names; a list of concrete functions where no saved function has just these."""
        names_by_alias: dict[str, list[str]] = {}
        for name, alias in self._aliases.items():
            if name in self._objects.concrete_functions:
                names_by_alias.setdefault(alias, []).append(name)
        function_by_names = {
            frozenset(node.function.concrete_functions): self._made[number]
            for number, node in enumerate(self._nodes)
            if node.WhichOneof("kind") == "function"
        }
        return {
            alias: function_by_names.get(frozenset(names)) or [self._trace(name).concrete for name in names]
            for alias, names in names_by_alias.items()
        }

    def _check_operations(self) -> None:
        save_functions = {n for node in self._nodes for s in node.saveable_objects.values() for n in (s.save_function,)}
        names = []
        for number, node in enumerate(self._nodes):
            kind = node.WhichOneof("kind")
            if kind == "function":
                names += list(node.function.concrete_functions)
            elif kind == "bare_concrete_function" and number not in save_functions:
                names.append(node.bare_concrete_function.concrete_function_name)
        self._library.check(names)

    # ---- values

    def _open_checkpoint(self) -> tuple[Any, dict[int, Node]]:
        """The bundle of the variables, and the node of its graph for each object."""
        prefix = os.path.join(self._folder, "variables", "variables")
        if self._options.experimental_skip_checkpoint or not os.path.exists(f"{prefix}.index"):
            return None, {}
        bundle = Bundle(prefix)
        if GRAPH_KEY not in bundle:
            return bundle, {}
        graph = decode_graph(bundle.value(GRAPH_KEY))
        found: dict[int, Node] = {}
        waiting = [(0, 0)]
        while waiting:
            number, other = waiting.pop()
            if number in found or not 0 <= other < len(graph) or not 0 <= number < len(self._nodes):
                continue
            found[number] = graph[other]
            children = {child.local_name: child.node_id for child in self._nodes[number].children}
            waiting += [(children[n], c) for n, c in graph[other].children.items() if n in children]
        self._find_slots(found, graph)
        return bundle, found

    def _find_slots(self, found: dict[int, Node], graph: list[Node]) -> None:
        """Adds what optimizers keep for variables: it is found by the optimizer, the variable and a name."""
        place_by_id = {id(node): place for place, node in enumerate(graph)}
        for number, node in list(found.items()):
            kept = {(original, name): slot for original, name, slot in node.slots}
            for slot in self._nodes[number].slot_variables:
                original = place_by_id.get(id(found.get(slot.original_variable_node_id)))
                place = kept.get((original, slot.slot_name)) if original is not None else None
                if place is not None and 0 <= place < len(graph):
                    found.setdefault(slot.slot_variable_node_id, graph[place])

    def _make(self, number: int) -> Any:
        if number in self._made:
            return self._made[number]
        if not 0 <= number < len(self._nodes):
            raise DataLossError.of(f"{self._library.where}: there is no object {number}")
        node = self._nodes[number]
        kind = node.WhichOneof("kind") or "user_object"
        if number in self._given:
            self._made[number], _ = self._given[number]
            if kind == "variable" and not self._may_be_empty(number):
                variable_of(self._made[number]).assign(self._value(number, node))
            return self._made[number]
        self._made[number] = made = getattr(self, f"_make_{kind}")(number, node)
        return made

    def _make_variable(self, number: int, node: Any) -> Any:
        saved = node.variable
        dtype, shape = as_dtype(saved.dtype).base_dtype, shape_of(saved.shape)
        value = None if self._may_be_empty(number) else self._value(number, node)
        before = _core.swap_stage(self._graph)  # a variable of a graph of TensorFlow 1 belongs to its sessions
        try:
            if value is None:
                return DeclaredVariable(dtype, shape, saved.name or "Variable", saved.trainable)
            made = Variable(
                value,
                trainable=saved.trainable,
                name=saved.name or "Variable",
                dtype=dtype,
                shape=shape,
                synchronization=VariableSynchronization(saved.synchronization),
                aggregation=VariableAggregationV2(saved.aggregation),
            )
            if self._graph is not None and self._graph.graph_mode:  # who trains a loaded model says so
                trained = self._graph.get_collection_ref("trainable_variables")
                trained[:] = [other for other in trained if other is not made]
            return made
        finally:
            _core.swap_stage(before)

    def _key(self, number: int) -> str | None:
        """Where the checkpoint keeps the value of a variable, if it has one."""
        if self._bundle is None or number not in self._checkpoint:
            return None
        return self._checkpoint[number].keys.get("VARIABLE_VALUE")

    def _may_be_empty(self, number: int) -> bool:
        """Whether a variable has no value in the checkpoint, and the options allow that."""
        allowed = self._options.allow_partial_checkpoint or self._options.experimental_skip_checkpoint
        return allowed and self._key(number) is None

    def _value(self, number: int, node: Any) -> Any:
        """The value of a variable in the checkpoint."""
        saved, shape = node.variable, shape_of(node.variable.shape)
        key = self._key(number)
        if key is None:
            raise DataLossError.of(f"{self._library.where}: the variable '{saved.name}' has no value in the checkpoint")
        value = self._bundle.value(key)
        if not shape.is_compatible_with(list(getattr(value, "shape", []))):
            raise DataLossError.of(
                f"{self._library.where}: the variable '{saved.name}' has shape {shape}, and its value {value.shape}"
            )
        return value

    def _add_slots(self) -> None:
        """Lets optimizers make what they keep for variables; it has the values of the file."""
        for number, node in enumerate(self._nodes):
            optimizer: Any = self._made[number]
            if not node.slot_variables or not hasattr(optimizer, "add_slot"):
                continue
            for slot in node.slot_variables:
                variable, kept = (self._make(n) for n in (slot.original_variable_node_id, slot.slot_variable_node_id))
                made = optimizer.add_slot(var=variable, slot_name=slot.slot_name)
                if variable_of(made) is not variable_of(kept):
                    variable_of(made).assign(variable_of(kept).read_value())
                    self._made[slot.slot_variable_node_id] = made

    def _make_constant(self, number: int, node: Any) -> Any:
        name = node.constant.operation
        for other in self._graph_def.node:
            if other.name == name and other.op == "Const":
                return tensor_of(other.attr["value"].tensor)
        raise DataLossError.of(f"{self._library.where}: there is no constant '{name}'")

    def _make_asset(self, number: int, node: Any) -> Asset:
        index = node.asset.asset_file_def_index
        if not 0 <= index < len(self._assets):
            raise DataLossError.of(f"{self._library.where}: there is no asset {index}")
        return Asset(asset_path(self._folder, self._assets[index]))

    def _make_resource(self, number: int, node: Any) -> Any:
        children = {child.local_name: child.node_id for child in node.children}
        if "_create_resource" not in children:
            return RestoredResource()
        create = self._make(children["_create_resource"])
        (trace,) = create._saved
        (made,) = trace.library.call(trace.name, trace._captures(), self._resources)
        return made

    def _make_captured_tensor(self, number: int, node: Any) -> Any:
        return node.captured_tensor

    def _make_user_object(self, number: int, node: Any) -> Any:
        identifier = node.user_object.identifier
        revived = revive(node.user_object)
        if revived is not None:
            made, self._setter_by_number[number] = revived
            return made
        names = [child.local_name for child in node.children]
        if identifier == "trackable_list_wrapper":
            return []
        if identifier == "trackable_dict_wrapper":
            return {}
        if identifier == "trackable_tuple_wrapper":
            by_name = {child.local_name: child.node_id for child in node.children}
            return tuple(None if child is None else self._make(child) for child in _in_order(by_name))
        if identifier == "signature_map":
            return SignatureMap({})
        return CallableObject() if "__call__" in names else LoadedObject()

    # ---- functions

    def _trace(self, name: str) -> RestoredTrace:
        if name not in self._trace_by_name:
            if name not in self._objects.concrete_functions:
                raise DataLossError.of(f"{self._library.where}: there is no concrete function '{name}'")
            saved = self._objects.concrete_functions[name]
            bound = list(saved.bound_inputs)

            def captures() -> list[Any]:
                found = [self._make(number) for number in bound]
                return [x.asset_path if isinstance(x, Asset) else x for x in found]

            self._trace_by_name[name] = RestoredTrace(self._library, name, saved, captures, self._resources)
        return self._trace_by_name[name]

    def _make_function(self, number: int, node: Any) -> RestoredFunction:
        traces = [self._trace(name) for name in node.function.concrete_functions]
        parents = (c.local_name for other in self._nodes for c in other.children if c.node_id == number)
        spec = node.function.function_spec
        name, specified = next(parents, "function"), decode(spec.input_signature)
        compiles = COMPILES[spec.jit_compile] if spec.jit_compile < len(COMPILES) else None
        return RestoredFunction(name, traces, parameters_of(spec), specified, compiles)

    def _make_bare_concrete_function(self, number: int, node: Any) -> Any:
        trace = self._trace(node.bare_concrete_function.concrete_function_name)
        trace.input_names = list(node.bare_concrete_function.argument_keywords)
        trace.positional_limit = node.bare_concrete_function.allowed_positional_arguments
        trace.parameters = parameters_of(node.bare_concrete_function.function_spec)
        if trace.is_flat:
            trace.parameters = named_parameters(trace.input_names)
        return _LazyConcrete(trace)

    # ---- what objects hold

    def _fill(self, number: int) -> None:
        made, node = self._made[number], self._nodes[number]
        if node.WhichOneof("kind") not in ("user_object", None):
            return
        if isinstance(made, SignatureMap):
            made._signatures.update((child.local_name, self._made[child.node_id]) for child in node.children)
            return
        children = {child.local_name: self._public(child.node_id) for child in node.children}
        if number in self._setter_by_number:
            for name, child in children.items():
                self._setter_by_number[number](made, name, child)
        elif isinstance(made, list):
            made += _in_order(children)
        elif isinstance(made, dict):
            made.update(children)
        elif isinstance(made, LoadedObject):
            for name, child in children.items():
                setattr(made, name, child)

    def _public(self, number: int) -> Any:
        made = self._made[number]
        return made.concrete if isinstance(made, _LazyConcrete) else made

    def _register_gradients(self) -> None:
        """Custom gradients may use tensors of the function whose gradient they compute."""
        for gradient in self._graph_def.library.registered_gradients:
            name = gradient.gradient_func
            if name in self._objects.concrete_functions:
                kind = gradient.registered_op_type
                self._library.rule_by_type[kind] = self._gradient_rule(name)
                bound = [self._nodes[number] for number in self._objects.concrete_functions[name].bound_inputs]
                captured = [node.captured_tensor.name for node in bound if node.WhichOneof("kind") == "captured_tensor"]
                self._library.captured_by_type[kind] = captured

    def _gradient_rule(self, name: str) -> Any:
        saved, trace = self._objects.concrete_functions[name], self._trace(name)

        def rule(dys: list[Any], captured: list[Any]) -> list[Any]:
            rest, given = iter(captured), []
            for number in saved.bound_inputs:
                is_captured = self._nodes[number].WhichOneof("kind") == "captured_tensor"
                made = next(rest) if is_captured else self._make(number)
                given.append(made.asset_path if isinstance(made, Asset) else made)
            count = len(self._library.program(name).inputs) - len(given)
            found = trace.packed(self._library.call(name, [*dys[:count], *given], self._resources))
            return list(found) if isinstance(found, list | tuple) else [found]

        return rule

    def _initialize_resources(self) -> None:
        for number, node in enumerate(self._nodes):
            for saveable in node.saveable_objects.values():
                self._restore_saveable(number, saveable.restore_function)
        for number, node in enumerate(self._nodes):
            children = {child.local_name: child.node_id for child in node.children}
            if node.WhichOneof("kind") != "resource" or "_initialize" not in children:
                continue
            table = self._made[number]
            filled = number in self._given and not hasattr(table, "insert") and int(table.size()) > 0
            if not filled:
                for trace in self._make(children["_initialize"])._saved:
                    trace.library.call(trace.name, trace._captures(), self._resources)

    def _restore_saveable(self, number: int, function: int) -> None:
        """Runs the function that puts the values of a checkpoint into a table."""
        if number not in self._checkpoint or self._bundle is None:
            return
        prefixes = tuple(self._checkpoint[number].keys.values())
        keys = [key for key in self._bundle.names if prefixes and key.startswith(prefixes)]
        trace = self._make(function)._trace
        values = [convert_to_tensor(self._bundle.value(key), self._bundle.dtype(key)) for key in keys]
        wanted = len(self._library.program(trace.name).inputs) - len(trace._captures())
        if values and len(values) == wanted:
            self._library.call(trace.name, [*values, *trace._captures()], self._resources)


_LONGEST_GAP = 1 << 16  # so many elements of a list may be no objects; files that say more are damaged


def _in_order(element_by_number: dict[str, Any]) -> list[Any]:
    """The elements of a list by their numbers; None for those between that are no objects, and so are not saved."""
    places = [int(name) for name in element_by_number if name.isdecimal()]
    if len(places) > 0 and max(places) >= _LONGEST_GAP + len(places):
        raise DataLossError.of(f"SavedModel: a list has {len(places)} elements and the number {max(places)}")
    return [element_by_number.get(str(i)) for i in range(max(places, default=-1) + 1)]


class _LazyConcrete:
    """A concrete function that is traced when it is first used."""

    def __init__(self, trace: RestoredTrace) -> None:
        self._trace = trace

    @property
    def concrete(self) -> ConcreteFunction:
        """The function."""
        return self._trace.concrete


def asset_path(folder: str, name: str) -> str:
    """Where an asset is; DataLossError if its name leads out of the folder."""
    path = os.path.normpath(os.path.join(folder, "assets", name))
    inside = os.path.join(os.path.normpath(os.path.join(folder, "assets")), "")
    if not path.startswith(inside) or os.path.isabs(name):
        raise DataLossError.of(f"SavedModel {folder}: the asset '{name}' is outside of the model's folder")
    return path
