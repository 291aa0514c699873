"""Random programs: what `explain` says about None and the line agrees with the gradient and how they were built."""

import linecache
import random
from typing import NamedTuple

import pytest

# Operations of one and of two values that gradients pass, and operations that break them; each one line of a program.
ONE = [
    "tf.tanh({a})", "{a} * 2.0", "tf.reshape({a}, [3])", "tf.where(C > 0.0, {a}, C)", "tf.reverse({a}, [0])",
    "tf.cast(tf.cast({a}, tf.float64), tf.float32)", "helper({a})", "tf.sort({a})", "tf.nn.softmax({a})", "fn({a})",
    "tf.stack([{a}[0], {a}[1], {a}[2]])", "tf.sign({a}) * {a}",
]  # fmt: skip
TWO = [
    "{a} * {b}", "{a} + {b}", "tf.maximum({a}, {b})", "tf.concat([{a}[:1], {b}[1:]], 0)",
    "tf.where({a} > {b}, {a}, {b})", "{a} / (2.0 + {b} ** 2)", "tf.add_n([{a}, {b}])",
]  # fmt: skip
BREAKS = [
    "tf.round({a})", "tf.floor({a} * 3.0)", "tf.stop_gradient({a})", "tf.cast({a} > 0.3, tf.float32)",
    "tf.cast(tf.cast({a} * 5.0, tf.int32), tf.float32)", "tf.one_hot(tf.argmax({a}), 3)", "broken_helper({a})",
    "broken_fn({a})", "tf.constant({a}.numpy() * 1.5)", "tf.convert_to_tensor(np.tanh({a}))",
    "tf.numpy_function(lambda z: z * 2.0, [{a}], tf.float32)", "tf.cast(tf.argsort({a}), tf.float32)",
]  # fmt: skip
HEAD = """import numpy as np
import tapeflow as tf
def helper(t):
    return tf.square(t) - 0.1
def broken_helper(t):
    u = t + 1.0
    return tf.round(u) * 2.0
@tf.function(reduce_retracing=True)
def fn(t):
    return tf.tanh(t * 0.5)
@tf.function(reduce_retracing=True)
def broken_fn(t):
    s = t * 0.5
    return tf.floor(s * 4.0) + 1.0
C = tf.constant([0.3, -0.2, 0.9])
"""
INSIDE = {"broken_helper": 7, "broken_fn": 14}  # the lines of their breaks


class Built(NamedTuple):
    text: str
    variables: list[str]
    parents: dict[str, set[str]]
    line_of_break: dict[str, int]
    last: str


def build(seed):
    choose = random.Random(seed)
    lines = HEAD.splitlines()
    variables = [f"w{i}" for i in range(choose.randint(1, 3))]
    lines += [f"{w} = tf.Variable({[round(choose.uniform(-1.4, 1.4), 3) for _ in range(3)]})" for w in variables]
    lines.append(f"with tf.GradientTape(persistent={seed % 2 == 0}) as tape:")
    parents, breaks = {}, {}
    for number in range(choose.randint(2, 8)):
        pool = [*variables, *parents]
        a, b, kind = choose.choice(pool[-4:]), choose.choice(pool), choose.random()
        formula = choose.choice(ONE if kind < 0.35 else TWO if kind < 0.65 else BREAKS)
        name = f"x{number}"
        lines.append(f"    {name} = {formula.format(a=a, b=b)}")
        parents[name] = {a, b} if "{b}" in formula else {a}
        if kind >= 0.65:
            breaks[name] = INSIDE.get(formula.partition("(")[0], len(lines))
    lines.append(f"    loss = tf.reduce_sum({name})")
    return Built("\n".join(lines), variables, parents, breaks, name)


def reached(program, variable, through_breaks):
    values = {variable}
    for name, inputs in program.parents.items():
        if inputs & values and (through_breaks or name not in program.line_of_break):
            values.add(name)
    return values


def lines_that_may_be_named(program, variable):
    """The breaks that follow the variable without another break, on a way to the target."""
    above, whole = {program.last}, reached(program, variable, False)
    for name in reversed(program.parents):
        if name in above:
            above |= program.parents[name]
    lines = program.line_of_break
    return {lines[name] for name in lines if name in above and program.parents[name] & whole}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("seed", range(60))
def test_explanations_are_true(seed):
    program, file = build(seed), f"/random/{seed}.py"
    linecache.cache[file] = (len(program.text), None, program.text.splitlines(keepends=True), file)
    names = {"__name__": "__main__"}
    exec(compile(program.text, file, "exec"), names)
    tape, loss, sources = names["tape"], names["loss"], [names[w] for w in program.variables]
    before = tape.explain(loss, sources)
    gradients = tape.gradient(loss, sources)
    after = tape.explain(loss, sources)
    for variable, gradient, *answers in zip(program.variables, gradients, before, after):
        assert (gradient is not None) == (program.last in reached(program, variable, False)), program.text
        for answer in answers:
            if gradient is not None:
                assert answer.cause in ("connected", "tape used up"), program.text
            elif program.last not in reached(program, variable, True):
                assert answer.cause in ("variable not used", "no path"), (program.text, answer)
            else:
                assert answer.line in lines_that_may_be_named(program, variable), (program.text, answer)
    if seed % 2 == 0:
        assert "tape used up" not in {answer.cause for answer in after}


def test_the_programs_show_both_answers():
    programs = [build(seed) for seed in range(60)]
    connected = [p.last in reached(p, w, False) for p in programs for w in p.variables]
    assert 20 < sum(connected) < len(connected) - 20
