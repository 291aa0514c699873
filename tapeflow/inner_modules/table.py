"""Which inner modules there are, and the names in each."""

from __future__ import annotations

import inspect
from types import ModuleType
from typing import Any

from tapeflow import _core
from tapeflow.config import disable_op_determinism, is_op_determinism_enabled
from tapeflow.control_flow.vectorized_map import vectorized_map
from tapeflow.inner_modules import (
    containers,
    deprecation,
    execution_context,
    identity,
    inspection,
    sparse_products,
    type_names,
)
from tapeflow.inner_modules.batch_size import compute_batch_size
from tapeflow.inner_modules.choices import case_helper
from tapeflow.inner_modules.convolution import Convolution
from tapeflow.inner_modules.loops import for_loop, pfor
from tapeflow.inner_modules.module_names import remove_undocumented
from tapeflow.inner_modules.operators import add_operators, make_composite_tensor
from tapeflow.inner_modules.random_values import parameterized_truncated_normal
from tapeflow.inner_modules.recording import should_record_backprop
from tapeflow.inner_modules.shapes import constant_value_as_shape, try_evaluate_constant
from tapeflow.inner_modules.syntax_trees import Transformer
from tapeflow.inner_modules.update_slice import dynamic_update_slice
from tapeflow.inner_modules.variable_values import convert_variables_to_tensors
from tapeflow.namespace import find_public
from tapeflow.ops.event_files import Event
from tapeflow.ops.records import tf_record_iterator
from tapeflow.tensorflow_places import place_by_class, take_places
from tapeflow.types import nest, tensor_shape, tensor_spec
from tapeflow.types.tensor import Reference

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

_NAMES_BY_PATH: dict[str, dict[str, Any]] = {
    "compiler.tf2xla.python.xla": {"dynamic_update_slice": dynamic_update_slice},
    "core.example.example_pb2": {name: find_public(f"train.{name}") for name in ("Example", "SequenceExample")},
    "core.example.feature_pb2": {
        name: find_public(f"train.{name}") for name in ("BytesList", "Feature", "Features", "FloatList", "Int64List")
    },
    "core.util.event_pb2": {"Event": Event},
    "python.autograph.pyct.transformer": {"Base": Transformer},
    "python.data.experimental.ops.distribute": {"compute_batch_size": compute_batch_size},
    "python.data.ops.iterator_ops": {"OwnedIterator": find_public("data.Iterator")},
    "python.eager.backprop": {"GradientTape": find_public("GradientTape")},
    "python.eager.tape": {"should_record_backprop": should_record_backprop},
    "python.eager.record": {"should_record_backprop": should_record_backprop},
    "python.eager.context": {
        "async_wait": execution_context.async_wait,
        "context": execution_context.context,
        "executing_eagerly": find_public("executing_eagerly"),
    },
    "python.framework.composite_tensor": {"CompositeTensor": tensor_spec.CompositeTensor},
    "python.framework.config": {
        "disable_op_determinism": disable_op_determinism,
        "enable_op_determinism": find_public("config.experimental.enable_op_determinism"),
        "is_op_determinism_enabled": is_op_determinism_enabled,
    },
    "python.framework.ops": {
        "EagerTensor": find_public("__internal__.EagerTensor"),
        "Tensor": _core.Tensor,
        "convert_to_tensor": find_public("convert_to_tensor"),
        "executing_eagerly_outside_functions": find_public("compat.v1.executing_eagerly_outside_functions"),
        "get_default_graph": find_public("compat.v1.get_default_graph"),
        "name_scope": find_public("name_scope"),
        "register_tensor_conversion_function": find_public("register_tensor_conversion_function"),
    },
    "python.framework.smart_cond": {"smart_cond": find_public("__internal__.smart_cond.smart_cond")},
    "python.framework.tensor_shape": {
        "TensorShape": tensor_shape.TensorShape,
        "as_shape": tensor_shape.as_shape,
        "dimension_value": find_public("compat.v1.dimension_value"),
    },
    "python.framework.tensor_spec": {"DenseSpec": tensor_spec.DenseSpec, "TensorSpec": tensor_spec.TensorSpec},
    "python.framework.tensor_util": {
        "constant_value": find_public("get_static_value"),
        "constant_value_as_shape": constant_value_as_shape,
        "is_tf_type": find_public("is_tensor"),
        "try_evaluate_constant": try_evaluate_constant,
    },
    "python.framework.type_spec": {
        "BatchableTypeSpec": tensor_spec.BatchableTypeSpec,
        "TypeSpec": tensor_spec.TypeSpec,
        "type_spec_from_value": tensor_spec.type_spec_from_value,
    },
    "python.framework.type_spec_registry": {
        "_NAME_TO_TYPE_SPEC": type_names.class_by_name,
        "_TYPE_SPEC_TO_NAME": type_names.name_by_class,
        "get_name": type_names.get_name,
        "lookup": type_names.lookup,
        "register": type_names.register,
    },
    "python.lib.io.tf_record": {
        "TFRecordWriter": find_public("io.TFRecordWriter"),
        "tf_record_iterator": tf_record_iterator,
    },
    "python.ops.array_ops": {"prevent_gradient": find_public("raw_ops.PreventGradient")},
    "python.ops.control_flow_case": {"_case_helper": case_helper},
    "python.ops.control_flow_util": {
        "ENABLE_CONTROL_FLOW_V2": True,
        "GraphOrParentsInXlaContext": execution_context.graph_or_parents_in_xla_context,
    },
    "python.ops.linalg.linear_operator": {
        "LinearOperator": find_public("linalg.LinearOperator"),
        "make_composite_tensor": make_composite_tensor,
    },
    "python.ops.linalg.linear_operator_addition": {"add_operators": add_operators},
    "python.ops.linalg.sparse.sparse_csr_matrix_ops": {
        "csr_sparse_matrix_to_sparse_tensor": sparse_products.csr_sparse_matrix_to_sparse_tensor,
        "sparse_matrix_sparse_mat_mul": sparse_products.sparse_matrix_sparse_mat_mul,
        "sparse_tensor_to_csr_sparse_matrix": sparse_products.sparse_tensor_to_csr_sparse_matrix,
    },
    "python.ops.math_ops": {"is_nan": find_public("math.is_nan")},
    "python.ops.nn_ops": {"Convolution": Convolution},
    "python.ops.parallel_for.control_flow_ops": {"for_loop": for_loop, "pfor": pfor, "vectorized_map": vectorized_map},
    "python.ops.random_ops": {"parameterized_truncated_normal": parameterized_truncated_normal},
    "python.ops.resource_variable_ops": {
        "BaseResourceVariable": find_public("Variable"),
        "VariableSpec": tensor_spec.VariableSpec,
        "is_resource_variable": execution_context.is_resource_variable,
    },
    "python.ops.variables": {"Variable": find_public("Variable")},
    "python.trackable.base": {"Trackable": find_public("__internal__.tracking.Trackable")},
    "python.trackable.data_structures": {
        "ListWrapper": containers.ListWrapper,
        "_DictWrapper": containers._DictWrapper,
        "sticky_attribute_assignment": containers.sticky_attribute_assignment,
    },
    "python.types.core": {
        "Tensor": find_public("__internal__.types.Tensor"),
        "TensorLike": find_public("types.experimental.TensorLike"),
    },
    "python.util.all_util": {"remove_undocumented": remove_undocumented},
    "python.util.deprecation": {
        name: getattr(deprecation, name)
        for name in [
            "deprecated",
            "deprecated_alias",
            "deprecated_arg_values",
            "deprecated_args",
            "deprecated_argument_lookup",
            "silence",
        ]
    },
    "python.util.nest": {
        **{name: getattr(nest, name) for name in _NEST},
        "_is_namedtuple": nest.is_namedtuple,
        "_sequence_like": nest.sequence_like,
        "_yield_sorted_items": nest.yield_items,
        "_yield_value": nest.yield_values,
    },
    "python.util.object_identity": {
        "ObjectIdentityDictionary": identity.ObjectIdentityDictionary,
        "ObjectIdentitySet": identity.ObjectIdentitySet,
        "Reference": Reference,
    },
    "python.util.tf_inspect": {
        **inspection.inspection,
        "_inspect": inspect,
        "getcallargs": inspection.getcallargs,
        "getfullargspec": inspection.getfullargspec,
    },
    "python.util.variable_utils": {"convert_variables_to_tensors": convert_variables_to_tensors},
}

# Imported together with modules that programs use; whoever asks for a name of theirs hears that it is absent.
_WITHOUT_NAMES = """
python.autograph.converters.break_statements python.autograph.converters.continue_statements
python.autograph.converters.return_statements python.autograph.core.converter python.autograph.pyct.anno
python.autograph.pyct.common_transformers.anf python.autograph.pyct.inspect_utils python.autograph.pyct.loader
python.autograph.pyct.naming python.autograph.pyct.parser python.autograph.pyct.qual_names
python.autograph.pyct.static_analysis.activity python.autograph.pyct.templates
"""

_module_by_path: dict[str, ModuleType] = {}


def _open(path: str) -> ModuleType:
    """The module at a path, made at the first call together with those above it."""
    module = _module_by_path.get(path)
    if module is None:
        module = _module_by_path[path] = ModuleType(f"tensorflow.{path}", "Inner names that libraries import.")
        module.__path__ = []
        above, _, name = path.rpartition(".")
        if above:
            setattr(_open(above), name, module)
    return module


for _path, _names in _NAMES_BY_PATH.items():
    vars(_open(_path)).update(_names)
for _path in _WITHOUT_NAMES.split():
    _open(_path)
for _kind, (_path, _name) in place_by_class().items():
    setattr(_open(_path), _name, _kind)
take_places()


def find(path: str) -> ModuleType | None:
    """The module that answers to `tensorflow.path`, or None."""
    return _module_by_path.get(path)
