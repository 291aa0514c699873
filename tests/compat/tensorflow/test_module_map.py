"""Names in TensorFlow's files that are public in TensorFlow lead to the public objects; tests written with them run."""

import unittest

import pytest

import tapeflow as tf
from tapeflow._src.compat.tensorflow.inner_modules import module_map, table
from tapeflow._src.namespace import find_public


def inner(path):
    return table.find(f"python.{path}")


def test_every_public_path_exists():
    for names in module_map.paths_by_module().values():
        for path in names.values():
            assert find_public(path) is not None, path


def test_functions_are_the_public_ones():
    assert inner("ops.math_ops").reduce_sum is tf.reduce_sum
    assert inner("ops.math_ops").reduce_sum_v1 is tf.compat.v1.reduce_sum
    assert inner("framework.dtypes").float32 is tf.float32
    assert inner("training.training").GradientDescentOptimizer is tf.compat.v1.train.GradientDescentOptimizer
    assert inner("ops.gen_math_ops").mat_mul([[2.0]], [[3.0]]).numpy().tolist() == [[6.0]]
    with pytest.raises(TypeError, match="takes 3 positional arguments but 4 were given"):
        inner("ops.gen_math_ops").sub(1.0, 2.0, None, 4)
    with pytest.raises(AttributeError, match=r"'tensorflow.python.ops.math_ops' has no attribute 'no_such_name'"):
        inner("ops.math_ops").no_such_name  # noqa: B018


def test_a_module_is_no_name_of_its_own():
    """`subscribe.subscribe` is a function of TensorFlow; the module itself must not stand for it."""
    with pytest.raises(AttributeError, match=r"framework\.subscribe' has no attribute 'subscribe'"):
        inner("framework.subscribe").subscribe  # noqa: B018


def test_gradients_of_functions():
    backprop = inner("eager.backprop")
    assert [g.numpy() for g in backprop.gradients_function(lambda x, y: x * y)(2.0, 3.0)] == [3.0, 2.0]
    x = tf.constant(3.0)
    assert [g.numpy() for g in backprop.gradients_function(lambda a, b: a * b)(x, x)] == [3.0, 3.0]
    value, (dy,) = backprop.val_and_grad_function(lambda x, y: x * y, params=["y"])(2.0, 3.0)
    assert (value.numpy(), dy.numpy()) == (6.0, 2.0)
    result, vjp = backprop.make_vjp(lambda x: x * x)(tf.constant(3.0))
    assert (result.numpy(), vjp(2.0)[0].numpy()) == (9.0, 12.0)
    first, second = tf.Variable(1.0), tf.Variable(2.0)
    found = backprop.implicit_grad(lambda: second * second + first)()
    assert [variable is v for (_, variable), v in zip(found, (first, second))] == [True, True]
    with pytest.raises(ValueError, match="did you forget to return a value from nothing"):

        def nothing():
            return None

        backprop.implicit_grad(nothing)()
    with pytest.raises(ValueError, match="No trainable variables were accessed"):
        backprop.implicit_grad(lambda: tf.constant(1.0))()


def run(case):
    result = unittest.TestResult()
    for name in unittest.TestLoader().getTestCaseNames(case):
        if name != "test_session":
            case(name).run(result)
    assert not result.errors and not result.failures, result.errors + result.failures
    return result


def test_modes():
    test_util, seen = inner("framework.test_util"), []

    class Case(tf.test.TestCase):
        @test_util.run_in_graph_and_eager_modes
        def testBoth(self):  # noqa: N802
            seen.append((tf.executing_eagerly(), float(self.evaluate(tf.constant(2.0) * 3.0))))

        @test_util.run_deprecated_v1
        def testGraph(self):  # noqa: N802
            with self.cached_session():
                seen.append((tf.executing_eagerly(), float(tf.constant(1.0).eval())))

        @test_util.run_v1_only("older")
        def testOlder(self):  # noqa: N802
            seen.append("older")

        @test_util.run_gpu_only
        def testOther(self):  # noqa: N802
            seen.append("other machine")

        @test_util.run_v2_only
        @test_util.assert_no_new_tensors
        @test_util.assert_no_garbage_created
        def testNewer(self):  # noqa: N802
            seen.append(tf.executing_eagerly())

    result = run(Case)
    assert seen == [(False, 6.0), (True, 6.0), (False, 1.0), True]
    assert len(result.skipped) == 2
    assert tf.executing_eagerly()


def test_contexts_of_execution():
    context = inner("eager.context")
    with context.graph_mode():
        assert not tf.executing_eagerly()
        with context.eager_mode():
            assert tf.executing_eagerly()
    assert context.context().executing_eagerly()


def test_callbacks_after_a_trace():
    ops, seen = inner("framework.ops"), []

    @tf.function
    def f(x):
        ops.add_exit_callback_to_default_func_graph(lambda: seen.append("traced"))
        seen.append("tracing")
        return x

    f(1.0)
    assert seen == ["tracing", "traced"]
    with pytest.raises(RuntimeError, match="when not building a function"):
        ops.add_exit_callback_to_default_func_graph(print)


def test_decorators_are_unwrapped():
    tf_decorator = inner("util.tf_decorator")

    def target(x, y=2):
        return x + y

    def wrapper(*args, **kwargs):
        return target(*args, **kwargs)

    decorated = tf_decorator.make_decorator(target, wrapper)
    assert decorated(1) == 3 and decorated.__name__ == "target"
    decorators, inside = tf_decorator.unwrap(decorated)
    assert [d.decorator_name for d in decorators] == ["test_decorators_are_unwrapped"] and inside is target
    assert tf.function(decorated)(1).numpy() == 3


def test_typed_functions():
    define = inner("framework.function").Defun

    @define(tf.float32, tf.float32, func_name="Scaled")
    def scaled(x, y):
        return 2.0 * x * y

    assert scaled.name == "Scaled"
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        x = tf.constant(3.0)
        assert session.run([scaled(x, 2), *tf.gradients(scaled(x, 2.0), x)]) == [12.0, 4.0]
    with pytest.raises(ValueError, match="Expected number of arguments: 2, received: 1"):
        scaled(1.0)
    with pytest.raises(NotImplementedError, match="shape_func is not supported"):
        define(tf.float32, shape_func=print)


def test_functions_without_public_names():
    assert inner("ops.bitwise_ops").bitwise_and is tf.bitwise.bitwise_and
    shapes = inner("framework.tensor_shape")
    assert shapes.unknown_shape() == tf.TensorShape(None) or shapes.unknown_shape().rank is None
    assert shapes.unknown_shape(2).as_list() == [None, None]
    assert (shapes.vector(3).as_list(), shapes.matrix(2, 3).as_list(), shapes.scalar().as_list()) == ([3], [2, 3], [])
    assert inner("ops.math_ops").reduced_shape([2, 3, 4], [0, -1]).numpy().tolist() == [1, 3, 1]
    assert inner("ops.cond_v2").cond_v2(tf.constant(True), lambda: 1.0, lambda: 2.0) == 1.0
    assert inner("ops.cond_v2").indexed_case(tf.constant(1), [lambda: 1.0, lambda: 2.0]) == 2.0
    loop = inner("ops.while_v2").while_loop
    assert loop(lambda i: i < 3, lambda i: i + 1, [0], return_same_structure=False).numpy() == 3
    assert [x.numpy() for x in loop(lambda i: i < 3, lambda i: i + 1, [0])] == [3]
    smart_case = inner("framework.smart_cond").smart_case
    assert smart_case([(False, lambda: 1), (True, lambda: 2)]) == 2
    assert smart_case([(tf.constant(False), lambda: 1)], default=lambda: 3) == 3
    with pytest.raises(ValueError, match="no default"):
        smart_case([(False, lambda: 1)])
    to_numpy = inner("ops.gradient_checker_v2")._to_numpy
    assert to_numpy(tf.IndexedSlices(tf.constant([2.0]), tf.constant([1]), [3])).tolist() == [0.0, 2.0, 0.0]
    with tf.Graph().as_default(), tf.compat.v1.Session():
        assert to_numpy(tf.constant(1.0) + 2.0) == 3.0


def test_defined_functions_with_rules_of_their_own():
    define = inner("framework.function").Defun
    rule = define(tf.float32, tf.float32)(lambda x, dy: dy * 10.0)
    by_graph = define(tf.float32, grad_func=rule)(lambda x: x * 2.0)
    by_python = define(tf.float32, python_grad_func=lambda op, dy: dy * op.inputs[0] + op.outputs[0])(lambda x: x * 2.0)
    x = tf.constant(3.0)
    for function, expected in ((by_graph, 10.0), (by_python, 9.0)):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = function(x)
        assert (y.numpy(), tape.gradient(y, x).numpy()) == (6.0, expected)
    with pytest.raises(ValueError, match="Gradient defined twice"):
        define(tf.float32, grad_func=rule, python_grad_func=rule)(lambda x: x)
    named = define(tf.float32, func_name="double")(lambda x: x * 2.0)
    assert named.definition.signature.name == "double"
    assert [node.op for node in named.definition.node_def] == ["Const", "Mul", "Identity"]
