"""AutoGraph's operators under TensorFlow's inner names."""

import importlib

import pytest

import tapeflow as tf


@pytest.fixture(autouse=True)
def alias():
    tf.install_as_tensorflow()


def inner(name):
    return importlib.import_module(f"tensorflow.python.autograph.operators.{name}")


def never():
    raise AssertionError("this operand must not run")


def test_logical_operators():
    logical = inner("logical")
    assert logical.and_(lambda: True, lambda: [1]) == [1] and logical.and_(lambda: 0, never) == 0
    assert logical.or_(lambda: [1], never) == [1] and logical.or_(lambda: 0, lambda: 2) == 2
    assert not logical.not_([1]) and logical.eq(1, 1) and logical.not_eq(1, 2)

    @tf.function(autograph=False)
    def both(a, b):
        return logical.and_(lambda: a, lambda: logical.or_(lambda: b, lambda: logical.not_(a)))

    assert [bool(both(tf.constant(a), tf.constant(b))) for a in (True, False) for b in (True, False)] == [
        True,
        False,
        False,
        False,
    ]
    assert logical.eq(tf.constant([1, 2]), 2).numpy().tolist() == [False, True]


def test_conditional_expressions():
    choose = inner("conditional_expressions").if_exp
    assert choose(True, lambda: 1, never, "c") == 1

    @tf.function(autograph=False)
    def chosen(c):
        return choose(c, lambda: tf.constant(1), lambda: tf.constant(2), "c")

    assert [int(chosen(tf.constant(c))) for c in (True, False)] == [1, 2]


def test_assertions():
    check = inner("exceptions").assert_stmt
    assert check(True, never) is None
    with pytest.raises(AssertionError, match="wrong"):
        check(False, lambda: "wrong")
    with pytest.raises(ValueError, match="must be a callable"):
        check(True, "text")
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        failing = check(tf.constant(False), lambda: (tf.constant("one"), tf.constant("two")))
        with pytest.raises(tf.errors.InvalidArgumentError, match="one"):
            session.run(failing)


def test_variables_without_a_value():
    variables = inner("variables")
    nothing = variables.ldu(lambda: {}["x"], "x")
    assert nothing.symbol_name == "x" and isinstance(nothing.part[0], variables.Undefined)
    with pytest.raises(UnboundLocalError, match="'x' is used before assignment"):
        variables.ld(nothing)
    assert variables.ld(3) == 3 and variables.ld(variables.ldu(lambda: 4, "y")) == 4


def test_functions_of_iterables(capsys):
    builtins = inner("py_builtins")
    dataset = tf.data.Dataset.range(4)
    assert list(builtins.map_(lambda x: x + 1, [1, 2])) == [2, 3]
    assert [int(x) for x in builtins.map_(lambda x: x * x, dataset)] == [0, 1, 4, 9]
    assert [int(x) for x in builtins.filter_(lambda x: x > 1, dataset)] == [2, 3]
    builtins.print_("one", 2, sep="-")
    assert capsys.readouterr().out == "one-2\n"
    with pytest.raises(ValueError, match="invalid keyword arguments"):
        builtins.print_("one", color=1)


def test_next_of_an_iterator_of_a_dataset():
    next_ = inner("py_builtins").next_
    numbers = iter([1])
    assert (next_(numbers), next_(numbers, 5)) == (1, 5)

    @tf.function(autograph=False)
    def taken():
        iterator = iter(tf.data.Dataset.range(1))
        return next_(iterator), next_(iterator, tf.constant(-3, tf.int64))

    assert [int(x) for x in taken()] == [0, -3]

    @tf.function(autograph=False)
    def wrong(default):
        next_(iter(tf.data.Dataset.range(1).map(lambda i: {"a": i})), default)

    with pytest.raises(TypeError, match="same element structure"):
        wrong({"b": tf.constant(1, tf.int64)})
    with pytest.raises(TypeError, match="dtype float32 in place of int64"):
        wrong({"a": tf.constant(1.0)})
