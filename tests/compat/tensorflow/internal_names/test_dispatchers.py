"""Operations on values of a library: dispatchers for all operations, for one, and Python's operators."""

import pytest

import tapeflow as tf
from tapeflow._src.compat.tensorflow.internal_names import dispatchers


class Symbol:
    """A value that is not there yet, as those of a functional model: it cannot become a tensor."""

    def __init__(self, text):
        self.text = text

    def __array__(self, *args):
        raise TypeError("a symbol has no elements")


class Recorder(tf.__internal__.dispatch.GlobalOpDispatcher):
    def handle(self, op, args, kwargs):
        values = tf.nest.flatten([args, kwargs])
        if not any(isinstance(value, Symbol) for value in values):
            return self.NOT_SUPPORTED
        texts = [value.text if isinstance(value, Symbol) else str(value) for value in values]
        return Symbol(f"{op.__name__}({', '.join(texts)})")


for name in ("__add__", "__radd__", "__mul__", "__rsub__", "__neg__", "__getitem__", "__lt__"):
    setattr(Symbol, name, getattr(tf.Tensor, name))


@pytest.fixture(autouse=True)
def recorder():
    """A dispatcher stays registered for good; other tests shall not meet it."""
    registered = Recorder()
    registered.register()
    yield
    dispatchers._for_all.remove(registered)


def test_primitives_and_compositions_are_dispatched_whole():
    x = Symbol("x")
    assert tf.sin(x).text == "sin(x)"
    assert tf.reduce_mean(x, axis=1).text == "reduce_mean(x, 1)"
    assert tf.nn.gelu(x).text == "gelu(x)"
    assert tf.concat([x, x], 0).text == "concat(x, x, 0)"


def test_operators_of_tensors_serve_other_classes():
    x = Symbol("x")
    assert (x + 1).text == "add(x, 1)"
    assert (1 + x).text == "add(1, x)"
    assert (x * x).text == "multiply(x, x)"
    assert (3.0 - x).text == "subtract(3.0, x)"
    assert (-x).text == "negative(x)"
    assert x[1].text == "getitem(x, 1)"
    assert (x < 2).text == "less(x, 2)"


def test_operators_of_ragged_tensors_serve_other_classes():
    names = ("__add__", "__radd__", "__mul__", "__truediv__", "__getitem__")
    ragged_symbol = type("RaggedSymbol", (Symbol,), {name: getattr(tf.RaggedTensor, name) for name in names})
    x = ragged_symbol("x")
    assert (x + 1).text == "add(x, 1)"
    assert (1 + x).text == "add(1, x)"
    assert (x * x).text == "multiply(x, x)"
    assert (x / 2).text == "truediv(x, 2)"
    assert x[1].text == "ragged_getitem(x, 1)"


def test_tensor_beside_a_symbol_asks_the_symbol():
    total = tf.constant(1.0) + Symbol("x")
    assert total.text == "add(tf.Tensor(1.0, shape=(), dtype=float32), x)"


def test_operators_of_tensors_are_unchanged():
    x = tf.constant([1.0, 2.0])
    assert tf.Tensor.__add__(x, 1.0).numpy().tolist() == [2.0, 3.0]
    assert x.__rsub__(1.0).numpy().tolist() == [0.0, -1.0]
    assert x[1].numpy() == 2.0


def test_other_values_keep_their_errors():
    with pytest.raises((TypeError, ValueError)):
        tf.sin(object())
    with pytest.raises(tf.errors.InvalidArgumentError):
        tf.matmul(tf.ones([2, 3]), tf.ones([2, 3]))


def test_functions_of_a_library_and_their_types():
    @tf.__internal__.dispatch.add_dispatch_support
    def loss(x):
        return tf.convert_to_tensor(x) * 2.0

    class OfRagged(tf.__internal__.dispatch.OpDispatcher):
        def handle(self, args, kwargs):
            return "ragged" if isinstance(args[0], tf.RaggedTensor) else self.NOT_SUPPORTED

    OfRagged().register(loss)
    assert loss(2.0).numpy() == 4.0
    assert loss(tf.ragged.constant([[1.0], [2.0, 3.0]])) == "ragged"


def test_constructors_of_ragged_tensors_ask_dispatchers():
    assert tf.RaggedTensor.from_row_splits(Symbol("x"), [0, 1]).text.startswith("from_row_splits(")
    with pytest.raises(ValueError, match="may not be empty"):
        tf.RaggedTensor.from_row_splits([1], [])


def test_a_number_beside_a_symbol_takes_its_dtype():
    x = Symbol("x")
    x.dtype = tf.float32
    assert "float32" in (1 + x).text


def test_decorators_stay_around_converted_functions():
    seen = []

    def logged(method):
        def call(self, *args):
            seen.append(type(self).__name__)
            return method(self, *args)

        return tf.__internal__.decorator.make_decorator(method, call)

    class Layer:
        @logged
        def call(self, x):
            if x > 0:
                return x
            return -x

    convert = tf.__internal__.autograph.tf_convert
    absolute = tf.function(
        lambda x: convert(Layer().call, tf.__internal__.autograph.control_status_ctx())(x), autograph=False
    )
    assert absolute(tf.constant(-3.0)).numpy() == 3.0
    assert seen == ["Layer"]
