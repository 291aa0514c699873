"""Conversion: what stays Python stays exactly Python, and errors name the user's lines."""

import functools
import itertools
import traceback

import numpy as np
import pytest

import tapeflow as tf
from tapeflow._src.function.autograph.conversion import convert, user_traceback
from tests.function.autograph.staging import run_staged, staging

counter = 0


def same(function, *arguments):
    converted = convert(function)
    assert converted is not function and converted.__wrapped__ is function
    expected = function(*arguments)
    assert converted(*arguments) == expected
    return expected


def test_metadata_defaults_and_keywords():
    def f(x: int, /, y=2, *args, k=3, **more) -> tuple:
        """Text."""
        return x, y, args, k, more

    converted = convert(f)
    assert converted(1, 5, 6, k=7, z=8) == (1, 5, (6,), 7, {"z": 8})
    assert converted(1) == f(1)
    assert (converted.__name__, converted.__qualname__, converted.__doc__) == (f.__name__, f.__qualname__, "Text.")
    assert converted.__annotations__ == f.__annotations__ and converted.__globals__ is f.__globals__


def test_closure_cells_are_shared():
    total = 0

    def add(k):
        nonlocal total
        if k > 0:
            total += k
        return total

    assert convert(add)(3) == 3 and total == 3 and add(1) == 4


def test_globals_are_the_originals():
    def count():
        global counter
        while counter < 3:
            counter += 1
        return counter

    assert convert(count)() == 3 and counter == 3


def test_jumps_and_else_clauses():
    def f(n):
        found = []
        for i in range(n):
            for j in range(n):
                if j > i:
                    break
                if (i + j) % 2:
                    continue
                found.append((i, j))
            else:
                found.append("end")
            if i == 3:
                return found
        while n > 0:
            n -= 1
        else:
            found.append(n)
        return found

    for n in range(6):
        same(f, n)


def test_a_return_leaves_with_and_try_in_order():
    steps = []

    class Note:
        def __enter__(self):
            steps.append("enter")

        def __exit__(self, *error):
            steps.append("exit")

    def f(values):
        try:
            for value in values:
                with Note():
                    if value > 1:
                        return value
        except TypeError as error:
            return type(error)
        else:
            steps.append("else")
        finally:
            steps.append("finally")

    assert convert(f)([1, 2, 3]) == 2 and steps == ["enter", "exit", "enter", "exit", "finally"]
    assert convert(f)(None) is TypeError
    steps.clear()
    assert convert(f)([]) is None and steps == ["else", "finally"]


def test_the_iterator_is_asked_only_as_often_as_in_python():
    def first_above(values, limit):
        for value in values:
            if value > limit:
                break
        return value

    values = iter(range(10))
    assert convert(first_above)(values, 3) == 4 and next(values) == 5
    assert convert(first_above)(itertools.count(), 7) == 8


def test_unbound_variables_are_unbound():
    def f(x):
        if x:
            y = 1
        return y

    def g(x):
        y = 1
        if x:
            del y
        return "y" in locals()

    with pytest.raises(UnboundLocalError, match="y"):
        convert(f)(0)
    assert same(g, 1) is False and same(g, 0) is True


def test_lazy_operands():
    def f(x):
        return x is not None and x > 1, x or 5, None if x is None else 1 / x, 0 < (x or 1) < 3

    same(f, None), same(f, 2)


def test_match_walrus_star_f_string_comprehension():
    def f(values):
        out = []
        for value in values:
            match value:
                case [a, *rest]:
                    out.append(a + sum(rest))
                case {"k": found} if found > 1:
                    out.append(found)
                case str():
                    break
                case _:
                    continue
        while (n := len(out)) > 2:
            out.pop()
        first, *_ = out
        return out, n, [m := v for v in out], m, f"{first if first > 1 else 'small'}", max(*out, 0)

    same(f, [[1, 2, 3], 4, {"k": 5}, [7], "stop", [9]])


def test_private_names_and_super():
    class Base:
        def f(self, x):
            return x

    class Derived(Base):
        __private = 10

        def f(self, x):
            if x > 0:
                return super().f(x) + self.__private
            return super().f(x)

    assert convert(Derived().f)(1) == 11 and convert(Derived().f)(-1) == -1
    assert int(run_staged(Derived().f, tf.constant(1))) == 11


def test_locals_eval_and_recursion():
    def f(n):
        k = 3
        if n:
            return eval("n + k"), sorted(locals())
        return None

    def factorial(n):
        return 1 if n <= 1 else n * factorial(n - 1)

    same(f, 2)
    assert same(factorial, 5) == 120


def test_lambdas_are_found_by_their_place():
    functions = [lambda x: x if x > 0 else -x, lambda x: 2 * x if x > 0 else x]
    assert [convert(f) is f for f in functions] == [False, False]
    assert [int(run_staged(f, tf.constant(-3))) for f in functions] == [3, -3]
    assert int(run_staged(functools.reduce, lambda a, b: a if a > b else b, [tf.constant(1), tf.constant(2)])) == 2


def generator():
    yield 1


async def coroutine():
    return 1


@pytest.mark.parametrize(
    "function",
    [generator, coroutine, len, tf.reduce_mean, tf.sin, np.mean, functools.reduce, int, eval("lambda x: x")],
    ids=lambda function: getattr(function, "__name__", "function"),
)
def test_left_alone(function):
    assert convert(function) is function


def test_converted_once():
    def f(x):
        return x

    assert convert(convert(f)).__code__ is convert(f).__code__


def test_tracebacks_show_the_users_lines():
    def f(x):
        for i in range(3):
            if i == 1:
                x = x / (x - x)
        return x

    start = f.__code__.co_firstlineno
    with pytest.raises(ZeroDivisionError) as caught:
        convert(f)(1)
    frames = traceback.extract_tb(user_traceback(caught.value.__traceback__))[1:]
    assert [frame.lineno - start for frame in frames] == [1, 2, 3]
    assert {frame.filename for frame in frames} == {__file__} and {frame.name for frame in frames} == {"f"}
    assert frames[2].line == "x = x / (x - x)"


def test_gradient_through_a_branch():
    def f(x):
        if x > 0:
            y = x * x
        else:
            y = x
        return y

    x = tf.constant(2.0)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = run_staged(f, x)
    assert float(tape.gradient(y, x)) == 4.0


def test_do_not_convert_and_calls_of_every_kind():
    def choose(x):
        return x if x > 0 else -x

    class Callable:
        def __call__(self, x):
            return choose(x)

        def method(self, x):
            return choose(x)

    def f(x):
        partial = functools.partial(lambda y, z: choose(y) + z, z=1)
        return choose(x), Callable()(x), Callable().method(x), partial(x), tf.map_fn(choose, tf.stack([x]))

    def g(x):
        return tf.autograph.experimental.do_not_convert(choose)(x)

    with staging() as calls:
        assert [float(tf.reduce_sum(v)) for v in convert(f)(tf.constant(-2.0))] == [2, 2, 2, 3, 2]
        assert len(calls) == 5
        assert float(convert(g)(tf.constant(-2.0))) == 2 and len(calls) == 5


def test_public_face():
    def f(x):
        if x > 0:
            x = -x
        return x

    assert tf.autograph.to_graph(f)(2) == -2
    assert "ag__.if_(x > 0" in tf.autograph.to_code(f)
    with pytest.raises(ValueError, match="doesn't expose a __code__ object"):
        tf.autograph.to_code(len)
    with pytest.raises(ValueError, match="generators are not supported"):
        tf.autograph.to_code(generator)
    feature = tf.autograph.experimental.Feature
    assert feature.LISTS not in feature.all_but(feature.LISTS)


def test_nonlocal_tensors_of_nested_functions():
    @tf.function
    def function(x):
        y = x

        def double():
            nonlocal y
            if y > 0:
                y = y * 2

        double()
        return y

    assert [function(tf.constant(3)).numpy(), function(tf.constant(-3)).numpy()] == [6, -3]


def test_a_loop_that_changes_variables_only():
    v = tf.Variable(1.0)

    @tf.function
    def grow(limit):
        while v < limit:
            v.assign_add(1.0)
        return v.read_value()

    assert float(grow(tf.constant(5.0))) == float(v) == 5.0
    assert float(grow(tf.constant(0.0))) == 5.0
