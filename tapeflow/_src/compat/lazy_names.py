"""Names of TensorFlow 1, of Keras and of TensorFlow's inner modules: what defines them is imported on first use."""

from tapeflow._src.compat.saved_model.constants import PUBLIC, VALUE_BY_NAME
from tapeflow._src.compat.tensorflow.alias import offer_inner_modules
from tapeflow._src.namespace import definitions_later, package_later, public_later

definitions_later("__internal__", "tapeflow._src.compat.tensorflow.internal_names")
public_later(
    "tapeflow._src.compat.tensorflow.internal_names.operators",
    *(f"__operators__.{name}" for name in ("add", "eq", "getitem", "ne", "ragged_getitem")),
)
public_later(
    "tapeflow._src.compat.tensorflow.internal_names.test_combinations",
    *(
        f"__internal__.test.combinations.{name}"
        for name in ("NamedObject", "OptionalParameter", "ParameterModifier", "TestCombination")
    ),
    *(f"__internal__.test.combinations.{name}" for name in ("combine", "generate", "times")),
)
public_later(
    "tapeflow._src.compat.tensorflow.internal_names.distribution_combinations",
    "__internal__.distribute.multi_process_runner.test_main",
    *(f"__internal__.distribute.combinations.{name}" for name in (
        "generate", "in_main_process", "default_strategy", "one_device_strategy", "one_device_strategy_gpu",
        "tpu_strategy", "tpu_strategy_packed_var", "tpu_strategy_one_core", "cloud_tpu_strategy",
        "mirrored_strategy_with_one_cpu", "mirrored_strategy_with_two_cpus", "mirrored_strategy_with_one_gpu",
        "mirrored_strategy_with_gpu_and_cpu", "mirrored_strategy_with_two_gpus",
        "mirrored_strategy_with_two_gpus_no_merge_call", "central_storage_strategy_with_two_gpus",
        "central_storage_strategy_with_gpu_and_cpu", "multi_worker_mirrored_2x1_cpu", "multi_worker_mirrored_2x1_gpu",
        "multi_worker_mirrored_2x2_gpu", "multi_worker_mirrored_4x1_cpu",
        *(f"parameter_server_strategy_{n}worker_2ps_{kind}" for n in (1, 3) for kind in ("cpu", "1gpu")),
    )),
)  # fmt: skip
for _module, *_names in (
    ("numeric", "numeric_column", "bucketized_column"),
    (
        "categorical", "categorical_column_with_hash_bucket", "categorical_column_with_identity",
        "categorical_column_with_vocabulary_file", "categorical_column_with_vocabulary_list",
    ),
    ("combined", "crossed_column", "weighted_categorical_column"),
    (
        "sequences", "sequence_categorical_column_with_hash_bucket", "sequence_categorical_column_with_identity",
        "sequence_categorical_column_with_vocabulary_file", "sequence_categorical_column_with_vocabulary_list",
        "sequence_numeric_column",
    ),
    ("embeddings", "embedding_column", "indicator_column"),
    ("models", "make_parse_example_spec"),
):  # fmt: skip
    public_later(
        f"tapeflow._src.compat.feature_columns.{_module}",
        *(f"{prefix}feature_column.{name}" for prefix in ("", "compat.v1.") for name in _names),
    )
public_later(
    "tapeflow._src.compat.feature_columns.embeddings",
    "feature_column.shared_embeddings",
    "compat.v1.feature_column.shared_embedding_columns",
)
public_later(
    "tapeflow._src.compat.feature_columns.models",
    *(f"compat.v1.feature_column.{name}" for name in ("input_layer", "linear_model")),
)
public_later(
    "tapeflow._src.compat.feature_columns.column",
    *(f"__internal__.feature_column.{name}" for name in (
        "DenseColumn", "FeatureColumn", "SequenceDenseColumn", "deserialize_feature_column", "serialize_feature_column",
    )),
)  # fmt: skip
public_later(
    "tapeflow._src.compat.feature_columns.transformation",
    *(f"__internal__.feature_column.{name}" for name in ("FeatureTransformationCache", "StateManager")),
)
definitions_later("compat.v1", "tapeflow._src.compat.v1.names")
public_later("tapeflow._src.compat.v1.sessions.coordinator", "train.Coordinator")
public_later("tapeflow._src.compat.v1.graph.eager_switch", "enable_v2_behavior")
public_later("tapeflow._src.compat.v1.graph.graph", "Graph")
public_later("tapeflow._src.compat.v1.graph.operation", "Operation")
public_later("tapeflow._src.compat.v1.graph.graph_def", "io.write_graph")
public_later("tapeflow._src.compat.v1.graph.graph_import", "import_graph_def", "graph_util.import_graph_def")
public_later("tapeflow._src.compat.v1.queues.input_producers", "io.match_filenames_once")
public_later(
    "tapeflow._src.compat.v1.train.mixed_precision", "__internal__.mixed_precision.register_loss_scale_wrapper"
)
public_later("tapeflow._src.compat.v1.variables.moving_average", "train.ExponentialMovingAverage")
public_later(
    "tapeflow._src.compat.v1.queues.queues",
    "queue.QueueBase", "queue.FIFOQueue", "queue.PaddingFIFOQueue", "queue.PriorityQueue", "queue.RandomShuffleQueue",
    "io.QueueBase", "io.PaddingFIFOQueue", "io.PriorityQueue", "io.RandomShuffleQueue",
)  # fmt: skip

public_later(
    "tapeflow._src.io.protos.public_messages",
    *(f"{prefix}train.{name}" for prefix in ("", "compat.v1.") for name in (
        "BytesList", "FloatList", "Int64List", "Feature", "Features", "FeatureList", "FeatureLists", "Example",
        "SequenceExample", "ClusterDef", "JobDef", "ServerDef",
    )),
    *(f"compat.v1.{name}" for name in (
        "AttrValue", "NameAttrList", "NodeDef", "GraphDef", "MetaGraphDef", "TensorInfo", "SummaryMetadata",
        "HistogramProto", "Summary", "Event", "SessionLog", "ConfigProto", "GPUOptions", "GraphOptions",
        "OptimizerOptions", "RunOptions", "RunMetadata",
    )),
)  # fmt: skip
public_later("tapeflow._src.compat.onnx.exporting", "experimental.to_onnx")
public_later("tapeflow._src.train.safetensors_files", "experimental.save_safetensors", "experimental.load_safetensors")
public_later(
    "tapeflow._src.compat.saved_model.v1_models", "compat.v1.saved_model.load", "compat.v1.saved_model.loader.load"
)
public_later(
    "tapeflow._src.compat.saved_model.v1_builder",
    *(f"compat.v1.saved_model.{name}" for name in ("Builder", "builder.SavedModelBuilder", "simple_save")),
)
_SIGNATURE_FUNCTIONS = (
    "build_signature_def", "classification_signature_def", "is_valid_signature", "predict_signature_def",
    "regression_signature_def",
)  # fmt: skip
for _part, _part_names in (
    *VALUE_BY_NAME.items(),
    ("signature_def_utils", _SIGNATURE_FUNCTIONS),
    ("utils", ("build_tensor_info", "get_tensor_from_tensor_info")),
):
    public_later(
        "tapeflow._src.compat.saved_model.v1_signatures",
        *(f"compat.v1.saved_model.{place}{name}" for name in _part_names for place in ("", f"{_part}.")),
    )
public_later(
    "tapeflow._src.compat.saved_model.saved_model",
    *(f"saved_model.{name}" for name in (
        *PUBLIC, "Asset", "LoadOptions", "SaveOptions", "contains_saved_model", "experimental.VariablePolicy", "load",
        "save",
    )),
    *(f"compat.v1.saved_model.{name}" for name in (
        "contains_saved_model", "load_v2", "maybe_saved_model_directory", "loader.maybe_saved_model_directory"
    )),
)  # fmt: skip

for _path in ("keras", "compat.v1.keras", "losses", "metrics", "optimizers", "initializers"):
    package_later(_path, "tapeflow._src.compat.tensorflow.keras")
package_later("array_api", "tapeflow._src.array_api.loading")

offer_inner_modules("tapeflow._src.compat.tensorflow.inner_modules.table")
offer_inner_modules("tapeflow._src.compat.tensorflow.keras")
