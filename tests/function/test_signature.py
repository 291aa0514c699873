"""Which calls of a function share a graph, beyond tensors and Python numbers."""

import collections
import dataclasses
import functools
import gc
import weakref

import pytest

import tapeflow as tf


def counted(function, **options):
    """The function, and the list that grows with each trace of it."""
    traces = []

    @functools.wraps(function)
    def traced(*args, **kwargs):
        traces.append(None)
        return function(*args, **kwargs)

    return tf.function(traced, **options), traces


def test_another_variable_at_the_address_of_a_dead_one():
    double = tf.function(lambda v: v * 2.0, autograph=False)
    for i in range(50):
        assert float(double(tf.Variable(float(i)))) == 2.0 * i


def test_graphs_of_dead_arguments_go():
    class Thing:
        pass

    function = tf.function(lambda thing, x: x + 1)
    for _ in range(200):
        function(Thing(), tf.constant(1.0))
    gc.collect()
    assert len(function._traces.concrete) < 40
    thing = Thing()
    function(thing, tf.constant(1.0))
    before = function.experimental_get_tracing_count()
    function(thing, tf.constant(2.0))
    assert function.experimental_get_tracing_count() == before


@dataclasses.dataclass
class Scaled:
    x: tf.Tensor
    factor: int = 1

    def __tf_flatten__(self):
        return (self.factor,), (self.x,)

    @classmethod
    def __tf_unflatten__(cls, metadata, components):
        return cls(components[0], metadata[0])


def test_metadata_of_a_dataclass_is_part_of_the_kind():
    function, traces = counted(lambda s: s.x * s.factor)
    results = [float(function(Scaled(tf.constant(x), n))) for x, n in ((1.0, 1), (2.0, 1), (2.0, 3))]
    assert results == [1.0, 2.0, 6.0]
    assert len(traces) == 2


class FruitType(tf.types.experimental.TraceType):
    def __init__(self, fruit):
        self.fruit = fruit

    def is_subtype_of(self, other):
        return self == other

    def most_specific_common_supertype(self, others):
        return self if all(self == other for other in others) else None

    def placeholder_value(self, placeholder_context=None):
        return self.fruit

    def __eq__(self, other):
        return type(other) is FruitType and type(other.fruit) is type(self.fruit)

    def __hash__(self):
        return hash(type(self.fruit))


class Fruit:
    def __tf_tracing_type__(self, context):
        return FruitType(self)


class Apple(Fruit):
    flavor = 1.0


class Mango(Fruit):
    flavor = 3.0


def test_objects_that_say_what_they_share():
    function, traces = counted(lambda a, b: tf.constant(a.flavor) + b.flavor)
    assert float(function(Apple(), Apple())) == 2.0
    assert float(function(Apple(), Apple())) == 2.0
    assert len(traces) == 1
    assert float(function(Apple(), Mango())) == 4.0
    assert len(traces) == 2


def test_names_of_many_arguments():
    @tf.function
    def function(x, *args):
        return x

    concrete = function.get_concrete_function(tf.TensorSpec([]), tf.TensorSpec([2]), tf.TensorSpec([3]))
    assert [t.name for t in concrete.inputs] == ["x:0", "args_0:0", "args_1:0"]
    assert "args_1 (POSITIONAL_ONLY)" in str(concrete)


def test_python_values_fit_a_concrete_function():
    concrete = tf.function(lambda x: x * 2.0).get_concrete_function(tf.TensorSpec([None], tf.float32))
    assert concrete([1, 2]).numpy().tolist() == [2.0, 4.0]
    with pytest.raises(TypeError, match="Can not cast TensorSpec"):
        concrete(1.0)


def test_variables_made_by_a_later_call():
    made = []

    @tf.function
    def function(x, makes):
        if makes and not made:
            made.append(tf.Variable(1.0))
        return x

    function(1.0, False)
    with pytest.raises(ValueError, match="on a non-first call"):
        function(1.0, True)
    made.clear()

    @tf.function
    def always(x):
        return x + tf.Variable(1.0)

    with pytest.raises(ValueError, match="only supports singleton"):
        always(1.0)


def test_a_callable_object_is_converted():
    class Absolute:
        def __call__(self, x):
            if x > 0:
                return x
            return -x

    assert int(tf.function(Absolute())(tf.constant(-4))) == 4
    limited = functools.partial(lambda low, x: x if x > low else low, 2)
    assert int(tf.function(limited)(tf.constant(1))) == 2


def test_inner_functions_that_come_and_go():
    @tf.function
    def outer(x):
        return tf.stack([tf.function(lambda y, i=i: y + x * float(i))(x) for i in range(20)])

    assert outer(tf.constant(1.0)).numpy().tolist() == [1.0 + i for i in range(20)]


def test_loops_over_datasets_find_what_varies_in_shapes():
    @tf.function
    def joined(dataset):
        values = tf.zeros([0], tf.int64)
        for x in dataset:
            values = tf.concat([values, [x]], 0)
        return values

    assert joined(tf.data.Dataset.range(4)).numpy().tolist() == [0, 1, 2, 3]

    @tf.function
    def summed(dataset):
        loss = tf.constant(0)
        for x, y in dataset:
            loss += tf.abs(y - x)
        return loss

    dataset = tf.data.Dataset.from_generator(lambda: [(1, 3)] * 4, (tf.int32, tf.int32))
    assert int(summed(dataset)) == 8


def test_rows_of_a_ragged_argument_in_reverse():
    reverse = tf.function(lambda x: tf.concat([x, x[::-1]], 0))
    assert reverse(tf.ragged.constant([[1, 2], [3]])).to_list() == [[1, 2], [3], [3], [1, 2]]


def test_bounds_of_a_ragged_argument():
    rows = tf.ragged.constant([[[1], [2, 3]], [], [[4]]])
    bounds = tf.function(lambda r: (r.bounding_shape(), r.bounding_shape(axis=1), r.to_sparse().dense_shape))(rows)
    assert [value.numpy().tolist() for value in bounds] == [[3, 2, 2], 2, [3, 2, 2]]
    sparse = tf.function(lambda r: r.to_sparse())(tf.ragged.constant([[1, 2], [], [3]]))
    assert sparse.indices.numpy().tolist() == [[0, 0], [0, 1], [2, 0]]


SCALAR = tf.TensorSpec([])
Pair = collections.namedtuple("Pair", ["a", "b"])


@pytest.mark.parametrize(
    ("function", "specifications", "words"),
    [
        (lambda a, b: a, [SCALAR], "input_signature missing type constraint for b"),
        (lambda a, b=1: a, [], "input_signature missing type constraint for a"),
        (lambda a: a, [SCALAR, SCALAR], "input_signature contains 1 extra type constraints"),
    ],
)
def test_specifications_that_do_not_fit_the_parameters(function, specifications, words):
    with pytest.raises(TypeError, match=words):
        tf.function(function, input_signature=specifications)


@pytest.mark.parametrize(
    ("function", "specifications", "args", "kwargs", "words"),
    [
        (lambda *a: a, [SCALAR, SCALAR], (1.0,), {}, "missing a required argument: 'a_1'"),
        (lambda *a: a, [SCALAR, SCALAR], (1.0, 2.0, 3.0), {}, "too many positional arguments"),
        (lambda a, b=2.0: a, [SCALAR], (1.0, 3.0), {}, r"Can not cast 3.0 to Literal\[2.0\]"),
        (lambda a, *, b=2.0: a, [SCALAR], (1.0,), {"b": 3.0}, r"Can not cast 3.0 to Literal\[2.0\]"),
        (lambda a, **b: a, [SCALAR], (1.0,), {"c": 3.0}, "got an unexpected keyword argument 'c'"),
        (lambda a: a, [(SCALAR, SCALAR)], ([1.0, 2.0],), {}, "Can not cast .* to tuple type"),
        (lambda a: a, [[SCALAR, SCALAR]], ((1.0, 2.0),), {}, "Can not cast .* to list type"),
        (lambda a: a, [Pair(SCALAR, SCALAR)], ((1.0, 2.0),), {}, "Cannot cast .* to type .*Pair"),
    ],
)
def test_arguments_that_do_not_fit_the_specifications(function, specifications, args, kwargs, words):
    with pytest.raises(TypeError, match=f"Binding inputs to tf.function failed due to `.*{words}"):
        tf.function(function, input_signature=specifications)(*args, **kwargs)


def test_arguments_that_are_what_they_are_by_default():
    times = tf.function(lambda a, b=2.0, *, c=3.0: a * b * c, input_signature=[SCALAR])
    assert [float(times(1.0)), float(times(1.0, 2.0)), float(times(a=1.0, c=3.0))] == [6.0, 6.0, 6.0]


def test_what_cannot_be_a_function_or_an_argument():
    with pytest.raises(TypeError, match="1 is not a callable object"):
        tf.function(1)
    with pytest.raises(TypeError, match=r"weakref input .* not supported"):
        tf.function(lambda x: 1)(weakref.ref(counted))


def test_equal_values_of_several_types_do_not_share_a_graph():
    same, traces = counted(lambda x: x)
    assert [same(x).dtype.name for x in (1, 1.0, True, 1)] == ["int32", "float32", "bool", "int32"]
    assert len(traces) == 3


def test_shapes_of_sparse_and_ragged_arguments():
    def sparse(size):
        return tf.SparseTensor([[0]], [1.0], [size])

    size, traces = counted(lambda x: x.shape[0] or -1)
    assert [int(size(sparse(n))) for n in (3, 5, 3)] == [3, 5, 3] and len(traces) == 2
    size, traces = counted(lambda x: x.shape[0] or -1, reduce_retracing=True)
    assert [int(size(sparse(n))) for n in (3, 5, 7)] == [3, -1, -1] and len(traces) == 2
    rows = [tf.ragged.constant(r) for r in ([[1], [2, 3]], [[1, 2], [3]], [[1]], [[1], [2], [3]])]
    size, traces = counted(lambda x: x.shape[0] or -1)
    assert [int(size(x)) for x in rows] == [2, 2, 1, 3] and len(traces) == 3
    size, traces = counted(lambda x: (x.shape[0] or -1, x.nrows()), reduce_retracing=True)
    assert [[int(n) for n in size(x)] for x in rows] == [[2, 2], [2, 2], [-1, 1], [-1, 3]] and len(traces) == 2


def test_each_variable_has_a_graph():
    outside, other = tf.Variable(1.0), tf.Variable(10.0)
    traces = []

    @tf.function
    def f(v):
        traces.append(v)
        return 100.0 * v + outside

    assert [float(f(v)) for v in (outside, other, outside, other)] == [101.0, 1001.0, 101.0, 1001.0]
    assert [t is v for t, v in zip(traces, (outside, other), strict=True)] == [True, True]
    with tf.GradientTape() as tape:
        y = f(outside) * f(other)
    assert [float(g) for g in tape.gradient(y, [outside, other])] == [101.0 * 1001.0 + 101.0, 101.0 * 100.0]
