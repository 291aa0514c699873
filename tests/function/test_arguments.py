"""Arguments of traced functions: variables, composite tensors, signatures."""

import pytest

import tapeflow as tf

# ---- arguments


def test_a_variable_may_begin_with_an_argument():
    class Model(tf.Module):
        def __init__(self):
            self.v = None

        @tf.function
        def __call__(self, x):
            if self.v is None:
                self.v = tf.Variable(x * 2.0)
            return x * self.v

    model = Model()
    assert [model(tf.constant(3.0)).numpy(), model(tf.constant(1.0)).numpy()] == [18, 6]


def test_a_variable_cannot_begin_with_what_is_not_known():
    @tf.function
    def function(x):
        return tf.Variable(x)

    with pytest.raises(ValueError, match="must either be wrapped in an init_scope or callable"):
        function.get_concrete_function(tf.TensorSpec([]))


def test_arguments_must_not_be_changed():
    @tf.function
    def function(items, extra):
        items.append(extra)
        return extra

    with pytest.raises(ValueError, match=r"should not modify its Python input arguments.*modified: items"):
        function([tf.constant(1)], tf.constant(2))


def test_input_signature_holds_specifications():
    with pytest.raises(TypeError, match="must be a possibly nested sequence of TensorSpec objects, got invalid args"):
        tf.function(lambda x: x, input_signature=[1])


def test_ragged_tensors_of_other_lengths_share_a_graph():
    traces = []
    function = tf.function(lambda x: traces.append(1) or tf.reduce_sum(x, axis=1))
    assert function(tf.ragged.constant([[1.0, 2.0], [3.0]])).numpy().tolist() == [3, 3]
    assert function(tf.ragged.constant([[1.0], [3.0, 4.0, 5.0]])).numpy().tolist() == [1, 12]
    assert len(traces) == 1


def test_ragged_signature_of_any_length():
    kind = tf.RaggedTensorSpec([None, None], tf.float32)
    function = tf.function(lambda x: tf.reduce_sum(x, axis=1), input_signature=[kind])
    assert function(tf.ragged.constant([[1.0, 2.0], [3.0]])).numpy().tolist() == [3, 3]
    assert function(tf.ragged.constant([[1.0], [2.0], [3.0, 4.0]])).numpy().tolist() == [1, 2, 7]


def test_sparse_argument():
    dense = tf.function(tf.sparse.to_dense)(tf.sparse.from_dense([[1.0, 0.0], [0.0, 2.0]]))
    assert dense.numpy().tolist() == [[1, 0], [0, 2]]


def test_a_signature_with_open_dimensions_holds_in_every_call():
    @tf.function(input_signature=[tf.TensorSpec([None, 3]), tf.TensorSpec(None)])
    def total(x, y):
        return tf.reduce_sum(x) + tf.reduce_sum(y)

    for rows in (1, 2, 5, 2):
        assert float(total(tf.ones([rows, 3]), tf.ones([rows]))) == 4 * rows
    for wrong in (tf.ones([2, 4]), tf.ones([3]), tf.ones([2, 3], tf.float64)):
        with pytest.raises(TypeError, match="cast"):
            total(wrong, tf.ones([1]))
    assert float(total(tf.ones([1, 3]), 2.0)) == 5
    assert total.experimental_get_tracing_count() == 1


def test_decorate():
    @tf.function
    def double(x):
        return x * 2.0

    double._decorate(lambda function: lambda x: function(x) + 1.0)
    assert float(double(tf.constant(3.0))) == 7.0
    with pytest.raises(ValueError, match="cannot be decorated after they have been traced"):
        double._decorate(lambda function: function)


def test_concrete_functions_are_known_to_graphs():
    concrete = tf.function(lambda x: x * 2.0).get_concrete_function(tf.TensorSpec([]))
    concrete.add_to_graph()
    concrete.add_gradient_functions_to_graph()
    assert float(concrete(tf.constant(3.0))) == 6.0


def test_a_module_that_is_called_through_a_function_keeps_its_attributes():
    class Scale(tf.Module):
        def __init__(self):
            super().__init__()
            self.factor = tf.Variable(3.0)

        def __call__(self, x):
            return x * self.factor

    scale = Scale()
    function = tf.function(scale)
    assert function.factor is scale.factor and float(function(tf.constant(2.0))) == 6.0
    assert function.python_function is scale
