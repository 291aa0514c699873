"""The first infinity or NaN is found where it was made: eagerly, in functions, in gradients, in loops."""

import inspect
import threading

import numpy as np
import pytest

import tapeflow as tf


@pytest.fixture
def checked():
    tf.debugging.enable_check_numerics()
    yield
    tf.debugging.disable_check_numerics()


def line_of(function, text):
    lines, first = inspect.getsourcelines(function)
    return first + next(i for i, line in enumerate(lines) if text in line)


def refusal(call):
    with pytest.raises(tf.errors.InvalidArgumentError) as caught:
        call()
    return str(caught.value)


@pytest.mark.usefixtures("checked")
class TestRefusal:
    def test_says_what_and_where(self):
        def program():
            return tf.math.log(tf.constant([-1.0, 0.0, 1.0]))

        text = refusal(program)
        assert '!!! Detected Infinity or NaN in output 0 of eagerly-executing op "Log" (# of outputs: 1) !!!' in text
        assert "dtype: <dtype: 'float32'>" in text
        assert "shape: (3,)" in text
        assert "# of -Inf elements: 1" in text
        assert "# of +NaN elements: 1" in text
        assert "Tensor had -Inf and NaN values" in text
        assert f"(L{line_of(program, 'tf.math.log')}) program" in text
        assert "test_first_nan.py" in text

    def test_inputs_that_were_not_finite_already(self):
        x = tf.constant([1.0, np.nan])
        text = refusal(lambda: x + 1.0)
        assert "Its inputs were not finite already" in text
        assert "tf.Tensor(shape=(2,), dtype=float32); # of +NaN elements: 1" in text
        zero = tf.constant(0.0)
        text = refusal(lambda: 1.0 / zero)
        assert "were not finite" not in text

    @pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
    def test_every_floating_dtype(self, dtype):
        zero, one = tf.constant(0, dtype), tf.constant(1, dtype)
        assert "# of +Inf elements: 1" in refusal(lambda: one / zero)
        assert "# of -Inf elements: 1" in refusal(lambda: -one / zero)
        assert "# of +NaN elements: 1" in refusal(lambda: zero / zero)
        assert float(one / one) == 1.0

    def test_operations_that_hand_elements_on_are_not_refused(self):
        x = tf.constant([np.nan, 1.0])
        for handed in (tf.reshape(x, [2, 1]), tf.identity(x), tf.concat([x, x], 0), x[:1], tf.transpose(x)):
            assert np.isnan(handed.numpy()).any()

    def test_gradient_names_the_forward_operation_and_its_line(self):
        def program():
            x = tf.constant([0.0, 1.0])
            with tf.GradientTape() as tape:
                tape.watch(x)
                y = tf.sqrt(x)
            return tape.gradient(y, x)

        text = refusal(program)
        assert 'Run for the gradient of op "Sqrt"' in text
        assert f"(L{line_of(program, 'tf.sqrt')})" in text

    def test_function_names_the_traced_line(self):
        @tf.function
        def program(x):
            y = x + 1.0
            return tf.math.log(y) * 2.0

        assert program(tf.constant(1.0)) > 0
        text = refusal(lambda: program(tf.constant(-1.0)))
        assert 'graph op "Log"' in text
        assert f"(L{line_of(program.python_function, 'tf.math.log')}) program" in text

    def test_gradient_of_a_function_names_the_traced_line(self):
        @tf.function
        def root(x):
            return tf.sqrt(x)

        def program():
            x = tf.constant([0.0])
            with tf.GradientTape() as tape:
                tape.watch(x)
                y = root(x)
            return tape.gradient(y, x)

        text = refusal(program)
        assert "# of +Inf elements: 1" in text
        assert f"(L{line_of(root.python_function, 'tf.sqrt')})" in text

    def test_inside_a_while_loop_of_a_graph(self):
        @tf.function
        def program(x):
            for _ in tf.range(3):
                x = tf.math.log(x)
            return x

        assert 'graph op "Log"' in refusal(lambda: program(tf.constant(1.0)))

    def test_forward_mode(self):
        x = tf.constant(0.0)

        def program():
            with tf.autodiff.ForwardAccumulator(x, tf.constant(1.0)) as forward:
                y = tf.sqrt(x)
            return forward.jvp(y)

        assert "Detected Infinity or NaN" in refusal(program)

    def test_large_results_that_would_wait(self):
        assert "# of -Inf elements: 100000" in refusal(lambda: tf.math.log(tf.zeros([100000])))

    def test_a_refused_operation_leaves_the_tape_as_it_was(self):
        x = tf.constant(2.0)
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = x * x
            refusal(lambda: y / 0.0)
        assert float(tape.gradient(y, x)) == 4.0

    def test_while_tapes_do_not_record(self):
        with tf.GradientTape() as tape, tape.stop_recording():
            assert '"Log"' in refusal(lambda: tf.math.log(-1.0))

    def test_training_that_stays_finite_is_unchanged(self):
        w = tf.Variable([[1.0], [2.0]])

        @tf.function
        def step(x):
            with tf.GradientTape() as tape:
                loss = tf.reduce_mean(tf.square(x @ w))
            return tape.gradient(loss, w)

        x = tf.constant([[1.0, 2.0]])
        inside = step(x).numpy()
        tf.debugging.disable_check_numerics()
        np.testing.assert_array_equal(inside, step(x).numpy())


def test_only_the_thread_that_asked(checked):
    found = []
    thread = threading.Thread(target=lambda: found.append(tf.math.log(-1.0).numpy()))
    thread.start()
    thread.join()
    assert np.isnan(found[0])


def test_twice_on_and_once_off():
    tf.debugging.enable_check_numerics()
    tf.debugging.enable_check_numerics(stack_height_limit=0)
    assert "inferred user code" not in refusal(lambda: tf.math.log(-1.0))
    tf.debugging.disable_check_numerics()
    assert np.isnan(tf.math.log(-1.0).numpy())


def test_path_is_shortened():
    tf.debugging.enable_check_numerics(path_length_limit=8)
    try:
        assert "    + ..._nan.py (L" in refusal(lambda: tf.math.log(-1.0))
    finally:
        tf.debugging.disable_check_numerics()


class TestFirstNan:
    def test_finds_the_first_and_goes_on(self):
        def program():
            with tf.experimental.FirstNan() as search:
                a = tf.constant([1.0, -1.0])
                b = tf.sqrt(a)
                return search, b * 2.0

        search, result = program()
        assert np.isnan(result.numpy()).any()
        assert search.found.operation == "Sqrt"
        assert search.found.made_here
        assert search.found.line == (__file__, line_of(program, "tf.sqrt"))
        assert "tf.sqrt made NaN at" in str(search.found)
        assert "b = tf.sqrt(a)" in str(search.found)

    def test_finite_program(self):
        with tf.experimental.FirstNan() as search:
            tf.sqrt([1.0])
        assert search.found is None
        assert "all results were finite" in repr(search)

    def test_beside_the_refusal(self, checked):
        with tf.experimental.FirstNan() as search:
            tf.math.log(-1.0)
        assert search.found.operation == "Log"
        assert "Detected" in refusal(lambda: tf.math.log(-1.0))

    def test_the_outer_check_may_end_first(self):
        tf.debugging.enable_check_numerics()
        with tf.experimental.FirstNan() as search:
            tf.debugging.disable_check_numerics()
            tf.math.log(-1.0)
        assert search.found is not None
        assert np.isnan(tf.math.log(-1.0).numpy())

    def test_a_search_that_ends_on_another_thread_falls_silent(self):
        def elsewhere(search):
            search.__exit__()

        def program():
            search = tf.experimental.FirstNan()
            search.__enter__()
            thread = threading.Thread(target=elsewhere, args=(search,))
            thread.start()
            thread.join()
            tf.math.log(-1.0)
            found.append(search.found)

        found = []
        thread = threading.Thread(target=program)
        thread.start()
        thread.join()
        assert found == [None]


def test_constants_of_a_function_are_searched_too():
    tf.debugging.enable_check_numerics()
    try:
        function = tf.function(lambda x: tf.square(tf.math.log(x)) + 1.0)
        with pytest.raises(tf.errors.InvalidArgumentError, match='"Log"'):
            function(-1.0)
        assert function(1.0).numpy() == 1.0
    finally:
        tf.debugging.disable_check_numerics()


def test_several_findings_with_positions_and_remedies():
    x = tf.constant([[1.0, 4.0], [0.0, -1.0]])
    with tf.experimental.FirstNan() as search:
        logs = tf.math.log(x[:, 0])
        roots = tf.sqrt(x)
        _ = logs + roots[:, 0]
    first, second = search.findings
    assert (first.kind, first.operation, first.position, first.operands) == ("infinity", "Log", (1,), [0.0])
    assert (second.kind, second.operation, second.position, second.operands) == ("nan", "Sqrt", (1, 1), [-1.0])
    assert "tf.maximum" in first.remedy and "made NaN from -1 at position [1, 1]" in str(second)


def test_infinities_on_purpose_are_no_findings():
    mask = tf.constant([0.0, -np.inf])
    with tf.experimental.FirstNan() as search:
        weights = tf.nn.softmax(tf.constant([1.0, 2.0]) + mask)
    assert search.found is None and search.findings == []
    with tf.experimental.FirstNan() as search:
        weights = tf.nn.softmax(tf.constant([[-np.inf, -np.inf]]) + weights)
    assert [(o.kind, o.operation) for o in search.findings] == [("nan", "Softmax")]


def test_operands_of_a_gradient_are_those_of_the_operation_in_its_rule():
    x = tf.Variable([1.0, 0.5])
    with tf.debugging.Doctor() as doctor, tf.GradientTape() as tape:
        loss = tf.reduce_sum(tf.acos(x))
        tape.gradient(loss, x)
    (finding,) = doctor.findings
    assert finding.message.startswith(
        "the gradient of tf.acos makes infinity in tf.math.reciprocal of 0 at position [0]"
    )
    assert "inside (-1, 1)" in finding.remedy
