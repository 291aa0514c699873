"""SavedModels of TensorFlow 1, which have a graph with signatures and no objects: for `tf.saved_model.load`, and for
sessions."""

from __future__ import annotations

import functools
import os
from collections.abc import Mapping
from typing import Any, NamedTuple

from tapeflow._src.compat.graph_def.attributes import python_value
from tapeflow._src.compat.graph_def.frames import has_frames, needed_nodes, without_frames, without_savers
from tapeflow._src.compat.graph_def.library import FunctionLibrary, called_functions, check_nodes
from tapeflow._src.compat.graph_def.program import Program
from tapeflow._src.compat.raw_ops.variable_handles import DeclaredVariable
from tapeflow._src.compat.saved_model.constants import INITIALIZER, LEGACY_INITIALIZER, MAIN_OPERATION
from tapeflow._src.compat.saved_model.loading import LoadedObject, SignatureMap, asset_path
from tapeflow._src.compat.saved_model.meta_graphs import read_meta_graph
from tapeflow._src.compat.saved_model.options import LoadOptions
from tapeflow._src.compat.v1.graph.graph import Graph
from tapeflow._src.compat.v1.graph.graph_import import import_graph_def
from tapeflow._src.compat.v1.train.parts import parts_of
from tapeflow._src.function.concrete import ConcreteFunction
from tapeflow._src.function.function import Function
from tapeflow._src.function.spec_messages import decode
from tapeflow._src.function.trace import running_at_once
from tapeflow._src.io.protos import messages
from tapeflow._src.io.protos.tensor_messages import shape_message, shape_of
from tapeflow._src.namespace import find_public, public
from tapeflow._src.ops.arrays.conversion import convert_to_tensor
from tapeflow._src.train.checkpoint.tensor_bundle import Bundle
from tapeflow._src.types import nest
from tapeflow._src.types.dtypes import as_dtype
from tapeflow._src.types.errors import InvalidArgumentError, UnimplementedError
from tapeflow._src.types.sparse_tensor import SparseTensor
from tapeflow._src.types.tensor_shape import TensorShape
from tapeflow._src.types.tensor_spec import TensorSpec
from tapeflow._src.variables import Variable

_VARIABLES = ("VarHandleOp", "VariableV2", "Variable")
_INITIALIZERS = (INITIALIZER, MAIN_OPERATION, LEGACY_INITIALIZER)


def _bundle(folder: str) -> Bundle | None:
    prefix = os.path.join(folder, "variables", "variables")
    return Bundle(prefix) if os.path.exists(f"{prefix}.index") else None


def _names_of_variables(meta_graph: Any, collection: str) -> set[str]:
    """The names of the variables in a collection."""
    found = meta_graph.collection_def
    saved = found[collection].bytes_list.value if collection in found else ()
    return {messages.VariableDef.FromString(data).variable_name.removesuffix(":0") for data in saved}


class _Stored(NamedTuple):
    """Where the value of a variable is: the key, and for a partition the part of that value."""

    bundle: Bundle
    key: str
    part: tuple[slice, ...]

    def value(self) -> Any:
        """The value, as an array."""
        return self.bundle.value(self.key)[self.part] if self.part else self.bundle.value(self.key)


def _variable_nodes(meta_graph: Any, bundle: Bundle | None) -> list[tuple[Any, _Stored]]:
    """The nodes of variables that have values, with the places of these."""
    if bundle is None:
        return []
    parts, keys, found = parts_of(meta_graph), _restored_keys(meta_graph), []
    for node in meta_graph.graph_def.node:
        if node.op not in _VARIABLES:
            continue
        shared = node.attr["shared_name"].s.decode(errors="replace") or node.name
        name = keys.get(node.name, node.name)
        part = parts.get(node.name)
        key = (name if name in bundle else shared) if part is None else part.whole
        if key in bundle:
            found.append((node, _Stored(bundle, key, () if part is None else part.place)))
    return found


def _restored_keys(meta_graph: Any) -> dict[str, str]:
    """The keys of variables that the graph itself restores: those of TensorFlow 2 are paths from object to object."""
    graph = meta_graph.graph_def
    found = _assigned_keys(graph.node)
    function_by_name = {function.signature.name: function for function in graph.library.function}
    for node in graph.node:
        function = function_by_name.get(node.attr["f"].func.name) if "f" in node.attr else None
        if node.name == meta_graph.saver_def.restore_op_name and function is not None:
            inputs = {arg.name: _node_name(text) for arg, text in zip(function.signature.input_arg, node.input)}
            keys = _assigned_keys(function.node_def)
            found.update({inputs[name]: key for name, key in keys.items() if name in inputs})
    return found


def _assigned_keys(nodes: Any) -> dict[str, str]:
    """What is read from a checkpoint for each variable that nodes assign to."""
    node_by_name, found = {node.name: node for node in nodes}, {}
    for node in nodes:
        if node.op != "AssignVariableOp":
            continue
        source = node.input[1]
        while (read := node_by_name.get(_node_name(source))) is not None and read.op == "Identity":
            source = read.input[0]
        names = None if read is None or read.op != "RestoreV2" else node_by_name.get(_node_name(read.input[1]))
        if names is not None and names.op == "Const":
            index = source.rpartition(":")[2]
            values = names.attr["value"].tensor.string_val
            number = int(index) if index.isdigit() and ":" in source else 0
            if number < len(values):
                found[_node_name(node.input[0])] = values[number].decode(errors="replace")
    return found


def _node_name(text: str) -> str:
    return text.lstrip("^").partition(":")[0]


def _roots(meta_graph: Any) -> list[str]:
    """The nodes that signatures, variables and initialisation name."""
    tensors = [
        part
        for signature in meta_graph.signature_def.values()
        for entry in (*signature.inputs.values(), *signature.outputs.values())
        for _, part in _parts("", entry)
    ]
    variables = [node.name for node in meta_graph.graph_def.node if node.op in _VARIABLES]
    assets = [entry.tensor_info.name.partition(":")[0] for entry in meta_graph.asset_file_def]
    return [*(info.name.partition(":")[0] for info in tensors), *variables, *assets, *_initializers(meta_graph)]


def _parts(name: str, info: Any) -> list[tuple[str, Any]]:
    """The tensors of an input or output of a signature, by the names that their arguments have."""
    encoding = info.WhichOneof("encoding")
    if encoding == "composite_tensor":
        return [(f"{name}_component_{i}", part) for i, part in enumerate(info.composite_tensor.components)]
    if encoding != "coo_sparse":
        return [(name, info)]
    rank = None if info.tensor_shape.unknown_rank else len(info.tensor_shape.dim)
    sparse, found = info.coo_sparse, []
    for part, dtype, shape in (
        ("indices", as_dtype("int64"), [None, rank]),
        ("values", as_dtype(info.dtype), [None]),
        ("dense_shape", as_dtype("int64"), [rank]),
    ):
        tensor = messages.TensorInfo(name=getattr(sparse, f"{part}_tensor_name"), dtype=dtype.as_datatype_enum)
        tensor.tensor_shape.CopyFrom(shape_message(TensorShape(shape)))
        found.append((f"{name}_{part}", tensor))
    return found


def _packed(info: Any, tensors: list[Any]) -> Any:
    """An output of a signature, of its tensors."""
    encoding = info.WhichOneof("encoding")
    if encoding == "coo_sparse":
        return SparseTensor(*tensors)
    if encoding != "composite_tensor":
        return tensors[0]
    value = messages.StructuredValue(type_spec_value=info.composite_tensor.type_spec)
    return nest.pack_sequence_as(decode(value), tensors, expand_composites=True)


class LoadedGraph(LoadedObject):
    """What a SavedModel of TensorFlow 1 is loaded as: signatures, variables, and the graph that they are parts of."""

    def __init__(self, loader: V1Loader) -> None:
        self.__dict__["_loader"] = loader

    def prune(self, feeds: Any, fetches: Any) -> Any:
        """A function of the tensors `feeds` that gives those of `fetches`; all by name, or as tensors of `graph`."""
        loader: V1Loader = self.__dict__["_loader"]
        return loader.prune(feeds, fetches)

    def restore(self, save_path: Any) -> None:
        """Puts the values of a checkpoint, which a `Saver` wrote by name, into the variables."""
        loader: V1Loader = self.__dict__["_loader"]
        loader.restore(os.fspath(save_path))

    @functools.cached_property
    def graph(self) -> Any:
        """The graph, whose tensors can be named to `prune`; it has variables of its own."""
        loader: V1Loader = self.__dict__["_loader"]
        return loader.imported_graph()


class V1Loader:
    """Makes functions of the signatures of one graph."""

    def __init__(self, meta_graph: Any, folder: str, options: LoadOptions) -> None:
        definition = meta_graph.graph_def
        if has_frames(definition.node):
            # Other loops of the graph, such as those of gradients, may use what functions cannot.
            definition.CopyFrom(without_frames(needed_nodes(definition, _roots(meta_graph))))
        self._meta, self._folder, self._options = meta_graph, folder, options
        self._library = FunctionLibrary(meta_graph.graph_def.library, f"SavedModel {folder}")
        self._resources: dict[str, Any] = {}
        self._assets: dict[str, Any] = {}

    def load(self) -> Any:
        """An object with signatures, variables, and `prune`, which makes functions of other tensors."""
        bundle, trained = _bundle(self._folder), _names_of_variables(self._meta, "trainable_variables")
        root = LoadedGraph(self)
        root.variables = []
        with running_at_once():
            for node, stored in _variable_nodes(self._meta, bundle):
                kind, value, trainable = stored.bundle.dtype(stored.key), stored.value(), node.name in trained
                made: Variable
                if self._options.experimental_skip_checkpoint:
                    made = DeclaredVariable(kind, value.shape, node.name, trainable)
                else:
                    made = Variable(value, trainable=trainable, name=node.name, dtype=kind)
                self._resources[node.name] = made
                root.variables.append(made)
            root.variables += self._declare_others(trained)
            for entry in self._meta.asset_file_def:
                name = entry.tensor_info.name.partition(":")[0]
                self._assets[name] = convert_to_tensor(asset_path(self._folder, entry.filename))
            signatures = {
                key: self._signature(key, signature)
                for key, signature in self._meta.signature_def.items()
                if key not in _INITIALIZERS and signature.outputs
            }
            self._initialize()
        root._tables = [thing for thing in self._resources.values() if hasattr(thing, "key_dtype")]
        root.trainable_variables = [v for v in root.variables if v.trainable]
        root.signatures = SignatureMap(signatures)
        return root

    def restore(self, prefix: str) -> None:
        """Puts the values of a checkpoint into the variables."""
        with running_at_once():
            for node, stored in _variable_nodes(self._meta, Bundle(prefix)):
                self._resources[node.name].assign(stored.value())

    def imported_graph(self) -> Any:
        """The graph of the model, as one of TensorFlow 1."""
        graph = Graph()
        with graph.as_default():
            import_graph_def(_importable(self._meta, []), name="")
        return graph

    def _declare_others(self, trained: set[str]) -> list[Variable]:
        """Makes the variables without values in the checkpoint; gives those that are global."""
        known = _names_of_variables(self._meta, "variables")
        found: list[Variable] = []
        for node in self._meta.graph_def.node:
            if node.op in _VARIABLES and node.name not in self._resources:
                shape, dtype = python_value(node.attr["shape"]), as_dtype(node.attr["dtype"].type).base_dtype
                made = DeclaredVariable(dtype, shape, node.name, node.name in trained)
                self._resources[node.name] = made
                found += [made] if node.name in known else []
        return found

    def _program(self, inputs: list[str], outputs: list[str], targets: list[str]) -> Program:
        nodes = self._meta.graph_def.node
        known = [*inputs, *self._assets]
        by_name = {node.name: node for node in nodes}
        needed, waiting = set(), [text.lstrip("^").partition(":")[0] for text in (*outputs, *targets)]
        while waiting:  # an operation that is missing is named before anything runs
            name = waiting.pop()
            if name not in needed and name in by_name and name not in known:
                needed.add(name)
                waiting += [text.lstrip("^").partition(":")[0] for text in by_name[name].input]
        wanted = [by_name[name] for name in needed]
        check_nodes(wanted, self._library, self._library.where)
        self._library.check(f for node in wanted for f in called_functions(node))
        return Program(nodes, known, outputs, targets, self._library, self._library.where)

    def _signature(self, key: str, signature: Any) -> ConcreteFunction:
        info_by_name = {
            n: info for name in sorted(signature.inputs) for n, info in _parts(name, signature.inputs[name])
        }
        node_by_name = {name: info.name.partition(":")[0] for name, info in info_by_name.items()}
        results = {name: signature.outputs[name] for name in sorted(signature.outputs)}
        fetched = [part.name for name, info in results.items() for _, part in _parts(name, info)]
        program = self._program(list(node_by_name.values()), fetched, [])

        def run(**kwargs: Any) -> dict[str, Any]:
            given = {node: kwargs[name] for name, node in node_by_name.items()}
            found = iter(program.results({**self._assets, **given}, self._resources))
            return {name: _packed(info, [next(found) for _ in _parts(name, info)]) for name, info in results.items()}

        specs = {
            name: TensorSpec(shape_of(info.tensor_shape), self._dtype_of(node_by_name[name], info), name)
            for name, info in sorted(info_by_name.items())
        }
        return Function(run, key, autograph=False).get_concrete_function(**specs)

    def _dtype_of(self, name: str, info: Any) -> Any:
        """The dtype of a placeholder: that of the graph, which a signature may get wrong."""
        node = next((node for node in self._meta.graph_def.node if node.name == name), None)
        is_input = node is not None and node.op.startswith("Placeholder") and "dtype" in node.attr
        return as_dtype(node.attr["dtype"].type if node is not None and is_input else info.dtype)

    def _initialize(self) -> None:
        """Fills tables, as the graph's own initialisation does."""
        targets = _initializers(self._meta)
        if targets:
            self._program([], [], targets).run(self._assets, self._resources)

    def prune(self, feeds: Any, fetches: Any) -> Any:
        """A function of the tensors named `feeds` that gives those named `fetches`."""
        nodes = [_name_of(x).partition(":")[0] for x in nest.flatten(feeds)]
        program = self._program(nodes, [_name_of(x) for x in nest.flatten(fetches)], [])
        by_name = {node.name: node for node in self._meta.graph_def.node}
        specs = [
            TensorSpec(python_value(by_name[n].attr["shape"]) if "shape" in by_name[n].attr else None,
                       as_dtype(by_name[n].attr["dtype"].type), n.replace("/", "_"))
            for n in nodes
        ]  # fmt: skip

        def run(*tensors: Any) -> Any:
            found = program.results({**self._assets, **dict(zip(nodes, tensors))}, self._resources)
            return nest.pack_sequence_as(fetches, found)

        return Function(run, "pruned", autograph=False).get_concrete_function(*specs)


def _name_of(element: Any) -> str:
    """The name of a tensor that is given by it, or as itself."""
    return element if isinstance(element, str) else str(element.name)


# ---- sessions


@public("compat.v1.saved_model.load", "compat.v1.saved_model.loader.load")
def load_into_session(
    sess: Any, tags: Any, export_dir: Any, import_scope: str | None = None, **saver_kwargs: Any
) -> Any:
    """Adds the graph of a SavedModel to a session's graph, with the values of its variables; gives its message.

    >>> module = tf.Module()
    >>> module.f = tf.function(lambda x: 2. * x, input_signature=[tf.TensorSpec([], name="x")])
    >>> tf.saved_model.save(module, "model")
    >>> with tf.Graph().as_default(), tf.compat.v1.Session() as session:
    ...     signature = tf.compat.v1.saved_model.load(session, ["serve"], "model").signature_def["serving_default"]
    ...     session.run(signature.outputs["output_0"].name, {signature.inputs["x"].name: 3.})
    6.0
    """
    folder = os.fspath(export_dir)
    meta_graph = read_meta_graph(folder, tags)
    saver, bundle = meta_graph.saver_def, _bundle(folder)
    savers = [_node_name(name) for name in (saver.restore_op_name, saver.save_tensor_name) if name]
    definition = _importable(meta_graph, savers)
    paths: Mapping[str, Any] = {
        entry.tensor_info.name: asset_path(folder, entry.filename) for entry in meta_graph.asset_file_def
    }
    prefix = f"{import_scope}/" if import_scope else ""
    with sess.graph.as_default():
        assets = {name: find_public("constant")(path) for name, path in paths.items()}
        known = {node.name for node in definition.node}
        used = {name: tensor for name, tensor in assets.items() if name.partition(":")[0] in known}
        nodes = [(node, stored) for node, stored in _variable_nodes(meta_graph, bundle) if node.name in known]
        names = [f"{node.name}:0" for node, _ in nodes]
        made = import_graph_def(definition, used, names, name=import_scope or "")
        trained = _names_of_variables(meta_graph, "trainable_variables")
        for variable, (node, stored) in zip(made or [], nodes):
            collections = ["variables", *(["trainable_variables"] if node.name in trained else [])]
            sess.graph.add_to_collections(collections, variable)
            variable.load(stored.value(), sess)
        for target in _initializers(meta_graph):
            sess.run(sess.graph.get_operation_by_name(f"{prefix}{target}"))
    return meta_graph


def _importable(meta_graph: Any, savers: list[str]) -> Any:
    """The graph for a session: all of it, or what signatures need, if other parts have what cannot be imported."""
    definition, where = meta_graph.graph_def, "saved_model.load"
    try:
        whole = without_savers(without_frames(definition), savers)
        check_nodes(whole.node, FunctionLibrary(whole.library, where), where)
    except (InvalidArgumentError, UnimplementedError):
        return without_savers(without_frames(needed_nodes(definition, _roots(meta_graph))), savers)
    return whole


def _initializers(meta_graph: Any) -> list[str]:
    signature = meta_graph.signature_def
    names = [out.name for out in signature[INITIALIZER].outputs.values()] if INITIALIZER in signature else []
    for key in (MAIN_OPERATION, LEGACY_INITIALIZER):
        if key in meta_graph.collection_def:
            names += list(meta_graph.collection_def[key].node_list.value)
    return [name.partition(":")[0] for name in names]
