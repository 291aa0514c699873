"""Promotions of dtypes, weak ones among them."""

import itertools

import numpy as np
import pytest

import tapeflow as tf
from tapeflow._src.numpy.weak_types import PromoMode, kind_of, promote, promotion_table, result_type, state

SAFE, ALL = PromoMode.SAFE, PromoMode.ALL


@pytest.mark.parametrize(
    ("a", "b", "wanted", "mode"),
    [
        ((tf.bool, False), (tf.int8, False), (tf.int8, False), SAFE),
        ((tf.uint8, False), (tf.int8, False), (tf.int16, False), ALL),
        ((tf.uint32, False), (tf.int64, False), (tf.int64, False), SAFE),
        ((tf.uint64, False), (tf.int64, False), (tf.float64, True), ALL),
        ((tf.int8, False), (tf.float16, False), (tf.float16, False), SAFE),
        ((tf.int32, False), (tf.float32, False), (tf.float32, False), ALL),
        ((tf.int32, False), (tf.float64, False), (tf.float64, False), SAFE),
        ((tf.bfloat16, False), (tf.float16, False), (tf.float32, False), ALL),
        ((tf.float64, False), (tf.complex64, False), (tf.complex128, False), ALL),
        ((tf.int32, True), (tf.uint8, False), (tf.uint8, False), SAFE),
        ((tf.float32, True), (tf.int16, False), (tf.float64, True), ALL),
        ((tf.float64, True), (tf.int16, False), (tf.float64, True), SAFE),
        ((tf.float64, True), (tf.float16, False), (tf.float16, False), SAFE),
        ((tf.complex128, True), (tf.float32, False), (tf.complex64, False), ALL),
        ((tf.int32, True), (tf.float32, True), (tf.float32, True), SAFE),
    ],
)
def test_pairs(a, b, wanted, mode):
    assert promote(a, b) == promote(b, a) == (wanted, mode)


def test_every_pair_has_a_result_in_both_orders():
    table = promotion_table()
    for a, b in itertools.product(table, table):
        assert table[a][b] == table[b][a]
    assert all(table[a][a] == (a, SAFE) for a in table)


def test_kinds_of_values():
    assert kind_of(1) == (tf.int32, True)
    assert kind_of(1.0) == (tf.float32, True)
    assert kind_of(1j) == (tf.complex128, True)
    assert kind_of(True) == (tf.bool, False)
    assert kind_of(np.float64(1.0)) == (tf.float64, False)
    assert kind_of(tf.constant([1])) == (tf.int32, False)
    with pytest.raises(OverflowError):
        kind_of(2**40)
    with pytest.raises(NotImplementedError):
        kind_of(object())
    assert result_type() == (tf.float32, True)
    assert result_type([1, 2.5], np.float16(1)) == (tf.float16, False)


def test_the_safe_mode_refuses(monkeypatch):
    monkeypatch.setattr(state, "mode", SAFE)
    assert result_type(tf.int32, 1) == (tf.int32, False)
    with pytest.raises(TypeError, match="implicit dtype promotion between"):
        result_type(tf.int32, tf.float32)
    with pytest.raises(NotImplementedError, match="Implicit Conversion"):
        result_type(tf.int32, tf.string)
