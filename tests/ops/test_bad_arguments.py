"""Arguments that make no sense raise TypeError, ValueError or an error of tf.errors, and no error of other kinds."""

import pytest

import tapeflow as tf

REFUSED = {
    "approx_max_k of a scalar": lambda: tf.math.approx_max_k(1.0, 1),
    "bias_add with a number as format": lambda: tf.nn.bias_add([[1.0]], [1.0], data_format=-1),
    "bincount of slices": lambda: tf.math.bincount(tf.IndexedSlices(tf.ones([1, 2]), tf.constant([0])), axis=2),
    "conjugate_gradient of a list": lambda: tf.linalg.experimental.conjugate_gradient([], [1.0]),
    "composition of texts": lambda: tf.linalg.LinearOperatorComposition(["a", "b"]),
    "convolution with a number as format": lambda: tf.nn.convolution(
        tf.ones([1, 4, 1]), tf.ones([2, 1, 1]), data_format=tf.constant(1)
    ),
    "coefficients of one frequency": lambda: tf.raw_ops.Mfcc(spectrogram=tf.ones([1, 2, 1]), sample_rate=8000),
    "coefficients between equal frequencies": lambda: tf.raw_ops.Mfcc(
        spectrogram=tf.ones([1, 2, 9]), sample_rate=8000, upper_frequency_limit=20.0, lower_frequency_limit=20.0
    ),
    "more coefficients than filters": lambda: tf.raw_ops.Mfcc(
        spectrogram=tf.ones([1, 2, 9]), sample_rate=8000, filterbank_channel_count=4
    ),
    "an image without columns, resized": lambda: tf.image.resize_with_pad(tf.zeros([2, 3, 0, 1]), 4, 4),
    "dct of nothing": lambda: tf.signal.dct(tf.zeros([2, 0])),
    "dimension of a dtype": lambda: tf.compat.dimension_at_index(tf.float32, 0),
    "error class of an unknown code": lambda: tf.compat.v1.errors.exception_type_from_error_code(10**9),
    "expand_dims with a ragged axis": lambda: tf.expand_dims("x", tf.ragged.constant([[1], [2, 3]])),
    "inverse of a scalar": lambda: tf.linalg.lu_matrix_inverse(2, 0),
    "lstsq of scalars": lambda: tf.linalg.lstsq([[1.0]], 1.0),
    "make_ndarray of a tensor": lambda: tf.make_ndarray(tf.constant(1.0)),
    "memory of a number": lambda: tf.config.experimental.get_memory_info(1),
    "mfccs of a scalar": lambda: tf.signal.mfccs_from_log_mel_spectrograms(1.0),
    "number beyond int64": lambda: tf.expand_dims(2.5, 10**30),
    "numbers beyond int64": lambda: tf.zeros([10**30]),
    "paddings without pairs": lambda: tf.required_space_to_batch_paddings([4], [2], [[]]),
    "ragged.stack of nothing": lambda: tf.ragged.stack([]),
    "regex_replace with a number": lambda: tf.strings.regex_replace(["a"], 3, "b"),
    "regex_replace by a list": lambda: tf.strings.regex_replace(["a"], "a", [[1.0]]),
    "same dtype of texts": lambda: tf.debugging.assert_same_float_dtype(["a"]),
    "sparse.concat of nothing": lambda: tf.sparse.concat(0, []),
    "sparse.cross of scalars": lambda: tf.sparse.cross([tf.constant("a"), tf.constant("b")]),
    "sparse.mask of a list": lambda: tf.sparse.mask([[]], [3]),
    "splits that are a scalar": lambda: tf.ragged.row_splits_to_segment_ids(1),
    "statistics over an axis too far": lambda: tf.nn.sufficient_statistics(2.5, [0]),
    "strings.format of a tensor": lambda: tf.strings.format(tf.constant(["a"]), []),
    "strings.join with a dtype": lambda: tf.strings.join(["a"], tf.float32),
    "strings.split of booleans": lambda: tf.strings.split(tf.constant([True])),
    "unicode_decode of numbers": lambda: tf.strings.unicode_decode(tf.constant([1]), "UTF-8"),
    "unicode_split in no encoding": lambda: tf.strings.unicode_split("x", "text"),
}


@pytest.mark.parametrize("what", REFUSED)
def test_is_refused(what):
    with pytest.raises((TypeError, ValueError, tf.errors.OpError)):
        REFUSED[what]()


def test_memory_that_does_not_exist():
    with pytest.raises(tf.errors.ResourceExhaustedError, match=r"OOM when allocating tensor with shape\[11529"):
        tf.ones([2**60])
    with pytest.raises(tf.errors.ResourceExhaustedError, match="TensorArray: the memory does not hold"):
        tf.TensorArray(tf.float32, 2**60)


def test_sizes_are_checked_before_anything_is_allocated():
    with pytest.raises(tf.errors.ResourceExhaustedError, match="as_string: width and precision must be at most"):
        tf.strings.as_string([1.0], width=10**9)
    with pytest.raises(tf.errors.InvalidArgumentError, match="the window is too large"):
        tf.nn.max_pool2d(tf.ones([1, 4, 4, 1]), 2**60, 1, "SAME")
    with pytest.raises(tf.errors.InvalidArgumentError, match="the window is too large"):
        tf.nn.conv2d(tf.ones([1, 4, 4, 1]), tf.ones([2, 2, 1, 1]), 1, "SAME", dilations=2**41)


INVALID = {
    "to_number above int32": (lambda: tf.strings.to_number(["99999999999"], tf.int32), "could not correctly convert"),
    "base64 with a mark": (lambda: tf.io.decode_base64(["a!"]), "Invalid character"),
    "no parts of ragged rows": (lambda: tf.split(tf.ragged.constant([[1], [2, 3]]), 0), "cannot be divided into 0"),
    "sparse rows of a rank beyond all tensors": (
        lambda: tf.io.deserialize_many_sparse([["a", "b", "c"]], tf.int32, 2**31),
        r"rank must be in \[1, 254\]",
    ),
    "an axis twice": (lambda: tf.reverse([[1, 2]], [1, -1]), "more than once"),
    "sets of a vector": (lambda: tf.sets.union([1], [2]), "rank 1 < 2"),
    "sets out of order": (
        lambda: tf.sets.size(tf.SparseTensor([[0, 1], [0, 0]], [1, 2], [1, 2])),
        "out of order",
    ),
    "sets outside of their shape": (
        lambda: tf.sets.size(tf.SparseTensor([[0, 1], [3, 0]], [1, 2], [1, 2]), validate_indices=False),
        "Index out of range",
    ),
}


@pytest.mark.parametrize("what", INVALID)
def test_is_an_invalid_argument(what):
    call, message = INVALID[what]
    with pytest.raises(tf.errors.InvalidArgumentError, match=message):
        call()


def test_sets_out_of_order_are_taken_if_asked_for():
    assert tf.sets.size(tf.SparseTensor([[0, 1], [0, 0]], [1, 2], [1, 2]), validate_indices=False).numpy() == [2]
    assert tf.sets.difference([[1, 2]], [[2, 3]], aminusb=False).values.numpy() == [3]
