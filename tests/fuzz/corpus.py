"""Calls that were found to crash, hang, take gigabytes or fail inside: each must refuse its arguments at once."""

from __future__ import annotations

from google.protobuf.message import DecodeError

import tapeflow as tf

REFUSED = (TypeError, ValueError, tf.errors.OpError, DecodeError)

CALLS = [
    "tf.function(lambda: tf.ragged.stack_dynamic_partitions([1, 2], [0, 1], 2**62))()",
    "tf.where(tf.ragged.constant([[1., 2.], [3.]]), [1, 2], [10, 20])",
    "tf.strings.unsorted_segment_join(['a'], [0], 2**60)",
    "tf.dynamic_partition([1.], [0], 2**62)",
    "tf.signal.frame([1., 2.], 2**40, 1)",
    "tf.signal.hamming_window(2**50)",
    "tf.signal.kaiser_window(2**50)",
    "tf.signal.linear_to_mel_weight_matrix(2**50, 9)",
    "tf.sparse.eye(2**50)",
    "tf.experimental.numpy.arange(2**50)",
    "tf.experimental.numpy.array([1, 2], ndmin=2**62)",
    "tf.raw_ops.PadV2(input=[1.], paddings=[[1, 1]], constant_values=[1., 2.])",
    "tf.linalg.LinearOperatorPermutation([1, 1, 0])",
    "tf.raw_ops.TanhGrad(y=[1., 2.], dy=1.)",
    "tf.io.parse_tensor(b'\\x08\\x14\\x12\\x02\\x12\\x00\"\\x01a', tf.uint8)",
    "tf.io.decode_jpeg(tf.io.encode_jpeg(np.zeros([4, 4, 3], np.uint8)), channels=2)",
    "tf.import_graph_def(tf.compat.v1.GraphDef.FromString(b'\\n\\x18\\n\\x01x\\x12\\x0bPlaceholder*\\x06\\n\\x01d\\x12\\x010'))",
    "tf.dynamic_partition(np.arange(4), tf.ragged.constant([[1., 2.], [3.]]), 2)",
    "tf.dynamic_partition([1, tf.ragged.constant([[1.], []])], [0, 1], 2)",
    "tf.ragged.stack_dynamic_partitions([1, 2, 3], [0, tf.ragged.constant([[1., 2.], [3.]]), 0], 2)",
    "tf.io.decode_raw(['ab'], tf.string)",
    "tf.nn.dilation2d(tf.zeros([1, 4, 4, 2]), tf.zeros([2, 2, 2]), [1, 0, 1, 1], 'SAME', 'NHWC', [1, 1, 1, 1])",
    "tf.io.parse_tensor([b'bogus'], tf.float32)",
    "tf.ragged.segment_ids_to_row_splits([0, 2**63 - 1, 2])",
    "tf.image.extract_patches(tf.zeros([1, 2, 2, 1]), [1, 1, 2, 1], [1, 1, 0, 1], [1, 1, 1, 1], 'VALID')",
    "tf.sequence_mask(tf.constant([2**62], tf.int64))",
    "tf.image.resize_with_crop_or_pad(tf.ones([1, 3, 1]), 2, 2**64)",
    "tf.pad(tf.ones([4]), [[2**63 - 2, 2**63 - 1]])",
    "tf.function(lambda x: tf.pad(x, [[2**63 - 2, 2**63 - 1]]))(tf.ones([4]))",
    "tf.tile(tf.ones([4]), [2**62])",
    "tf.concat([tf.ones([0, 2**62])] * 4, 1)",
    "tf.reshape(tf.ones([16]), [16, 2**60 + 1])",
    "tf.reshape(tf.ones([0]), [2**62, 4, -1])",
    "tf.function(lambda x: tf.reshape(x, [16, 2**60 + 1]))(tf.ones([16]))",
    "tf.nn.conv2d(tf.ones([1, 4, 4, 1]), tf.ones([1, 1, 1, 1]), 1, [[0, 0], [2**62, 2**62], [2**62, 2**62], [0, 0]])",
    "tf.signal.vorbis_window(2**50)",
    "tf.function(lambda n: tf.signal.kaiser_bessel_derived_window(n))(tf.constant(2**50, tf.int64))",
    "tf.function(lambda n: tf.audio.decode_wav(b'RIFF(\\0\\0\\0WAVE', desired_samples=2**50))(0)",
]
