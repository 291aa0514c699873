"""Text and bytes of tf.compat."""

from pathlib import Path

import pytest

import tapeflow as tf


def test_text_and_bytes():
    assert tf.compat.as_bytes("ä", "latin1") == b"\xe4"
    assert tf.compat.as_bytes(bytearray(b"a")) == b"a"
    assert tf.compat.as_text(b"a") == tf.compat.as_str("a") == "a"
    assert tf.compat.as_str_any(b"a") == "a"
    assert tf.compat.as_str_any(3) == "3"
    assert tf.compat.path_to_str(Path("a")) == "a"
    assert tf.compat.path_to_str(3) == 3


@pytest.mark.parametrize("convert", [tf.compat.as_bytes, tf.compat.as_text])
def test_other_values_are_refused(convert):
    with pytest.raises(TypeError, match="Expected binary or unicode string, got 3"):
        convert(3)


def test_classes_of_numbers():
    assert isinstance(3, tf.compat.integral_types)
    assert not isinstance(3.5, tf.compat.integral_types)
    assert isinstance(3.5, tf.compat.real_types)
    assert isinstance(3j, tf.compat.complex_types)
