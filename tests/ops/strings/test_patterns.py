"""Regular expressions: RE2's syntax, linear time, errors of TensorFlow's class."""

import pytest

import tapeflow as tf


def test_patterns_match_in_linear_time():
    assert not tf.strings.regex_full_match(["a" * 5000], "(a|a)*b").numpy()[0]
    assert tf.strings.regex_replace("a" * 5000, "(a*)*$", "x").numpy() == b"x"


@pytest.mark.parametrize(
    ("text", "pattern", "rewrite", "expected"),
    [
        ("a1b2", r"(\w)(\d)", r"\2\1\0", b"1aa12bb2"),
        ("abc", "", "-", b"-a-b-c-"),
        ("éa", ".", "#", b"##"),
        ("a\nb", "a.b", "#", b"a\nb"),
        ("aa", "a", r"\\", b"\\\\"),
        ("½x", r"\pN", "n", b"nx"),
    ],
)
def test_replacements_are_those_of_tensorflow(text, pattern, rewrite, expected):
    assert tf.strings.regex_replace(text, pattern, rewrite).numpy() == expected
    assert tf.function(lambda x: tf.strings.regex_replace(x, pattern, rewrite))(tf.constant(text)).numpy() == expected


def test_bad_patterns_and_rewrites(capfd):
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"Invalid pattern: \(, error: missing \)"):
        tf.strings.regex_full_match(["a"], "(")
    with pytest.raises(tf.errors.InvalidArgumentError, match="groups 0 to 0"):
        tf.strings.regex_replace(["a"], "a", r"\5")
    with pytest.raises(tf.errors.InvalidArgumentError, match="groups 0 to 0"):
        tf.strings.regex_replace(["a"], "a", "\\")
    assert capfd.readouterr().err == ""


@pytest.mark.parametrize(
    ("call", "what"),
    [
        (lambda: tf.io.decode_raw(["ab"], tf.string), "is not in the list of allowed values"),
        (lambda: tf.io.decode_raw(["abc"], tf.int16), "has length 3 that is not a multiple of 2"),
        (lambda: tf.io.decode_raw(["ab", "abcd"], tf.int16), "element 1 has size 4 != 2"),
        (lambda: tf.io.decode_raw(["ab"], tf.float32, fixed_length=7), "must be a multiple of 4"),
    ],
)
def test_raw_bytes_that_do_not_fit(call, what):
    with pytest.raises(tf.errors.InvalidArgumentError, match=what):
        call()
