"""Images: resizing against a plain sum of weights, colors, boxes, and mistakes."""

import numpy as np
import pytest

import tapeflow as tf
from tests.ops.gradients import gradient

METHODS = ["bilinear", "nearest", "bicubic", "area", "lanczos3", "lanczos5", "gaussian", "mitchellcubic"]


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("size", [(3, 4), (9, 13), (1, 1), (5, 20)])
@pytest.mark.parametrize("antialias", [False, True])
def test_resize_is_linear_keeps_constants_and_has_its_transpose_as_gradient(method, size, antialias):
    def run(v):
        return tf.image.resize(v, size, method=method, antialias=antialias)

    np.testing.assert_allclose(run(np.full([1, 5, 7, 2], 3.0, np.float32)), np.full([1, *size, 2], 3.0), rtol=2e-6)
    x = np.random.RandomState(0).randn(1, 5, 7, 2).astype(np.float32)
    dy = np.random.RandomState(1).randn(1, *size, 2).astype(np.float32)
    (dx,) = gradient(lambda v: run(v) * dy, x)
    assert np.sum(np.asarray(dx) * x) == pytest.approx(np.sum(np.asarray(run(x)) * dy), rel=1e-3, abs=1e-4)


def test_resize_to_the_same_size_keeps_the_image():
    x = np.random.RandomState(0).rand(1, 5, 7, 3).astype(np.float32)
    for method in ("bilinear", "nearest", "bicubic", "area", "lanczos3"):
        np.testing.assert_allclose(tf.image.resize(x, [5, 7], method=method), x, rtol=1e-6)


def test_crop_and_resize_has_gradients_of_boxes():
    x = np.random.RandomState(0).rand(1, 6, 7, 1).astype(np.float32)
    box = np.array([[0.12, 0.07, 0.81, 0.93]], np.float32)

    def run(b):
        return np.asarray(tf.image.crop_and_resize(x, b, [0], [3, 2])).astype(np.float64).sum()

    (slope,) = gradient(lambda b: tf.image.crop_and_resize(x, b, [0], [3, 2]), box)
    for k in range(4):
        step = np.zeros_like(box)
        step[0, k] = 1e-3
        assert np.asarray(slope)[0, k] == pytest.approx((run(box + step) - run(box - step)) / 2e-3, rel=2e-2, abs=2e-2)
    outside = tf.image.crop_and_resize(x, [[-1.0, -1.0, -0.5, -0.5]], [0], [2, 2], extrapolation_value=7.0)
    np.testing.assert_array_equal(outside, np.full([1, 2, 2, 1], 7.0))
    with pytest.raises(tf.errors.OutOfRangeError, match="outside"):
        tf.image.crop_and_resize(x, box, [3], [2, 2])


def test_hsv_goes_there_and_back():
    x = np.random.RandomState(0).rand(50, 4, 3).astype(np.float32)
    np.testing.assert_allclose(tf.image.hsv_to_rgb(tf.image.rgb_to_hsv(x)), x, atol=1e-6)
    gray = np.full([1, 1, 3], 0.5, np.float32)
    (slope,) = gradient(tf.image.rgb_to_hsv, gray)
    assert np.isfinite(np.asarray(slope)).all()
    (slope,) = gradient(tf.image.rgb_to_hsv, np.zeros([1, 1, 3], np.float32))
    assert np.isfinite(np.asarray(slope)).all()
    np.testing.assert_allclose(tf.image.adjust_hue(tf.image.adjust_hue(x, 0.3), -0.3), x, atol=1e-5)


def test_integers_saturate():
    x = tf.constant([[[10, 250, 30]]], tf.uint8)
    np.testing.assert_array_equal(tf.image.adjust_brightness(x, 0.1), [[[35, 255, 55]]])
    np.testing.assert_array_equal(tf.image.adjust_gamma(x, 0.5), [[[50, 252, 87]]])
    big = tf.constant([-1.0, 0.3, 0.5, 1.2])
    np.testing.assert_array_equal(tf.image.convert_image_dtype(big, tf.uint8, saturate=True), [0, 76, 127, 255])
    np.testing.assert_array_equal(tf.image.convert_image_dtype(big, tf.int32, saturate=True)[-1], 2147483520)


def test_suppression_of_overlapping_boxes():
    boxes = np.float32([[0, 0, 1, 1], [0, 0.1, 1, 1.1], [1, 1, 0, 0], [5, 5, 6, 6]])
    scores = [0.9, 0.8, 0.7, 0.6]
    np.testing.assert_array_equal(tf.image.non_max_suppression(boxes, scores, 4), [0, 3])
    np.testing.assert_array_equal(tf.image.non_max_suppression(boxes, scores, 4, score_threshold=0.65), [0])
    np.testing.assert_array_equal(tf.image.non_max_suppression(boxes, [0.5] * 4, 0), [])
    empty = tf.image.non_max_suppression(np.zeros([0, 4], np.float32), np.zeros([0], np.float32), 3)
    assert empty.shape == (0,)
    for bad in ((boxes[:, :3], [0.9] * 4), (boxes, [0.9] * 3)):
        with pytest.raises(tf.errors.InvalidArgumentError):
            tf.image.non_max_suppression(*bad, 3)
    with pytest.raises(tf.errors.InvalidArgumentError, match="iou_threshold"):
        tf.image.non_max_suppression(boxes, [0.9] * 4, 3, iou_threshold=2.0)


def test_patches_and_their_gradient():
    x = np.arange(16.0, dtype=np.float32).reshape(1, 4, 4, 1)
    patches = tf.image.extract_patches(x, [1, 2, 2, 1], [1, 2, 2, 1], [1, 1, 1, 1], "VALID")
    np.testing.assert_array_equal(patches[0, 0, 1], [2, 3, 6, 7])
    (slope,) = gradient(lambda v: tf.image.extract_patches(v, [1, 2, 2, 1], [1, 1, 1, 1], [1, 1, 1, 1], "VALID"), x)
    np.testing.assert_array_equal(np.asarray(slope)[0, :, :, 0], np.outer([1, 2, 2, 1], [1, 2, 2, 1]))


@pytest.mark.parametrize("channels", [1, 2, 3, 4])
@pytest.mark.parametrize("dtype", [np.uint8, np.uint16])
def test_png_goes_there_and_back(channels, dtype):
    x = np.random.RandomState(0).randint(0, np.iinfo(dtype).max, [5, 6, channels]).astype(dtype)
    np.testing.assert_array_equal(tf.image.decode_png(tf.image.encode_png(x), dtype=dtype), x)


@pytest.mark.parametrize("broken", [b"", b"not a png", b"\x89PNG\r\n\x1a\n", b"\x89PNG\r\n\x1a\n\0\0\0\xffIHDR"])
def test_broken_png_is_an_error(broken):
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"Invalid PNG data|Unknown image file format"):
        tf.image.decode_png(broken)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: tf.image.resize(tf.ones([3, 3]), [3, 3]), "either 3 or 4 dimensions"),
        (lambda: tf.image.resize(tf.ones([1, 3, 3, 1]), [3]), "1-D Tensor of 2 elements"),
        (lambda: tf.image.resize(tf.ones([1, 3, 3, 1]), [3, 3], method="best"), "not implemented"),
        (lambda: tf.image.central_crop(tf.ones([3, 3, 1]), 0.0), "central_fraction"),
        (lambda: tf.image.crop_to_bounding_box(tf.ones([3, 3, 1]), 1, 1, 9, 1), "height must be >= target"),
        (lambda: tf.image.pad_to_bounding_box(tf.ones([3, 3, 1]), 1, 1, 2, 9), "height must be <= target"),
        (lambda: tf.image.flip_left_right(tf.ones([3, 3])), "at least three-dimensional"),
        (lambda: tf.image.adjust_hue(tf.ones([3, 3, 3]), 2.0), "delta must be in the interval"),
    ],
)
def test_errors(call, words):
    with pytest.raises(ValueError, match=words):
        call()


BOXES = [[[0.1, 0.2, 0.6, 0.7], [0.3, 0.3, 0.9, 0.8]]]


@pytest.mark.parametrize(
    ("seed", "begin", "size"),
    [([1, 2], [3, 12, 0], [16, 15, -1]), ([3, 4], [5, 15, 0], [13, 12, -1]), ([5, 6], [0, 4, 0], [16, 17, -1])],
)
def test_distorted_boxes_are_tensorflows(seed, begin, size):
    found = tf.image.stateless_sample_distorted_bounding_box([20, 30, 3], BOXES, seed, min_object_covered=0.3)
    np.testing.assert_array_equal(found.begin, begin)
    np.testing.assert_array_equal(found.size, size)
    corners = np.array([begin[0] / 20, begin[1] / 30, (begin[0] + size[0]) / 20, (begin[1] + size[1]) / 30])
    np.testing.assert_allclose(found.bboxes, corners.reshape(1, 1, 4), rtol=1e-6)


def test_distorted_boxes_in_functions():
    @tf.function
    def stateless(image):
        return tf.image.stateless_sample_distorted_bounding_box(tf.shape(image), BOXES, [1, 2], 0.3)

    @tf.function
    def sampled(image):
        return tf.image.sample_distorted_bounding_box(tf.shape(image), BOXES, min_object_covered=0.3).begin

    image = tf.zeros([20, 30, 3])
    np.testing.assert_array_equal(stateless(image).begin, [3, 12, 0])
    assert stateless.get_concrete_function(tf.TensorSpec(None)).outputs[2].shape == (1, 1, 4)
    assert len({tuple(sampled(image).numpy()) for _ in range(20)}) > 1

    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        begin = tf.image.sample_distorted_bounding_box([20, 30, 3], BOXES, min_object_covered=0.3).begin
        assert len({tuple(session.run(begin)) for _ in range(20)}) > 1


def test_the_ratio_of_open_sizes_is_not_learnt_from_squares():
    @tf.function(input_signature=[tf.TensorSpec([None, None, 3])])
    def fitted(image):
        resized = tf.image.resize(image, [6, 6], preserve_aspect_ratio=True)
        assert resized.shape.as_list() == [None, None, 3]
        return resized

    assert fitted(tf.zeros([4, 5, 3])).shape == (5, 6, 3)


def test_similarity_of_bytes_takes_a_float_peak():
    x = tf.cast(tf.random.stateless_uniform([6, 6, 1], [1, 2], 0, 255, tf.int32), tf.uint8)
    np.testing.assert_allclose(tf.image.ssim(x, x, 255.0, filter_size=3), 1.0)


def test_distorted_boxes_follow_the_seeds():
    tf.random.set_seed(1)
    begins = [
        tf.image.sample_distorted_bounding_box([20, 30, 3], BOXES, 5, 0.3).begin.numpy().tolist() for _ in range(2)
    ]
    assert begins == [[2, 5, 0], [0, 8, 0]]
    whole = tf.image.sample_distorted_bounding_box([20, 30, 3], BOXES, min_object_covered=1.5)
    np.testing.assert_array_equal(whole.size, [20, 30, -1])
    with pytest.raises(tf.errors.InvalidArgumentError, match="No bounding boxes"):
        tf.image.sample_distorted_bounding_box([20, 30, 3], tf.zeros([1, 0, 4]))
    with pytest.raises(tf.errors.InvalidArgumentError, match="image_size must contain 3 elements"):
        tf.image.sample_distorted_bounding_box([20, 30], BOXES)


def test_standardization_of_equal_pixels_has_a_gradient():
    image = tf.constant([[[2.0], [2.0]]])
    with tf.GradientTape() as tape:
        tape.watch(image)
        y = tf.image.per_image_standardization(image)[0, 0, 0]
    np.testing.assert_allclose(tape.gradient(y, image).numpy().reshape(-1), [0.5**0.5, -(0.5**0.5)], rtol=1e-6)


def test_psnr_of_bytes():
    x = tf.constant([[[10], [20]]], tf.uint8)
    np.testing.assert_allclose(tf.image.psnr(x, x + tf.constant(5, tf.uint8), 255).numpy(), 34.1514, rtol=1e-4)


def test_glimpses_of_tensorflow_1_leave_half_a_window():
    x = tf.reshape(tf.range(9.0), [1, 3, 3, 1])
    y = tf.compat.v1.image.extract_glimpse(x, [2, 2], [[1.0, 1.0]], centered=False, normalized=False)
    np.testing.assert_array_equal(y[0, :, :, 0], [[0, 1], [3, 4]])
    y = tf.image.extract_glimpse(x, [2, 2], [[1.0, 1.0]], centered=False, normalized=False)
    np.testing.assert_array_equal(y[0, :, :, 0], [[4, 5], [7, 8]])


def test_the_noise_around_a_glimpse_is_like_the_image():
    x = 100 + tf.reshape(tf.range(25.0), [1, 5, 5, 1])
    y = tf.image.extract_glimpse(x, [9, 9], [[0.0, 0.0]])
    assert np.min(y) >= 100 and np.max(y) <= 124


def test_padded_resizing_of_tensorflow_1_has_its_places():
    x = tf.reshape(tf.range(4.0), [1, 2, 2, 1])
    inner = tf.compat.v1.image.resize(x, [4, 4])
    np.testing.assert_allclose(tf.compat.v1.image.resize_image_with_pad(x, 4, 4), inner)


def test_projections_have_a_size_that_fits():
    with pytest.raises(tf.errors.InvalidArgumentError, match="less than"):
        tf.raw_ops.ImageProjectiveTransformV2(
            images=tf.ones([1, 2, 2, 1]),
            transforms=tf.ones([1, 8]),
            output_shape=[2**31 - 1] * 2,
            interpolation="NEAREST",
        )


def ragged_images(*sizes):
    return tf.ragged.stack([tf.reshape(tf.range(h * w * 3.0), [h, w, 3]) for h, w in sizes])


@pytest.mark.parametrize("resize", [tf.image.resize, tf.compat.v1.image.resize])
def test_images_of_different_sizes_become_one_tensor(resize):
    images = ragged_images((2, 8), (3, 5))
    spec = tf.RaggedTensorSpec([None, None, None, 3], ragged_rank=2)
    traced = tf.function(lambda x: resize(x, [4, 4]), input_signature=[spec])
    assert traced.get_concrete_function().output_shapes.as_list() == [None, 4, 4, 3]
    for found in (resize(images, [4, 4]), traced(images)):
        for row in range(2):
            np.testing.assert_allclose(found[row], resize(images[row].to_tensor(), [4, 4]))


def test_no_images_of_different_sizes():
    none = tf.RaggedTensor.from_tensor(tf.zeros([0, 5, 5, 3]), ragged_rank=2)
    assert tf.image.resize(none, [4, 4]).shape == [0, 4, 4, 3]
    assert tf.function(lambda: tf.image.resize(none, [4, 4]))().shape == [0, 4, 4, 3]


@pytest.mark.parametrize(
    "call",
    [
        lambda x: tf.image.crop_to_bounding_box(x, 0, 0, 55, 66),
        lambda x: tf.image.pad_to_bounding_box(x, 0, 0, 55, 66),
        lambda x: tf.image.resize_with_crop_or_pad(x, 55, 66),
        lambda x: tf.image.resize_with_pad(x, 55, 66),
    ],
)
def test_images_of_unknown_rank_are_cut_and_padded_as_one(call):
    image = np.random.default_rng(1).random([55, 66, 3]).astype(np.float32)
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        x = tf.compat.v1.placeholder(tf.float32)
        y = call(x)
        assert y.shape.as_list() == [55, 66, None]
        np.testing.assert_allclose(session.run(y, {x: image}), image, rtol=1e-5)
    with pytest.raises(ValueError, match="must have either 3 or 4 dimensions"):
        call(tf.ones([2, 3]))
