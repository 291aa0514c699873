"""The tape beyond values: what it keeps, when it lets go, where records come from, threads."""

import gc
import inspect
import threading
import weakref

import numpy as np
import pytest

import tapeflow as tf
from tapeflow._src import _core
from tapeflow._src.diagnostics.source_line import source_line


def kept_bytes(tape):
    return sum(record[3] for record in tape._records())


def live_bytes():
    gc.collect()
    return _core.memory_info()["current"]


@pytest.mark.parametrize(
    "function, kept",
    [
        (lambda x: x + 1.0, 0),  # a sum needs nothing
        (lambda x: -x, 0),
        (lambda x: tf.reduce_sum(x), 0),
        (lambda x: tf.reshape(x, [2, -1]), 0),
        (lambda x: tf.tanh(x), 4000),  # its result
        (lambda x: tf.sin(x), 4000),  # its argument
        (lambda x: x * 2.0, 4),  # the other factor only
        (lambda x: x * x, 8000),
    ],
)
def test_a_record_keeps_only_what_its_rule_needs(function, kept):
    x = tf.ones([1000])
    with tf.GradientTape() as tape:
        tape.watch(x)
        function(x)
    assert kept_bytes(tape) == kept


def test_operations_on_unwatched_tensors_are_not_recorded():
    x = tf.ones([3])
    with tf.GradientTape() as tape:
        tf.sin(x) * x
    assert tape._records() == []


def test_the_walk_back_lets_go_of_each_record():
    x = tf.Variable(tf.ones([100_000]))
    before = live_bytes()
    with tf.GradientTape() as tape:
        y = x
        for _ in range(50):
            y = tf.tanh(y)
        loss = tf.reduce_sum(y)
    del y
    held = live_bytes() - before
    assert held > 50 * 400_000
    _core.reset_memory_peak()
    gradient = tape.gradient(loss, x)
    # Cotangents take the place of what is let go: the peak stays near what was held.
    assert _core.memory_info()["peak"] - before < held + 6 * 400_000
    assert live_bytes() - before < 2 * 600_000
    del gradient


def test_deleting_a_persistent_tape_frees_it_at_once():
    x = tf.Variable(tf.ones([100_000]))
    before = live_bytes()
    with tf.GradientTape(persistent=True) as tape:
        y = tf.tanh(tf.tanh(tf.tanh(x)))
    tape.gradient(y, x)
    del y
    assert live_bytes() - before > 900_000
    reference = weakref.ref(tape)
    del tape
    assert reference() is None
    assert _core.memory_info()["current"] - before < 100_000


def test_no_growth_over_many_steps():
    w = tf.Variable([1.0, 2.0, 3.0, 4.0, 5.0])

    def steps(count):
        for _ in range(count):
            with tf.GradientTape() as tape:
                loss = tf.reduce_sum(w * w)
            w.assign_sub(1e-6 * tape.gradient(loss, w))

    steps(100)
    before = live_bytes()
    steps(100_000)
    assert live_bytes() == before


def test_records_know_their_line():
    x = tf.Variable(2.0)
    with tf.GradientTape() as tape:
        y = tf.sin(x)
        first = inspect.currentframe().f_lineno - 1
        z = (
            y
            * x
        )  # fmt: skip
    lines = [source_line(record[1], record[2]) for record in tape._records()]
    assert [file for file, _ in lines] == [__file__, __file__]
    assert lines[0][1] == first
    assert first + 2 <= lines[1][1] <= first + 4
    assert z is not None


def test_a_record_inside_a_composition_points_at_the_program():
    x = tf.Variable([1.0, 2.0])
    with tf.GradientTape() as tape:
        tf.linalg.norm(x)
        line = inspect.currentframe().f_lineno - 1
    assert {source_line(record[1], record[2]) for record in tape._records()} == {(__file__, line)}


def test_summary_and_repr():
    x = tf.Variable([1.0, 2.0])
    with tf.GradientTape() as tape:
        assert "recording" in repr(tape)
        tf.reduce_sum(x * x)
    summary = tape.summary()
    assert summary.startswith("2 records, 16 bytes kept")
    assert "test_gradient_tape.py" in summary
    tape.gradient(x, x)
    assert "used up" in repr(tape)


def test_tapes_belong_to_their_thread():
    x = tf.Variable(3.0)
    results = {}

    def work(power):
        with tf.GradientTape() as tape:
            y = x**power
        results[power] = float(tape.gradient(y, x))

    with tf.GradientTape() as outer:
        threads = [threading.Thread(target=work, args=(p,)) for p in (1.0, 2.0, 3.0, 4.0)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        y = x * 5.0
    assert results == {1.0: 1.0, 2.0: 6.0, 3.0: 27.0, 4.0: 108.0}
    assert float(outer.gradient(y, x)) == 5.0


@pytest.mark.parametrize("depth", [1, 2, 3, 4, 5, 6])
def test_nested_tapes_to_any_order(depth):
    """d^n/dx^n sin(x), with as many tapes open at once; beyond two, marks overflow into tables."""
    x = tf.constant(0.7, tf.float64)

    def derivative(order):
        if order == 0:
            return tf.sin(x)
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = derivative(order - 1)
        return tape.gradient(y, x)

    assert float(derivative(depth)) == pytest.approx(np.sin(0.7 + depth * np.pi / 2))


def test_many_tapes_alive_at_once():
    x = tf.Variable(2.0)
    tapes = []
    for i in range(300):
        with tf.GradientTape(persistent=True) as tape:
            y = x * float(i)
        tapes.append((tape, y))
    assert [float(tape.gradient(y, x)) for tape, y in tapes] == [float(i) for i in range(300)]


def test_a_failing_call_leaves_the_tape_usable():
    x = tf.Variable([1.0, 2.0])
    with tf.GradientTape() as tape:
        y = x * x
        with pytest.raises(tf.errors.InvalidArgumentError):
            x + tf.ones([3])
        z = tf.reduce_sum(y)
    np.testing.assert_array_equal(tape.gradient(z, x), [2.0, 4.0])


def test_an_error_in_a_rule_leaves_a_persistent_tape_usable():
    x = tf.Variable(2.0)

    @tf.custom_gradient
    def broken(v):
        def rule(dy):
            raise KeyError("in the rule")

        return v * 1.0, rule

    with tf.GradientTape(persistent=True) as tape:
        bad = broken(x)
        good = x * x
    with pytest.raises(KeyError, match="in the rule"):
        tape.gradient(bad, x)
    assert float(tape.gradient(good, x)) == 4.0


def test_variable_assigned_while_recorded_keeps_the_old_value_for_the_gradient():
    v = tf.Variable([2.0, 3.0])
    with tf.GradientTape() as tape:
        y = v * v
        v.assign([10.0, 10.0])
        v.assign_add([1.0, 1.0])
    np.testing.assert_array_equal(tape.gradient(y, v), [4.0, 6.0])
    np.testing.assert_array_equal(v, [11.0, 11.0])


def test_watched_variables_of_a_function_that_has_ended():
    def triple():
        return tf.Variable(2.0, name="inner") * 3.0

    with tf.GradientTape() as tape:
        y = triple()
    (inner,) = tape.watched_variables()
    assert inner.name == "inner:0"
    assert tape.gradient(y, inner).numpy() == 3.0


def test_watched_variables_in_order_of_creation():
    a, b, c = tf.Variable(1.0), tf.Variable(2.0), tf.Variable(3.0, trainable=False)
    with tf.GradientTape() as tape:
        b * a * c
    watched = tape.watched_variables()
    assert isinstance(watched, tuple)
    assert [v is w for v, w in zip(watched, (a, b), strict=True)] == [True, True]


def test_many_outputs_with_some_unused():
    x = tf.Variable(np.arange(6.0))
    with tf.GradientTape() as tape:
        a, _, c = tf.split(x, 3)
        y = tf.reduce_sum(a * 2.0) + tf.reduce_sum(c * 3.0)
    np.testing.assert_array_equal(tape.gradient(y, x), [2, 2, 0, 0, 3, 3])


def test_operation_without_outputs():
    x = tf.Variable(tf.zeros([0, 3]))
    with tf.GradientTape() as tape:
        assert tf.unstack(x) == []
        y = tf.reduce_sum(x)
    assert tape.gradient(y, x).shape == [0, 3]


def test_operation_with_very_many_inputs():
    x = tf.Variable(1.0)
    with tf.GradientTape() as tape:
        y = tf.add_n([x * 1.0 for _ in range(5000)])
    assert float(tape.gradient(y, x)) == 5000.0


@pytest.mark.parametrize("transposed", [False, True])
def test_a_weight_used_many_times(transposed):
    """Products are added straight into the weight's gradient; an outer tape sees the same values through operations."""
    random = np.random.default_rng(0)
    w = tf.Variable(random.normal(size=(4, 4)))
    xs = [tf.constant(random.normal(size=(3, 4))) for _ in range(3)]

    def loss():
        return tf.add_n([tf.reduce_sum(tf.matmul(x, w, transpose_b=transposed) ** 2) for x in xs])

    with tf.GradientTape() as tape:
        y = loss()
    alone = tape.gradient(y, w)
    with tf.GradientTape(), tf.GradientTape() as tape:
        y = loss()
        observed = tape.gradient(y, w)
    exact = sum(2 * (x.numpy().T @ x.numpy()) for x in xs) @ (w.numpy().T if transposed else w.numpy())
    np.testing.assert_allclose(alone, exact.T if transposed else exact, rtol=1e-12)
    np.testing.assert_allclose(observed, alone, rtol=1e-12)


def test_a_gradient_that_is_forbidden():
    x = tf.constant(2.0)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = tf.raw_ops.PreventGradient(input=x * x, message="no way")
    assert float(y) == 4.0
    with pytest.raises(LookupError, match=r"Gradient explicitly disabled\. Reason: b'no way'"):
        tape.gradient(y, x)


@pytest.mark.parametrize(
    "make", [tf.GradientTape, lambda: tf.autodiff.ForwardAccumulator(tf.constant(1.0), tf.constant(1.0))]
)
def test_an_open_tape_may_be_let_go_by_another_thread(make):
    x, kept = tf.constant(2.0), [make()]
    kept[0].__enter__()
    thread = threading.Thread(target=kept.clear)
    thread.start()
    thread.join()
    assert float(x * x) == 4.0


def test_values_of_several_tensors():
    values = tf.constant([1.0, 2.0, 3.0])
    ragged = tf.RaggedTensor.from_row_lengths(values, [2, 1])
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(ragged)
        y = tf.reduce_sum(ragged * ragged)
        doubled = ragged.with_flat_values(ragged.flat_values * 2.0)
    assert tape.gradient(y, ragged).to_list() == [[2.0, 4.0], [6.0]]
    np.testing.assert_array_equal(tape.gradient([doubled], values), [2.0, 2.0, 2.0])
    sparse = tf.SparseTensor([[0, 0], [1, 2]], values[:2], [3, 4])
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(sparse)
        y = tf.sparse.reduce_sum(sparse)
    np.testing.assert_array_equal(tape.gradient(y, sparse.values), [1.0, 1.0])
    with pytest.raises(ValueError, match="SparseTensor is not supported as a gradient source"):
        tape.gradient(y, sparse)


def test_a_type_that_says_which_of_its_tensors_take_part():
    class First:
        def get_gradient_components(self, value):
            return value.first

        def replace_gradient_components(self, value, components):
            return Pair(components, value.second)

    class Pair(tf.experimental.ExtensionType):
        first: tf.Tensor
        second: tf.Tensor

        __composite_gradient__ = First()

    pair = Pair(tf.constant(2.0), tf.constant(5))
    with tf.GradientTape() as tape:
        tape.watch(pair)
        y = pair.first * pair.first
    assert tape.gradient(y, pair).first.numpy() == 4.0


def test_ragged_tensors_are_sources_and_targets():
    x = tf.ragged.constant([[1.0, 2.0], [3.0]])
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(x)
        y = x * x
        z = tf.reduce_sum(y)
    assert tape.gradient(y, x).to_list() == [[2.0, 4.0], [6.0]]
    assert tape.gradient(z, [x, x.flat_values])[0].to_list() == [[2.0, 4.0], [6.0]]
    given = tf.ragged.constant([[1.0, 10.0], [100.0]])
    assert tape.gradient(y, x, output_gradients=given).to_list() == [[2.0, 40.0], [600.0]]
    assert tape.gradient(tf.constant(1.0), x) is None
    assert tape.gradient(tf.constant(1.0), x, unconnected_gradients="zero").to_list() == [[0.0, 0.0], [0.0]]


def test_watching_the_values_of_a_sparse_tensor():
    x = tf.SparseTensor([[0, 1]], [3.0], [2, 2])
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = tf.sparse.to_dense(x) ** 2
    assert tape.gradient(y, x.values).numpy().tolist() == [6.0]


def test_one_element_weighs_a_scalar():
    x = tf.constant(3.0)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = x * x
    gradient = tape.gradient(y, x, output_gradients=tf.constant([2.0]))
    assert gradient.shape == [] and gradient.numpy() == 12.0


def test_what_follows_stop_gradient_is_a_constant():
    @tf.custom_gradient
    def refuse(x):
        def rule(dy):
            raise AssertionError("the rule of a constant ran")

        return x, rule

    x = tf.constant(1.5)
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(x)
        stopped = tf.stop_gradient(x)
        y = tf.function(refuse)(stopped) * stopped
    assert tape.gradient(y, x) is None
    assert tape.gradient(y, stopped) is None


def test_batch_jacobian_says_which_shape_is_wrong():
    x = tf.ones([2, 3])
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(x)
        y, z = tf.reduce_sum(x, 1), x[:1]
    with pytest.raises(ValueError, match="must have rank at least 2"):
        tape.batch_jacobian(y, x)
    with pytest.raises(ValueError, match="Need first dimension of target shape"):
        tape.batch_jacobian(z, x)


def test_a_variable_may_use_the_tape_that_releases_it():
    others = [tf.Variable(float(i)) for i in range(100)]
    with tf.GradientTape(persistent=True) as tape:
        dying = tf.Variable(1.0)
        weakref.finalize(dying, lambda: [tape.watch(v) for v in others])
        _ = dying * 2.0
        del dying
        tape.reset()
        assert len(tape.watched_variables()) == 100


def test_a_variable_that_holds_its_tape_is_freed():
    variable = tf.Variable(1.0)
    with tf.GradientTape(persistent=True) as tape:
        _ = variable * 2.0
    variable.tape, gone = tape, weakref.ref(variable)
    del variable, tape, _
    gc.collect()
    assert gone() is None
