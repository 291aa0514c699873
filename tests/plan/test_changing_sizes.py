"""Inputs whose sizes change: for which sizes plans are made and kept.

A call with a plan finds its memory there; one without allocates its intermediate values.
"""

import tapeflow as tf

COLUMNS = 64


def program():
    """A function of `[?, 64]` with intermediate values and a small result."""
    w = tf.ones([COLUMNS, COLUMNS])
    return tf.function(
        lambda x: tf.reduce_sum(tf.tanh(x @ w) @ w), input_signature=[tf.TensorSpec([None, COLUMNS], tf.float32)]
    )


def planned(function, sizes):
    """Those of `sizes` that `function` has a plan for."""
    found = []
    for size in sizes:
        x = tf.ones([size, COLUMNS])
        tf.config.experimental.reset_memory_stats("CPU:0")
        before = tf.config.experimental.get_memory_info("CPU:0")["current"]
        float(function(x))
        if tf.config.experimental.get_memory_info("CPU:0")["peak"] - before < 4 * size * COLUMNS:
            found.append(size)
    return found


def run(function, sizes, times):
    for _ in range(times):
        for size in sizes:
            function(tf.ones([size, COLUMNS]))


def test_sizes_that_come_again_have_plans():
    function, sizes = program(), range(100, 112)
    run(function, sizes, 3)
    assert planned(function, sizes) == list(sizes)


def test_plans_in_use_do_not_give_way_to_each_other():
    function, sizes = program(), range(100, 140)
    run(function, sizes, 10)
    kept = planned(function, sizes)
    assert len(kept) == 16
    run(function, sizes, 5)
    assert planned(function, sizes) == kept


def test_a_plan_that_was_not_used_for_long_gives_way():
    function, sizes = program(), range(100, 116)
    run(function, sizes, 3)
    assert planned(function, sizes) == list(sizes)
    others = range(200, 208)
    run(function, others, 80)
    assert planned(function, others) == list(others)


def test_few_plans_are_kept_that_hold_much_memory():
    function, sizes = program(), range(3000, 3012)
    run(function, sizes, 4)
    assert len(planned(function, sizes)) == 8
