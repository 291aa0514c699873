"""Inner names that tests in the style of TensorFlow's own use."""

import numpy as np
import pytest

import tapeflow as tf
from tapeflow._src.compat.tensorflow.inner_modules import table


def inner(path):
    return table.find(f"python.{path}")


def test_modules_lead_to_generated_operations():
    assert inner("ops.array_ops").gen_array_ops is inner("ops.gen_array_ops")
    with pytest.raises(AttributeError):
        inner("ops.array_ops").gen_no_such_ops  # noqa: B018


def test_a_tape_or_a_graph():
    tape_class = inner("framework.test_util").AbstractGradientTape
    x = tf.constant(3.0)
    with tape_class(use_tape=True) as tape:
        tape.watch(x)
        y = x * x
    assert tape.gradient(y, x).numpy() == 6.0
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        x = tf.constant(3.0)
        with tape_class(use_tape=False) as tape:
            tape.watch(x)
            y = x * x
        assert session.run(tape.gradient(y, x)) == 6.0
        assert session.run(tape.gradient(y, [x])) == [6.0]


def test_builtins_of_tensors():
    builtins = inner("autograph.operators.py_builtins")
    assert builtins.len_([1, 2]) == 2
    assert builtins.abs_(tf.constant(-1)).numpy() == 1
    assert tf.function(lambda x: builtins.max_(x, 5))(tf.constant(3)).numpy() == 5


def test_shapes():
    shapes = inner("framework.common_shapes")
    assert shapes.broadcast_shape(tf.TensorShape([3, 1]), tf.TensorShape([2])).as_list() == [3, 2]
    assert not shapes.is_broadcast_compatible(tf.TensorShape([3]), tf.TensorShape([2]))
    assert inner("ops.array_ops").newaxis is None
    assert inner("ops.array_ops").rank_internal([[1]], optimize=False).numpy() == 2


def test_ragged_or_not():
    ragged = inner("ops.ragged.ragged_tensor")
    rows = tf.ragged.constant([[1], [2, 3]])
    assert ragged.is_ragged(rows) and not ragged.is_ragged(tf.constant(1))
    convert = ragged.convert_to_tensor_or_ragged_tensor
    assert convert(rows) is rows
    assert convert(tf.compat.v1.ragged.constant_value([[1], [2, 3]])).to_list() == [[1], [2, 3]]
    assert convert([1, 2]).shape.as_list() == [2]
    with pytest.raises(ValueError, match="requested dtype float32 for RaggedTensor with dtype int32"):
        convert(rows, dtype=tf.float32)


def test_random_states():
    random = inner("ops.stateful_random_ops")
    assert (random._get_state_size(random.RNG_ALG_PHILOX), random._get_counter_size(2)) == (3, 1)
    assert random.non_deterministic_ints([4], tf.uint8).shape.as_list() == [4]
    assert random._uint_to_int(2**64 - 1) == -1


def test_weights_of_unknown_shape():
    broadcast = inner("ops.weights_broadcast_ops")
    with pytest.raises(ValueError, match="Mismatch at dim 0"):
        broadcast.assert_broadcastable(tf.ones([3, 1]), tf.ones([2, 2]))
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        weights = tf.compat.v1.placeholder(tf.float32)
        weighted = broadcast.broadcast_weights(weights, tf.ones([2, 2]))
        assert session.run(weighted, {weights: [[1.0], [2.0]]}).tolist() == [[1.0, 1.0], [2.0, 2.0]]
        with pytest.raises(tf.errors.InvalidArgumentError, match="can not be broadcast"):
            session.run(weighted, {weights: [1.0, 2.0]})


def test_elements_of_datasets():
    nest, structure = inner("data.util.nest"), inner("data.util.structure")
    assert nest.flatten(({"a": [1, 2]}, 3)) == [[1, 2], 3]
    assert nest.map_structure(lambda x, y: (x, y), (1, [2]), (3, [4])) == ((1, 3), ([2], [4]))
    assert nest.pack_sequence_as({"a": 0, "b": 0}, [1, 2]) == {"a": 1, "b": 2}
    with pytest.raises(ValueError, match="is a scalar but"):
        nest.pack_sequence_as(0, [1, 2])
    spec = tf.TensorSpec([None], tf.int32)
    assert structure.are_compatible((spec,), (spec,)) and not structure.are_compatible((spec,), spec)
    assert structure.type_spec_from_value({"x": tf.constant([1])}) == {"x": tf.TensorSpec([1], tf.int32)}


def test_a_shuffle_of_all_elements():
    shuffle = inner("data.experimental.ops.global_shuffle_op")._global_shuffle
    dataset = tf.data.Dataset.range(50)
    found = list(shuffle(dataset, seed=1).as_numpy_iterator())
    assert sorted(found) == list(range(50)) != found
    with pytest.raises(tf.errors.InvalidArgumentError, match="finite cardinality"):
        shuffle(dataset.repeat())


def test_where():
    assert [part.tolist() for part in inner("util.numpy_compat").np_where(np.bool_(True))] == [[0]]


def test_structures_of_elements_as_lists_of_tensors():
    structure, data_nest = inner("data.util.structure"), inner("data.util.nest")
    spec = (tf.TensorSpec([], tf.int64), {"a": tf.SparseTensorSpec([2], tf.float32)})
    assert structure.get_flat_tensor_types(spec) == [tf.int64, tf.int64, tf.float32, tf.int64]
    element = (tf.constant(1, tf.int64), {"a": tf.SparseTensor([[1]], [5.0], [2])})
    flat = structure.to_tensor_list(spec, element)
    assert len(flat) == len(structure.get_flat_tensor_shapes(spec)) == 4
    again = structure.from_tensor_list(spec, flat)
    assert tf.sparse.to_dense(again[1]["a"]).numpy().tolist() == [0.0, 5.0]
    assert data_nest.flatten_up_to((0, 0), ([1, 2], {"b": 3})) == [[1, 2], {"b": 3}]
    assert data_nest.map_structure_up_to((0, 0), lambda x: len(x), ([1, 2], {"b": 3})) == (2, 1)


def test_a_dataset_that_waits():
    slow = tf.data.Dataset.range(2).apply(inner("data.experimental.ops.testing").sleep(10))
    assert list(slow.as_numpy_iterator()) == [0, 1]


def test_modules_of_ragged_operations():
    ragged = tf.ragged.constant([[1, 2], [3]])
    conversion = inner("ops.ragged.ragged_conversion_ops")
    assert conversion.from_tensor(conversion.to_tensor(ragged, 9)).to_list() == [[1, 2], [3, 9]]
    assert inner("ops.ragged.ragged_concat_ops").concat([ragged, ragged], 1).to_list() == [[1, 2, 1, 2], [3, 3]]
    assert inner("ops.ragged.ragged_math_ops").segment_sum(ragged, [0, 0], 1).to_list() == [[4, 2]]
    kind = inner("ops.ragged.ragged_tensor").RaggedTensorType("int64", 2)
    assert (kind.dtype, kind.ragged_rank) == (tf.int64, 2)


def test_values_of_strategies():
    values = inner("distribute.values")
    pair = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
    with pair.scope():
        v = tf.Variable(1.0)
        total = tf.Variable(1.0, synchronization=tf.VariableSynchronization.ON_READ)
    assert type(v) is values.MirroredVariable and isinstance(v, values.DistributedVariable)
    assert type(total) is values.SyncOnReadVariable
    assert isinstance(pair.run(lambda: tf.constant(1.0)), values.PerReplica)
    resolvers = inner("distribute.cluster_resolver")
    assert resolvers.SimpleClusterResolver is tf.distribute.cluster_resolver.SimpleClusterResolver


def test_messages_of_files():
    """Libraries read saved files by the modules that protoc made for TensorFlow."""
    saved_model = table.find("core.protobuf.saved_model_pb2").SavedModel()
    saved_model.meta_graphs.add().graph_def.library.function.add().signature.name = "f"
    (read,) = (
        table.find("core.protobuf.saved_model_pb2").SavedModel.FromString(saved_model.SerializeToString()).meta_graphs
    )
    assert isinstance(read, table.find("core.protobuf.meta_graph_pb2").MetaGraphDef)
    assert isinstance(read.graph_def.library, table.find("core.framework.function_pb2").FunctionDefLibrary)
    assert table.find("core.framework.variable_pb2").VariableDef(variable_name="v").variable_name == "v"
    for module, name in [
        ("protobuf.saved_object_graph", "SavedObjectGraph"),
        ("protobuf.trackable_object_graph", "TrackableObjectGraph"),
        ("protobuf.struct", "StructuredValue"),
        ("protobuf.saver", "SaverDef"),
        ("framework.op_def", "OpDef"),
    ]:
        assert getattr(table.find(f"core.{module}_pb2"), name).DESCRIPTOR.name == name


def test_whole_files_are_read_and_written(tmp_path):
    file_io, path = inner("lib.io.file_io"), str(tmp_path / "words")
    file_io.write_string_to_file(path, "one é")
    assert file_io.read_file_to_string(path) == "one é"
    assert file_io.read_file_to_string(path, binary_mode=True) == "one é".encode()
    file_io.atomic_write_string_to_file(path, b"two")
    assert file_io.read_file_to_string(path) == "two"
    with pytest.raises(tf.errors.AlreadyExistsError):
        file_io.atomic_write_string_to_file(path, "three", overwrite=False)
    assert file_io.read_file_to_string(path) == "two"
    assert [p.name for p in tmp_path.iterdir()] == ["words"]
    with pytest.raises(tf.errors.NotFoundError):
        file_io.read_file_to_string(str(tmp_path / "none"))


def test_whole_files_are_compared(tmp_path):
    file_io = inner("lib.io.file_io")
    one, same, other = (str(tmp_path / name) for name in ("one", "same", "other"))
    for path, text in ((one, "123456789"), (same, "123456789"), (other, "123456780")):
        with file_io.FileIO(path, "w") as file:
            file.write(text)
    assert file_io.file_crc32(one) == file_io.file_crc32(one, block_size=2) == "0xcbf43926"
    assert file_io.filecmp(one, same) and not file_io.filecmp(one, other)
    assert file_io.FileIO is tf.io.gfile.GFile
