"""Random programs give the same result as they are written, converted, and converted with staged tensors."""

import importlib.util
import random

import pytest

import tapeflow as tf
from tapeflow._src.function.autograph.conversion import convert
from tests.function.autograph.staging import run_staged


class Writer:
    """Writes a function of integer variables a, b, c with nested branches, loops and jumps."""

    def __init__(self, seed):
        self.random = random.Random(seed)
        self.loops = 0

    def expression(self):
        pick = self.random.choice
        return f"{pick('abc')} {pick('+-')} {pick('abc123')}"

    def test(self):
        pick = self.random.choice
        simple = f"{pick('abc')} {pick(['<', '>', '<=', '=='])} {pick('abc2')}"
        kind = self.random.random()
        if kind < 0.15:
            return f"{simple} and b < 7"
        if kind < 0.3:
            return f"not {simple} or a > 5"
        return f"-9 < {pick('abc')} < 4" if kind < 0.4 else simple

    def block(self, depth, in_loop, indent):
        lines = []
        for _ in range(self.random.randint(1, 3)):
            lines += self.statement(depth, in_loop, indent)
        return lines

    def statement(self, depth, in_loop, indent):
        space = "    " * indent
        kind = self.random.random()
        if depth == 0 or kind < 0.35:
            if in_loop and self.random.random() < 0.25:
                return [space + self.random.choice(["break", "continue"])]
            if self.random.random() < 0.12:
                return [f"{space}return a + 10 * b"]
            return [f"{space}{self.random.choice('abc')} = {self.expression()}"]
        if kind < 0.65:
            lines = [f"{space}if {self.test()}:", *self.block(depth - 1, in_loop, indent + 1)]
            if self.random.random() < 0.6:
                lines += [f"{space}else:", *self.block(depth - 1, in_loop, indent + 1)]
            return lines
        self.loops += 1
        counter = f"n{self.loops}"
        if kind < 0.85:
            head = [f"{space}for {counter} in RANGE({self.random.randint(0, 4)}):"]
            lines = [*head, *self.block(depth - 1, True, indent + 1)]
        else:
            inside = "    " * (indent + 1)
            lines = [f"{space}{counter} = ZERO", f"{space}while {counter} < 3 and ({self.test()}):"]
            lines += [f"{inside}{counter} += 1", *self.block(depth - 1, True, indent + 1)]
        if self.random.random() < 0.3:
            lines += [f"{space}else:", *self.block(depth - 1, in_loop, indent + 1)]
        return lines

    def function(self):
        return "\n".join(["def program(a, b, c):", *self.block(3, False, 1), "    return a + 10 * b + 100 * c", ""])


def load(path, source, **values):
    path.write_text(source)
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    vars(module).update(values)
    spec.loader.exec_module(module)
    return module.program


ARGUMENTS = [(0, 0, 0), (1, -2, 3), (5, 2, -4)]


@pytest.mark.parametrize("seed", range(60))
def test_random_programs(seed, tmp_path):
    source = Writer(seed).function()
    program = load(tmp_path / f"program_{seed}.py", source, RANGE=range, ZERO=0)
    converted = convert(program)
    assert converted is not program
    expected = [program(*arguments) for arguments in ARGUMENTS]
    assert [converted(*arguments) for arguments in ARGUMENTS] == expected, source
    staged = load(tmp_path / f"staged_{seed}.py", source, RANGE=tf.range, ZERO=tf.constant(0))
    results = [run_staged(staged, *map(tf.constant, arguments)) for arguments in ARGUMENTS]
    assert [int(result) for result in results] == expected, source


def test_methods_of_a_class_inside_a_function():
    def program(x):
        class Total:
            def __init__(self, value):
                self.value = value

            def add(self, other):
                if other > 0:
                    self.value = self.value + other
                return self

        class Doubled(Total):
            def add(self, other):
                super().add(other)
                self.value = self.value * 2 if other > 0 else self.value
                return self

        return Doubled(x).add(x).value

    assert int(tf.function(program)(tf.constant(3))) == program(3) == 12
    assert int(tf.function(program)(tf.constant(-3))) == program(-3) == -3


def test_returns_inside_of_try_and_with():
    def tried(x):
        try:
            if x > 0:
                return x
            else:
                return -x
        finally:
            pass

    def scoped(x):
        with tf.name_scope("inner"):
            if x > 0:
                return x
            return -x

    def caught(x):
        try:
            return x.nothing
        except AttributeError:
            if x > 0:
                return x
            return -x

    for program in (tried, scoped, caught):
        assert [int(tf.function(program)(tf.constant(x))) for x in (-3, 2)] == [3, 2]


def test_returns_that_python_conditions_leave_out():
    def in_a_branch(x, wanted):
        if x > 0.0:
            for j in range(2):
                if j == wanted:
                    return x
            x = x + 1.0
        return x * 2.0

    def in_a_loop(x, wanted):
        for _ in tf.range(2):
            for j in range(wanted):
                return x + j
            x = x + 1.0
        return -x

    def at_the_end(x, wanted):  # noqa: RET503
        if x > 0.0:
            for _ in range(wanted):
                return x
        x + 1.0

    for program, wanted in ((in_a_branch, 5), (in_a_branch, 1), (in_a_loop, 0), (in_a_loop, 1)):
        for x in (1.0, -1.0):
            assert float(tf.function(program)(tf.constant(x), wanted)) == program(x, wanted)
    assert tf.function(at_the_end)(tf.constant(1.0), 0) is None
    with pytest.raises(ValueError, match=r"branch must also have a return statement"):
        tf.function(at_the_end)(tf.constant(1.0), 1)


def test_lists_that_one_branch_changes_and_the_other_replaces():
    def elements(x):
        values = [x, x]
        if x > 0.0:
            values[0] = x * 2.0
        else:
            values = [x * 3.0, x * 4.0]
        for i in tf.range(2):
            if i > 0:
                values[1] = values[0] + 1.0
            else:
                values = [values[1], values[0]]
        return values

    def keys(x):
        values = {"a": x}
        if x > 0.0:
            values["a"] = x * 2.0
        else:
            values = {"a": x * 3.0}
        return values["a"], x

    for program in (elements, keys):
        for x in (1.0, -1.0):
            expected = [float(y) for y in program(tf.constant(x))]
            assert [float(y) for y in tf.function(program)(tf.constant(x))] == expected


def test_while_tests_that_bind_names():
    def counting(n):
        i = 0
        while (i := i + 1) < n:
            pass
        return i, n

    def jumping(n):
        i = total = 0
        while (j := i * 2) < n:
            i += 1
            if i == 2:
                continue
            if i > 3:
                break
            total += j
        return i, 10 * total + j

    def nested(n):
        i = 0
        while (i := i + 1) < n:
            k = 0
            while (k := k + 1) < i:
                n = n - 1
        return i, n

    def returning(n):
        i = 0
        while (i := i + 1) < n:
            if i > 2:
                return i * 100, n
        return i, n

    for program in (counting, jumping, nested, returning):
        for n in (0, 3, 9):
            expected = program(n)
            assert tuple(convert(program)(n)) == expected
            assert tuple(int(x) for x in tf.function(program)(tf.constant(n))) == expected


def test_returns_that_numbers_of_later_rounds_reach():
    def program(n):
        i = 0
        while i < n:
            i += 1
            if i > 2:
                return i * 100
        return i

    assert [int(tf.function(program)(tf.constant(n))) for n in (0, 2, 9)] == [0, 2, 300]
