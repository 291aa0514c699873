"""Writing a SavedModel: `saved_model.pb` with its functions and signatures, the variables, assets, a fingerprint."""

from __future__ import annotations

import functools
import os
import shutil
import uuid
from typing import Any

import numpy as np

from tapeflow._src import _core
from tapeflow._src.compat.graph_def import graphs  # noqa: F401  register rules
from tapeflow._src.compat.graph_def.attributes import attribute_message
from tapeflow._src.compat.graph_def.emitter import Emitter, Ref
from tapeflow._src.compat.graph_def.exporter import DataWithResources, FunctionWriter, GraphWriter
from tapeflow._src.compat.saved_model.call_specs import (
    argument_spec,
    concrete_spec,
    function_spec,
    keyword_spec,
    signature_defaults,
    signature_inputs,
    signature_outputs,
)
from tapeflow._src.compat.saved_model.loading import Asset, SignatureMap
from tapeflow._src.compat.saved_model.objects import ObjectList, described
from tapeflow._src.compat.saved_model.options import SaveOptions, VariablePolicy, strip_checks, traces_of
from tapeflow._src.data.iterator import IteratorSpec
from tapeflow._src.function.concrete import ConcreteFunction
from tapeflow._src.function.function import Function
from tapeflow._src.function.spec_messages import encode
from tapeflow._src.io.atomic_files import AtomicFiles
from tapeflow._src.io.atomic_folders import replaced_folder
from tapeflow._src.io.protos import messages
from tapeflow._src.io.protos.tensor_messages import shape_message
from tapeflow._src.io.protos.tensor_protos import make_tensor_proto
from tapeflow._src.ops.lookup.tables import DenseHashTable, LookupInterface
from tapeflow._src.ops.strings.hashing import fingerprint64
from tapeflow._src.train.checkpoint.object_graph import GRAPH_KEY, Node, encode_graph, value_of
from tapeflow._src.train.checkpoint.tensor_bundle import add_bundle
from tapeflow._src.types import nest
from tapeflow._src.types.dtypes import as_dtype
from tapeflow._src.types.tensor_shape import TensorShape
from tapeflow._src.types.tensor_spec import CompositeTensor, TensorSpec, TypeSpec, type_spec_from_value
from tapeflow._src.types.version import GIT_VERSION, VERSION

_PRODUCER, _MIN_CONSUMER = 2345, 12  # of graphs like those of TensorFlow 2.21
_RESOURCE = as_dtype("resource")


class SavedModelWriter:
    """Collects the message of one model. Functions are written first, as their captures become objects."""

    def __init__(self, objects: ObjectList, signatures: dict[str, ConcreteFunction], options: SaveOptions) -> None:
        self._model = messages.SavedModel(saved_model_schema_version=1)
        self._meta = self._model.meta_graphs.add()
        self._functions = FunctionWriter("saved_model.save")
        self._functions.gradients = [] if options.experimental_custom_gradients else None
        self._options = options
        self._top = Emitter(False)
        self._objects = objects
        self._root_count = len(self._objects.things)
        self._assets: list[str] = []
        self._nodes: dict[int, Any] = {}
        self._concrete: dict[int, tuple[str, list[Any]]] = {}
        self._constant_names: dict[int, str] = {}
        self._saved_concrete = self._meta.object_graph_def.concrete_functions
        self._kept: list[Any] = []
        self._write_objects()
        self._write_signatures(signatures)
        self._write_gradients()
        self._write_aliases()
        self._finish()

    # ---- objects

    def _write_objects(self) -> None:
        number = 0
        while number < len(self._objects.things):
            self._write_object(number, self._objects.things[number])
            number += 1

    def _node(self, number: int) -> Any:
        return self._nodes.setdefault(number, messages.SavedObject())

    def _write_object(self, number: int, thing: Any) -> None:
        node = self._node(number)
        if node.WhichOneof("kind") is not None:
            return
        if isinstance(thing, Function):
            self._write_function(node, thing)
        elif isinstance(thing, ConcreteFunction):
            self._write_bare(node, thing)
        elif isinstance(thing, Asset):
            node.asset.asset_file_def_index = self._asset_number(thing)
        elif isinstance(thing, LookupInterface):
            self._write_table(number, node, thing)
        elif isinstance(thing, _core.Tensor):
            node.constant.operation = self._constant_names[id(thing)]
        else:
            described(thing, node)
            if self._options.experimental_variable_policy is not VariablePolicy.NONE and node.HasField("variable"):
                node.variable.device = thing.device

    def _asset_number(self, asset: Asset) -> int:
        path = asset.asset_path.numpy().decode()
        if path not in self._assets:
            if not os.path.isfile(path):
                raise ValueError(f"saved_model.save: the asset {path!r} does not exist")
            self._assets.append(path)
            name = f"asset_path_initializer_{len(self._assets)}"
            self._top.next_name = name
            self._top.node("Placeholder", dtype="string", shape=TensorShape([]))
            info = messages.TensorInfo(name=f"{name}:0", dtype=as_dtype("string").as_datatype_enum)
            names = [entry.filename for entry in self._meta.asset_file_def]
            base, number = os.path.basename(path), 1
            while base in names:
                stem, extension = os.path.splitext(os.path.basename(path))
                base, number = f"{stem}_{number}{extension}", number + 1
            self._meta.asset_file_def.add(tensor_info=info, filename=base)
        return self._assets.index(path)

    # ---- functions

    def _write_function(self, node: Any, function: Function) -> None:
        saved = node.function
        saved.function_spec.CopyFrom(function_spec(function))
        for concrete in traces_of(function):
            if _has_plain_arguments(concrete):
                tracked = self._with_tracked_arguments(function, concrete)
                saved.concrete_functions.append(self._write_concrete(tracked)[0])

    def _with_tracked_arguments(self, function: Function, concrete: ConcreteFunction) -> ConcreteFunction:
        """The trace, or one for values if it was called with a variable that no attribute of the model leads to."""
        given = [list(part) if isinstance(part, tuple) else part for part in concrete.signature.described()]
        leaves = nest.flatten(given)
        known = [
            TensorSpec(leaf.shape, leaf.dtype)
            if isinstance(leaf, _core.Variable) and self._objects.number_of(leaf) is None
            else leaf
            for leaf in leaves
        ]
        if all(one is two for one, two in zip(known, leaves)):
            return concrete
        args, kwargs = nest.pack_sequence_as(given, known)
        return function.get_concrete_function(*args, **kwargs)

    def _write_bare(self, node: Any, concrete: ConcreteFunction) -> None:
        saved = node.bare_concrete_function
        saved.concrete_function_name = self._write_concrete(concrete)[0]
        names = list(concrete._arg_keywords)
        saved.argument_keywords.extend(names)
        saved.allowed_positional_arguments = len(names)
        saved.function_spec.CopyFrom(concrete_spec(concrete))

    def _write_concrete(self, concrete: ConcreteFunction) -> tuple[str, list[Any]]:
        """Writes the graph of a concrete function once; gives its name and what is bound to its last inputs."""
        if id(concrete) in self._concrete:
            return self._concrete[id(concrete)]
        graph = concrete.graph
        data = self._with_assets(_core.graph_data(graph))
        captures = list(graph.captures)
        if any(_core.is_symbolic(tensor) for tensor in captures):
            raise ValueError(f"saved_model.save: {graph.name} uses a tensor of another function")
        name = self._functions.fresh_name(graph.name)
        self._functions.where = f"saved_model.save: {graph.name}"
        resources = self._functions.add(data, name, list(graph.input_names))
        bound: list[Any] = [*captures, *getattr(data, "assets", []), *resources]
        self._concrete[id(concrete)] = (name, bound)
        self._kept.append(concrete)
        saved = self._saved_concrete[name]
        saved.bound_inputs.extend(self._bound_number(thing, graph.name) for thing in bound)
        try:
            saved.canonicalized_input_signature.CopyFrom(encode(_structure_of_arguments(concrete)))
            output = nest.map_structure(_spec_of, concrete.traced_result)
            saved.output_signature.CopyFrom(encode(output))
        except TypeError as error:
            raise ValueError(f"saved_model.save: the signature of {graph.name} cannot be written: {error}") from None
        return name, bound

    def _bound_number(self, thing: Any, user: str) -> int:
        if isinstance(thing, _core.Tensor):
            if id(thing) not in self._constant_names:
                self._constant_names[id(thing)] = self._top.constant(thing).node
                self._kept.append(thing)
            return self._objects.add(thing)
        number = self._objects.number_of(thing)
        if number is None:
            name = getattr(thing, "name", None) or type(thing).__name__
            raise AssertionError(
                "saved_model.save: Tried to export a function which references an 'untracked' resource. TensorFlow "
                "objects (e.g. tf.Variable) captured by functions must be 'tracked' by assigning them to an attribute "
                f"of a tracked object or assigned to an attribute of the main object directly. Function {user}; "
                f"Trackable referencing this tensor = {name!r}"
            )
        return number

    def _with_assets(self, data: Any) -> Any:
        """Paths of assets that a graph holds as constants become inputs."""
        path_by_asset = {t.asset_path.numpy(): t for t in self._objects.things if isinstance(t, Asset)}
        if not path_by_asset:
            return data
        found = [
            (number, path_by_asset[tensor.numpy()])
            for number, tensor in data[1].items()
            if tensor.dtype.name == "string" and tensor.shape.rank == 0 and tensor.numpy() in path_by_asset
        ]
        if not found:
            return data
        constants = {number: tensor for number, tensor in data[1].items() if number not in dict(found)}
        inputs = [*data[0], *((number, "string", TensorShape([])) for number, _ in found)]
        return _DataWithAssets((inputs, constants, *data[2:]), [asset for _, asset in found])

    def _write_gradients(self) -> None:
        """The functions of custom gradients, with the tensors of other functions that they take."""
        for gradient in self._functions.gradients or ():
            self._functions.library.registered_gradients.add(
                gradient_func=gradient.name, registered_op_type=gradient.op_type
            )
            saved = self._saved_concrete[gradient.name]
            for tensor in gradient.captured:
                marker = _Marker()
                number = self._objects.add(marker)
                self._kept.append(marker)
                node = self._node(number).captured_tensor
                node.name, node.concrete_function = tensor, gradient.holder
                saved.bound_inputs.append(number)
            saved.bound_inputs.extend(self._bound_number(thing, gradient.name) for thing in gradient.resources)
            saved.canonicalized_input_signature.CopyFrom(encode((tuple(gradient.cotangents), {})))
            saved.output_signature.CopyFrom(encode(gradient.gradients))

    def _write_aliases(self) -> None:
        """The names under which other programs look for functions."""
        for alias, function in self._options.function_aliases.items():
            for concrete in traces_of(function):
                name, _ = self._write_concrete(concrete)
                self._meta.meta_info_def.function_aliases[name] = alias

    # ---- tables

    def _write_table(self, number: int, node: Any, table: Any) -> None:
        """A table is made by one function and filled by another."""
        node.resource.SetInParent()
        keys, values = _content_of(table)
        inner = values.shape.as_list()[1:]
        shared = f"table_{uuid.uuid4().hex}"

        def create(w: GraphWriter) -> list[Ref]:
            w.stateful = True
            return [_table_node(w.emitter, table, inner, shared)]

        def fill(w: GraphWriter) -> list[Ref]:
            e = w.emitter
            op = "LookupTableInsertV2" if isinstance(table, DenseHashTable) else "LookupTableImportV2"
            e.node(op, w.resource(table), e.constant(keys), e.constant(values))
            w.effects.append(e.nodes[-1].name)
            return [e.one("Identity", e.ints(1), controls=w.effects)]

        def nothing(w: GraphWriter) -> list[Ref]:
            return [w.emitter.ints(1)]

        for name, body, bound, output in (
            ("_create_resource", create, [], TensorSpec([], _RESOURCE)),
            ("_initialize", fill, [table], TensorSpec([], "int32")),
            ("_destroy_resource", nothing, [], TensorSpec([], "int32")),
        ):
            empty = DataWithResources(([], {}, [], [], []), bound)
            function = self._functions.fresh_name(name.strip("_"))
            self._functions.add(empty, function, body=body)
            saved = self._saved_concrete[function]
            saved.bound_inputs.extend(number for _ in bound)
            saved.canonicalized_input_signature.CopyFrom(encode(((), {})))
            saved.output_signature.CopyFrom(encode(output))
            marker = _Marker()
            child = self._objects.add(marker)
            self._kept.append(marker)
            holder = self._node(child).function
            holder.concrete_functions.append(function)
            holder.function_spec.CopyFrom(argument_spec([]))
            self._objects.children[number][name] = child

    # ---- signatures

    def _write_signatures(self, signatures: dict[str, ConcreteFunction]) -> None:
        marker = SignatureMap({})
        number = self._objects.add(marker)
        self._kept.append(marker)
        self._objects.children[0]["signatures"] = number
        for key, concrete in signatures.items():
            wrapper = _Marker()
            child = self._objects.add(wrapper)
            self._kept.append(wrapper)
            self._objects.children[number][key] = child
            self._write_signature(key, concrete, self._node(child).bare_concrete_function)
        self._write_objects()

    def _write_signature(self, key: str, concrete: ConcreteFunction, node: Any) -> None:
        """A function that takes and gives tensors by name, and a call of it at the top of the graph."""
        name, bound = self._write_concrete(concrete)
        specs = signature_inputs(concrete)
        outputs = signature_outputs(key, concrete)
        order, output_order = sorted(specs), sorted(outputs)
        given = {n: (i, spec.dtype.name, spec.shape) for i, (n, spec) in enumerate(specs.items())}
        captured = [x for x in bound if isinstance(x, _core.Tensor | Asset)]
        resources = [x for x in bound if not isinstance(x, _core.Tensor | Asset)]
        extra = [
            (len(specs) + i, *((x.dtype.name, x.shape) if isinstance(x, _core.Tensor) else ("string", TensorShape([]))))
            for i, x in enumerate(captured)
        ]
        data = DataWithResources(([*(given[n] for n in order), *extra], {}, [], [], []), resources)
        dtypes = [tensor.dtype for tensor in concrete.graph.outputs]
        shapes = _output_shapes(concrete.graph.outputs)

        def call(w: GraphWriter) -> list[Ref]:
            e = w.emitter
            tensors = [w.value(i) for i in range(len(specs) + len(captured))]
            held = [w.resource(x) for x in resources]
            w.stateful = True
            results = e.node("StatefulPartitionedCall", [*tensors, *held], f=name, Tout=dtypes, _output_shapes=shapes)
            w.effects.append(e.nodes[-1].name)
            return [e.one("Identity", results[place]) for n in output_order for place in outputs[n].places]

        wrapper = self._functions.fresh_name(f"signature_wrapper_{concrete.graph.name}")
        names = [f"{n}_{i}" if i else n for n in output_order for i in range(len(outputs[n].places))]
        self._functions.add(data, wrapper, order, output_names=names, body=call)
        saved = self._saved_concrete[wrapper]
        saved.bound_inputs.extend(self._bound_number(thing, key) for thing in bound)
        arguments = {n: TensorSpec(specs[n].shape, specs[n].dtype, n) for n in order}
        saved.canonicalized_input_signature.CopyFrom(encode(((), arguments)))
        saved.output_signature.CopyFrom(encode({n: _named_spec(n, outputs[n].value) for n in output_order}))
        node.concrete_function_name = wrapper
        node.argument_keywords.extend(order)
        node.allowed_positional_arguments = 1 if len(order) == 1 else 0  # the order of several is not told
        node.function_spec.CopyFrom(keyword_spec(order))
        self._call_at_top(key, wrapper, order, specs, output_order, outputs, bound)
        for n, value in signature_defaults(concrete).items():
            self._meta.signature_def[key].defaults[n].CopyFrom(make_tensor_proto(value.numpy()))

    def _call_at_top(
        self,
        key: str,
        wrapper: str,
        order: list[str],
        specs: Any,
        output_order: list[str],
        outputs: Any,
        bound: list[Any],
    ) -> None:
        definition = self._meta.signature_def[key]
        definition.method_name = "tensorflow/serving/predict"
        given = []
        for n in order:
            self._top.next_name = f"{key}_{n}"
            given.append(self._top.one("Placeholder", dtype=specs[n].dtype, shape=specs[n].shape))
            _tensor_info(definition.inputs[n], given[-1], specs[n])
        given += [self._top_value(thing) for thing in bound]
        tensors = [tensor for n in output_order for tensor in outputs[n].tensors]
        shapes = _output_shapes(tensors)
        dtypes = [tensor.dtype for tensor in tensors]
        results = iter(self._top.node("StatefulPartitionedCall", given, f=wrapper, Tout=dtypes, _output_shapes=shapes))
        for n in output_order:
            value, tensors, _ = outputs[n]
            info = definition.outputs[n]
            if isinstance(value, CompositeTensor):
                composite = info.composite_tensor
                composite.type_spec.CopyFrom(encode(type_spec_from_value(value)).type_spec_value)
                for tensor in tensors:
                    _tensor_info(composite.components.add(), next(results), tensor)
            else:
                _tensor_info(info, next(results), value)

    def _top_value(self, thing: Any) -> Ref:
        """What stands for something that a function captured, at the top of the graph."""
        if isinstance(thing, _core.Tensor):
            return self._top.constant(thing)
        if isinstance(thing, Asset):
            return Ref(f"asset_path_initializer_{self._asset_number(thing) + 1}", "output", 0, 0, as_dtype("string"),
                       TensorShape([]))  # fmt: skip
        return self._handles.get(id(thing)) or self._make_handle(thing)

    @property
    def _handles(self) -> dict[int, Ref]:
        found: dict[int, Ref] = self.__dict__.setdefault("_handle_by_id", {})
        return found

    def _make_handle(self, thing: Any) -> Ref:
        if isinstance(thing, _core.Variable):
            self._top.next_name = thing.name.removesuffix(":0")
            name = f"{self._top.next_name}_{len(self._handles)}"
            made = self._top.one("VarHandleOp", dtype=thing.dtype, shape=thing.shape, shared_name=name)
        else:
            made = _table_node(self._top, thing, [], f"top_table_{len(self._handles)}")
        self._handles[id(thing)] = made
        return made

    # ---- the rest of the graph

    def _finish(self) -> None:
        variables = [(n, t) for n, t in enumerate(self._objects.things) if isinstance(t, _core.Variable)]
        self.key_by_variable = self._checkpoint_keys(variables)
        if not self._options.experimental_skip_saver:
            self._write_saver(variables)
        self._write_initializer()
        objects = self._meta.object_graph_def.nodes
        for number in range(len(self._objects.things)):
            node = self._node(number)
            for name, child in self._objects.children[number].items():
                node.children.add(local_name=name, node_id=child)
            for original, name, slot in self._objects.slots.get(number, ()):
                node.slot_variables.add(original_variable_node_id=original, slot_name=name, slot_variable_node_id=slot)
            objects.append(node)
        info = self._meta.meta_info_def
        info.tags.extend(dict.fromkeys(["serve", *(self._options.extra_tags or ())]))
        info.tensorflow_version, info.stripped_default_attrs = VERSION, False
        info.tensorflow_git_version = GIT_VERSION
        graph = self._meta.graph_def
        graph.node.extend(self._top.nodes)
        graph.library.CopyFrom(self._functions.library)
        graph.versions.producer, graph.versions.min_consumer = _PRODUCER, _MIN_CONSUMER
        if self._options.experimental_debug_stripper:
            strip_checks(graph)

    def _checkpoint_keys(self, variables: list[tuple[int, Any]]) -> dict[int, str]:
        """The key of the value of each variable: the path that leads to it."""
        path_by_number = {0: ""}
        waiting = [0]
        while waiting:
            number = waiting.pop(0)
            for name, child in self._objects.children[number].items():
                if child not in path_by_number:
                    escaped = name.replace(".", "..").replace("/", ".S")
                    path_by_number[child] = f"{path_by_number[number]}{escaped}/"
                    waiting.append(child)
        for optimizer, slots in self._objects.slots.items():
            for original, name, slot in slots:
                owner = f"{path_by_number[original]}.OPTIMIZER_SLOT/{path_by_number[optimizer]}"
                path_by_number.setdefault(slot, f"{owner}{name}/")
        return {number: f"{path_by_number[number]}.ATTRIBUTES/VARIABLE_VALUE" for number, _ in variables}

    def _write_saver(self, variables: list[tuple[int, Any]]) -> None:
        """The nodes with which TensorFlow's C++ loader restores the variables, and saves them."""
        e = self._top
        e.next_name = "saver_filename"
        prefix = e.one("Placeholder", dtype="string", shape=TensorShape([]))
        keys = [self.key_by_variable[number] for number, _ in variables]
        names = e.constant(np.asarray(keys, object).reshape(-1), "string")
        slices = e.constant(np.asarray([""] * len(keys), object).reshape(-1), "string")
        dtypes = [v.dtype for _, v in variables]
        restored, saved = [], []
        if variables:
            values = e.node("RestoreV2", prefix, names, slices, dtypes=dtypes)
            for (_, variable), value in zip(variables, values):
                handle = self._top_value(variable)
                e.node("AssignVariableOp", handle, value, dtype=variable.dtype)
                restored.append(e.nodes[-1].name)
                saved.append(e.one("ReadVariableOp", handle, dtype=variable.dtype))
            e.node("SaveV2", prefix, names, slices, saved, dtypes=dtypes)
        controls = [e.nodes[-1].name] if variables else []
        e.next_name = "saver_save"
        written = e.one("Identity", prefix, controls=controls)
        e.next_name = "saver_restore"
        e.node("NoOp", controls=restored)
        saver = self._meta.saver_def
        saver.filename_tensor_name, saver.save_tensor_name = f"{prefix.node}:0", f"{written.node}:0"
        saver.restore_op_name, saver.version = e.nodes[-1].name, 2

    def _write_initializer(self) -> None:
        """What fills the tables of the signatures: TensorFlow's C++ loader runs it."""
        e, filled = self._top, []
        tables = [t for t in self._objects.things if isinstance(t, LookupInterface) and id(t) in self._handles]
        for table in tables:
            keys, values = _content_of(table)
            e.node("LookupTableImportV2", self._handles[id(table)], e.constant(keys), e.constant(values))
            filled.append(e.nodes[-1].name)
        e.next_name = "saved_model_init_op"
        e.node("NoOp", controls=filled)
        outputs = self._meta.signature_def["__saved_model_init_op"].outputs["__saved_model_init_op"]
        outputs.name = e.nodes[-1].name
        outputs.tensor_shape.unknown_rank = True

    # ---- files

    def write(self, folder: str) -> None:
        """Writes the files, which take their places together: a model that was there is whole until then."""
        with replaced_folder(folder, os.path.join("variables", "variables.")) as place:
            self._write_files(place)

    def _write_files(self, folder: str) -> None:
        os.makedirs(os.path.join(folder, "variables"), exist_ok=True)
        os.makedirs(os.path.join(folder, "assets"), exist_ok=True)
        values: dict[str, Any] = {
            key: functools.partial(value_of, self._objects.things[number])
            for number, key in self.key_by_variable.items()
        }
        values[GRAPH_KEY] = np.array(encode_graph(self._checkpoint_graph()), object)
        content = self._model.SerializeToString(deterministic=True)
        graph = self._meta.graph_def.SerializeToString(deterministic=True)
        with AtomicFiles() as files:
            for path, entry in zip(self._assets, self._meta.asset_file_def):
                with open(path, "rb") as source, files.open(os.path.join(folder, "assets", entry.filename)) as target:
                    shutil.copyfileobj(source, target)
            index = add_bundle(files, os.path.join(folder, "variables", "variables"), values)
            objects = self._meta.object_graph_def.SerializeToString(deterministic=True)
            fingerprint = messages.FingerprintDef(
                saved_model_checksum=fingerprint64(content),
                graph_def_program_hash=fingerprint64(graph),
                signature_def_hash=fingerprint64(",".join(sorted(self._meta.signature_def)).encode()),
                saved_object_graph_hash=fingerprint64(objects),
                checkpoint_hash=fingerprint64(index),
                version=messages.VersionDef(producer=3),
                uuid=str(uuid.uuid4().int),
            )
            files.write(os.path.join(folder, "fingerprint.pb"), fingerprint.SerializeToString())
            files.write(os.path.join(folder, "saved_model.pb"), content)

    def _checkpoint_graph(self) -> list[Node]:
        nodes = []
        for number, thing in enumerate(self._objects.things):
            node = Node()
            node.children = dict(self._objects.children[number])
            node.slots = self._objects.slots.get(number, [])
            if number in self.key_by_variable:
                node.keys["VARIABLE_VALUE"] = self.key_by_variable[number]
                node.full_name = thing.name.removesuffix(":0")
            nodes.append(node)
        return nodes


def _content_of(table: Any) -> tuple[Any, Any]:
    """The keys and values of a table; those of a vocabulary are in the table inside of it."""
    keys, values = getattr(table, "_table", table).export()
    return keys, values


class _Marker:
    """Stands for an object that only the file has."""


class _DataWithAssets(tuple):  # type: ignore[type-arg]
    """The data of a graph whose last inputs are paths of assets."""

    assets: list[Asset]

    def __new__(cls, data: Any, assets: list[Asset]) -> _DataWithAssets:
        made = super().__new__(cls, data)
        made.assets = assets
        return made


def _has_plain_arguments(concrete: ConcreteFunction) -> bool:
    """Whether no argument of the trace is an object that files cannot hold; a spec without a name is an error."""
    try:
        for leaf in nest.flatten(_structure_of_arguments(concrete)):
            if isinstance(leaf, IteratorSpec):  # such a trace asks the program for its elements
                return False
            if not isinstance(leaf, TypeSpec):
                encode(leaf)
    except TypeError:
        return False
    return True


def _structure_of_arguments(concrete: ConcreteFunction) -> Any:
    args, kwargs = concrete.structured_input_signature
    return tuple(args), dict(kwargs)


def _spec_of(leaf: Any) -> Any:
    return type_spec_from_value(leaf) if isinstance(leaf, _core.Tensor | CompositeTensor) else leaf


def _named_spec(name: str, value: Any) -> Any:
    if isinstance(value, CompositeTensor):
        return type_spec_from_value(value)
    return TensorSpec(value.shape, value.dtype, name)


def _output_shapes(tensors: list[Any]) -> Any:
    """The attribute that says which shapes a call gives: TensorFlow does not infer them."""
    return attribute_message("list(shape)", [tensor.shape for tensor in tensors])


def _tensor_info(info: Any, ref: Ref, spec: Any) -> None:
    info.name = f"{ref.node}:{ref.flat_place}"
    info.dtype = spec.dtype.as_datatype_enum
    info.tensor_shape.CopyFrom(shape_message(spec.shape))


def _table_node(e: Emitter, table: Any, inner: list[int], shared: str) -> Ref:
    """The node that makes a table whose values have the shape `inner`."""
    common = {"key_dtype": table.key_dtype, "value_dtype": table.value_dtype, "shared_name": shared}
    if isinstance(table, DenseHashTable):  # it names the keys that none may use
        return e.one("MutableDenseHashTableV2", *map(e.constant, table.reserved_keys), **common, value_shape=inner)
    if inner:
        return e.one("MutableHashTableOfTensorsV2", **common, value_shape=inner)
    return e.one("MutableHashTableV2" if hasattr(table, "insert") else "HashTableV2", **common)
