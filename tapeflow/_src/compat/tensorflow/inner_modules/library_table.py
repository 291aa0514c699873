"""The names of inner modules that Keras 2 and the libraries on it import, beside those of `table`."""

from __future__ import annotations

import contextlib
from typing import Any

from tapeflow._src.compat.feature_columns import inner_names as feature_columns
from tapeflow._src.compat.saved_model import revived_types
from tapeflow._src.compat.saved_model.loading import RestoredResource
from tapeflow._src.compat.tensorflow.inner_modules import gauges, symbols
from tapeflow._src.compat.tensorflow.internal_names import (
    containers,
    contexts,
    dataset_kinds,
    dispatchers,
    documentation,
    keras_hooks,
    mode_keys,
    placement,
    saved_models,
    tracking,
    training,
)
from tapeflow._src.compat.v1 import lookup
from tapeflow._src.compat.v1.variables.variable_store import (
    EagerVariableStore,
    default_variable_store,
    with_variable_store,
)
from tapeflow._src.distribute import values, variables
from tapeflow._src.distribute.input import DistributedDataset
from tapeflow._src.io.protos import messages
from tapeflow._src.namespace import find_public
from tapeflow._src.ops.nn.initializers import fans
from tapeflow._src.types.trackable import NoDependency, untracked_attributes

_cluster_resolvers = {
    name: find_public(f"distribute.cluster_resolver.{name}")
    for name in ("ClusterResolver", "SimpleClusterResolver", "SlurmClusterResolver", "TFConfigClusterResolver")
}

_MESSAGES_BY_MODULE = {
    "framework.attr_value": ["NameAttrList"],
    "framework.function": ["FunctionDef", "FunctionDefLibrary", "GradientDef", "RegisteredGradient"],
    "framework.full_type": ["FullTypeDef"],
    "framework.op_def": ["OpDef", "OpDeprecation"],
    "framework.resource_handle": ["ResourceHandleProto"],
    "framework.step_stats": ["AllocatorMemoryUsed", "DeviceStepStats", "MemoryStats", "NodeExecStats", "StepStats"],
    "framework.tensor_slice": ["TensorSliceProto"],
    "framework.variable": ["SaveSliceInfoDef", "VariableDef"],
    "protobuf.cluster": ["ClusterDef", "JobDef"],
    "protobuf.config": [
        *("CallableOptions", "ConfigProto", "GPUOptions", "GraphOptions", "OptimizerOptions", "RPCOptions"),
        *("RunMetadata", "RunOptions", "SessionMetadata", "TensorConnection", "ThreadPoolOptionProto"),
    ],
    "protobuf.debug": ["DebugOptions", "DebugTensorWatch"],
    "protobuf.fingerprint": ["FingerprintDef"],
    "protobuf.meta_graph": ["AssetFileDef", "CollectionDef", "MetaGraphDef", "SignatureDef", "TensorInfo"],
    "protobuf.rewriter_config": ["AutoParallelOptions", "RewriterConfig", "ScopedAllocatorOptions", "VerifierConfig"],
    "protobuf.saved_model": ["SavedModel"],
    "protobuf.saved_object_graph": [
        *("CapturedTensor", "FunctionSpec", "SaveableObject", "SavedAsset", "SavedBareConcreteFunction"),
        *("SavedConcreteFunction", "SavedConstant", "SavedFunction", "SavedObject", "SavedObjectGraph"),
        *("SavedResource", "SavedUserObject", "SavedVariable"),
    ],
    "protobuf.saver": ["SaverDef"],
    "protobuf.struct": [
        *("BoundedTensorSpecProto", "DictValue", "ListValue", "NamedTupleValue", "NoneValue", "PairValue"),
        *("StructuredValue", "TensorSpecProto", "TupleValue", "TypeSpecProto"),
    ],
    "protobuf.tensor_bundle": ["BundleEntryProto", "BundleHeaderProto"],
    "protobuf.tensorflow_server": ["ServerDef"],
    "protobuf.trackable_object_graph": ["RegisteredSaver", "TrackableObjectGraph"],
}

names_by_path: dict[str, dict[str, Any]] = {
    **{
        f"core.{module}_pb2": {name: messages.message_class(name) for name in names}
        for module, names in _MESSAGES_BY_MODULE.items()
    },
    "python.checkpoint.checkpoint": {
        name: getattr(tracking, name)
        for name in ("add_variable", "gather_initializers", "list_objects", "streaming_restore")
    },
    **{f"python.data.ops.{module}": names for module, names in dataset_kinds.names_by_module.items()},
    "python.distribute.cluster_resolver": _cluster_resolvers,
    "python.distribute.distribute_utils": {"cache_variable_reads": contextlib.nullcontext},
    "python.distribute.input_lib": {"DistributedDataset": DistributedDataset},
    "python.distribute.input_ops": {"auto_shard_dataset": placement.auto_shard_dataset},
    "python.distribute.values": {
        **{name: getattr(values, name) for name in ("DistributedValues", "DistributedVariable", "Mirrored")},
        **{name: getattr(values, name) for name in ("PerReplica", "PerReplicaSpec")},
        **{name: getattr(variables, name) for name in ("MirroredVariable", "SyncOnReadVariable")},
    },
    "python.eager.context": {
        "get_config": placement.get_config,
        "get_device_name": contexts.get_device_name,
    },
    **feature_columns.names_by_file,
    "python.eager.monitoring": gauges.names,
    "python.framework.ops": {"NullContextmanager": contextlib.nullcontext},
    "python.ops.control_flow_ops": {"get_enclosing_xla_context": contexts.get_enclosing_xla_context},
    **{f"python.ops.{module}": {"_compute_fans": fans} for module in ("init_ops", "init_ops_v2")},
    "python.ops.lookup_ops": lookup.inner_names,
    "python.ops.ragged.ragged_util": {"assert_splits_match": placement.assert_splits_match},
    "python.ops.variable_scope": {
        "EagerVariableStore": EagerVariableStore,
        "_get_default_variable_store": default_variable_store,
        "with_variable_store": with_variable_store,
    },
    "python.ops.weights_broadcast_ops": {"broadcast_weights": training.broadcast_weights},
    "python.pywrap_tfe": {"TF_ListPluggablePhysicalDevices": placement.no_devices},
    "python.saved_model.model_utils.mode_keys": {
        "EstimatorModeKeys": mode_keys.EstimatorModeKeys,
        "KerasModeKeys": mode_keys.KerasModeKeys,
    },
    "python.saved_model.revived_types": {
        "VersionedTypeRegistration": revived_types.VersionedTypeRegistration,
        "register_revived_type": revived_types.register_revived_type,
    },
    "python.saved_model.save": {"save_and_return_nodes": saved_models.save_and_return_nodes},
    "python.trackable.base": {
        "CheckpointInitialValue": tracking.CheckpointInitialValue,
        "CheckpointInitialValueCallable": tracking.CheckpointInitialValueCallable,
        "TrackableReference": tracking.TrackableReference,
        "no_automatic_dependency_tracking": find_public("__internal__.tracking.no_automatic_dependency_tracking"),
        "no_automatic_dependency_tracking_scope": untracked_attributes,
    },
    "python.trackable.data_structures": {
        "ListWrapper": containers.ListWrapper,
        "NoDependency": NoDependency,
        "TrackableDataStructure": containers.TrackableDataStructure,
        "_DictWrapper": containers._DictWrapper,
        "_TupleWrapper": containers._TupleWrapper,
        "sticky_attribute_assignment": containers.sticky_attribute_assignment,
        "wrap_or_unwrap": containers.wrap_or_unwrap,
    },
    "python.trackable.resource": {"RestoredResource": RestoredResource},
    "python.util.dispatch": {
        name: getattr(dispatchers, name)
        for name in ["GlobalOpDispatcher", "OpDispatcher", "add_dispatch_support", "dispatch", "dispatch_for_types"]
    },
    "python.util.keras_deps": keras_hooks.names,
    "python.util.tf_export": {
        name: getattr(symbols, name)
        for name in ["get_canonical_name_for_symbol", "get_symbol_from_name", "keras_export", "tf_export"]
    },
    "tools.docs.doc_controls": {
        name: getattr(documentation, name) for name in vars(documentation) if name.islower() and name[0] != "_"
    },
}
