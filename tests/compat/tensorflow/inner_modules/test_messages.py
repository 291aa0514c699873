"""Enumerations and structures of inner message modules."""

import importlib

import pytest

import tapeflow as tf


@pytest.fixture(autouse=True)
def alias():
    tf.install_as_tensorflow()


def inner(path):
    return importlib.import_module(f"tensorflow.{path}")


def test_the_enumeration_of_dtypes():
    types = inner("core.framework.types_pb2")
    assert types.DataType.Name(types.DT_FLOAT) == "DT_FLOAT" and types.DataType.Value("DT_INT32") == types.DT_INT32
    assert types.DT_STRING in types.DataType.values()


def test_what_can_be_encoded():
    coder = inner("python.saved_model.nested_structure_coder")
    structure = [tf.TensorSpec([2], tf.int32), {"a": (1, None, tf.float32)}]
    assert coder.can_encode(structure)
    assert coder.decode_proto(coder.encode_structure(structure)) == structure
    assert not coder.can_encode([object()])
    with pytest.raises(coder.NotEncodableError):
        coder.encode_structure([object()])
