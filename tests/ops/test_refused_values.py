"""Values and shapes that TensorFlow refuses are refused, eagerly and while tracing, with what must hold."""

import pytest

import tapeflow as tf

v1 = tf.compat.v1
Invalid = tf.errors.InvalidArgumentError


def sparse(dense):
    return tf.sparse.from_dense(dense)


REFUSED = {
    "edit distance of vectors": (
        Invalid,
        "rank at least 2",
        lambda: tf.edit_distance(tf.SparseTensor([[0]], ["a"], [1]), tf.SparseTensor([[0]], ["a"], [1])),
    ),
    "one_hot of two dtypes": (TypeError, "does not match", lambda: tf.one_hot([0], 2, on_value=1.0, off_value=0)),
    "frames padded with a vector": (ValueError, "rank 0", lambda: tf.signal.frame([1], 1, 1, True, pad_value=[1])),
    "an axis of sparse.split": (Invalid, "axis should be in range", lambda: tf.sparse.split(tf.sparse.eye(3), 2, 5)),
    "sparse.cross of a vector": (Invalid, "Expected D2", lambda: tf.sparse.cross([tf.SparseTensor([[0]], ["a"], [9])])),
    "a default that is no scalar": (Invalid, "be a scalar", lambda: v1.sparse_to_dense([1, 3], [5], [1, 2], [0])),
    "an index twice": (Invalid, "is repeated", lambda: v1.sparse_to_dense([[1], [1]], [5], [1.0, 2.0], 0.0)),
    "indices without order": (Invalid, "out of order", lambda: v1.sparse_to_dense([[2], [1]], [5], [1.0, 2.0], 0.0)),
    "substr from a float": (
        (Invalid, TypeError),
        "allowed values: int32, int64",
        lambda: tf.strings.substr("test", 3.0, 1),
    ),
    "substr of two shapes": (Invalid, "the same shape", lambda: tf.strings.substr("abc", [[1, 2]], [1, 2, 3])),
    "substr that does not broadcast": (Invalid, "broadcast", lambda: tf.strings.substr(["a", "b"], [0] * 3, [1] * 3)),
    "several contrasts": (Invalid, "must be scalar", lambda: tf.image.adjust_contrast(tf.ones([2, 2, 1]), [2.0])),
    "approximately equal shapes": (
        Invalid,
        "the same shape",
        lambda: tf.raw_ops.ApproximateEqual(x=[1.0, 2.0], y=[[1.0, 2.0]]),
    ),
    "weights in another shape": (
        Invalid,
        "the same dense shape",
        lambda: tf.sparse.bincount(sparse([[1, 2]]), weights=sparse([[1.0, 0.0, 2.0]]), axis=-1),
    ),
    "weights at other places": (
        Invalid,
        "the same indices",
        lambda: tf.sparse.bincount(sparse([[1, 2, 0]]), weights=sparse([[1.0, 0.0, 2.0]]), axis=-1),
    ),
    "no splits": (ValueError, "Invalid row_splits", lambda: tf.ragged.row_splits_to_segment_ids([])),
    "splits of floats": (ValueError, "int32 or int64", lambda: tf.ragged.row_splits_to_segment_ids([0.0, 1.0])),
    "segments of floats": (TypeError, "type integer", lambda: tf.ragged.segment_ids_to_row_splits([0.5])),
    "fewer flat values": (
        ValueError,
        "same outer-dimension size",
        lambda: tf.ragged.map_flat_values(lambda x: x[:1], tf.ragged.constant([[1, 2], [3]])),
    ),
    "one flat value": (
        ValueError,
        "same outer-dimension size",
        lambda: tf.ragged.map_flat_values(tf.reduce_sum, tf.ragged.constant([[1, 2], [3]])),
    ),
    "an unknown keyword": (TypeError, "Received: dtpye", lambda: tf.zeros_initializer()([2], dtpye=tf.float32)),
    "ones of texts": (ValueError, "numeric or boolean", lambda: tf.ones_initializer()([2], dtype=tf.string)),
    "a tensor as a constant": (TypeError, "initial value", lambda: tf.constant_initializer(tf.constant(1.0))),
    "a class beyond all": (
        Invalid,
        "out of range",
        lambda: tf.random.log_uniform_candidate_sampler([[100]], 1, 2, True, 10),
    ),
    "a class beyond all in a function": (
        Invalid,
        "out of range",
        lambda: tf.function(lambda x: tf.random.uniform_candidate_sampler(x, 1, 2, True, 5))(
            tf.constant([[7]], tf.int64)
        ),
    ),
    "a negative largest index": (Invalid, ">= 0", lambda: tf.random.experimental.index_shuffle(0, [1, 2], -1)),
    "a range that is a vector": (
        Invalid,
        "`min` must be rank 0",
        lambda: tf.quantization.fake_quant_with_min_max_vars([1.0], [0.0], [1.0]),
    ),
    "gradients of another shape": (
        Invalid,
        "the same size",
        lambda: tf.quantization.fake_quant_with_min_max_vars_gradient([1.0], [1.0, 2.0], 0.0, 1.0),
    ),
    "entropies of vectors": (
        Invalid,
        "rank 2",
        lambda: tf.raw_ops.SoftmaxCrossEntropyWithLogits(features=[0.0, 1.0], labels=[0.0, 1.0]),
    ),
}


@pytest.mark.parametrize("name", REFUSED)
@pytest.mark.parametrize("run", [lambda f: f(), lambda f: tf.function(f)()], ids=["eager", "traced"])
def test_refused(name, run):
    error, message, call = REFUSED[name]
    with pytest.raises(error, match=message):
        run(call)


def test_parts_of_partitioned_variables():
    part = {"partition_shape": [2], "partition_offset": [1]}
    assert tf.zeros_initializer()([4], **part).shape == [2]
    assert tf.ones_initializer()([4], **part).numpy().tolist() == [1.0, 1.0]
    values = tf.constant_initializer([1.0, 2.0, 3.0, 4.0], support_partition=True)
    assert values([4], **part).numpy().tolist() == [2.0, 3.0]
    with pytest.raises(ValueError, match="support_partition"):
        tf.constant_initializer(1.0)([4], **part)


def test_a_critical_section_is_not_entered_twice():
    section, same = tf.CriticalSection(shared_name="section"), tf.CriticalSection(shared_name="section")
    for inner in (section, same):
        with pytest.raises(ValueError, match="already running"):
            section.execute(lambda inner=inner: inner.execute(lambda: tf.constant(1)))
    assert section.execute(lambda: tf.CriticalSection().execute(lambda: tf.constant(1))) == 1


def test_paddings_larger_than_what_was_padded():
    for scope in (tf.Graph().as_default(), tf.init_scope()):
        with scope, pytest.raises(Invalid, match="no larger together"):
            tf.raw_ops.MirrorPadGrad(input=[1], paddings=[[0x77F00000, 0xA000000]], mode="REFLECT")


def test_dense_tensors_of_placeholders():
    with tf.Graph().as_default(), v1.Session() as session:
        indices, shape = v1.placeholder(tf.int64), v1.placeholder(tf.int64, shape=[1])
        dense = v1.sparse_to_dense(indices, shape, [5, 6], -1)
        assert session.run(dense, {indices: [[0], [2]], shape: [4]}).tolist() == [5, -1, 6, -1]
