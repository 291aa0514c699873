"""Encodings of texts."""

import pytest

import tapeflow as tf


@pytest.mark.parametrize("encoding", ["UTF-16", "UTF-32"])
def test_texts_without_a_mark_begin_with_the_high_byte(encoding):
    text = "ab\u20ac\U00010437"
    kind = encoding.lower()
    for given in (text.encode(f"{kind}-be"), text.encode(kind)):
        assert tf.strings.unicode_transcode(given, encoding, "UTF-8").numpy().decode() == text
        assert tf.strings.unicode_decode(given, encoding).numpy().tolist() == [ord(c) for c in text]


def test_refused_arguments():
    with pytest.raises(ValueError, match="replacement_char out of unicode codepoint range"):
        tf.strings.unicode_decode("a", "UTF-8", replacement_char=0x110000)
    with pytest.raises(ValueError, match='not in: "strict", "replace", "ignore"'):
        tf.strings.unicode_transcode("a", "UTF-8", "UTF-8", errors="some")
