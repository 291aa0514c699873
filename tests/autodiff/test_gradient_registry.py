"""Gradients registered by name, and the blocks that ask for them."""

import pytest

import tapeflow as tf
from tapeflow.autodiff.gradient_registry import gradient_overrides, overriding_name, registered_gradient


def test_a_name_is_registered_once():
    @tf.RegisterGradient("RegisteredOnce")
    def halved(op, dy):
        return 0.5 * dy

    assert registered_gradient("RegisteredOnce") is halved
    with pytest.raises(KeyError, match="Registering two gradient with name 'RegisteredOnce'"):
        tf.RegisterGradient("RegisteredOnce")(halved)
    with pytest.raises(KeyError, match="Registering two gradient with name 'Sin'"):
        tf.RegisterGradient("Sin")(halved)
    with pytest.raises(TypeError, match="op_type must be a string"):
        tf.RegisterGradient(3)
    tf.no_gradient("RegisteredNone")
    assert registered_gradient("RegisteredNone") is None
    with pytest.raises(LookupError, match="no entry for: Nobody"):
        registered_gradient("Nobody")


def test_overrides_nest_and_end_with_their_block():
    with gradient_overrides({"Square": "A", "Sin": "S"}):
        with gradient_overrides({"Square": "B"}):
            assert (overriding_name("Square"), overriding_name("Sin")) == ("B", "S")
        assert overriding_name("Square") == "A"
    assert overriding_name("Square") is None
    for wrong in ({1: "a"}, "a"):
        with pytest.raises(TypeError, match="dictionary mapping strings to strings"), gradient_overrides(wrong):
            pass
