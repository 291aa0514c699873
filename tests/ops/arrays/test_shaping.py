"""Building, joining and reshaping: what TensorFlow accepts, and what it refuses, at the edges."""

import numpy as np
import pytest

import tapeflow as tf


def test_the_rest_of_an_empty_reshape():
    assert tf.reshape(tf.ones([3, 0]), [0, -1]).shape == [0, 3]
    assert tf.reshape(tf.ones([3, 0]), [-1, 0]).shape == [3, 0]
    assert tf.reshape(tf.ones([0]), [-1, 0, 4]).shape == [0, 0, 4]
    with pytest.raises(tf.errors.InvalidArgumentError, match="requires a multiple of 0"):
        tf.reshape(tf.ones([3]), [0, -1])


def test_stack_of_a_tensor_is_that_of_its_rows():
    x = tf.constant([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
    np.testing.assert_array_equal(tf.stack(x), x)
    np.testing.assert_array_equal(tf.stack(x, axis=1), tf.transpose(x))
    np.testing.assert_array_equal(tf.stack(x, axis=-1), tf.transpose(x))
    stacked = tf.function(tf.stack, input_signature=[tf.TensorSpec([None, 3])])
    np.testing.assert_array_equal(stacked(x), x)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = tf.stack(x, axis=1)
    np.testing.assert_array_equal(tape.gradient(y, x, tf.reshape(tf.range(6.0), [3, 2])), [[0, 2, 4], [1, 3, 5]])


def test_stack_of_plain_numbers():
    assert tf.stack([1, 2.5]).dtype == tf.float32
    np.testing.assert_array_equal(tf.stack([[1, 2], [3.0, 4]], axis=1), [[1, 3], [2, 4]])
    assert tf.stack([]).shape == [0]


def test_concat_of_an_array_is_the_array():
    np.testing.assert_array_equal(tf.concat(np.ones([2, 3]), 0), np.ones([2, 3]))


def test_linspace_between_tensors_of_different_shapes():
    np.testing.assert_allclose(tf.linspace(0.0, [1.0, 2.0], 3), [[0, 0], [0.5, 1], [1, 2]])
    np.testing.assert_allclose(tf.linspace([0.0, 1.0], 3.0, 2, axis=-1), [[0, 3], [1, 3]])
    assert tf.linspace([0.0, 0.0], 1.0, 0).shape == [0, 2]
    assert tf.linspace(np.int8(0), np.int8(5), 3).dtype == tf.float32
    assert tf.linspace(0, 5, 3).dtype == tf.float64


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda: tf.reshape([1.0], None), ValueError, r"Attempt to convert a value \(None\)"),
        (lambda: tf.concat([[1.0]], None), ValueError, r"Attempt to convert a value \(None\)"),
        (lambda: tf.expand_dims([1.0], None), ValueError, r"Attempt to convert a value \(None\)"),
        (lambda: tf.reshape([1.0], [1.5]), tf.errors.InvalidArgumentError, "of float is not in the list of allowed"),
        (lambda: tf.repeat([1, 2, 3], [1, 2], axis=0), ValueError, "Dimensions 3 and 2 are not compatible"),
        (lambda: tf.eye(-1), tf.errors.InvalidArgumentError, "Dimension -1 must be >= 0"),
    ],
)
def test_refusals(call, error, words):
    with pytest.raises(error, match=words):
        call()


def test_one_number_is_a_block_of_two_dimensions():
    x = tf.reshape(tf.range(4.0), [4, 1, 1, 1])
    y = tf.batch_to_space(x, 2, [[0, 0], [0, 0]])
    np.testing.assert_array_equal(y[0, :, :, 0], [[0, 1], [2, 3]])


def test_the_product_of_truth_values():
    both = tf.constant([True, True, False]) * tf.constant([True, False, False])
    np.testing.assert_array_equal(both, [True, False, False])
    np.testing.assert_array_equal(True * tf.constant([True, False]), [True, False])
    with pytest.raises(tf.errors.InvalidArgumentError):
        tf.multiply(tf.constant([True]), tf.constant([True]))


def test_a_mask_of_a_tensor_of_unknown_rank():
    pick = tf.function(lambda x: x[tf.constant([True, False, True])], input_signature=[tf.TensorSpec(None)])
    np.testing.assert_array_equal(pick(tf.constant([1.0, 2.0, 3.0])), [1, 3])


def test_raw_operations_on_shapes_that_are_not_known():
    raw = tf.raw_ops
    spec = tf.TensorSpec([None, None])
    smallest = tf.function(lambda x: raw.NthElement(input=x, n=0), input_signature=[spec])
    np.testing.assert_array_equal(smallest(tf.constant([[3.0, 1.0, 2.0]])), [1])
    turned = tf.function(lambda x: raw.ReverseSequence(input=x, seq_lengths=[1, 2], seq_dim=1), input_signature=[spec])
    np.testing.assert_array_equal(turned(tf.constant([[1.0, 2.0], [3.0, 4.0]])), [[1, 2], [4, 3]])


def test_constant_lengths_of_sequences_whose_size_is_not_known():
    spec = tf.TensorSpec([None, None])
    turned = tf.function(lambda x: tf.reverse_sequence(x, [20, 19], seq_axis=1, batch_axis=0), input_signature=[spec])
    x = np.arange(40.0, dtype=np.float32).reshape(2, 20)
    expected = [x[0, ::-1], [*x[1, 18::-1], x[1, 19]]]
    np.testing.assert_array_equal(turned(x), expected)
    with pytest.raises(tf.errors.InvalidArgumentError):
        turned(x[:, :10])


@pytest.mark.parametrize("lengths", [[4, 1], [-1, 1]])
def test_lengths_of_sequences_that_do_not_fit(lengths):
    x = tf.ones([2, 3])
    turned = tf.function(lambda x, n: tf.reverse_sequence(x, n, seq_axis=1, batch_axis=0))
    for turn in (turned, turned.python_function):
        with pytest.raises(tf.errors.InvalidArgumentError):
            turn(x, tf.constant(lengths))


def test_reversed_sequences_keep_what_is_known_of_their_shape():
    with tf.Graph().as_default():
        x = tf.compat.v1.placeholder(tf.float32, [None, 3])
        assert tf.reverse_sequence(x, tf.fill([tf.shape(x)[0]], 2), seq_axis=1, batch_axis=0).shape[1] == 3


def test_raw_rules_of_complex_numbers():
    y, dy = tf.constant([1 + 2j]), tf.constant([3 - 1j])
    np.testing.assert_allclose(tf.raw_ops.SqrtGrad(y=y, dy=dy), [0.5 + 0.5j])
    np.testing.assert_allclose(tf.raw_ops.RsqrtGrad(y=y, dy=dy), [15.5 - 8.5j])
    np.testing.assert_allclose(tf.raw_ops.ReciprocalGrad(y=y, dy=dy), [13 + 9j])


@pytest.mark.parametrize(
    "call",
    [
        lambda: tf.ones([2.0, 3]),
        lambda: tf.slice([1, 2, 3], [1], [1.5]),
        lambda: tf.one_hot([1], 2.5),
        lambda: tf.repeat([1, 2], 1.5),
        lambda: tf.split([1, 2], 2, axis=0.5),
        lambda: tf.image.resize_with_crop_or_pad(tf.ones([2, 2, 1]), 1.5, 2),
    ],
)
def test_sizes_that_are_not_whole_are_refused(call):
    with pytest.raises((TypeError, tf.errors.InvalidArgumentError)):
        call()


def test_a_tensor_is_no_number_of_parts():
    with pytest.raises(ValueError, match="Rank-0 tensors are not supported"):
        tf.split([1, 2], tf.constant(2))
    assert len(tf.split([1, 2], np.int64(2))) == 2


def test_shapes_of_scalars_are_integers():
    assert tf.broadcast_dynamic_shape([], []).dtype == tf.int32


def test_padding_takes_one_value():
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"constant_values must be a scalar. Found: \[2\]"):
        tf.raw_ops.PadV2(input=[1.0], paddings=[[1, 1]], constant_values=[1.0, 2.0])


def test_an_empty_array_of_objects_holds_strings():
    assert tf.constant(np.zeros((0, 3), object)).dtype == tf.string


def test_sequence_mask_wants_one_length():
    with pytest.raises(ValueError, match="`maxlen` must be scalar"):
        tf.sequence_mask([1, 2], [1, 2])


def test_blocks_of_tensors_of_unknown_rank():
    anything = [tf.TensorSpec(None)]
    x = tf.reshape(tf.range(16.0), [1, 4, 4, 1])
    batches = tf.space_to_batch(x, [2, 2], [[0, 0], [0, 0]])
    calls = [
        (lambda t: tf.space_to_batch(t, [2, 2], [[0, 0], [0, 0]]), x),
        (lambda t: tf.batch_to_space(t, [2, 2], [[0, 0], [0, 0]]), batches),
        (lambda t: tf.nn.space_to_depth(t, 2), x),
        (lambda t: tf.nn.depth_to_space(t, 2), tf.nn.space_to_depth(x, 2)),
    ]
    for call, given in calls:
        concrete = tf.function(call, input_signature=anything).get_concrete_function()
        assert concrete(given).numpy().tolist() == call(given).numpy().tolist()


def test_saturated_infinities_are_the_largest_numbers():
    x = tf.constant([np.inf, -np.inf])
    assert tf.saturate_cast(x, tf.float32).numpy().tolist() == [tf.float32.max, tf.float32.min]
    assert tf.saturate_cast(x, tf.complex64).numpy().real.tolist() == [tf.float32.max, tf.float32.min]


def test_integers_out_of_range_of_floats():
    with pytest.raises(ValueError, match="out-of-range integer"):
        tf.constant(10**310, tf.float64)


def test_the_gradient_of_mirrored_integers():
    pairs = [[1, 1], [1, 1]]
    for mode in ("REFLECT", "SYMMETRIC"):
        found = [
            tf.raw_ops.MirrorPadGrad(input=tf.ones([4, 5], d), paddings=pairs, mode=mode) for d in ("int32", "float32")
        ]
        assert found[0].numpy().tolist() == found[1].numpy().tolist()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((3, 1, 0), "input must be 1-D or higher"),
        (([3], [[1]], [0]), "shift must be a scalar or a 1-D vector"),
        (([3], [1], [[0]]), "axis must be a scalar or a 1-D vector"),
        (([1, 2], [1, 1], [0]), "shift and axis must have the same size"),
    ],
)
def test_shapes_that_roll_refuses(arguments, message):
    with pytest.raises(tf.errors.InvalidArgumentError, match=message):
        tf.roll(*arguments)


@pytest.mark.parametrize("repeats", [[1, 0, 2], [2], [0, 0, 0]])
@pytest.mark.parametrize("axis", [0, 1, -1])
def test_repeats_that_the_running_graph_knows(repeats, axis):
    x = tf.constant(np.arange(9.0).reshape(3, 3))
    signature = [tf.TensorSpec([None, None], tf.float64), tf.TensorSpec([None], tf.int64)]
    function = tf.function(lambda x, repeats: tf.repeat(x, repeats, axis), input_signature=signature)
    np.testing.assert_array_equal(function(x, repeats), np.repeat(x, repeats, axis))
    nodes = function.get_concrete_function().graph.as_graph_def().node
    assert "Composition" not in {node.op for node in nodes}  # no Python runs with it
    with pytest.raises(tf.errors.InvalidArgumentError, match="Incompatible shapes"):
        function(x, [1, 2])
