"""Which conformance checks must pass now, which come later and why. `test_conformance.py` runs what this selects."""

import re

# area -> what it covers
AREAS = {
    "tape": "tf.GradientTape",
    "variables": "tf.Variable",
    "tensor": "tf.Tensor: conversion, indexing, operators, printing",
    "math_binary": "operations on two tensors",
    "seeds": "whole programs, compared by what they print",
}

LATER_AREAS = {
    "array",
    "complex",
    "control_flow",
    "custom_grad",
    "debug_nest",
    "forward",
    "function",
    "image",
    "keras_min",
    "linalg",
    "math_unary",
    "nn",
    "random",
    "reductions",
    "signal",
    "sparse_misc",
    "special",
    "v1_graph",
}

KINDS = {"fwd", "grad", "grad2", "case", "error", "stdout"}

LATER_KINDS = {"jvp": "ForwardAccumulator", "fn": "tf.function", "fngrad": "tf.function"}

# Pattern of check ids inside AREAS -> what they wait for.
LATER_IDS = {
    r"^seeds/doc2_example2::": "Keras",
    r"^tape/.*jacobian": "tape.jacobian, tape.batch_jacobian",
    r"^tape/newton_step_hessian::": "tape.jacobian",
    r"^tape/tape_in_function_returns_grads::": "tf.function",
    r"^variables/variable_created_twice_in_function::": "tf.function",
}


def in_scope(check: dict) -> bool:
    """Whether `check`, an entry of goldens/index.json, must pass."""
    later = any(re.search(pattern, check["id"]) for pattern in LATER_IDS)
    return check["area"] in AREAS and check["kind"] in KINDS and not later
