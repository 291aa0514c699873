"""Images and audio in files: what TensorFlow reads, and refusals of what is no image."""

import base64
import struct
import sys
import zlib

import numpy as np
import pytest

import tapeflow as tf
from tapeflow._src.io.codecs.png import read_png

RANDOM = np.random.default_rng(0)


PASSES = ((0, 0, 8, 8), (0, 4, 8, 8), (4, 0, 8, 4), (0, 2, 4, 4), (2, 0, 4, 2), (0, 1, 2, 2), (1, 0, 2, 1))


def chunk(name, body):
    return struct.pack(">I", len(body)) + name + body + struct.pack(">I", zlib.crc32(name + body))


def png_of(image, kinds):
    """A PNG file whose rows are filtered in the given ways, made from the definition of the filters."""
    height, width, channels = image.shape
    lines, above = b"", np.zeros(width * channels, int)
    for row, kind in zip(image.reshape(height, -1).astype(int), kinds):
        left = np.concatenate([np.zeros(channels, int), row[:-channels]])
        corner = np.concatenate([np.zeros(channels, int), above[:-channels]])
        near = left + above - corner
        distances = np.abs(np.stack([near - left, near - above, near - corner]))
        nearest = np.choose(distances.argmin(0), [left, above, corner])
        guess = [0, left, above, (left + above) // 2, nearest][kind]
        lines += bytes([kind]) + ((row - guess) % 256).astype(np.uint8).tobytes()
        above = row
    head = struct.pack(">IIBBBBB", width, height, 8, {1: 0, 3: 2}[channels], 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(lines)) + chunk(b"IEND", b"")


class TestPng:
    @pytest.mark.parametrize("kinds", [[k] * 5 for k in range(5)] + [[4, 0, 3, 1, 2]])
    @pytest.mark.parametrize("channels", [1, 3])
    def test_filters(self, kinds, channels):
        image = RANDOM.integers(0, 256, [5, 7, channels], dtype=np.uint8)
        np.testing.assert_array_equal(tf.io.decode_png(png_of(image, kinds)), image)

    def test_interlaced(self):
        image = RANDOM.integers(0, 256, [9, 10, 3], dtype=np.uint8)
        lines = b"".join(b"\0" + row.tobytes() for r, c, dr, dc in PASSES for row in image[r::dr, c::dc])
        plain = png_of(image, [0] * 9)
        head = struct.pack(">IIBBBBB", 10, 9, 8, 2, 0, 0, 1)
        data = plain[:8] + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(lines)) + chunk(b"IEND", b"")
        np.testing.assert_array_equal(tf.io.decode_png(data), image)

    def test_gray_is_tensorflows(self):
        image = np.array([[[39, 108, 210], [224, 118, 33], [255, 255, 255]]], np.uint8)
        assert tf.io.decode_png(tf.io.encode_png(image), channels=1).numpy().tolist() == [[[99], [139], [255]]]

    def test_batches(self):
        images = RANDOM.integers(0, 256, [2, 3, 4, 3], dtype=np.uint8)
        files = tf.io.encode_png(images)
        assert files.shape == [2]
        np.testing.assert_array_equal(tf.io.decode_png(files[1]), images[1])

    def test_sixteen_bits(self):
        image = RANDOM.integers(0, 65536, [2, 3, 1], dtype=np.uint16)
        data = tf.io.encode_png(image)
        np.testing.assert_array_equal(tf.io.decode_png(data, dtype=tf.uint16), image)
        np.testing.assert_array_equal(read_png(data.numpy(), 0, wide=False), (image >> 8).astype(np.uint8))

    @pytest.mark.parametrize("channels", [1, 2, 3, 4])
    @pytest.mark.parametrize("interlaced", [False, True])
    def test_sixteen_bits_are_kept(self, channels, interlaced):
        image = RANDOM.integers(0, 65536, [9, 10, channels], dtype=np.uint16)
        data = tf.io.encode_png(image).numpy()
        if interlaced:
            rows = [row for r, c, dr, dc in PASSES for row in image[r::dr, c::dc].astype(">u2")]
            head = struct.pack(">IIBBBBB", 10, 9, 16, {1: 0, 2: 4, 3: 2, 4: 6}[channels], 0, 0, 1)
            lines = zlib.compress(b"".join(b"\0" + row.tobytes() for row in rows))
            data = data[:8] + chunk(b"IHDR", head) + chunk(b"IDAT", lines) + chunk(b"IEND", b"")
        found = read_png(data, 0, wide=True)
        assert found.dtype == np.uint16
        np.testing.assert_array_equal(found, image)
        np.testing.assert_array_equal(read_png(data, 0, wide=False), image >> 8)

    @pytest.mark.parametrize(
        "lines", [b"\0abc", b"\0abc\0abc\0", b"\0abc\5abc"], ids=["too few", "too many", "unknown filter"]
    )
    def test_lines_that_do_not_fit(self, lines):
        head = chunk(b"IHDR", struct.pack(">IIBBBBB", 3, 2, 8, 0, 0, 0, 0))
        data = b"\x89PNG\r\n\x1a\n" + head + chunk(b"IDAT", zlib.compress(lines)) + chunk(b"IEND", b"")
        with pytest.raises(tf.errors.InvalidArgumentError, match="Invalid PNG data"):
            tf.io.decode_png(data)

    def test_in_a_graph(self):
        @tf.function
        def decode(data):
            image = tf.io.decode_png(data, channels=3)
            assert image.shape.as_list() == [None, None, 3]
            return tf.cast(image, tf.float32) / 255.0

        image = RANDOM.integers(0, 256, [2, 3, 3], dtype=np.uint8)
        np.testing.assert_allclose(decode(tf.io.encode_png(image)), image / 255.0, rtol=1e-6)


# Three frames of 6 x 7, each of which draws a square over the one before; made by Pillow.
MOVING = base64.b64decode(
    "R0lGODlhBwAGAIEAAMgAWgAAAAAAAAAAACH5BAAFAAAALAAAAAAHAAYAAAgRAAEIDEAwgEAABRMqXMiQYUAAIfkEAQUAAwAsAQABAAMAAgCB"
    "yB5ayABaAAAAAAAACAYAAQgcGBAAIfkEAQUABAAsAgACAAMAAgCByDxayB5ayABaAAAACAYAAQgcGBAAOw=="
)


class TestGif:
    def test_frames(self):
        expected = np.zeros([3, 6, 7, 3], np.uint8)
        for i in range(3):
            expected[i:, i : i + 2, i : i + 3] = [200, 30 * i, 90]
        np.testing.assert_array_equal(tf.io.decode_gif(MOVING), expected)
        np.testing.assert_array_equal(tf.io.decode_image(MOVING), expected)
        np.testing.assert_array_equal(tf.io.decode_image(MOVING, expand_animations=False), expected[0])

    def test_codes_that_grow_and_start_again(self):
        """Clear, 1, the code that is just being made, 0, end."""
        codes = [(4, 3), (1, 3), (6, 3), (0, 3), (5, 4)]
        number = bits = 0
        for code, size in codes:
            number |= code << bits
            bits += size
        data = number.to_bytes((bits + 7) // 8, "little")
        colors = bytes([9, 9, 9, 5, 6, 7, 0, 0, 0, 0, 0, 0])
        head = b"GIF89a" + struct.pack("<HHBBB", 2, 2, 0x81, 0, 0) + colors
        image = b"," + struct.pack("<HHHHB", 0, 0, 2, 2, 0)
        found = tf.io.decode_gif(head + image + bytes([2, len(data)]) + data + b"\0;")
        assert found[0, ..., 0].numpy().tolist() == [[5, 5], [5, 9]]

    def test_codes_are_those_of_256_colours_at_most(self):
        place = MOVING.index(b",") + 10
        assert 2 <= MOVING[place] <= 8
        with pytest.raises(tf.errors.InvalidArgumentError, match="code size"):
            tf.io.decode_gif(MOVING[:place] + b"\x09" + MOVING[place + 1 :])

    @pytest.mark.parametrize("data", [MOVING[:40], MOVING[:-30], b"GIF89a", MOVING[:13] + b";"])
    def test_broken(self, data):
        with pytest.raises(tf.errors.InvalidArgumentError, match="Invalid GIF data"):
            tf.io.decode_gif(data)

    def test_a_screen_that_is_too_large(self):
        with pytest.raises(tf.errors.InvalidArgumentError, match="1 frames of 65535 x 65535 pixels are too large"):
            tf.io.decode_gif(MOVING[:6] + b"\xff" * 4 + MOVING[10:])

    def test_an_animation_is_no_still_image(self):
        with pytest.raises(tf.errors.InvalidArgumentError, match="Got 3 frames"):
            tf.io.decode_png(MOVING)


def bmp_of(pixels, upside_down=False):
    height, width, channels = pixels.shape
    row = (width * channels + 3) // 4 * 4
    data = b"".join(line.tobytes().ljust(row, b"\0") for line in pixels)
    head = struct.pack("<IHHI", 54 + len(data), 0, 0, 54)
    size = struct.pack("<IiiHHIIiiII", 40, width, -height if upside_down else height, 1, 8 * channels, 0, 0, 0, 0, 0, 0)
    return b"BM" + head + size + data


class TestBmp:
    def test_orders(self):
        pixels = np.arange(18, dtype=np.uint8).reshape(2, 3, 3)
        np.testing.assert_array_equal(tf.io.decode_bmp(bmp_of(pixels)), pixels[::-1, :, ::-1])
        np.testing.assert_array_equal(tf.io.decode_bmp(bmp_of(pixels, True)), pixels[:, :, ::-1])
        four = np.arange(24, dtype=np.uint8).reshape(2, 3, 4)
        np.testing.assert_array_equal(tf.io.decode_image(bmp_of(four)), four[::-1][..., [2, 1, 0, 3]])
        np.testing.assert_array_equal(tf.io.decode_bmp(bmp_of(four), channels=3), four[::-1][..., [2, 1, 0]])

    def test_refusals(self):
        data = bmp_of(np.zeros([2, 3, 3], np.uint8))
        with pytest.raises(tf.errors.InvalidArgumentError, match="differ by -18"):
            tf.io.decode_bmp(data[:60])
        with pytest.raises(tf.errors.InvalidArgumentError, match="must be 0, 3 or 4 for BMP"):
            tf.io.decode_bmp(data, channels=1)
        with pytest.raises(tf.errors.InvalidArgumentError, match="Trying to decode BMP format using a wrong op"):
            tf.io.decode_png(data)


class TestImage:
    def test_unknown(self):
        for decode in (tf.io.decode_image, tf.io.decode_png, tf.io.decode_gif, tf.io.decode_bmp, tf.io.decode_jpeg):
            with pytest.raises(tf.errors.InvalidArgumentError, match="Unknown image file format"):
                decode(b"abc")

    def test_dtypes(self):
        data = tf.io.encode_png(np.array([[[0], [128], [255]]], np.uint8))
        np.testing.assert_allclose(tf.io.decode_image(data, dtype=tf.float32).numpy().ravel(), [0, 128 / 255, 1])
        assert tf.io.decode_image(data, dtype=tf.uint16).numpy().ravel().tolist() == [0, 128 * 257, 65535]
        with pytest.raises(ValueError, match="dtype must be"):
            tf.io.decode_image(data, dtype=tf.int32)

    def test_channels(self):
        data = tf.io.encode_png(np.array([[[7]]], np.uint8))
        assert tf.io.decode_image(data, channels=3).numpy().tolist() == [[[7, 7, 7]]]
        assert tf.io.decode_image(data, channels=4).numpy().tolist() == [[[7, 7, 7, 255]]]
        with pytest.raises(tf.errors.InvalidArgumentError, match="channels must be"):
            tf.io.decode_image(data, channels=2)


# An image of 4 x 5, made by libjpeg.
JPEG = base64.b64decode(
    "/9j/4AAQSkZJRgABAQAAAQABAAD/2wBDABALDA4MChAODQ4SERATGCgaGBYWGDEjJR0oOjM9PDkzODdASFxOQERXRTc4UG1RV19iZ2hnPk1x"
    "eXBkeFxlZ2P/2wBDARESEhgVGC8aGi9jQjhCY2NjY2NjY2NjY2NjY2NjY2NjY2NjY2NjY2NjY2NjY2NjY2NjY2NjY2NjY2NjY2NjY2P/wAAR"
    "CAAEAAUDAREAAhEBAxEB/8QAHwAAAQUBAQEBAQEAAAAAAAAAAAECAwQFBgcICQoL/8QAtRAAAgEDAwIEAwUFBAQAAAF9AQIDAAQRBRIhMUEG"
    "E1FhByJxFDKBkaEII0KxwRVS0fAkM2JyggkKFhcYGRolJicoKSo0NTY3ODk6Q0RFRkdISUpTVFVWV1hZWmNkZWZnaGlqc3R1dnd4eXqDhIWG"
    "h4iJipKTlJWWl5iZmqKjpKWmp6ipqrKztLW2t7i5usLDxMXGx8jJytLT1NXW19jZ2uHi4+Tl5ufo6erx8vP09fb3+Pn6/8QAHwEAAwEBAQEB"
    "AQEBAQAAAAAAAAECAwQFBgcICQoL/8QAtREAAgECBAQDBAcFBAQAAQJ3AAECAxEEBSExBhJBUQdhcRMiMoEIFEKRobHBCSMzUvAVYnLRChYk"
    "NOEl8RcYGRomJygpKjU2Nzg5OkNERUZHSElKU1RVVldYWVpjZGVmZ2hpanN0dXZ3eHl6goOEhYaHiImKkpOUlZaXmJmaoqOkpaanqKmqsrO0"
    "tba3uLm6wsPExcbHyMnK0tPU1dbX2Nna4uPk5ebn6Onq8vP09fb3+Pn6/9oADAMBAAIRAxEAPwDCTT7bH3KAP//Z"
)


class TestJpeg:
    def test_head(self):
        assert tf.io.is_jpeg(JPEG).numpy()
        assert not tf.io.is_jpeg(b"GIF8").numpy()
        assert tf.io.extract_jpeg_shape(JPEG).numpy().tolist() == [4, 5, 3]
        with pytest.raises(tf.errors.InvalidArgumentError, match="Invalid JPEG data"):
            tf.io.extract_jpeg_shape(b"\xff\xd8\xff\xe0")

    def test_without_pillow_the_error_names_it(self, monkeypatch):
        monkeypatch.setitem(sys.modules, "PIL", None)
        png = tf.io.encode_png(np.zeros([1, 1, 3], np.uint8))
        for data in (JPEG, png, MOVING, bmp_of(np.zeros([2, 3, 3], np.uint8))):
            with pytest.raises(tf.errors.UnimplementedError, match=r"pip install tapeflow\[image\]"):
                tf.io.decode_image(data)

    def test_the_accurate_transform(self):
        """TensorFlow's values with dct_method="INTEGER_ACCURATE"; its default, INTEGER_FAST, differs by up to 5."""
        pytest.importorskip("PIL")
        expected = [[3, 4, 7, 10, 13], [27, 29, 32, 35, 37], [60, 61, 64, 67, 70], [81, 83, 86, 89, 91]]
        np.testing.assert_array_equal(tf.io.decode_jpeg(JPEG).numpy()[..., 0], expected)
        assert tf.io.decode_image(JPEG, channels=1).shape == [4, 5, 1]
        assert tf.io.decode_jpeg(JPEG, ratio=2).shape == [2, 3, 3]
        np.testing.assert_array_equal(tf.io.decode_and_crop_jpeg(JPEG, [0, 1, 2, 3]), tf.io.decode_jpeg(JPEG)[0:2, 1:4])

    def test_round_trip(self):
        pytest.importorskip("PIL")
        y, x = np.mgrid[:32, :48]
        image = np.stack([4 * y, 4 * x, 2 * (x + y)], -1).astype(np.uint8)
        found = tf.io.decode_jpeg(tf.io.encode_jpeg(image, quality=100, chroma_downsampling=False))
        assert np.abs(found.numpy().astype(int) - image).max() <= 3
        rough = tf.image.adjust_jpeg_quality(image, 5)
        assert np.abs(rough.numpy().astype(int) - image).max() > 3
        assert tf.image.adjust_jpeg_quality(image / 255.0, 50).dtype == tf.float64
        assert tf.image.random_jpeg_quality(image, 10, 20, seed=1).shape == image.shape
        one, two = (tf.image.stateless_random_jpeg_quality(image, 10, 90, seed=[1, 2]) for _ in range(2))
        np.testing.assert_array_equal(one, two)

    def test_in_a_graph(self):
        pytest.importorskip("PIL")
        decode = tf.function(lambda data: tf.io.decode_jpeg(data, channels=3))
        np.testing.assert_array_equal(decode(tf.constant(JPEG)), tf.io.decode_jpeg(JPEG))

    def test_refusals(self):
        pytest.importorskip("PIL")
        for call, what in (
            (lambda: tf.io.decode_jpeg(JPEG[:100]), "Invalid JPEG data"),
            (lambda: tf.io.decode_jpeg(JPEG, channels=4), "JPEG does not support 4 channels"),
            (lambda: tf.io.decode_jpeg(JPEG, ratio=3), "ratio must be 1, 2, 4, or 8"),
            (lambda: tf.io.decode_and_crop_jpeg(JPEG, [0, 0, 9, 9]), "crop window"),
            (lambda: tf.io.encode_jpeg(np.zeros([2, 2, 2], np.uint8)), "image must have 1 or 3 channels"),
            (lambda: tf.io.encode_jpeg(np.zeros([2, 2, 3], np.uint8), quality=200), r"quality must be in \[0,100\]"),
        ):
            with pytest.raises(tf.errors.InvalidArgumentError, match=what):
                call()

    def test_qualities(self):
        for low, high, what in ((95, 75, "must be less than"), (-5, 75, "between 0 and 100")):
            with pytest.raises(ValueError, match=what):
                tf.image.random_jpeg_quality(np.zeros([2, 2, 3], np.uint8), low, high)


class TestSound:
    data = (
        b"RIFF0\0\0\0WAVEfmt \x10\0\0\0\x01\0\x02\0@\x1f\0\0\0}\0\0\x04\0\x10\0data\x0c\0\0\0"
        b"\0\0\xff\x7f\0\x80\0@\x01\0\xff\x7f"
    )

    def test_bytes(self):
        assert tf.audio.encode_wav([[0.0, 1.0], [-1.0, 0.5], [0.00002, 2.0]], 8000).numpy() == self.data

    def test_samples(self):
        audio, rate = tf.audio.decode_wav(self.data)
        np.testing.assert_array_equal(audio * 32768, [[0, 32767], [-32768, 16384], [1, 32767]])
        assert rate.numpy() == 8000
        unsigned = self.data.replace(b"@\x1f\0\0", b"\xff\xff\xff\xff", 1)
        assert tf.audio.decode_wav(unsigned).sample_rate.numpy() == -1
        assert (
            tf.audio.decode_wav(self.data, desired_channels=1).audio.numpy().tolist() == audio.numpy()[:, :1].tolist()
        )
        assert tf.audio.decode_wav(self.data, desired_channels=3).audio.shape == [3, 3]
        longer = tf.audio.decode_wav(self.data, desired_samples=5).audio.numpy()
        np.testing.assert_array_equal(longer[3:], np.zeros([2, 2]))
        assert tf.audio.decode_wav(self.data, desired_samples=2).audio.shape == [2, 2]

    def test_refusals(self):
        for call, what in (
            (lambda: tf.audio.decode_wav(b"abc"), "Data too short"),
            (lambda: tf.audio.decode_wav(b"RIFX" + self.data[4:]), "Header mismatch"),
            (lambda: tf.audio.decode_wav(self.data[:34] + b"\x08" + self.data[35:]), "Can only read 16-bit"),
            (lambda: tf.audio.encode_wav([1.0], 8000), "audio must be 2-dimensional"),
            (lambda: tf.audio.encode_wav([[1.0]], -1), "sample_rate must be in"),
        ):
            with pytest.raises(tf.errors.InvalidArgumentError, match=what):
                call()


def made_up_png(header, lines, palette=None):
    """A PNG file with right checksums, of a header and compressed lines."""

    def chunk(kind, body):
        return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))

    colors = chunk(b"PLTE", palette) if palette is not None else b""
    body = chunk(b"IHDR", struct.pack(">IIBBBBB", *header)) + colors + chunk(b"IDAT", zlib.compress(lines, 9))
    return b"\x89PNG\r\n\x1a\n" + body + chunk(b"IEND", b"")


@pytest.mark.parametrize(
    "data, what",
    [
        (made_up_png((1, 1, 8, 0, 0, 0, 0), bytes(1 << 24)), "bytes"),  # one pixel that inflates to megabytes
        (made_up_png((1 << 30, 1 << 30, 8, 0, 0, 0, 0), bytes(10)), "compressed bytes cannot be"),
        (made_up_png((4, 4, 8, 0, 0, 0, 0), bytes(7)), "bytes"),
        (made_up_png((0, 4, 8, 0, 0, 0, 0), b""), "pixels"),
        (made_up_png((1, 1, 16, 3, 0, 0, 0), bytes(3)), "does not exist"),
        (made_up_png((1, 1, 8, 3, 0, 0, 0), b"\0\5", b"rgb"), "palette"),
        (made_up_png((1, 1, 8, 3, 0, 0, 0), b"\0\0", b"rg"), "palette"),
    ],
)
def test_png_files_that_are_made_up(data, what):
    with pytest.raises(tf.errors.InvalidArgumentError, match=what):
        tf.io.decode_png(data)


def test_checksums_of_png_files():
    data = bytearray(tf.io.encode_png(tf.zeros([2, 2, 3], tf.uint8)).numpy())
    data[18] ^= 1  # the width
    with pytest.raises(tf.errors.InvalidArgumentError, match="checksum"):
        tf.io.decode_png(bytes(data))
