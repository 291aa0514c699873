"""Small things that libraries lean on."""

import inspect
import unittest.mock

import numpy as np
import pytest

import tapeflow as tf


def test_variable_creators_get_all_arguments():
    seen = {}

    def creator(next_creator, **arguments):
        seen.update(arguments)
        return next_creator(**arguments)

    with tf.variable_creator_scope(creator):
        v = tf.Variable(1.0, name="v")
    assert v.numpy() == 1.0 and seen["name"] == "v" and seen["trainable"] is None and seen["shape"] is None
    assert seen["synchronization"] == tf.VariableSynchronization.AUTO
    assert list(seen) == [*inspect.signature(tf.Variable.__init__).parameters][1:]


def test_signatures_of_functions():
    @tf.function
    def add(x, y=2):
        return x + y

    class Model:
        @tf.function
        def call(self, x, training=False):
            return x

    assert inspect.getfullargspec(add).args == ["x", "y"] and inspect.getfullargspec(add).defaults == (2,)
    assert inspect.getfullargspec(Model().call).args == ["x", "training"]


@pytest.mark.parametrize("name", ["assign", "assign_add", "assign_sub"])
def test_assignments_of_the_class_can_be_mocks_again_and_again(name):
    v = tf.Variable(1.0)
    for _ in range(2):
        with unittest.mock.patch.object(tf.Variable, name, autospec=True) as assign:
            getattr(v, name)(3.0)
        assert assign.call_args.args[0] is v and assign.call_args.args[1] == 3.0
        assert v.numpy() == 1.0 and name not in vars(tf.Variable)
    assert tf.Variable.assign(v, 4.0).numpy() == 4.0
    assert tf.Variable.assign_add(v, 1.0).numpy() == 5.0 and tf.Variable.assign_sub(v, 2.0).numpy() == 3.0


def test_shape_of_a_variable_with_open_shape():
    v = tf.Variable(tf.ones([2, 3]), shape=[None, None])
    assert tf.shape(v).numpy().tolist() == [2, 3]
    assert tf.function(lambda: tf.shape(v))().numpy().tolist() == [2, 3]


def test_generator_with_a_shape_of_the_graph():
    traced, eager = tf.random.Generator.from_seed(1), tf.random.Generator.from_seed(1)

    @tf.function(input_signature=[tf.TensorSpec([None, 2])])
    def draw(x):
        return traced.normal(tf.shape(x)), traced.uniform([tf.shape(x)[0], 1], 0.0, 2.0)

    for rows in (3, 1):
        normal, uniform = draw(tf.ones([rows, 2]))
        np.testing.assert_array_equal(normal, eager.normal([rows, 2]))
        np.testing.assert_array_equal(uniform, eager.uniform([rows, 1], 0.0, 2.0))


def test_large_seeds_in_graphs():
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        drawn = session.run(tf.random.uniform([2], seed=2**70 + 12345))
    np.testing.assert_allclose(drawn, [0.17127025, 0.6028316], rtol=1e-6)  # of TensorFlow 2.21


def test_custom_gradient_knows_its_function():
    def square(x):
        return x * x, lambda dy: 2.0 * x * dy

    assert tf.custom_gradient(square).__original_wrapped__ is square


def test_control_dependencies_of_a_generator():
    with tf.Graph().as_default():
        with tf.control_dependencies(op for op in [tf.constant(1.0).op, tf.constant(2.0).op]):
            y = tf.identity(tf.constant(3.0))
        assert len(y.op.control_inputs) == 2
        assert y.op in y.op.control_inputs[0]._control_outputs


def test_names_that_are_not_marked_as_used():
    @tf.function
    def names(x):
        graph = tf.compat.v1.get_default_graph()
        assert graph.unique_name("name", mark_as_used=False) == graph.unique_name("name") == "name"
        assert graph.unique_name("name", mark_as_used=False) == graph.unique_name("name") == "name_1"
        return x

    names(1.0)


def test_test_case_internals():
    case = tf.test.TestCase("assertAllEqual")
    assert case._cached_session is None and case._threads == []
    assert case._GetNdArray(tf.constant([1.0])).tolist() == [1.0]
    case.assertAllEqual(tf.float32, "float32")
    with pytest.raises(AssertionError):
        case.assertAllEqual(tf.float32, "float64")


def test_xla_is_for_graphs():
    with pytest.raises(RuntimeError, match="eager execution"):
        tf.xla.experimental.compile(lambda: 1.0)
    with tf.Graph().as_default(), tf.compat.v1.Session() as session, tf.xla.experimental.jit_scope():
        (y,) = tf.xla.experimental.compile(lambda x: x * 2.0, [tf.constant(3.0)])
        assert session.run(y) == 6.0


def test_placeholders_live_as_long_as_their_graph():
    import gc
    import weakref

    with tf.Graph().as_default() as graph:
        reference = weakref.ref(tf.compat.v1.placeholder_with_default(False, [], name="phase"))
        gc.collect()
        assert reference() is not None and reference().graph is graph


def test_graph_of_a_function_is_a_func_graph():
    @tf.function
    def f(x):
        assert isinstance(tf.compat.v1.get_default_graph(), tf.__internal__.FuncGraph)
        return x

    f(1.0)
    assert not isinstance(tf.Graph(), tf.__internal__.FuncGraph)


def test_spec_of_a_type_of_a_library():
    from tensorflow.python.framework import type_spec

    class Wrapped:
        pass

    type_spec.register_type_spec_from_value_converter(Wrapped, lambda value: tf.TensorSpec([7]))
    assert tf.type_spec_from_value(Wrapped()) == tf.TensorSpec([7])


def test_prepared_run_of_keras_graphs():
    from tensorflow.core.protobuf import config_pb2

    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        x, y = tf.compat.v1.placeholder(tf.float32), tf.compat.v1.placeholder(tf.float32)
        v = tf.compat.v1.get_variable("v", initializer=0.0)
        session.run(v.initializer)
        options = config_pb2.CallableOptions()
        options.feed.append(x.name)
        link = options.tensor_connection.add()
        link.from_tensor, link.to_tensor = tf.constant(10.0).name, y.name
        options.fetch.append((x + y).name)
        options.target.append(v.assign_add(1.0).op.name)
        run = session._make_callable_from_options(options)
        assert run(np.float32(3.0)) == [13.0] and session.run(v) == 1.0


@pytest.mark.parametrize(
    "operator",
    [
        lambda x: tf.linalg.LinearOperatorLowerTriangular(x),
        lambda x: tf.linalg.LinearOperatorDiag(tf.linalg.diag_part(x)),
    ],
)
def test_singular_operators(operator):
    singular, regular = tf.constant([[1.0, 0.0], [2.0, 0.0]]), tf.constant([[1.0, 0.0], [2.0, 3.0]])
    with pytest.raises(tf.errors.InvalidArgumentError, match="Singular operator:  Diagonal contained zero values"):
        operator(singular).assert_non_singular()
    operator(regular).assert_non_singular()

    @tf.function
    def check(x):
        operator(x).assert_non_singular()
        return x

    check(regular)
    with pytest.raises(tf.errors.InvalidArgumentError, match="Diagonal contained zero values"):
        check(singular)


def test_blocks_lie_inside():
    from tensorflow.compiler.tf2xla.python.xla import dynamic_slice

    x = tf.reshape(tf.range(12), [3, 4])
    assert dynamic_slice(x, [1, 1], [2, 2]).numpy().tolist() == [[5, 6], [9, 10]]
    assert dynamic_slice(x, [2, 9], [2, 2]).numpy().tolist() == [[6, 7], [10, 11]]


def test_variables_of_parameter_servers_are_plain_ones():
    assert tf.Variable(1.0, per_worker_variable=True).numpy() == 1.0


def test_the_graph_of_the_first_trace():
    function = tf.function(lambda x: x + 1.0)
    assert function._concrete_variable_creation_fn is None
    function(tf.constant(1.0))
    assert function._concrete_variable_creation_fn.graph is function.get_concrete_function(tf.constant(1.0)).graph


def test_build_info():
    assert not tf.sysconfig.get_build_info()["is_cuda_build"]


def test_specs_with_bounds():
    from tensorflow.python.framework import tensor_spec

    spec = tensor_spec.BoundedTensorSpec([2], tf.float32, minimum=0, maximum=[1, 2])
    assert spec.maximum.tolist() == [1.0, 2.0]
    assert isinstance(spec, tf.TensorSpec)


def test_gauges_keep_what_is_noted():
    from tensorflow.python.eager import monitoring

    gauge = monitoring.BoolGauge("/library/usage", "whether it is used", "method")
    gauge.get_cell("fit").set(True)
    assert gauge.get_cell("fit").value() is True
    assert gauge.get_cell("predict").value() is False
    with pytest.raises(ValueError, match="needs 1 labels"):
        gauge.get_cell()
