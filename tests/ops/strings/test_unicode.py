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
    with pytest.raises(tf.errors.InvalidArgumentError, match="replacement_char out of unicode codepoint range"):
        tf.strings.unicode_decode("a", "UTF-8", replacement_char=0x110000)
    with pytest.raises(ValueError, match='not in: "strict", "replace", "ignore"'):
        tf.strings.unicode_transcode("a", "UTF-8", "UTF-8", errors="some")


def test_offsets_are_bytes_of_the_input():
    decode, split = tf.strings.unicode_decode_with_offsets, tf.strings.unicode_split_with_offsets
    points, starts = decode(b"a\xffb\xe2\x82c", "UTF-8")
    assert points.numpy().tolist() == [97, 0xFFFD, 98, 0xFFFD, 99]
    assert starts.numpy().tolist() == [0, 1, 2, 3, 5]
    parts, starts = split(b"a\xffb\xe2\x82c", "UTF-8", errors="ignore")
    assert parts.numpy().tolist() == [b"a", b"b", b"c"]
    assert starts.numpy().tolist() == [0, 2, 5]
    assert decode(b"\x00a\xd8\x01", "UTF-16-BE")[1].numpy().tolist() == [0, 2]


def test_only_malformed_text_and_c0_characters_are_replaced():
    found = tf.strings.unicode_decode("\ufffdx".encode(), "UTF-8", replacement_char=65)
    assert found.numpy().tolist() == [0xFFFD, 120]
    given = b"a\tb\n\x01\x7f\xc2\x80"
    found = tf.strings.unicode_decode(given, "UTF-8", replace_control_characters=True)
    assert found.numpy().tolist() == [97, 0xFFFD, 98, 0xFFFD, 0xFFFD, 127, 128]
    found = tf.strings.unicode_decode(b"a\tb", "UTF-8", "ignore", replace_control_characters=True)
    assert found.numpy().tolist() == [97, 98]


def test_ragged_texts_of_sessions_and_v1_split():
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        value = session.run(tf.ragged.constant([["a b", "c"], []]))
    assert tf.strings.split(value).to_list() == [[[b"a", b"b"], [b"c"]], []]
    assert tf.strings.unicode_decode(value, "UTF-8").to_list() == [[[97, 32, 98], [99]], []]
    ragged = tf.ragged.constant([["a b", "c"], []])
    assert tf.compat.v1.strings.split(ragged, result_type="RaggedTensor").to_list() == [[[b"a", b"b"], [b"c"]], []]
