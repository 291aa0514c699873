"""The planner's IR after each pass: a small function per pass that shows what it did."""

import os
import subprocess
import sys

import numpy as np
import pytest

import tapeflow as tf

PASSES = [
    "specialise", "scalar-replacement", "cse-and-views", "rematerialise", "chain-fusion", "elementwise-fusion",
    "recompute", "epilogue-fusion", "loop-fusion", "schedule", "memory", "emit",
]  # fmt: skip


def ir(function, *args, stage):
    return tf.function(function).experimental_get_compiler_ir(*args)(stage=f"after-{stage}")


def steps(text):
    """The lines of each step."""
    return ["".join(part) for part in text.split("step ")[1:]]


def normal(*shape):
    return tf.constant(np.random.default_rng(0).standard_normal(shape).astype(np.float32))


def test_every_stage_has_text_and_others_are_refused():
    function = tf.function(lambda x: tf.tanh(x) + 1.0)
    give = function.experimental_get_compiler_ir(tf.ones([3]))
    for name in PASSES:
        assert "outputs: %" in give(stage=f"after-{name}")
    assert give() == give(stage="hlo")
    assert give(stage="optimized_hlo") == give(stage="after-emit")
    for wrong in ("after-lowering", "memory", "after-", ""):
        with pytest.raises(ValueError, match=f"stage must be one of .*after-elementwise-fusion.*got '{wrong}'"):
            give(stage=wrong)


def test_planning_for_text_leaves_the_function_alone():
    v = tf.Variable([1.0, 2.0])
    function = tf.function(lambda x: v.assign_add(x))
    give = function.experimental_get_compiler_ir(tf.ones([2]))
    for name in PASSES:
        give(stage=f"after-{name}")
    np.testing.assert_array_equal(v, [1.0, 2.0])
    np.testing.assert_array_equal(function(tf.ones([2])), [2.0, 3.0])


def test_a_stage_needs_known_shapes():
    function = tf.function(lambda x: x + 1.0, input_signature=[tf.TensorSpec([None], tf.float32)])
    with pytest.raises(ValueError, match="shapes are known"):
        function.experimental_get_compiler_ir()(stage="after-specialise")
    assert "float32[5] = AddV2" in function.experimental_get_compiler_ir(tf.ones([5]))(stage="after-specialise")


# ---- specialise


def test_specialise_resolves_shapes():
    function = tf.function(
        lambda x: tf.reshape(x, [tf.shape(x)[0], -1]), input_signature=[tf.TensorSpec([None, None, 2], tf.float32)]
    )
    text = function.experimental_get_compiler_ir(tf.ones([3, 4, 2]))(stage="after-specialise")
    assert "float32[3,8] = Reshape(%0)" in text


def of_unknown_batch(loss, columns=4):
    """The IR of the gradient of `loss` for `[?, columns]`, once the batch is known."""
    v = tf.Variable(normal(columns, 3))

    def program(x):
        with tf.GradientTape() as tape:
            value = loss(x, v)
        return tape.gradient(value, v)

    function = tf.function(program, input_signature=[tf.TensorSpec([None, columns], tf.float32)])
    x = normal(6, columns)
    np.testing.assert_allclose(function(x), program(x), rtol=1e-4, atol=1e-5)
    return function.experimental_get_compiler_ir(x)(stage="after-schedule")


def gradient_penalty(x, v):
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = tf.nn.softmax(x @ v) * tf.reduce_mean(x)
    return tf.reduce_sum(tape.gradient(y, x) ** 2)


def second_derivative(x, v):
    with tf.GradientTape() as outer:
        outer.watch(x)
        with tf.GradientTape() as inner:
            inner.watch(x)
            y = tf.tanh(x @ v) / (1.0 + tf.reduce_sum(x * x, 1, keepdims=True))
        dx = inner.gradient(y, x)
    return tf.reduce_sum(outer.gradient(dx, x) ** 2)


def squared_jacobian(x, v):
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = tf.nn.softmax(x @ v)
    return tf.reduce_sum(tape.batch_jacobian(y, x) ** 2)


def mapped(x, v):
    def row(r):
        with tf.GradientTape() as tape:
            tape.watch(r)
            y = tf.reduce_sum(tf.tanh(tf.linalg.matvec(v, r, transpose_a=True)) / tf.reduce_sum(r * r))
        return tape.gradient(y, r)

    return tf.reduce_sum(tf.vectorized_map(row, x) ** 2)


def tangent(x, v):
    with tf.autodiff.ForwardAccumulator(x, tf.ones_like(x)) as accumulator:
        y = tf.nn.softmax(x @ v) / tf.reduce_sum(x * x)
    return tf.reduce_sum(accumulator.jvp(y) ** 2)


@pytest.mark.parametrize("loss", [gradient_penalty, second_derivative, squared_jacobian, mapped, tangent])
def test_specialise_resolves_derivatives_of_deferred_rules(loss):
    text = of_unknown_batch(loss)
    assert "MatMul" in text
    for node in ("Deferred", "JacobianRows", "Batched"):
        assert node not in text


def test_the_gradient_of_a_product_of_matrices_waits_for_no_shapes():
    function = tf.function(
        lambda x, w: tf.gradients(tf.matmul(x, w), [x, w]),
        input_signature=[tf.TensorSpec([None, 4], tf.float32), tf.TensorSpec([4, 3], tf.float32)],
    )
    assert "Deferred" not in function.experimental_get_compiler_ir()()


def test_specialise_makes_computed_parameters_inputs():
    text = ir(lambda x, i: x[i], normal(3, 4), tf.constant(1), stage="specialise")
    assert "float32[4] = Row(%0, %" in text and "GetItem" not in text


def test_specialise_finds_the_first_graph_break():
    def program(x):
        y = tf.tanh(x)
        y = tf.py_function(lambda t: t, [y], tf.float32)
        y.set_shape([3])
        return tf.sin(y)

    text = ir(program, tf.ones([3]), stage="specialise")
    before, rest = text.split("graph break:\n")
    inside, after = rest.split("end of graph break\n")
    assert "Tanh" in before and "EagerPyFunc" in inside and "Sin" in after
    assert ir(program, tf.ones([3]), stage="memory") == text


def test_specialise_keeps_a_large_constant_that_several_values_are_made_of():
    g, v, w = normal(300, 300), tf.Variable(tf.ones([300, 300])), tf.Variable(normal(300, 300))

    def update():
        v.assign(0.9 * v + 0.1 * tf.square(g))
        w.assign_sub(0.05 * g / (tf.sqrt(v) + 1e-7))

    assert "Square(const float32[300,300])" in ir(update, stage="specialise")
    expected = [np.float32(0.9) * v.numpy() + np.float32(0.1) * g.numpy() ** 2]
    expected.append(w.numpy() - np.float32(0.05) * g.numpy() / (np.sqrt(expected[0]) + np.float32(1e-7)))
    tf.function(update)()
    np.testing.assert_allclose([v.numpy(), w.numpy()], expected, rtol=1e-6)


@pytest.mark.parametrize(
    "program",
    [
        lambda g, x: x + tf.square(g),  # read once
        lambda g, x: (x + tf.square(g)) * (0.1 * g) @ tf.square(g),  # by a kernel too
        lambda g, x: (x + tf.square(g)) * g * tf.reduce_sum(tf.square(g)),
        lambda g, x: ((x + tf.square(g)) * g, tf.square(g)),  # an output
    ],
)
def test_specialise_folds_constants_that_are_not_worth_keeping(program):
    g, x = normal(300, 300), normal(300, 300)
    assert "Square(" not in ir(lambda x: program(g, x), x, stage="specialise")
    for compiled, eager in zip(
        tf.nest.flatten(tf.function(lambda x: program(g, x))(x)), tf.nest.flatten(program(g, x))
    ):
        np.testing.assert_allclose(compiled, eager, rtol=2e-4, atol=1e-2)


# ---- cse_and_views


def test_equal_nodes_are_merged_and_views_are_aliases():
    def program(x):
        rows = tf.reshape(x, [6, 2])
        return tf.sin(rows) + tf.sin(rows), x[1:]

    text = ir(program, normal(3, 4), stage="cse-and-views")
    assert text.count("Sin(") == 1
    assert "alias" in text and "float32[6,2] = %0\n" in text
    assert "float32[2,4] = %0 + 16 bytes" in text


def test_dead_nodes_products_with_ones_and_reads_after_assignments_go():
    v = tf.Variable([1.0, 2.0], name="v")

    def program(x):
        tf.exp(x)
        v.assign(x * 1.0)
        return v + tf.cos(v)

    text = ir(program, tf.ones([2]), stage="cse-and-views")
    assert "Exp" not in text and "Mul" not in text and "ReadVariableOp" not in text
    assert "Cos(%0)" in text and "stores: v = %0" in text


@pytest.mark.parametrize("dtype", [tf.float32, tf.float64])
def test_squares_are_products_and_first_powers_aliases(dtype):
    def program(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = tf.reduce_sum(x**2)
        return y, tape.gradient(y, x), x**1 / 1.0

    x = tf.cast(normal(5, 3), dtype)
    text = ir(program, x, stage="cse-and-views")
    assert "Pow" not in text and "RealDiv" not in text and text.count("Mul(") == 2
    for planned, eager in zip(tf.function(program)(x), program(x)):
        np.testing.assert_array_equal(planned, eager)


def test_the_gradient_of_a_slice_that_takes_everything_is_the_cotangent():
    def program(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = x[tf.newaxis, :, :, tf.newaxis][0, :, :, 0]
            loss = tf.reduce_sum(tf.sin(y))
        return tape.gradient(loss, x)

    assert "StridedSliceGrad" not in ir(program, normal(3, 4), stage="specialise")
    assert "StridedSliceGrad" in ir(lambda x: tf.gradients(tf.sin(x[::-1]), x), normal(3, 4), stage="specialise")


# ---- chain_fusion


def test_gradients_of_slices_become_one_sum():
    def program(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = tf.add_n([tf.reduce_sum(tf.sin(x[i])) for i in range(4)])
        return tape.gradient(y, x)

    x = normal(20, 40)
    assert "ScatterSum" not in ir(program, x, stage="cse-and-views")
    text = ir(program, x, stage="chain-fusion")
    assert text.count("ScatterSum(") == 1 and "StridedSliceGrad" not in text


def test_nested_concatenations_become_one():
    text = ir(lambda a, b: tf.concat([tf.concat([a, b], 0), a], 0), normal(20, 3), normal(10, 3), stage="chain-fusion")
    assert text.count("ConcatV2") == 1 and "ConcatV2(%0, %1, %0)" in text


# ---- elementwise_fusion


def test_elementwise_nodes_and_reductions_become_one_step():
    def program(x, b):
        y = tf.tanh(x + b) * x
        return y, tf.reduce_sum(y), tf.reduce_max(x)

    found = steps(ir(program, normal(200, 100), normal(100), stage="elementwise-fusion"))
    assert len(found) == 1 and "fusion of 20000 elements" in found[0]
    assert found[0].count("reduction") == 2 and "AddV2" in found[0]


def test_large_fusions_that_nothing_connects_stay_apart():
    def program(x, y):
        return tf.sin(x) * 2.0, tf.cos(y) + 1.0

    assert len(steps(ir(program, normal(2000), normal(2000), stage="elementwise-fusion"))) == 2
    assert len(steps(ir(program, normal(20), normal(20), stage="elementwise-fusion"))) == 1


# ---- recompute


def sunk(x, w):
    cheap = x * 2.0
    y = tf.matmul(tf.tanh(x), w)
    return y + cheap


def test_small_nodes_run_before_the_large_fusion_that_reads_them():
    """Were they after its first node, the large fusion would be two passes over memory."""

    def normalise(x):
        mean, variance = tf.nn.moments(x, [0], keepdims=True)
        return (x - mean) * tf.math.rsqrt(variance + 1e-5) + 1.0

    text = ir(normalise, normal(256, 32), stage="elementwise-fusion")
    large = [step for step in steps(text) if "Sub(" in step]
    assert len(large) == 1
    assert "Mul(" in large[0]


def test_leaky_relu_and_its_gradient_join_fusions():
    def program(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = tf.reduce_sum(tf.square(tf.nn.leaky_relu(x * 2.0, 0.3)))
        return tape.gradient(y, x)

    x = tf.constant([-2.0, -0.0, 0.0, 3.0, float("nan")])
    text = ir(program, x, stage="elementwise-fusion")
    assert "kernel" not in text
    np.testing.assert_array_equal(tf.function(program)(x), program(x))


def test_a_slice_that_is_no_view_goes_where_the_plan_places_it():
    text = ir(lambda x: tf.cos(x)[:, 1:3] @ tf.exp(x)[:2], normal(4, 4), stage="emit")
    assert "@buffer" in next(line for line in text.splitlines() if "StridedCopy(" in line)
    assert "StridedSlice(" not in text


def test_the_gradient_of_a_subtracted_row_negates_the_sum():
    def program(x, b):
        with tf.GradientTape() as tape:
            tape.watch(b)
            y = tf.reduce_sum(tf.square(x - b))
        return tape.gradient(y, b)

    text = ir(program, normal(64, 8), normal(8), stage="specialise")
    assert "float32[8] = Neg" in text
    assert "float32[64,8] = Neg" not in text


def test_a_value_that_a_later_fusion_reads_is_computed_there():
    x, w = normal(300, 300), normal(300, 300)
    before, after = (steps(ir(sunk, x, w, stage=stage)) for stage in ("elementwise-fusion", "recompute"))
    assert "Mul" in before[0] and "Tanh" in before[0]
    assert "Mul" not in after[0] and "Tanh" in after[0]
    assert "Mul" in after[2] and "AddV2" in after[2]
    np.testing.assert_array_equal(tf.function(sunk)(x, w), sunk(x, w))


def test_small_values_are_not_sunk():
    x, w = normal(30, 30), normal(30, 30)
    assert ir(sunk, x, w, stage="elementwise-fusion") == ir(sunk, x, w, stage="recompute")


# ---- epilogue_fusion


def test_bias_and_activation_follow_the_product():
    def program(x, w, b):
        return tf.nn.relu(tf.matmul(x, w) + b)

    args = normal(40, 30), normal(30, 20), normal(20)
    before, after = (steps(ir(program, *args, stage=stage)) for stage in ("recompute", "epilogue-fusion"))
    assert len(before) == 2 and len(after) == 1
    assert after[0].index("MatMul") < after[0].index("epilogue") < after[0].index("AddV2") < after[0].index("Relu")


def test_an_epilogue_of_a_product_beyond_the_caches():
    random = np.random.default_rng(0)
    x, w, b = (random.standard_normal(shape).astype(np.float32) for shape in ((3001, 24), (24, 701), (701,)))
    threads = tf.config.threading.get_intra_op_parallelism_threads()
    try:
        for count in (1, 2):
            tf.config.threading.set_intra_op_parallelism_threads(count)
            layer = tf.function(lambda *values: tf.nn.relu(tf.matmul(*values[:2]) + values[2]))
            np.testing.assert_allclose(layer(x, w, b), np.maximum(x @ w + b, 0), rtol=1e-4, atol=1e-5)
    finally:
        tf.config.threading.set_intra_op_parallelism_threads(threads)


def test_an_epilogue_has_no_reductions():
    def program(x, w):
        y = tf.sin(tf.matmul(x, w))
        return y, tf.reduce_sum(y)

    args = normal(200, 30), normal(30, 200)
    before, after = (steps(ir(program, *args, stage=stage)) for stage in ("recompute", "epilogue-fusion"))
    assert "reduction" in before[1]
    assert "epilogue" in after[0] and "kernel" in after[1] and "Sum" in after[1]


# ---- loop_fusion


def test_arithmetic_runs_in_one_loop():
    """On machines without compiled loops, which is every one with the least instruction set."""
    program = """
import tapeflow as tf
x = tf.ones([3000])
def ir(f, *args):
    return tf.function(f).experimental_get_compiler_ir(*args)(stage="after-loop-fusion")
text = ir(lambda a, b, c: tf.tanh(a * b + c), x, 2 * x, 3 * x)
assert "Mul(%0, %1) inlined" in text and "fused-loop" in text.split("AddV2")[1], text
assert "inlined" not in ir(lambda a: tf.sin(a) * a, x)
"""
    subprocess.run([sys.executable, "-c", program], check=True, env=os.environ | {"TAPEFLOW_ISA": "baseline"})


# ---- schedule


def test_independent_factorisations_run_in_lanes():
    before = tf.config.threading.get_intra_op_parallelism_threads()
    tf.config.threading.set_intra_op_parallelism_threads(2)
    try:
        text = ir(
            lambda a, b: (tf.linalg.qr(a)[0], tf.linalg.qr(b)[0]), normal(96, 96), normal(96, 96), stage="schedule"
        )
    finally:
        tf.config.threading.set_intra_op_parallelism_threads(before)
    assert "parallel region of 2 lanes" in text
    assert text.index("lane 0") < text.index("Qr") < text.index("lane 1") < text.rindex("Qr")


# ---- memory


def test_updates_are_written_in_place_and_buffers_are_shared():
    v = tf.Variable(normal(64, 64), name="v")

    def program(x):
        for _ in range(4):
            x = tf.matmul(tf.sin(x), x)
        v.assign_sub(0.1 * x)

    text = ir(program, normal(64, 64), stage="memory")
    assert "stores: v = " in text and "in place" in text
    buffers = {word for word in text.split() if word.startswith("@buffer")}
    assert 0 < len(buffers) < text.count("@buffer")


def test_an_output_keeps_the_old_value_of_a_variable():
    v = tf.Variable(normal(64), name="v")

    def program(x):
        old = v.read_value()
        v.assign(old + x)
        return old

    assert "in new memory" in ir(program, normal(64), stage="memory")


def test_an_assignment_and_an_update_of_rows_share_the_memory_of_the_variable():
    v = tf.Variable(normal(100, 8), name="v")
    rows = tf.constant([3, 5, 3])

    def decay(x):
        v.assign(v * 0.5)
        v.scatter_add(tf.IndexedSlices(x, rows))
        v.scatter_sub(tf.IndexedSlices(x * 2.0, rows[:3]))

    text = ir(decay, normal(3, 8), stage="memory")
    scaled = next(line for line in text.splitlines() if "Mul(%" in line and "[100,8]" in line)
    assert "@buffer" not in scaled and "v = %" in text and "in place" in text

    def once(x):
        v.assign(tf.tensor_scatter_nd_add(v * 0.5, rows[:, None], x))

    text = ir(once, normal(3, 8), stage="memory")
    assert "@buffer" in next(line for line in text.splitlines() if "Mul(%" in line and "[100,8]" in line)
