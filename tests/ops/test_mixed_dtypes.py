"""Kernels read several tensors as elements of one type: primitives refuse a tensor of another dtype among them."""

from __future__ import annotations

import numpy as np
import pytest

import tapeflow as tf
from tapeflow._src import primitives
from tests.ops import samples
from tests.ops.sample_makers import Maker

# They read each input by its own dtype.
MAY_DIFFER = {"StraightThrough", "DynamicPartition", "RandomIndexShuffle"}
PAIRS = [("float32", "float64"), ("float64", "float32"), ("int32", "int64"), ("float32", "int32")]


def _accepted(name, dtype, other):
    """Positions of tensors of `dtype`, among several, where `other` is taken as well."""
    for build in samples.builders(name):
        try:
            call = build(Maker(1, dtype))
            call.run(name)
        except (TypeError, ValueError, tf.errors.OpError):
            continue  # no such dtype here
        args = [tf.constant(a) if isinstance(a, np.ndarray) else a for a in call.args]
        equal = [i for i, a in enumerate(args) if tf.is_tensor(a) and a.dtype == dtype]
        for i in equal if len(equal) > 1 else []:
            mixed = [tf.cast(a, other) if k == i else a for k, a in enumerate(args)]
            try:
                getattr(primitives, name)(*mixed, **call.kwargs)
            except (TypeError, ValueError, tf.errors.OpError):
                continue
            yield i


@pytest.mark.parametrize("name", sorted(set(samples.facts_by_name) - MAY_DIFFER))
def test_a_primitive_refuses_tensors_of_two_dtypes(name):
    assert not [(dtype, other, i) for dtype, other in PAIRS for i in _accepted(name, dtype, other)]


@pytest.mark.parametrize(
    "call",
    [
        lambda x: tf.pad(x, [[1, 1]], constant_values=tf.constant(7.0, tf.float64)),
        lambda x: tf.linalg.diag(x, padding_value=tf.constant(7.0, tf.float64)),
        lambda x: tf.linalg.diag_part(tf.stack([x, x]), k=(0, 1), padding_value=tf.constant(7.0, tf.float64)),
        lambda x: tf.searchsorted(tf.constant([1.0, 2.0], tf.float64), x),
    ],
)
def test_a_dtype_that_does_not_fit_is_named(call):
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"was expected to be a (float|double) tensor but is a"):
        call(tf.ones([2]))
    with pytest.raises(TypeError, match="does not match type"):
        tf.function(call)(tf.ones([2]))
