"""Every recorded case gives what TensorFlow gave: elements, specifications, cardinalities, errors."""

import json

import pytest

import tapeflow as tf
from tests.data.recorded_cases import VALUES, cases, outcome

CASES = cases(tf)
RECORDED = json.loads(VALUES.read_text())


def test_all_cases_are_recorded():
    assert list(CASES) == list(RECORDED)


@pytest.mark.parametrize("name", CASES)
def test_recorded(name):
    assert outcome(tf, CASES[name]) == RECORDED[name]
