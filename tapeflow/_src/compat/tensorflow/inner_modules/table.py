"""Which inner modules there are, and the names in each."""

from __future__ import annotations

import functools
import inspect
import os
import unittest
import unittest.mock
from types import ModuleType
from typing import Any

from tapeflow._src import _core
from tapeflow._src.compat.raw_ops.operation import has_raw_operation
from tapeflow._src.compat.raw_ops.variable_handles import ANONYMOUS
from tapeflow._src.compat.tensorflow import execution_modes
from tapeflow._src.compat.tensorflow.class_names import name_by_class, take_class_names
from tapeflow._src.compat.tensorflow.inner_modules import (
    autograph_operators,
    checkpoint_names,
    dataset_stages,
    datasets,
    decorators,
    deprecation,
    device_list,
    docstrings,
    execution,
    execution_context,
    framework_functions,
    functional,
    gradient_functions,
    graph_elements,
    inspection,
    library_tools,
    list_functions,
    ragged_table,
    recording,
    saved_model_loader,
    suite_table,
    summaries,
)
from tapeflow._src.compat.tensorflow.inner_modules.batch_size import compute_batch_size
from tapeflow._src.compat.tensorflow.inner_modules.choices import case_helper
from tapeflow._src.compat.tensorflow.inner_modules.convolution import Convolution
from tapeflow._src.compat.tensorflow.inner_modules.graph_programs import (
    layer_sizes,
    metric_table,
    session_table,
    variable_table,
)
from tapeflow._src.compat.tensorflow.inner_modules.language import table as language_table
from tapeflow._src.compat.tensorflow.inner_modules.library_table import names_by_path
from tapeflow._src.compat.tensorflow.inner_modules.loops import for_loop, pfor
from tapeflow._src.compat.tensorflow.inner_modules.module_map import find_object, paths_by_module, raw_path_by_function
from tapeflow._src.compat.tensorflow.inner_modules.operators import add_operators, make_composite_tensor
from tapeflow._src.compat.tensorflow.inner_modules.ops.table import names_by_path as ops_names_by_path
from tapeflow._src.compat.tensorflow.inner_modules.random_values import parameterized_truncated_normal
from tapeflow._src.compat.tensorflow.inner_modules.shapes import constant_value_as_shape, try_evaluate_constant
from tapeflow._src.compat.tensorflow.inner_modules.symbols import make_all, remove_undocumented
from tapeflow._src.compat.tensorflow.inner_modules.syntax_trees import Transformer
from tapeflow._src.compat.tensorflow.inner_modules.tracing import compilation
from tapeflow._src.compat.tensorflow.inner_modules.typed_functions import defun
from tapeflow._src.compat.tensorflow.inner_modules.update_slice import dynamic_slice, dynamic_update_slice
from tapeflow._src.compat.tensorflow.inner_modules.variable_values import convert_variables_to_tensors
from tapeflow._src.config import disable_op_determinism, is_op_determinism_enabled
from tapeflow._src.control_flow.vectorized_map import vectorized_map
from tapeflow._src.function.escape import InaccessibleTensorError
from tapeflow._src.io.protos import messages
from tapeflow._src.io.records import tf_record_iterator
from tapeflow._src.namespace import find_public, hold_public_objects
from tapeflow._src.types import containers as nest_containers
from tapeflow._src.types import identity, nest, nest_paths, spec_names, tensor_shape, tensor_spec
from tapeflow._src.types.tensor import Reference

spec_names.name_public_specs()

_NEST = [
    "assert_same_structure",
    "assert_shallow_structure",
    "flatten",
    "flatten_up_to",
    "flatten_with_joined_string_paths",
    "flatten_with_tuple_paths",
    "flatten_with_tuple_paths_up_to",
    "get_traverse_shallow_structure",
    "is_attrs",
    "is_mapping",
    "is_namedtuple",
    "is_nested",
    "is_nested_or_composite",
    "list_to_tuple",
    "map_structure",
    "map_structure_up_to",
    "map_structure_with_paths",
    "map_structure_with_tuple_paths",
    "map_structure_with_tuple_paths_up_to",
    "pack_sequence_as",
    "same_namedtuples",
    "sequence_like",
    "yield_flat_paths",
]

_LAYERS = {
    "base": "Layer",
    "convolutional": "Conv1D Conv2D Conv2DTranspose Conv3D SeparableConv2D "
    "conv1d conv2d conv2d_transpose conv3d separable_conv2d",
    "core": "Dense Dropout Flatten dense dropout flatten",
    "normalization": "BatchNormalization batch_normalization",
    "pooling": "AveragePooling1D AveragePooling2D AveragePooling3D MaxPooling1D MaxPooling2D MaxPooling3D "
    "average_pooling1d average_pooling2d average_pooling3d max_pooling1d max_pooling2d max_pooling3d",
}

_NAMES_BY_PATH: dict[str, dict[str, Any]] = {
    "compiler.tf2xla.python.xla": {"dynamic_slice": dynamic_slice, "dynamic_update_slice": dynamic_update_slice},
    "core.example.example_pb2": {name: find_public(f"train.{name}") for name in ("Example", "SequenceExample")},
    "core.example.feature_pb2": {
        name: find_public(f"train.{name}")
        for name in ["BytesList", "Feature", "FeatureList", "FeatureLists", "Features", "FloatList", "Int64List"]
    },
    "core.framework.attr_value_pb2": {"AttrValue": messages.AttrValue},
    "core.framework.graph_pb2": {"GraphDef": messages.GraphDef},
    "core.framework.node_def_pb2": {"NodeDef": messages.NodeDef},
    "core.framework.summary_pb2": {
        "HistogramProto": find_public("compat.v1.HistogramProto"),
        "Summary": find_public("compat.v1.Summary"),
        "SummaryMetadata": messages.SummaryMetadata,
    },
    "core.framework.tensor_pb2": {"TensorProto": messages.TensorProto},
    "core.framework.tensor_shape_pb2": {"TensorShapeProto": messages.TensorShapeProto},
    "core.framework.types_pb2": {"DataType": messages.enum_type("DataType"), **messages.enum_values("DataType")},
    "core.framework.versions_pb2": {"VersionDef": messages.VersionDef},
    "core.util.event_pb2": {
        name: messages.message_class(name) for name in ("Event", "SessionLog", "TaggedRunMetadata")
    },
    "python.autograph.pyct.transformer": {"Base": Transformer},
    "python.data.experimental.ops.distribute": {"compute_batch_size": compute_batch_size},
    "python.data.ops.iterator_ops": {"OwnedIterator": find_public("data.Iterator")},
    "python.eager.backprop": {
        "gradients_function": gradient_functions.gradients_function,
        "implicit_grad": gradient_functions.implicit_grad,
        "implicit_val_and_grad": gradient_functions.implicit_val_and_grad,
        "make_vjp": gradient_functions.make_vjp,
        "val_and_grad_function": gradient_functions.val_and_grad_function,
    },
    "python.eager.context": {
        "ASYNC": 1,
        "EAGER_MODE": 1,
        "GRAPH_MODE": 0,
        "SYNC": 0,
        "Context": execution_context.Context,
        "_context": execution_context.context_of_process,
        "_reset_context": execution_context.reset_context,
        "anonymous_name": lambda: ANONYMOUS,
        "_reset_jit_compiler_flags": execution_context.reset_jit_compiler_flags,
        "async_wait": execution_context.async_wait,
        "context": execution_context.context,
        "device": execution_context.placed_anywhere,
        "eager_mode": execution_context.eager_mode,
        "ensure_initialized": execution_context.ensure_initialized,
        "execution_mode": execution_context.placed_anywhere,
        "graph_mode": execution_context.graph_mode,
        "in_eager_mode": execution_context.in_eager_mode,
        "num_gpus": execution_context.num_gpus,
    },
    "python.eager.function": {"defun": find_public("function")},
    "python.eager.test": {"main": find_public("test.main"), "mock": unittest.mock},
    "python.framework.composite_tensor": {"CompositeTensor": tensor_spec.CompositeTensor},
    "python.framework.config": {
        "disable_op_determinism": disable_op_determinism,
        "enable_op_determinism": find_public("config.experimental.enable_op_determinism"),
        "is_op_determinism_enabled": is_op_determinism_enabled,
    },
    "python.framework.function": {"Defun": defun},
    "python.framework.memory_checker": {"MemoryChecker": execution_modes.MemoryChecker},
    "python.framework.errors": {"InaccessibleTensorError": InaccessibleTensorError},
    "python.framework.errors_impl": {"InaccessibleTensorError": InaccessibleTensorError},
    "python.framework.constant_op": {"is_constant": graph_elements.is_constant},
    "python.framework.ops": {
        "Tensor": _core.Tensor,
        "_get_graph_from_inputs": find_public("compat.v1.get_default_graph"),
        "add_exit_callback_to_default_func_graph": graph_elements.add_exit_callback_to_default_func_graph,
        "colocate_with": find_public("compat.v1.colocate_with"),
        "convert_n_to_tensor": graph_elements.convert_n_to_tensor,
        "convert_to_tensor": graph_elements.convert_to_tensor,
        "enable_eager_execution_internal": execution_context.enable_eager_execution_internal,
        "convert_to_tensor_v2": find_public("convert_to_tensor"),
        "get_all_collection_keys": graph_elements.get_all_collection_keys,
        "has_default_graph": graph_elements.has_default_graph,
        "internal_convert_to_tensor": graph_elements.convert_to_tensor,
        "name_from_scope_name": graph_elements.name_from_scope_name,
        "name_scope": graph_elements.name_scope,
        "prepend_name_scope": graph_elements.prepend_name_scope,
        "register_tensor_conversion_function": find_public("register_tensor_conversion_function"),
        "strip_name_scope": graph_elements.strip_name_scope,
        "tensor_id": graph_elements.tensor_id,
        "uid": execution_context.uid,
    },
    "python.framework.smart_cond": {"smart_cond": find_public("__internal__.smart_cond.smart_cond")},
    "python.framework.tensor_shape": {
        "TensorShape": tensor_shape.TensorShape,
        "as_shape": tensor_shape.as_shape,
        "dimension_value": find_public("compat.v1.dimension_value"),
    },
    "python.framework.test_util": execution_modes.names,
    "python.framework.tensor_spec": {
        name: getattr(tensor_spec, name) for name in ("BoundedTensorSpec", "DenseSpec", "TensorSpec")
    },
    "python.framework.tensor_util": {
        "constant_value": find_public("get_static_value"),
        "constant_value_as_shape": constant_value_as_shape,
        "is_tf_type": find_public("is_tensor"),
        "try_evaluate_constant": try_evaluate_constant,
    },
    "python.framework.type_spec": {
        "BatchableTypeSpec": tensor_spec.BatchableTypeSpec,
        "TypeSpec": tensor_spec.TypeSpec,
        "register_type_spec_from_value_converter": tensor_spec.register_type_spec_from_value_converter,
        "type_spec_from_value": tensor_spec.type_spec_from_value,
    },
    "python.framework.type_spec_registry": {
        "_NAME_TO_TYPE_SPEC": spec_names.class_by_name,
        "_TYPE_SPEC_TO_NAME": spec_names.name_by_class,
        "get_name": spec_names.get_name,
        "lookup": spec_names.lookup,
        "register": spec_names.register,
    },
    **{
        f"python.layers.{module}": {name: find_public(f"compat.v1.layers.{name}") for name in names.split()}
        for module, names in _LAYERS.items()
    },
    "python.lib.io.tf_record": {
        "TFRecordWriter": find_public("io.TFRecordWriter"),
        "tf_record_iterator": tf_record_iterator,
    },
    "python.ops.array_ops": {
        "prevent_gradient": find_object("raw_ops.PreventGradient"),
        "stack": find_public("stack"),
        "unstack": find_public("unstack"),
    },
    "python.ops.control_flow_case": {"_case_helper": case_helper},
    "python.ops.control_flow_ops": {
        "Assert": find_public("debugging.Assert"),
        "case": find_public("compat.v1.case"),
        "case_v2": find_public("case"),
        "cond": find_public("compat.v1.cond"),
        "cond_for_tf_v2": find_public("cond"),
        "switch_case": find_public("switch_case"),
        "while_loop": find_public("compat.v1.while_loop"),
        "while_loop_v2": find_public("while_loop"),
        "with_dependencies": graph_elements.with_dependencies,
    },
    "python.ops.control_flow_util_v2": {"in_defun": graph_elements.is_in_function},
    "python.ops.gradient_checker_v2": {"max_error": graph_elements.max_error},
    "python.ops.control_flow_util": {
        "ENABLE_CONTROL_FLOW_V2": True,
        "GraphOrParentsInXlaContext": execution_context.graph_or_parents_in_xla_context,
    },
    "python.ops.linalg.linear_operator": {
        "LinearOperator": find_public("linalg.LinearOperator"),
        "make_composite_tensor": make_composite_tensor,
    },
    "python.ops.linalg.linear_operator_addition": {"add_operators": add_operators},
    "python.ops.list_ops": list_functions.NAMES,
    "python.ops.math_ops": {"is_nan": find_public("math.is_nan")},
    "python.ops.nn_ops": {"Convolution": Convolution},
    "python.ops.parallel_for.control_flow_ops": {"for_loop": for_loop, "pfor": pfor, "vectorized_map": vectorized_map},
    "python.ops.random_ops": {"parameterized_truncated_normal": parameterized_truncated_normal},
    "python.ops.resource_variable_ops": {
        "variable_shape": find_object("raw_ops.VariableShape"),
        "BaseResourceVariable": find_public("Variable"),
        "VariableSpec": tensor_spec.VariableSpec,
        "is_resource_variable": execution_context.is_resource_variable,
    },
    "python.ops.variables": {"Variable": find_public("Variable")},
    "python.platform.googletest": {
        "GetTempDir": find_public("compat.v1.test.get_temp_dir"),
        "TestCase": unittest.TestCase,
        "main": find_public("test.main"),
    },
    "python.platform.test": {"mock": unittest.mock},
    "python.tf2": {"enabled": execution_context.enabled},
    "python.trackable.base": {"Trackable": find_public("__internal__.tracking.Trackable")},
    "python.types.core": {
        "Tensor": find_public("__internal__.types.Tensor"),
        "TensorLike": find_public("types.experimental.TensorLike"),
    },
    "python.util.all_util": {"make_all": make_all, "remove_undocumented": remove_undocumented},
    "python.util.decorator_utils": docstrings.NAMES,
    "python.util.deprecation": deprecation.NAMES,
    "python.util.compat": {"path_to_bytes": os.fsencode},
    "python.util.tf_contextlib": {"contextmanager": decorators.contextmanager},
    "python.util.tf_decorator": {
        "TFDecorator": decorators.TFDecorator,
        "make_decorator": decorators.make_decorator,
        "rewrap": decorators.rewrap,
        "unwrap": decorators.unwrap,
    },
    "python.training.training_util": {"_increment_global_step": graph_elements.increment_global_step},
    "python.util.nest": {
        **{
            name: f
            for module in (nest_containers, nest, nest_paths)
            for name, f in vars(module).items()
            if name in _NEST
        },
        "_is_namedtuple": nest_containers.is_namedtuple,
        "_sequence_like": nest_containers.sequence_like,
        "_yield_sorted_items": nest_paths.yield_items,
        "_yield_value": nest_paths.yield_values,
    },
    "python.util.object_identity": {
        "ObjectIdentityDictionary": identity.ObjectIdentityDictionary,
        "ObjectIdentitySet": identity.ObjectIdentitySet,
        "Reference": Reference,
        "_ObjectIdentityWrapper": Reference,
    },
    "python.util.tf_inspect": {
        **inspection.inspection,
        "ArgSpec": inspection.ArgSpec,
        "_inspect": inspect,
        "getargspec": inspection.getargspec,
        "getcallargs": inspection.getcallargs,
        "getfullargspec": inspection.getfullargspec,
    },
    "python.util.variable_utils": {"convert_variables_to_tensors": convert_variables_to_tensors},
}

for _path, _names in (
    *names_by_path.items(),
    *framework_functions.names_by_path.items(),
    *suite_table.names_by_path.items(),
    *summaries.names_by_path.items(),
    *autograph_operators.names_by_path.items(),
    *checkpoint_names.names_by_path.items(),
    *library_tools.names_by_path.items(),
    *saved_model_loader.names_by_path.items(),
    *dataset_stages.names_by_path.items(),
    *datasets.names_by_path.items(),
    *ragged_table.names_by_path.items(),
    *functional.names_by_path.items(),
    *device_list.names_by_path.items(),
    *execution.names_by_path.items(),
    *recording.names_by_path.items(),
    *session_table.names_by_path.items(),
    *language_table.names_by_path.items(),
    *metric_table.names_by_path.items(),
    *layer_sizes.names_by_path.items(),
    *variable_table.names_by_path.items(),
    *ops_names_by_path.items(),
    *compilation.names_by_path.items(),
):
    _NAMES_BY_PATH[_path] = {**_NAMES_BY_PATH.get(_path, {}), **_names}

# Files below python.ops that take over all functions of the generated module of their name.
_WITH_GENERATED = {
    f"{kind}_ops"
    for kind in [
        "array",
        "batch",
        "bitwise",
        "clustering",
        "control_flow",
        "data_flow",
        "image",
        "io",
        "linalg",
        "list",
    ]
    + ["logging", "lookup", "map", "math", "nn", "parsing", "random", "resource_variable", "sparse", "state", "string"]
}

# Imported beside modules that programs use; their names raise AttributeError.
_WITHOUT_NAMES = [
    "core.config.flags",
    "core.framework.dataset_options_pb2",
    "core.framework.full_type_pb2",
    "core.lib.core.error_codes_pb2",
    "python.grappler.tf_optimizer",
    "python.framework.cpp_shape_inference_pb2",
    "python.framework.type_utils",
    "core.example.example_pb2",
    "core.example.feature_pb2",
    "core.framework.function_pb2",
    "core.framework.graph_debug_info_pb2",
    "core.framework.op_def_pb2",
    "core.framework.variable_pb2",
    "core.function.capture.capture_container",
    "core.function.polymorphism.function_type",
    "core.function.trace_type",
    "core.protobuf.meta_graph_pb2",
    "core.protobuf.saver_pb2",
    "core.protobuf.struct_pb2",
    "python.autograph.pyct.common_transformers.anf",
    "python.framework.test_ops",
    "python.pywrap_tfe",
]

_module_by_path: dict[str, ModuleType] = {}


def _open(path: str) -> ModuleType:
    """The module at a path, made at the first call together with those above it."""
    module = _module_by_path.get(path)
    if module is None:
        module = _module_by_path[path] = ModuleType(f"tensorflow.{path}", "Inner names that libraries import.")
        module.__path__ = []
        look_up = functools.partial(_look_up, module, paths_by_module().get(path, {}))
        vars(module).update({"__getattr__": look_up, **_NAMES_BY_PATH.get(path, {})})
        hold_public_objects(module)
        above, _, name = path.rpartition(".")
        if above:
            setattr(_open(above), name, module)
    return module


def _look_up(module: ModuleType, path_by_name: dict[str, str], name: str) -> Any:
    """A public object by its name in a file of TensorFlow; it is kept there from then on."""
    if name == "__all__":  # what `from module import *` takes
        return sorted({known for known in (*path_by_name, *vars(module)) if not known.startswith("_")})
    path = path_by_name.get(name)
    if path is None and _holds_raw_operations(module.__name__):
        path = f"raw_ops.{name}" if has_raw_operation(name) else raw_path_by_function().get(name)
    if path is None and (imported := _imported_module(module.__name__.removeprefix("tensorflow."), name)):
        return _open(imported)
    if path is None:
        raise AttributeError(f"module {module.__name__!r} has no attribute {name!r}", name=name, obj=module)
    found = find_public(path) if name[:1].isupper() else find_object(path)  # `Add` takes keywords, `add` positions
    setattr(module, name, found)
    return found


def _holds_raw_operations(module: str) -> bool:
    """Whether a module holds generated functions: its own, or all of those of a module that it imports."""
    package, _, name = module.rpartition(".")
    if package == "tensorflow.python.ops":
        return name.startswith("gen_") or name in _WITH_GENERATED
    return module.startswith("tensorflow.python.ops.linalg.sparse.")


def _imported_module(path: str, name: str) -> str | None:
    """The path of the module that the file at `path` imports under a name: generated operations, or a neighbour."""
    if name.startswith("gen_") and f"python.ops.{name}" in _known_paths():
        return f"python.ops.{name}"
    neighbour = f"{path.rpartition('.')[0]}.{name}"
    is_file = not any(known.startswith(f"{path}.") for known in _known_paths())
    return neighbour if is_file and neighbour != path and neighbour in _known_paths() else None


for _kind, (_path, _name) in name_by_class().items():
    setattr(_open(_path), _name, _kind)
take_class_names()


@functools.cache
def _known_paths() -> frozenset[str]:
    """The paths of all modules, and of those above them."""
    whole = {*_NAMES_BY_PATH, *paths_by_module(), *_WITHOUT_NAMES}
    parts = [path.split(".") for path in whole]
    return frozenset(".".join(names[:count]) for names in parts for count in range(1, len(names) + 1))


def find(path: str) -> ModuleType | None:
    """The module that answers to `tensorflow.path`, or None."""
    return _open(path) if path in _known_paths() else None
