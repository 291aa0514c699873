"""WebP files: frames, channels, and what is refused."""

import io

import numpy as np
import pytest

import tapeflow as tf

Image = pytest.importorskip("PIL.Image")

COLOURS = (np.arange(5 * 7 * 3) * 7 % 256).astype("uint8").reshape(5, 7, 3)
WITH_ALPHA = np.concatenate([COLOURS, np.full((5, 7, 1), 128, "uint8")], -1)


def webp(*frames):
    file = io.BytesIO()
    first, *others = map(Image.fromarray, frames)
    several = {"save_all": True, "append_images": others} if others else {}
    first.save(file, "WEBP", lossless=True, exact=True, **several)
    return file.getvalue()


@pytest.mark.parametrize("image", [COLOURS, WITH_ALPHA], ids=["rgb", "rgba"])
def test_an_image_is_one_frame(image):
    channels = image.shape[-1]
    for decode in (tf.io.decode_webp, tf.image.decode_webp, tf.io.decode_image, tf.function(tf.io.decode_webp)):
        np.testing.assert_array_equal(decode(webp(image)), image[None])
        np.testing.assert_array_equal(decode(webp(image), channels=channels), image[None])
    np.testing.assert_array_equal(tf.io.decode_image(webp(image), expand_animations=False), image)


def test_animations_have_four_channels():
    found = tf.io.decode_webp(webp(WITH_ALPHA, 255 - WITH_ALPHA))
    np.testing.assert_array_equal(found, [WITH_ALPHA, 255 - WITH_ALPHA])


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: tf.io.decode_webp(webp(COLOURS), channels=4), "channels requested does not match"),
        (lambda: tf.io.decode_webp(webp(WITH_ALPHA), channels=3), "channels requested does not match"),
        (lambda: tf.io.decode_webp(webp(COLOURS), channels=1), "only supports 3 or 4 channels"),
        (lambda: tf.io.decode_webp(webp(COLOURS), dtype=tf.uint16), "dtype must be uint8"),
        (lambda: tf.io.decode_image(webp(COLOURS), dtype=tf.float32), "only supports uint8"),
        (lambda: tf.io.decode_webp(webp(COLOURS)[:30]), "Failed to decode WebP"),
        (lambda: tf.io.decode_webp(b"abcd"), "Unknown image file format"),
    ],
)
def test_what_is_refused(call, message):
    with pytest.raises(tf.errors.InvalidArgumentError, match=message):
        call()


def test_mutated_files_end_in_typed_errors():
    whole, rng = webp(COLOURS), np.random.default_rng(0)
    for _ in range(300):
        data = bytearray(whole)
        for place in rng.integers(0, len(data), 3):
            data[place] = rng.integers(0, 256)
        try:
            found = tf.io.decode_webp(bytes(data[: rng.integers(1, len(data) + 1)]))
        except tf.errors.InvalidArgumentError:
            continue
        assert found.dtype == tf.uint8
