"""The messages of TensorFlow's files: their names, and the numbers, names and types of their fields.

A line `message NAME` begins a message; `3 input string*` is field 3, a list; `5 attr map string AttrValue` a map;
`of value` puts a field into the oneof `value`; `enum DataType` is a field of an enumeration. `messages.py` reads it.
"""

SCHEMA = """
message TensorShapeProto
  2 dim TensorShapeProto.Dim*; 3 unknown_rank bool
message TensorShapeProto.Dim
  1 size int64; 2 name string
enum DataType
  DT_INVALID=0 DT_FLOAT=1 DT_DOUBLE=2 DT_INT32=3 DT_UINT8=4 DT_INT16=5 DT_INT8=6 DT_STRING=7 DT_COMPLEX64=8
  DT_INT64=9 DT_BOOL=10 DT_QINT8=11 DT_QUINT8=12 DT_QINT32=13 DT_BFLOAT16=14 DT_QINT16=15 DT_QUINT16=16
  DT_UINT16=17 DT_COMPLEX128=18 DT_HALF=19 DT_RESOURCE=20 DT_VARIANT=21 DT_UINT32=22 DT_UINT64=23
  DT_FLOAT8_E5M2=24 DT_FLOAT8_E4M3FN=25 DT_FLOAT8_E4M3FNUZ=26 DT_FLOAT8_E4M3B11FNUZ=27 DT_FLOAT8_E5M2FNUZ=28
  DT_INT4=29 DT_UINT4=30 DT_INT2=31 DT_UINT2=32 DT_FLOAT4_E2M1FN=33
message ResourceHandleProto
  1 device string; 2 container string; 3 name string; 4 hash_code uint64; 5 maybe_type_name string;
  6 dtypes_and_shapes ResourceHandleProto.DtypeAndShape*
message ResourceHandleProto.DtypeAndShape
  1 dtype enum DataType; 2 shape TensorShapeProto
message TensorProto
  1 dtype enum DataType; 2 tensor_shape TensorShapeProto; 3 version_number int32; 4 tensor_content bytes;
  13 half_val int32*; 5 float_val float*; 6 double_val double*; 7 int_val int32*; 8 string_val bytes*;
  9 scomplex_val float*; 10 int64_val int64*; 11 bool_val bool*; 12 dcomplex_val double*;
  14 resource_handle_val ResourceHandleProto*; 15 variant_val VariantTensorDataProto*; 16 uint32_val uint32*;
  17 uint64_val uint64*; 18 float8_val bytes
message VariantTensorDataProto
  1 type_name string; 2 metadata bytes; 3 tensors TensorProto*
message AttrValue
  2 s bytes of value; 3 i int64 of value; 4 f float of value; 5 b bool of value; 6 type enum DataType of value;
  7 shape TensorShapeProto of value; 8 tensor TensorProto of value; 1 list AttrValue.ListValue of value;
  10 func NameAttrList of value; 9 placeholder string of value
message AttrValue.ListValue
  2 s bytes*; 3 i int64*; 4 f float*; 5 b bool*; 6 type enum DataType*; 7 shape TensorShapeProto*;
  8 tensor TensorProto*; 9 func NameAttrList*
message NameAttrList
  1 name string; 2 attr map string AttrValue
enum FullTypeId
  TFT_UNSET=0 TFT_VAR=1 TFT_ANY=2 TFT_PRODUCT=3 TFT_NAMED=4 TFT_FOR_EACH=20 TFT_CALLABLE=100 TFT_TENSOR=1000
  TFT_ARRAY=1001 TFT_OPTIONAL=1002 TFT_LITERAL=1003 TFT_ENCODED=1004 TFT_SHAPE_TENSOR=1005 TFT_BOOL=200
  TFT_UINT8=201 TFT_UINT16=202 TFT_UINT32=203 TFT_UINT64=204 TFT_INT8=205 TFT_INT16=206 TFT_INT32=207
  TFT_INT64=208 TFT_HALF=209 TFT_FLOAT=210 TFT_DOUBLE=211 TFT_BFLOAT16=215 TFT_COMPLEX64=212
  TFT_COMPLEX128=213 TFT_STRING=214 TFT_DATASET=10102 TFT_RAGGED=10103 TFT_ITERATOR=10104 TFT_MUTEX_LOCK=10202
  TFT_LEGACY_VARIANT=10203
message FullTypeDef
  1 type_id enum FullTypeId; 2 args FullTypeDef*; 3 s string of attr; 4 i int64 of attr
message NodeDef
  1 name string; 2 op string; 3 input string*; 4 device string; 5 attr map string AttrValue;
  6 experimental_debug_info NodeDef.ExperimentalDebugInfo; 7 experimental_type FullTypeDef
message NodeDef.ExperimentalDebugInfo
  1 original_node_names string*; 2 original_func_names string*
message OpDef
  1 name string; 2 input_arg OpDef.ArgDef*; 3 output_arg OpDef.ArgDef*; 20 control_output string*;
  4 attr OpDef.AttrDef*; 8 deprecation OpDeprecation; 5 summary string; 6 description string;
  18 is_commutative bool; 16 is_aggregate bool; 17 is_stateful bool; 19 allows_uninitialized_input bool;
  21 is_distributed_communication bool
message OpList
  1 op OpDef*
message OpDef.ArgDef
  1 name string; 2 description string; 3 type enum DataType; 4 type_attr string; 5 number_attr string;
  6 type_list_attr string; 7 handle_data ResourceHandleProto.DtypeAndShape*; 16 is_ref bool;
  17 experimental_full_type FullTypeDef
message OpDef.AttrDef
  1 name string; 2 type string; 3 default_value AttrValue; 4 description string; 5 has_minimum bool;
  6 minimum int64; 7 allowed_values AttrValue
message OpDeprecation
  1 version int32; 2 explanation string
message FunctionDefLibrary
  1 function FunctionDef*; 2 gradient GradientDef*; 3 registered_gradients RegisteredGradient*
message FunctionDef
  1 signature OpDef; 5 attr map string AttrValue; 7 arg_attr map uint32 FunctionDef.ArgAttrs;
  8 resource_arg_unique_id map uint32 uint32; 3 node_def NodeDef*; 4 ret map string string;
  6 control_ret map string string
message FunctionDef.ArgAttrs
  1 attr map string AttrValue
message GradientDef
  1 function_name string; 2 gradient_func string
message RegisteredGradient
  1 gradient_func string; 2 registered_op_type string
message DeviceLocality
  1 bus_id int32; 2 numa_node int32
message DeviceAttributes
  1 name string; 2 device_type string; 4 memory_limit int64; 5 locality DeviceLocality; 6 incarnation fixed64;
  7 physical_device_desc string; 8 xla_global_id int64
message VersionDef
  1 producer int32; 2 min_consumer int32; 3 bad_consumers int32*
message GraphDef
  1 node NodeDef*; 4 versions VersionDef; 3 version int32; 2 library FunctionDefLibrary;
  5 debug_info GraphDebugInfo
message GraphDebugInfo
  1 files string*; 4 frames_by_id map fixed64 GraphDebugInfo.FileLineCol;
  6 traces_by_id map fixed64 GraphDebugInfo.StackTrace; 2 traces map string GraphDebugInfo.StackTrace;
  5 name_to_trace_id map string fixed64
message GraphDebugInfo.FileLineCol
  1 file_index int32; 2 line int32; 3 col int32; 4 func string; 5 code string
message GraphDebugInfo.StackTrace
  1 file_line_cols GraphDebugInfo.FileLineCol*; 2 frame_id fixed64*
enum VariableSynchronization
  VARIABLE_SYNCHRONIZATION_AUTO=0 VARIABLE_SYNCHRONIZATION_NONE=1 VARIABLE_SYNCHRONIZATION_ON_WRITE=2
  VARIABLE_SYNCHRONIZATION_ON_READ=3
enum VariableAggregation
  VARIABLE_AGGREGATION_NONE=0 VARIABLE_AGGREGATION_SUM=1 VARIABLE_AGGREGATION_MEAN=2
  VARIABLE_AGGREGATION_ONLY_FIRST_REPLICA=3
message VariableDef
  1 variable_name string; 6 initial_value_name string; 2 initializer_name string; 3 snapshot_name string;
  4 save_slice_info_def SaveSliceInfoDef; 5 is_resource bool; 7 trainable bool;
  8 synchronization enum VariableSynchronization; 9 aggregation enum VariableAggregation
message SaveSliceInfoDef
  1 full_name string; 2 full_shape int64*; 3 var_offset int64*; 4 var_shape int64*
message StructuredValue
  1 none_value NoneValue of kind; 11 float64_value double of kind; 12 int64_value sint64 of kind;
  13 string_value string of kind; 14 bool_value bool of kind; 31 tensor_shape_value TensorShapeProto of kind;
  32 tensor_dtype_value enum DataType of kind; 33 tensor_spec_value TensorSpecProto of kind;
  34 type_spec_value TypeSpecProto of kind; 35 bounded_tensor_spec_value BoundedTensorSpecProto of kind;
  51 list_value ListValue of kind; 52 tuple_value TupleValue of kind; 53 dict_value DictValue of kind;
  54 named_tuple_value NamedTupleValue of kind; 55 tensor_value TensorProto of kind;
  56 numpy_value TensorProto of kind
message NoneValue
message ListValue
  1 values StructuredValue*
message TupleValue
  1 values StructuredValue*
message DictValue
  1 fields map string StructuredValue
message PairValue
  1 key string; 2 value StructuredValue
message NamedTupleValue
  1 name string; 2 values PairValue*
message TensorSpecProto
  1 name string; 2 shape TensorShapeProto; 3 dtype enum DataType
message BoundedTensorSpecProto
  1 name string; 2 shape TensorShapeProto; 3 dtype enum DataType; 4 minimum TensorProto; 5 maximum TensorProto
message TypeSpecProto
  1 type_spec_class enum TypeSpecProto.TypeSpecClass; 2 type_state StructuredValue;
  3 type_spec_class_name string; 4 num_flat_components int32
enum TypeSpecProto.TypeSpecClass
  UNKNOWN=0 SPARSE_TENSOR_SPEC=1 INDEXED_SLICES_SPEC=2 RAGGED_TENSOR_SPEC=3 TENSOR_ARRAY_SPEC=4
  DATA_DATASET_SPEC=5 DATA_ITERATOR_SPEC=6 OPTIONAL_SPEC=7 PER_REPLICA_SPEC=8 VARIABLE_SPEC=9
  ROW_PARTITION_SPEC=10 REGISTERED_TYPE_SPEC=12 EXTENSION_TYPE_SPEC=13
message TrackableObjectGraph
  1 nodes TrackableObjectGraph.TrackableObject*
message TrackableObjectGraph.TrackableObject
  1 children TrackableObjectGraph.TrackableObject.ObjectReference*;
  2 attributes TrackableObjectGraph.TrackableObject.SerializedTensor*;
  3 slot_variables TrackableObjectGraph.TrackableObject.SlotVariableReference*;
  4 registered_saver RegisteredSaver; 5 has_checkpoint_values google.protobuf.BoolValue
message TrackableObjectGraph.TrackableObject.ObjectReference
  1 node_id int32; 2 local_name string
message TrackableObjectGraph.TrackableObject.SerializedTensor
  1 name string; 2 full_name string; 3 checkpoint_key string
message TrackableObjectGraph.TrackableObject.SlotVariableReference
  1 original_variable_node_id int32; 2 slot_name string; 3 slot_variable_node_id int32
message RegisteredSaver
  1 name string; 2 object_name string
message SavedObjectGraph
  1 nodes SavedObject*; 2 concrete_functions map string SavedConcreteFunction
message SavedObject
  1 children TrackableObjectGraph.TrackableObject.ObjectReference*;
  15 dependencies TrackableObjectGraph.TrackableObject.ObjectReference*;
  3 slot_variables TrackableObjectGraph.TrackableObject.SlotVariableReference*;
  4 user_object SavedUserObject of kind; 5 asset SavedAsset of kind; 6 function SavedFunction of kind;
  7 variable SavedVariable of kind; 8 bare_concrete_function SavedBareConcreteFunction of kind;
  9 constant SavedConstant of kind; 10 resource SavedResource of kind;
  12 captured_tensor CapturedTensor of kind; 11 saveable_objects map string SaveableObject;
  13 registered_name string; 14 serialized_user_proto google.protobuf.Any; 16 registered_saver string
message SavedUserObject
  1 identifier string; 2 version VersionDef; 3 metadata string
message SavedAsset
  1 asset_file_def_index int32
message SavedFunction
  1 concrete_functions string*; 2 function_spec FunctionSpec
message CapturedTensor
  1 name string; 2 concrete_function string
message SavedConcreteFunction
  2 bound_inputs int32*; 3 canonicalized_input_signature StructuredValue; 4 output_signature StructuredValue
message SavedBareConcreteFunction
  1 concrete_function_name string; 2 argument_keywords string*; 3 allowed_positional_arguments int64;
  4 function_spec FunctionSpec
message SavedConstant
  1 operation string
message SavedVariable
  1 dtype enum DataType; 2 shape TensorShapeProto; 3 trainable bool;
  4 synchronization enum VariableSynchronization; 5 aggregation enum VariableAggregation; 6 name string;
  7 device string; 8 experimental_distributed_variable_components SavedVariable*
message FunctionSpec
  1 fullargspec StructuredValue; 2 is_method bool; 5 input_signature StructuredValue;
  6 jit_compile enum FunctionSpec.JitCompile
enum FunctionSpec.JitCompile
  DEFAULT=0 ON=1 OFF=2
message SavedResource
  1 device string
message SaveableObject
  2 save_function int32; 3 restore_function int32
message SaverDef
  1 filename_tensor_name string; 2 save_tensor_name string; 3 restore_op_name string; 4 max_to_keep int32;
  5 sharded bool; 6 keep_checkpoint_every_n_hours float; 7 version enum SaverDef.CheckpointFormatVersion
enum SaverDef.CheckpointFormatVersion
  LEGACY=0 V1=1 V2=2
message MetaGraphDef
  1 meta_info_def MetaGraphDef.MetaInfoDef; 2 graph_def GraphDef; 3 saver_def SaverDef;
  4 collection_def map string CollectionDef; 5 signature_def map string SignatureDef;
  6 asset_file_def AssetFileDef*; 7 object_graph_def SavedObjectGraph
message MetaGraphDef.MetaInfoDef
  1 meta_graph_version string; 2 stripped_op_list OpList; 3 any_info google.protobuf.Any; 4 tags string*;
  5 tensorflow_version string; 6 tensorflow_git_version string; 7 stripped_default_attrs bool;
  8 function_aliases map string string
message CollectionDef
  1 node_list CollectionDef.NodeList of kind; 2 bytes_list CollectionDef.BytesList of kind;
  3 int64_list CollectionDef.Int64List of kind; 4 float_list CollectionDef.FloatList of kind;
  5 any_list CollectionDef.AnyList of kind
message CollectionDef.NodeList
  1 value string*
message CollectionDef.BytesList
  1 value bytes*
message CollectionDef.Int64List
  1 value int64*
message CollectionDef.FloatList
  1 value float*
message CollectionDef.AnyList
  1 value google.protobuf.Any*
message TensorInfo
  1 name string of encoding; 4 coo_sparse TensorInfo.CooSparse of encoding;
  5 composite_tensor TensorInfo.CompositeTensor of encoding; 2 dtype enum DataType;
  3 tensor_shape TensorShapeProto
message TensorInfo.CooSparse
  1 values_tensor_name string; 2 indices_tensor_name string; 3 dense_shape_tensor_name string
message TensorInfo.CompositeTensor
  1 type_spec TypeSpecProto; 2 components TensorInfo*
message SignatureDef
  1 inputs map string TensorInfo; 2 outputs map string TensorInfo; 3 method_name string;
  4 defaults map string TensorProto
message AssetFileDef
  1 tensor_info TensorInfo; 2 filename string
message SavedModel
  1 saved_model_schema_version int64; 2 meta_graphs MetaGraphDef*
message HistogramProto
  1 min double; 2 max double; 3 num double; 4 sum double; 5 sum_squares double; 6 bucket_limit double*;
  7 bucket double*
enum DataClass
  DATA_CLASS_UNKNOWN=0 DATA_CLASS_SCALAR=1 DATA_CLASS_TENSOR=2 DATA_CLASS_BLOB_SEQUENCE=3
message SummaryDescription
  1 type_hint string
message SummaryMetadata
  1 plugin_data SummaryMetadata.PluginData; 2 display_name string; 3 summary_description string;
  4 data_class enum DataClass
message SummaryMetadata.PluginData
  1 plugin_name string; 2 content bytes
message Summary
  1 value Summary.Value*
message Summary.Image
  1 height int32; 2 width int32; 3 colorspace int32; 4 encoded_image_string bytes
message Summary.Audio
  1 sample_rate float; 2 num_channels int64; 3 length_frames int64; 4 encoded_audio_string bytes;
  5 content_type string
message Summary.Value
  7 node_name string; 1 tag string; 9 metadata SummaryMetadata; 2 simple_value float of value;
  3 obsolete_old_style_histogram bytes of value; 4 image Summary.Image of value;
  5 histo HistogramProto of value; 6 audio Summary.Audio of value; 8 tensor TensorProto of value
message Event
  1 wall_time double; 2 step int64; 3 file_version string of what; 4 graph_def bytes of what;
  5 summary Summary of what; 6 log_message LogMessage of what; 7 session_log SessionLog of what;
  8 tagged_run_metadata TaggedRunMetadata of what; 9 meta_graph_def bytes of what;
  10 source_metadata SourceMetadata
message LogMessage
  1 level enum LogMessage.Level; 2 message string
enum LogMessage.Level
  UNKNOWN=0 DEBUGGING=10 INFO=20 WARN=30 ERROR=40 FATAL=50
message SessionLog
  1 status enum SessionLog.SessionStatus; 2 checkpoint_path string; 3 msg string
enum SessionLog.SessionStatus
  STATUS_UNSPECIFIED=0 START=1 STOP=2 CHECKPOINT=3
message SourceMetadata
  1 writer string
message XSpace
  1 planes XPlane*; 2 errors string*; 3 warnings string*; 4 hostnames string*
message XPlane
  1 id int64; 2 name string; 3 lines XLine*; 4 event_metadata map int64 XEventMetadata;
  5 stat_metadata map int64 XStatMetadata; 6 stats XStat*
message XLine
  1 id int64; 10 display_id int64; 2 name string; 11 display_name string; 3 timestamp_ns int64; 9 duration_ps int64;
  4 events XEvent*
message XEvent
  1 metadata_id int64; 2 offset_ps int64 of data; 5 num_occurrences int64 of data; 3 duration_ps int64; 4 stats XStat*
message XStat
  1 metadata_id int64; 2 double_value double of value; 3 uint64_value uint64 of value; 4 int64_value int64 of value;
  5 str_value string of value; 6 bytes_value bytes of value; 7 ref_value uint64 of value
message XEventMetadata
  1 id int64; 2 name string; 4 display_name string; 3 metadata bytes; 5 stats XStat*; 6 child_id int64*
message XStatMetadata
  1 id int64; 2 name string; 3 description string
message TaggedRunMetadata
  1 tag string; 2 run_metadata bytes
message BytesList
  1 value bytes*
message FloatList
  1 value float*
message Int64List
  1 value int64*
message Feature
  1 bytes_list BytesList of kind; 2 float_list FloatList of kind; 3 int64_list Int64List of kind
message Features
  1 feature map string Feature
message FeatureList
  1 feature Feature*
message FeatureLists
  1 feature_list map string FeatureList
message Example
  1 features Features
message SequenceExample
  1 context Features; 2 feature_lists FeatureLists
message FingerprintDef
  1 saved_model_checksum uint64; 2 graph_def_program_hash uint64; 3 signature_def_hash uint64;
  4 saved_object_graph_hash uint64; 5 checkpoint_hash uint64; 7 uuid string; 6 version VersionDef
message TensorSliceProto
  1 extent TensorSliceProto.Extent*
message TensorSliceProto.Extent
  1 start int64; 2 length int64 of has_length_hack
message SavedSliceMeta
  1 name string; 2 shape TensorShapeProto; 3 type enum DataType; 4 slice TensorSliceProto*
message SavedTensorSliceMeta
  1 tensor SavedSliceMeta*; 2 versions VersionDef
message SavedSlice
  1 name string; 2 slice TensorSliceProto; 3 data TensorProto
message SavedTensorSlices
  1 meta SavedTensorSliceMeta; 2 data SavedSlice
message SnapshotMetadataRecord
  1 graph_hash string; 2 run_id string; 3 creation_timestamp int64; 4 version int64; 5 dtype enum DataType*;
  6 num_elements int64; 1000 finalized bool
message BundleHeaderProto
  1 num_shards int32; 2 endianness enum BundleHeaderProto.Endianness; 3 version VersionDef
enum BundleHeaderProto.Endianness
  LITTLE=0 BIG=1
message BundleEntryProto
  1 dtype enum DataType; 2 shape TensorShapeProto; 3 shard_id int32; 4 offset int64; 5 size int64;
  6 crc32c fixed32; 7 slices TensorSliceProto*
"""
