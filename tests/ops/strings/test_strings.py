"""What is special about strings: numbers in them, empty ones, fingerprints."""

import math

import pytest

import tapeflow as tf


@pytest.mark.parametrize(
    ("text", "expected"), [("0xF", 15.0), ("-0xff", -255.0), ("0x1.8", 1.5), (" 5", 5.0), ("-inf", -math.inf)]
)
def test_numbers_in_text(text, expected):
    assert tf.strings.to_number(text).numpy() == expected


@pytest.mark.parametrize(("text", "dtype"), [("1_000", tf.float32), ("1_000", tf.int32), ("0xF", tf.int32)])
def test_texts_that_are_no_numbers(text, dtype):
    with pytest.raises(tf.errors.InvalidArgumentError, match="could not correctly convert"):
        tf.strings.to_number(text, dtype)


def test_nothing_to_join_or_to_fingerprint():
    assert tf.strings.reduce_join(tf.zeros([0, 0], tf.string), 0).shape == [0]
    assert tf.strings.reduce_join(tf.zeros([0, 2], tf.string), 0).numpy().tolist() == [b"", b""]
    assert tf.fingerprint(tf.zeros([0])).shape == [0, 8]


def test_short_positions():
    assert tf.gather([1.0, 2.0, 3.0], tf.constant([2, 0], tf.int16)).numpy().tolist() == [3.0, 1.0]


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda x: tf.strings.substr(x, [5, 0], [1, 1]), "pos 5 out of range"),
        (lambda x: tf.strings.regex_full_match(x, "A["), "Invalid pattern"),
        (lambda x: tf.strings.regex_replace(x, "A[", "b"), "Invalid pattern"),
        (lambda x: tf.strings.unicode_transcode(x, "UTF-8", "UTF-8", errors="strict"), "Invalid formatting"),
        (lambda x: tf.strings.unicode_transcode(x, "none", "UTF-8"), "input encoding: none"),
        (lambda x: tf.strings.unicode_transcode(x, "latin1", "none"), "output encoding: none"),
    ],
)
def test_values_that_are_refused_are_errors_of_the_run(call, text):
    with pytest.raises(tf.errors.InvalidArgumentError, match=text):
        call(tf.constant([b"ab", b"\xff"]))
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        y = call(tf.constant([b"ab", b"\xff"]))
        assert y.shape == [2]
        with pytest.raises(tf.errors.InvalidArgumentError, match=text):
            session.run(y)


def test_values_of_ragged_texts_that_are_refused():
    with pytest.raises(tf.errors.InvalidArgumentError, match="Invalid pattern"):
        tf.function(lambda: tf.strings.regex_replace(tf.ragged.constant([["a"]]), "A[", "b"))()
