"""What libraries find in the inner modules of TensorFlow that they import."""

import collections
import sys
import types

import numpy as np
import pytest

import tapeflow as tf
from tapeflow._src.compat.tensorflow.inner_modules import table
from tapeflow._src.compat.tensorflow.inner_modules.batch_size import compute_batch_size


def inner(path):
    return table.find(f"python.{path}")


def test_every_name_is_there():
    for path, names in table._NAMES_BY_PATH.items():
        assert all(value is not None for name, value in names.items() if name != "newaxis"), path
        module = table.find(path)
        assert module.__name__ == f"tensorflow.{path}"
        assert all(getattr(module, name) is value for name, value in names.items())


def test_modules_without_names():
    parser = inner("autograph.pyct.parser")
    with pytest.raises(AttributeError, match="has no attribute 'parse_entity'"):
        parser.parse_entity  # noqa: B018
    assert table.find("python.tpu.tpu_embedding") is None


def test_nest():
    nest = inner("util.nest")
    assert list(nest._yield_value({"b": 1, "a": [2]})) == [[2], 1]
    assert list(nest._yield_sorted_items({"b": 1, "a": 2})) == [("a", 2), ("b", 1)]
    pair = collections.namedtuple("pair", "x y")
    assert list(nest._yield_sorted_items(pair(1, 2))) == [("x", 1), ("y", 2)]
    assert nest._is_namedtuple(pair(1, 2)) and not nest._is_namedtuple((1, 2))
    assert nest._sequence_like(pair(1, 2), [3, 4]) == pair(3, 4)
    assert nest.flatten_with_joined_string_paths({"a": [1]}) == [("a/0", 1)]


def test_inspection():
    spec = inner("util.tf_inspect").getfullargspec(tf.rank)
    assert (spec.args, spec.annotations) == (["input", "name"], {})

    def f(x, y: int = 2):
        return x

    found = inner("util.tf_inspect")
    assert found.getfullargspec(f).annotations == {"y": int}
    assert found.getcallargs(f, 1) == {"x": 1, "y": 2}

    class Adder:
        def add(self, x):
            return x

    adder = Adder()
    assert found.getcallargs(adder.add, 3) == {"self": adder, "x": 3}


def test_arguments_as_older_pythons_describe_them():
    def function(a, b=1, *rest, c=2, **named):
        pass

    spec = inner("util.tf_inspect").getargspec(function)
    assert tuple(spec) == (["a", "b", "c"], "rest", "named", (1, 2))
    assert inner("util.tf_inspect").getargspec(lambda a: a).defaults is None


def test_sizes_of_layers():
    for module in ("ops.init_ops", "ops.init_ops_v2"):
        assert [inner(module)._compute_fans(shape) for shape in ((), (5,), (3, 4), (2, 2, 3, 4))] == [
            (1, 1), (5, 5), (3, 4), (12, 16)
        ]  # fmt: skip


def test_shapes():
    as_shape = inner("framework.tensor_util").constant_value_as_shape
    assert as_shape([2, -1]) == tf.TensorShape([2, None])
    assert as_shape(tf.constant([2, 3])) == tf.TensorShape([2, 3])
    assert as_shape([]) == tf.TensorShape([])
    seen = []

    @tf.function
    def f(x):
        seen.append(as_shape(tf.shape(x)).as_list())
        seen.append(as_shape(tf.stack([tf.shape(x)[0], 3])).as_list())
        seen.append(as_shape(tf.cast(x[0], tf.int32)).as_list())
        return x

    f.get_concrete_function(tf.TensorSpec([None, 2]))
    assert seen == [[None, 2], [None, 3], [None, None]]


def test_convert_variables():
    convert = inner("util.variable_utils").convert_variables_to_tensors
    variable = tf.Variable([1.0, 2.0])
    operator = tf.linalg.LinearOperatorDiag(variable)
    x, y, z = convert([variable, operator, 3])
    assert isinstance(x, tf.Tensor) and isinstance(y.diag, tf.Tensor) and z == 3
    variable.assign([5.0, 5.0])
    np.testing.assert_array_equal(y.to_dense(), np.diag([1.0, 2.0]))


def test_loops():
    loops = inner("ops.parallel_for.control_flow_ops")
    x = tf.constant([[1.0, 2.0], [3.0, 4.0]])
    np.testing.assert_array_equal(loops.pfor(lambda i: tf.gather(x, i) * 2.0, 2), x * 2.0)
    np.testing.assert_array_equal(loops.for_loop(lambda i: tf.gather(x, i) * 2.0, tf.float32, 2), x * 2.0)


@pytest.mark.parametrize(("conditions", "wanted"), [((True, True), 1), ((False, True), 2), ((False, False), 3)])
def test_case(conditions, wanted):
    case = inner("ops.control_flow_case")._case_helper
    pairs = [(tf.constant(c), lambda n=n: tf.constant(n)) for n, c in enumerate(conditions, 1)]
    assert case(tf.cond, pairs, lambda: tf.constant(3), exclusive=False, name="case") == wanted
    with pytest.raises(TypeError, match="2-tuple"):
        case(tf.cond, [1], None, exclusive=False, name=None)


def test_context():
    context = inner("eager.context").context()
    assert context.executing_eagerly()
    assert tf.function(lambda: tf.constant(context.executing_eagerly()))().numpy() == False  # noqa: E712


def test_should_record():
    should_record = inner("eager.tape").should_record_backprop
    x, y, v = tf.constant(1.0), tf.constant(1.0), tf.Variable(1.0)
    assert not should_record([x, v])
    with tf.GradientTape() as tape:
        tape.watch(x)
        assert [should_record([value]) for value in (x, y, v, x * 2.0, y * 2.0)] == [True, False, True, True, False]
        assert should_record([y, x]) and not should_record([]) and not should_record([3.0])
    assert not should_record([x, v])


def test_object_identity():
    identity = inner("util.object_identity")
    a, b = [1], [1]
    members = identity.ObjectIdentitySet([a, b, a])
    assert len(members) == 2 and a in members and [1] not in members
    members.discard(a)
    assert list(members) == [b] and next(iter(members)) is b
    number = identity.ObjectIdentityDictionary()
    number[a], number[b] = 1, 2
    assert number[a] == 1 and number[b] == 2 and len(number) == 2
    with pytest.raises(KeyError):
        number[[1]]
    x = tf.constant(1.0)
    assert x.ref() == identity.Reference(x)


def test_type_spec_names():
    registry = inner("framework.type_spec_registry")

    class Spec(inner("framework.type_spec").BatchableTypeSpec):
        pass

    with pytest.raises(ValueError, match="must have the form"):
        registry.register("Spec")
    assert registry.register("here.Spec")(Spec) is Spec
    assert registry.lookup("here.Spec") is Spec and registry.get_name(Spec) == "here.Spec"
    with pytest.raises(ValueError, match=r"already been registered with name here\.Spec"):
        registry.register("here.Other")(Spec)
    assert registry.lookup("tf.TensorSpec") is tf.TensorSpec


def test_specs():
    dense, batchable = inner("framework.tensor_spec").DenseSpec, inner("framework.type_spec").BatchableTypeSpec
    assert issubclass(tf.TensorSpec, dense) and issubclass(tf.TensorSpec, batchable)
    spec = inner("ops.resource_variable_ops").VariableSpec.from_value(tf.Variable([1.0]))
    assert isinstance(spec, dense) and (spec.shape, spec.dtype, spec.trainable) == ([1], tf.float32, True)
    assert repr(spec) == "VariableSpec(shape=(1,), dtype=tf.float32, trainable=True, alias_id=None)"


def test_convolution():
    convolution = inner("ops.nn_ops").Convolution([1, 4, 4, 1], [2, 2, 1, 1], "SAME", strides=[2, 2])
    x, w = tf.ones([1, 4, 4, 1]), tf.ones([2, 2, 1, 1])
    np.testing.assert_array_equal(convolution(x, w), tf.nn.conv2d(x, w, 2, "SAME"))
    with pytest.raises(ValueError, match="num_spatial_dims must be provided"):
        inner("ops.nn_ops").Convolution(None, None, "SAME")


def test_sum_of_operators():
    add = inner("ops.linalg.linear_operator_addition").add_operators
    diagonal, identity = tf.linalg.LinearOperatorDiag([1.0, 2.0]), tf.linalg.LinearOperatorIdentity(2)
    (total,) = add([diagonal, identity])
    assert isinstance(total, tf.linalg.LinearOperatorDiag)
    np.testing.assert_array_equal(total.to_dense(), [[2.0, 0.0], [0.0, 3.0]])
    (total,) = add([diagonal, tf.linalg.LinearOperatorLowerTriangular([[1.0, 0.0], [1.0, 1.0]])])
    assert isinstance(total, tf.linalg.LinearOperatorLowerTriangular)
    (total,) = add([diagonal, tf.linalg.LinearOperatorFullMatrix([[1.0, 1.0], [1.0, 1.0]])])
    assert isinstance(total, tf.linalg.LinearOperatorFullMatrix)
    np.testing.assert_array_equal(total.to_dense(), [[2.0, 1.0], [1.0, 3.0]])
    (total,) = add([identity, tf.linalg.LinearOperatorScaledIdentity(2, [3.0, 4.0])])
    assert isinstance(total, tf.linalg.LinearOperatorScaledIdentity)
    np.testing.assert_array_equal(total.multiplier, [4.0, 5.0])
    with pytest.raises(TypeError, match="Expected operator to be one of"):
        add([identity, tf.linalg.LinearOperatorZeros(2)])


def test_truncated_normal():
    draw = inner("ops.random_ops").parameterized_truncated_normal
    x = draw([2, 100], means=[0.0, 5.0], stddevs=[1.0, 1.0], minvals=[-1.0, 4.0], maxvals=[1.0, 6.0], seed=3)
    assert np.all((x[0] >= -1) & (x[0] <= 1)) and np.all((x[1] >= 4) & (x[1] <= 6))


def test_remove_undocumented(monkeypatch):
    module = types.ModuleType("house")
    module.door, module.key, module._lock = 1, 2, 3
    monkeypatch.setitem(sys.modules, "house", module)
    inner("util.all_util").remove_undocumented("house", ["door"])
    assert (hasattr(module, "door"), hasattr(module, "key"), module._lock) == (True, False, 3)


@pytest.mark.parametrize(
    ("make", "size"),
    [
        (lambda d: d.batch(4), 4),
        (lambda d: d.batch(4).prefetch(2).repeat().shuffle(3), 4),
        (lambda d: d.batch(4).concatenate(d.batch(4)), 4),
        (lambda d: d.batch(4).concatenate(d.batch(3)), -1),
        (lambda d: d.batch(4).map(lambda x: x[:2]), -1),
        (lambda d: d.batch(4, drop_remainder=True).map(lambda x: x[:2]), 2),
        (lambda d: d, -1),
    ],
)
def test_batch_sizes_that_stages_tell(make, size):
    assert compute_batch_size(make(tf.data.Dataset.range(10))) == size


def test_the_memory_checker_sees_what_is_left():
    checker = inner("framework.memory_checker").MemoryChecker
    left = []
    with checker() as steady:
        for _ in range(3):
            [[] for _ in range(10)]
            steady.record_snapshot()
    steady.assert_no_leak_if_all_possibly_except_one()
    with checker() as growing:
        for _ in range(3):
            left.extend([[0] for _ in range(1000)])
            growing.record_snapshot()
    with pytest.raises(AssertionError, match="more and more"):
        growing.assert_no_leak_if_all_possibly_except_one()
    with pytest.raises(AssertionError, match=r"new objects: .*'list'"):
        growing.assert_no_new_python_objects()


def test_a_file_gives_the_neighbours_that_it_imports():
    assert inner("framework.test_util").random_seed is inner("framework.random_seed")
    assert inner("framework.test_util").random_seed.set_seed is tf.random.set_seed
    assert not hasattr(inner("ops.math_ops"), "test_util") and not hasattr(inner("ops"), "framework")
