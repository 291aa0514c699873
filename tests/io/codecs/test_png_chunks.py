"""Chunks of PNG files beside the pixels: transparency, the end, and unknown ones. Values are TensorFlow's."""

import struct
import zlib

import pytest

import tapeflow as tf

SIGNATURE = b"\x89PNG\r\n\x1a\n"


def chunk(kind, body=b""):
    return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))


def head(color, bits=8):
    return SIGNATURE + chunk(b"IHDR", struct.pack(">IIBBBBB", 2, 1, bits, color, 0, 0, 0))


def data(*numbers):
    return chunk(b"IDAT", zlib.compress(bytes([0, *numbers])))


END = chunk(b"IEND")
PALETTE = head(3) + chunk(b"PLTE", bytes(range(6)))
FILES = {
    "palette": PALETTE + chunk(b"tRNS", b"\x07") + data(0, 1) + END,
    "too many opacities": PALETTE + chunk(b"tRNS", b"\x07\x08\x09") + data(0, 1) + END,
    "gray": head(0) + chunk(b"tRNS", b"\0\1") + data(0, 1) + END,
    "color": head(2) + chunk(b"tRNS", b"\0\1\0\2\0\3") + data(1, 2, 3, 4, 5, 6) + END,
    "16 bits": head(0, 16) + chunk(b"tRNS", b"\1\1") + data(1, 1, 1, 2) + END,
    "4 bits": head(0, 4) + chunk(b"tRNS", b"\0\3") + data(0x35) + END,
}


@pytest.mark.parametrize(
    ("name", "channels", "expected"),
    [
        ("palette", 0, [[[0, 1, 2, 7], [3, 4, 5, 255]]]),
        ("palette", 1, [[[0], [3]]]),
        ("palette", 3, [[[0, 1, 2], [3, 4, 5]]]),
        ("palette", 4, [[[0, 1, 2, 7], [3, 4, 5, 255]]]),
        ("too many opacities", 0, [[[0, 1, 2], [3, 4, 5]]]),
        ("gray", 0, [[[0], [1]]]),
        ("gray", 4, [[[0, 0, 0, 255], [1, 1, 1, 0]]]),
        ("color", 0, [[[1, 2, 3], [4, 5, 6]]]),
        ("color", 1, [[[1], [4]]]),
        ("color", 4, [[[1, 2, 3, 0], [4, 5, 6, 255]]]),
        ("16 bits", 4, [[[1, 1, 1, 0], [1, 1, 1, 255]]]),
        ("4 bits", 0, [[[51], [85]]]),
        ("4 bits", 4, [[[51, 51, 51, 0], [85, 85, 85, 255]]]),
    ],
)
def test_transparent_colors(name, channels, expected):
    assert tf.io.decode_png(FILES[name], channels).numpy().tolist() == expected


def test_transparent_colors_of_16_bits():
    found = tf.io.decode_png(FILES["16 bits"], 4, tf.uint16).numpy().tolist()
    assert found == [[[257, 257, 257, 0], [258, 258, 258, 65535]]]


@pytest.mark.parametrize(
    "content", [head(0) + data(0, 1), head(0) + chunk(b"ABCD") + data(0, 1) + END], ids=["no end", "unknown"]
)
def test_files_that_are_not_whole(content):
    with pytest.raises(tf.errors.InvalidArgumentError, match="Invalid PNG data"):
        tf.io.decode_png(content)


def test_what_may_be_passed_over():
    content = head(0) + chunk(b"abCD", b"anything") + data(0, 1) + END + b"behind the end"
    assert tf.io.decode_png(content).numpy().tolist() == [[[0], [1]]]
