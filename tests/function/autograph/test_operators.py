"""Staged control flow: which operations it becomes, which variables it carries, and TensorFlow's words for mistakes."""

import pytest

import tapeflow as tf
from tapeflow._src.function.autograph import operators as operators
from tapeflow._src.function.autograph.conversion import convert
from tests.function.autograph.staging import run_staged, staging

X = tf.constant(3.0)
V = tf.constant([1.0, 2.0, 3.0])


class Box:
    def __init__(self):
        self.total = 0.0


def test_without_tracing_nothing_is_staged():
    assert not operators.staged(X) and not operators.staged(1)


def test_an_if_runs_both_branches_and_carries_what_is_live():
    seen = []

    def f(x):
        local = x
        if x > 0:
            local = local * 2
            seen.append("main")
            y = local
        else:
            seen.append("else")
            y = local - 1
        return y

    with staging() as calls:
        assert float(convert(f)(X)) == 6 and float(convert(f)(-X)) == -4
    assert calls == ["cond"] * 2 and seen == ["main", "else"] * 2


def test_a_temporary_of_one_branch_is_not_carried():
    def f(x):
        if x > 0:
            temporary = x * 2
            y = temporary + 1
        else:
            y = x
        return y

    assert float(run_staged(f, X)) == 7


def test_loops():
    def sums(values):
        total, weighted = 0.0, 0.0
        for i, (a, b) in enumerate(zip(values, values)):
            total += a * b
            weighted += tf.cast(i, tf.float32) * a
        return total, weighted, i

    def counted(n):
        total = 0
        for i in range(n, 10, 2):
            total += i
        return total

    with staging() as calls:
        assert [float(v) for v in convert(sums)(V)] == [14, 8, 2]
        assert int(convert(counted)(tf.constant(1))) == 25
    assert calls == ["while_loop"] * 2


def test_jumps_in_staged_loops():
    def first_above(values, limit):
        for value in values:
            if value > limit:
                return value
        return -1.0

    def skip(values):
        total = 0.0
        for value in values:
            if value == 2:
                continue
            total += value
            if total > 100:
                break
        else:
            total += 1000
        return total

    assert float(run_staged(first_above, V, tf.constant(1.5))) == 2
    assert float(run_staged(first_above, V, tf.constant(9.0))) == -1
    assert float(run_staged(skip, V)) == 1004


def test_python_loops_that_become_staged():
    def search(values):
        i = 0
        while True:
            if values[i] > 1.5:
                break
            i += 1
        return i

    def unrolled(values):
        for i in range(3):
            if values[i] > 1.5:
                return values[i]
        return 0.0

    assert int(run_staged(search, V)) == 1
    assert float(run_staged(unrolled, V)) == 2 and float(run_staged(unrolled, V * 0)) == 0


def test_attributes_elements_and_outer_variables_are_carried():
    def f(values):
        box, table, outer = Box(), {"k": 0.0}, tf.constant(0.0)

        def add(value):
            nonlocal outer
            outer = outer + value

        for value in values:
            box.total = box.total + value
            box.last = value
            table["k"] += value
            add(value)
        if values[0] > 5:
            box.total = box.total * 0
        return box.total, box.last, table["k"], outer

    assert [float(v) for v in run_staged(f, V)] == [6, 3, 6, 6]


def test_conditions():
    def f(x):
        return 1 < x < 5, x > 1 and x < 2, x > 5 or x < 4, not x > 1, x in [1.0, 3.0], 2.0 if x > 9 else 4.0

    assert [float(v) for v in run_staged(f, X)] == [1, 0, 1, 0, 1, 4]


def test_builtins():
    def f(v):
        return len(v), int(v[1]), float(v[2]), abs(-v[0]), max(v), min(v[0], v[1]), sum(v), any(v > 2), all(v > 2)

    assert [float(x) for x in run_staged(f, V)] == [3, 2, 3, 1, 3, 1, 6, 1, 0]
    assert run_staged(lambda v: sorted(v, key=lambda e: -e), V).numpy().tolist() == [3, 2, 1]


def test_print_stays_at_trace_time_unless_asked(capsys):
    def f(x):
        print("value", x)

    with staging():
        convert(f)(V)
        convert(f, ["BUILTIN_FUNCTIONS"])(V)
    text = capsys.readouterr()
    assert "tf.Tensor([1. 2. 3.]" in text.out and "value [1. 2. 3.]" in text.out


def test_assert():
    def f(x):
        assert x > 0, "must be positive"
        return x

    run_staged(f, X)
    with pytest.raises(tf.errors.InvalidArgumentError, match="must be positive"):
        run_staged(f, -X)
    with pytest.raises(AssertionError, match="must be positive"):
        convert(f)(-1)


def test_loop_options():
    def grow(x):
        y = tf.zeros([1])
        while x > 0:
            tf.autograph.experimental.set_loop_options(shape_invariants=[(y, tf.TensorShape([None]))])
            y = tf.concat([y, y], 0)
            x -= 1
        return y

    def limited():
        i = tf.constant(0)
        while i < 10:
            tf.autograph.experimental.set_loop_options(maximum_iterations=3)
            i += 1
        return i

    assert run_staged(grow, X).shape == [8]
    assert int(run_staged(limited)) == 3


def test_an_iterable_may_run_the_loop_itself():
    class Numbers:
        def __autograph_for__(self, state, step, go_on):
            for item in (1.0, 2.0, 3.0):
                state = step(state, item)
                if go_on is not None and not bool(go_on(state)):
                    break
            return state

    def f(numbers):
        total = tf.constant(0.0)
        for number in numbers:
            total += number
            if total > 2.5:
                break
        return total

    assert float(run_staged(f, Numbers())) == 3


# ---- mistakes, in TensorFlow's words


def only_main(x):
    if x > 0:
        y = x
    return y


def only_else(x):
    if x > 0:
        pass
    else:
        y = x
    return y


def return_in_one(x):  # noqa: RET503
    if x > 0:
        return x


def return_none(x):
    if x > 0:
        return x
    return None


def none_in_main(x):
    return None if x > 0 else x


def dtypes(x):
    if x > 0:
        y = 1
    else:
        y = 1.0
    return y


def structures(x):
    if x > 0:
        y = (1, 2)
    else:
        y = [1]
    return y


def vector_condition(x):
    if tf.stack([x, x]) > 0:
        x = -x
    return x


def float_condition(x):
    while x:
        x -= 1
    return x


def undefined_in_loop(x):
    while x > 0:
        x = x - y  # noqa: F821
        y = x
    return y


def loop_shape(x):
    y = tf.zeros([1])
    while x > 0:
        y = tf.concat([y, y], 0)
        x -= 1
    return y


def loop_dtype(x):
    y = x
    for _ in tf.range(3):
        y = tf.cast(y, tf.int32)
    return y


def loop_structure(x):
    y = (1,)
    while x > 0:
        y = (1, 2)
        x -= 1
    return y


def loop_none(x):
    y = x
    while x > 0:
        y = None
        x -= 1
    return y


def invariant(x):
    y = tf.zeros([1, 2])
    while x > 0:
        tf.autograph.experimental.set_loop_options(shape_invariants=[(y, tf.TensorShape([None, 3]))])
        x -= 1
        y = y + 1
    return y


@pytest.mark.parametrize(
    "function, error, words",
    [
        (only_main, ValueError, "'y' must also be initialized in the else branch"),
        (only_else, ValueError, "'y' must also be initialized in the main branch"),
        (return_in_one, ValueError, "the else branch must also have a return statement."),
        (return_none, ValueError, "'retval_' is None at the end of the else branch."),
        (none_in_main, ValueError, "'x > 0' is None at the end of the main branch."),
        (dtypes, TypeError, "'y' has dtype int32 in the main branch, but dtype float32 in the else branch"),
        (structures, TypeError, "'y' must have the same nested structure in the main and else branches"),
        (vector_condition, ValueError, "condition of if statement expected to be `tf.bool` scalar"),
        (float_condition, ValueError, "condition of while loop expected to be `tf.bool` scalar"),
        (undefined_in_loop, ValueError, "'y' must be defined before the loop"),
        (loop_shape, ValueError, "'y' has shape (1,) before the loop, but shape (2,) after one iteration."),
        (loop_dtype, TypeError, "'y' has dtype float32 before the loop, but dtype int32 after one iteration"),
        (loop_structure, TypeError, "'y' does not have the same nested structure after one iteration."),
        (loop_none, ValueError, "'y' is None at the end of the iteration."),
        (invariant, ValueError, "does not conform with the shape invariant (None, 3)."),
    ],
    ids=lambda value: getattr(value, "__name__", None),
)
def test_mistakes(function, error, words):
    with pytest.raises(error) as caught:
        run_staged(function, X)
    assert words in str(caught.value)


def first_doubled(n):
    for i in tf.range(n):
        y = i * 2
    return y


def last_row(x):
    y = None
    for row in x:
        y = row, row + 1
    return y


def last_element(dataset):
    for x in dataset:
        y = x
    return y


def counted_in_while(n):
    i = 0
    while i < n:
        y = i
        i += 1
    return y


@pytest.mark.parametrize(
    ("program", "enough", "none"),
    [
        (first_doubled, tf.constant(3), tf.constant(0)),
        (counted_in_while, tf.constant(3), tf.constant(0)),
        (tf.function(last_row, input_signature=[tf.TensorSpec([None])]), tf.ones([2]), tf.ones([0])),
        (last_element, tf.data.Dataset.range(3), tf.data.Dataset.range(0)),
    ],
)
def test_variables_of_a_loop_without_rounds(program, enough, none):
    function = program if hasattr(program, "get_concrete_function") else tf.function(program)
    function(enough)
    with pytest.raises(tf.errors.InvalidArgumentError, match="loop must iterate at least once to initialize y"):
        function(none)


def test_variables_of_a_loop_that_need_no_round():
    def last_count(n):
        for i in tf.range(n):
            _ = i
        return i

    def not_read(n):
        total = 0
        for i in tf.range(n):
            y = i
            total += y
        return total

    def returned(n):
        for i in tf.range(n):
            if i > 1:
                return i
        return -1

    for program, expected in ((last_count, [2, 0]), (not_read, [3, 0]), (returned, [2, -1])):
        assert [int(tf.function(program)(tf.constant(n))) for n in (3, 0)] == expected


def test_builtins_of_strings_and_ragged_tensors():
    assert [float(x) for x in tf.function(lambda x: (int(x), float(x)))(tf.constant("3"))] == [3.0, 3.0]
    assert int(tf.function(lambda x: len(x))(tf.ragged.constant([[1], [2, 3], []]))) == 3
