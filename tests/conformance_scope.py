"""Which conformance checks must pass now, which come later and why. `test_conformance.py` runs what this selects."""

import re

# area -> what it covers
AREAS = {
    "array": "shapes, joining, splitting, indexing, sorting, raw operations",
    "complex": "complex numbers",
    "control_flow": "branches, loops, maps and TensorArray",
    "custom_grad": "custom gradients, checkpointing, Python functions",
    "debug_nest": "assertions, nested structures",
    "forward": "tf.autodiff.ForwardAccumulator",
    "function": "tf.function",
    "image": "tf.image",
    "keras_min": "tf.keras: layers, losses, optimizers, a training step",
    "linalg": "tf.linalg, einsum",
    "math_binary": "operations on two tensors",
    "math_unary": "operations on one tensor",
    "nn": "tf.nn",
    "random": "random numbers, bit for bit",
    "reductions": "reductions, scans, segments",
    "seeds": "whole programs, compared by what they print",
    "signal": "tf.signal",
    "sparse_misc": "sparse and ragged tensors, sets, strings",
    "special": "special functions",
    "tape": "tf.GradientTape",
    "tensor": "tf.Tensor: conversion, indexing, operators, printing",
    "v1_graph": "graphs, sessions and optimizers of TensorFlow 1",
    "variables": "tf.Variable",
}

LATER_AREAS: set[str] = set()

KINDS = {"fwd", "grad", "grad2", "jvp", "case", "error", "stdout", "fn", "fngrad"}

LATER_KINDS: dict[str, str] = {}

# Pattern of check ids inside AREAS -> what they wait for.
LATER_IDS: dict[str, str] = {}

# Pattern of check ids whose recorded value is wrong by the mathematics -> how. Each has a row in docs/differences.md.
WRONG_IDS = {
    r"^complex/(multiply_no_nan|xlogy|xdivy|xlog1py)_.*::(grad|grad2|jvp)$": "the conjugate is missing",
    r"^complex/squared_difference_.*::(grad|grad2|jvp)$": "the imaginary part of dy acts on a real result",
    r"^reductions/reduce_prod_c128::grad2$": "the conjugate is missing in the running product",
    r"^array/dynamic_stitch_overlap::grad$": "a row that another one replaced gets the gradient of that one",
    r"^array/raw_block_lstm::grad$": "it disagrees with differences of TensorFlow's own function",
    r"^(nn/(batch_norm_moments|layer_norm_manual)|reductions/moments)::grad2$": "the mean of nn.moments does not move",
    r"^nn/isotonic_regression::(grad|fn)$": "the gradient has another shape than the input",
    r"^(array/scatter_nd|reductions/unsorted_segment_sum)::jvp$": "a dense tangent is given as IndexedSlices",
}


def in_scope(check: dict) -> bool:
    """Whether `check`, an entry of goldens/index.json, must pass."""
    excluded = any(re.search(pattern, check["id"]) for pattern in (*LATER_IDS, *WRONG_IDS))
    return check["area"] in AREAS and check["kind"] in KINDS and not excluded
