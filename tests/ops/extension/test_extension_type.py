"""Extension types: fields, specs, functions, control flow, gradients, and public functions that know them."""

import copy
import inspect
import typing

import numpy as np
import pytest

import tapeflow as tf


class Masked(tf.experimental.ExtensionType):
    values: tf.Tensor
    mask: tf.Tensor
    name: str = "m"

    def __validate__(self):
        self.values.shape.assert_is_compatible_with(self.mask.shape)

    def total(self):
        return tf.reduce_sum(tf.where(self.mask, self.values, 0.0))


class Wide(tf.experimental.ExtensionType):
    either: tf.Tensor | Masked
    several: tuple[tf.Tensor, ...] = ()
    named: typing.Mapping[str, tf.Tensor] = {}
    number: typing.Optional[int] = None  # noqa: UP045
    shaped: tf.TensorSpec([None], tf.float32) = (1.0,)


@pytest.fixture
def masked():
    return Masked([1.0, 2.0], [True, False])


class TestFields:
    def test_values_become_tensors(self, masked):
        assert isinstance(masked.values, tf.Tensor)
        assert masked.mask.dtype == tf.bool
        assert masked.name == "m"
        assert repr(masked).startswith("Masked(values=<tf.Tensor: shape=(2,), dtype=float32")
        assert repr(masked).endswith("name='m')")

    def test_signature(self):
        assert list(inspect.signature(Masked).parameters) == ["values", "mask", "name"]

    def test_refusals(self, masked):
        with pytest.raises(TypeError, match="name: expected 'str', got 'int'"):
            Masked([1.0], [True], name=3)
        with pytest.raises(TypeError, match="missing a required argument: 'mask'"):
            Masked([1.0])
        with pytest.raises(ValueError, match=r"\(2,\) and \(1,\)"):
            Masked([1.0, 2.0], [True])
        with pytest.raises(AttributeError, match="Cannot mutate attribute `values` outside the custom constructor"):
            masked.values = 3
        with pytest.raises(AttributeError, match="Cannot mutate"):
            del masked.values
        with pytest.raises(TypeError, match="unhashable"):
            hash(masked)
        with pytest.raises(TypeError, match="Unsupported type annotation"):

            class Bad(tf.experimental.ExtensionType):
                x: set

    def test_nested_kinds(self, masked):
        wide = Wide(masked, ([1.0], 2.0), {"x": 3.0}, 4, [5.0, 6.0])
        assert wide.either is masked
        assert [float(t[0]) if t.shape.rank else float(t) for t in wide.several] == [1.0, 2.0]
        assert float(wide.named["x"]) == 3.0
        with pytest.raises(TypeError, match="does not support changes"):
            wide.named["y"] = 1
        assert Wide(1.0).either.dtype == tf.float32
        assert Wide(1.0).shaped.numpy().tolist() == [1.0]
        for arguments, what in (({"number": "a"}, "number: expected"), ({"shaped": 1.0}, "compatible with TensorSpec")):
            with pytest.raises(TypeError, match=what):
                Wide(1.0, **arguments)

    def test_own_constructor_and_inheritance(self):
        class Sum(tf.experimental.ExtensionType):
            v: tf.Tensor

            def __init__(self, a, b):
                self.v = a + b

        class Named(Sum):
            label: str

            def __init__(self, a, b):
                super().__init__(a, b)
                self.label = "sum"

        assert float(Sum(1.0, 2.0).v) == 3.0
        named = Named(tf.constant(1.0), 2.0)
        assert (float(named.v), named.label) == (3.0, "sum")

        class Forgetful(tf.experimental.ExtensionType):
            v: tf.Tensor

            def __init__(self):
                pass

        with pytest.raises(AttributeError, match="did not set the field 'v'"):
            Forgetful()

    def test_equality(self, masked):
        assert bool(masked == Masked([1.0, 2.0], [True, False]))
        assert not bool(masked == Masked([1.0, 2.0], [True, True]))
        assert bool(masked != Masked([1.0, 2.0], [True, True]))
        assert (masked == 3) is False


class TestSpec:
    def test_of_a_value(self, masked):
        spec = tf.type_spec_from_value(masked)
        assert spec == Masked.Spec(tf.TensorSpec([2]), tf.TensorSpec([2], tf.bool), name="m")
        assert repr(spec) == (
            "Masked.Spec(values=TensorSpec(shape=(2,), dtype=tf.float32, name=None), "
            "mask=TensorSpec(shape=(2,), dtype=tf.bool, name=None), name='m')"
        )
        assert spec.values.shape == [2]
        assert isinstance(spec, tf.experimental.ExtensionTypeSpec)
        assert hash(spec) == hash(tf.type_spec_from_value(masked))

    def test_compatibility(self, masked):
        any_length = Masked.Spec(tf.TensorSpec([None]), tf.TensorSpec([None], tf.bool))
        assert any_length.is_compatible_with(masked)
        assert not any_length.is_compatible_with(Masked([1.0], [True], name="other"))
        common = tf.type_spec_from_value(masked).most_specific_common_supertype([any_length])
        assert common == any_length

    def test_nest(self, masked):
        flat = tf.nest.flatten(masked, expand_composites=True)
        assert len(flat) == 2
        again = tf.nest.pack_sequence_as(masked, list(flat), expand_composites=True)
        assert bool(again == masked)
        assert tf.nest.flatten(masked) == [masked] or tf.nest.flatten(masked)[0] is masked

    def test_batches(self):
        class Point(tf.experimental.BatchableExtensionType):
            x: tf.Tensor

        spec = Point.Spec(tf.TensorSpec([3]))
        assert spec._batch(2).x.shape == [2, 3]
        assert spec._batch(2)._unbatch() == spec


class TestPrograms:
    def test_function(self, masked):
        traces = []

        @tf.function
        def double(m):
            traces.append(m)
            return Masked(m.values * 2.0, m.mask, m.name)

        assert double(masked).values.numpy().tolist() == [2.0, 4.0]
        double(Masked([3.0, 4.0], [True, True]))
        assert len(traces) == 1
        double(Masked([3.0, 4.0], [True, True], name="other"))
        assert len(traces) == 2

    def test_input_signature(self):
        spec = Masked.Spec(tf.TensorSpec([None]), tf.TensorSpec([None], tf.bool))

        @tf.function(input_signature=[spec])
        def total(m):
            return m.total()

        assert float(total(Masked([1.0, 2.0, 4.0], [True, False, True]))) == 5.0

    def test_loop_and_branch(self, masked):
        @tf.function
        def run(m, n):
            for _ in tf.range(n):
                m = Masked(m.values + 1.0, m.mask)
            return tf.cond(n > 2, lambda: m, lambda: Masked(-m.values, m.mask))

        assert run(masked, tf.constant(3)).values.numpy().tolist() == [4.0, 5.0]
        assert run(masked, tf.constant(1)).values.numpy().tolist() == [-2.0, -3.0]

    def test_gradients(self):
        x = tf.Variable([1.0, 2.0])

        @tf.function
        def loss(m):
            return m.total() ** 2

        with tf.GradientTape() as tape:
            y = loss(Masked(x * 3.0, [True, False]))
        assert tape.gradient(y, x).numpy().tolist() == [18.0, 0.0]


class TestDispatch:
    def test_unary_and_binary(self, masked):
        @tf.experimental.dispatch_for_unary_elementwise_apis(Masked)
        def unary(api, x):
            return Masked(api(x.values), x.mask)

        @tf.experimental.dispatch_for_binary_elementwise_apis(Masked, tf.Tensor | Masked | float)
        def binary(api, x, y):
            return Masked(api(x.values, y.values if isinstance(y, Masked) else y), x.mask)

        try:
            assert tf.math.negative(masked).values.numpy().tolist() == [-1.0, -2.0]
            assert tf.cast(masked, tf.int32).values.dtype == tf.int32
            assert tf.nn.leaky_relu(masked, alpha=0.1).values.numpy().tolist() == [1.0, 2.0]
            assert tf.add(masked, masked).values.numpy().tolist() == [2.0, 4.0]
            assert tf.math.multiply(masked, y=3.0).values.numpy().tolist() == [3.0, 6.0]
            assert tf.abs(-1.0).numpy() == 1.0
            assert tf.abs is tf.math.abs
            assert tf.function(lambda m: tf.sin(m))(masked).values.shape == [2]
        finally:
            tf.experimental.unregister_dispatch_for(unary)
            tf.experimental.unregister_dispatch_for(binary)
        with pytest.raises((TypeError, ValueError)):
            tf.math.negative(masked)

    def test_names_are_as_before_afterwards(self):
        before = tf.abs

        @tf.experimental.dispatch_for_unary_elementwise_apis(Masked)
        def unary(api, x):
            return x

        assert tf.abs is not before
        tf.experimental.unregister_dispatch_for(unary)
        assert tf.abs is before
        assert tf.math.abs is before

    def test_api_by_annotations_and_operators(self, masked):
        @tf.experimental.dispatch_for_api(tf.stack)
        def stack(values: list[Masked], axis=0):
            return Masked(tf.stack([v.values for v in values], axis), tf.stack([v.mask for v in values], axis))

        @tf.experimental.dispatch_for_api(tf.math.add, {"x": tf.Tensor, "y": Masked})
        def add(x, y, name=None):
            return Masked(x + y.values, y.mask)

        try:
            assert tf.stack([masked, masked]).values.shape == [2, 2]
            assert tf.stack([1.0, 2.0]).shape == [2]
            assert (tf.constant(1.0) + masked).values.numpy().tolist() == [2.0, 3.0]
            with pytest.raises(TypeError):
                masked + masked
        finally:
            tf.experimental.unregister_dispatch_for(stack)
            tf.experimental.unregister_dispatch_for(add)

    def test_refusals(self, masked):
        with pytest.raises(ValueError, match="unknown parameter 'nothing'"):
            tf.experimental.dispatch_for_api(tf.math.log, {"nothing": Masked})(lambda x: x)
        with pytest.raises(ValueError, match="does not match API's signature"):
            tf.experimental.dispatch_for_api(tf.math.log, {"x": Masked})(lambda x, base: x)
        with pytest.raises(TypeError, match="to be callable"):
            tf.experimental.dispatch_for_api(tf.math.log, {"x": Masked})(3)
        with pytest.raises(TypeError, match="must be dictionaries"):
            tf.experimental.dispatch_for_api(tf.math.log, [Masked])
        with pytest.raises(ValueError, match="does not support dispatch"):
            tf.experimental.dispatch_for_api(np.sin, {"x": Masked})
        with pytest.raises(ValueError, match="was not registered"):
            tf.experimental.unregister_dispatch_for(len)
        with pytest.raises(TypeError):
            tf.constant(1.0) + masked


def test_a_handler_for_objects_or_tensors_is_not_asked_about_tensors_alone():
    class Marked(tf.experimental.ExtensionType):
        values: tf.Tensor

    @tf.experimental.dispatch_for_binary_elementwise_apis(Marked | tf.Tensor, Marked | tf.Tensor)
    def handler(api, x, y):
        return Marked(api(*(v.values if isinstance(v, Marked) else v for v in (x, y))))

    try:
        assert tf.add(Marked([1.0]), tf.constant([2.0])).values.numpy().tolist() == [3.0]
        assert tf.add(tf.constant([1.0]), tf.constant([2.0])).numpy().tolist() == [3.0]
    finally:
        tf.experimental.unregister_dispatch_for(handler)


# ---- fields of the own class, specs of the program's own, batches


class Tree(tf.experimental.ExtensionType):
    value: tf.Tensor
    children: tuple["Tree", ...] = ()
    side: typing.Union["Tree", None] = None


class Marked(tf.experimental.BatchableExtensionType):
    values: tf.Tensor
    mask: tf.Tensor

    class Spec:
        def __init__(self, shape, dtype=tf.float32):
            self.values = tf.TensorSpec(shape, dtype)
            self.mask = tf.TensorSpec(shape, tf.bool)

        shape = property(lambda self: self.values.shape)

    def with_values(self, values):
        return Marked(values, self.mask)


def marked(values):
    return Marked(values, tf.greater(values, 0.0))


def test_fields_of_the_own_class():
    tree = Tree(1.0, [Tree(2.0), Tree(3.0, side=Tree(4.0))])
    assert tree.children[1].side.value.numpy() == 4.0
    doubled = tf.function(lambda tree: tree.value + tree.children[0].value)
    assert doubled(tree).numpy() == 3.0
    with pytest.raises(TypeError, match="children"):
        Tree(1.0, [2.0])


def test_a_spec_with_its_own_constructor():
    spec = Marked.Spec([2])
    assert spec.shape == [2] and spec == marked(tf.constant([1.0, 2.0]))._type_spec
    double = tf.function(lambda x: x.values * 2.0, input_signature=[spec])
    assert double(marked(tf.constant([1.0, 2.0]))).numpy().tolist() == [2.0, 4.0]


def test_datasets_of_objects():
    rows = [[1.0, -2.0], [3.0, 4.0], [5.0, 6.0]]
    dataset = tf.data.Dataset.from_tensor_slices(marked(tf.constant(rows)))
    assert dataset.element_spec.shape == [2]
    assert [x.values.numpy().tolist() for x in dataset] == rows
    batches = dataset.map(lambda x: x.with_values(x.values * 2.0)).batch(2)
    assert batches.element_spec.shape.as_list() == [None, 2]
    assert [x.values.shape.as_list() for x in batches] == [[2, 2], [1, 2]]
    assert [x.mask.numpy().tolist() for x in batches.unbatch()] == [[True, False], [True, True], [True, True]]
    made = tf.data.Dataset.from_generator(lambda: iter([marked(tf.constant([1.0]))]), output_signature=Marked.Spec([1]))
    assert [x.values.numpy().tolist() for x in made] == [[1.0]]


@pytest.mark.parametrize("traced", [False, True])
def test_maps_over_objects(traced):
    def run(x):
        same = tf.map_fn(lambda row: row.with_values(row.values + 1.0), x)
        plain = tf.map_fn(lambda row: tf.reduce_sum(row.values), x, fn_output_signature=tf.float32)
        made = tf.map_fn(marked, x.values, fn_output_signature=Marked.Spec([2]))
        return same.values, plain, made.mask

    values, sums, mask = (tf.function(run) if traced else run)(marked(tf.constant([[1.0, -2.0], [3.0, 4.0]])))
    assert values.numpy().tolist() == [[2.0, -1.0], [4.0, 5.0]]
    assert sums.numpy().tolist() == [-1.0, 7.0]
    assert mask.numpy().tolist() == [[True, False], [True, True]]


def test_a_list_of_tensors_alone_is_not_handed_over():
    @tf.experimental.dispatch_for_api(tf.stack)
    def stack(values: list[Marked | tf.Tensor], axis=0):
        values = [x if isinstance(x, Marked) else Marked(x, tf.ones_like(x, tf.bool)) for x in values]
        return Marked(tf.stack([x.values for x in values], axis), tf.stack([x.mask for x in values], axis))

    try:
        found = tf.stack([marked(tf.constant([1.0])), tf.constant([2.0])])
        assert isinstance(found, Marked) and found.values.numpy().tolist() == [[1.0], [2.0]]
        assert isinstance(tf.stack([tf.constant(1.0), tf.constant(2.0)]), tf.Tensor)
    finally:
        tf.experimental.unregister_dispatch_for(stack)


class Sized(tf.experimental.ExtensionType):
    shape: tf.TensorShape
    dtype: tf.DType
    values: tf.Tensor


def test_a_spec_converts_shapes_and_dtypes():
    spec = Sized.Spec(shape=None, dtype="int32", values=tf.TensorSpec([2]))
    assert spec.shape == tf.TensorShape(None) and isinstance(spec.shape, tf.TensorShape)
    assert spec.dtype is tf.int32
    assert Sized.Spec([2, None], tf.int32, tf.TensorSpec([2])).shape.as_list() == [2, None]


def test_the_mask_of_keras_may_be_set():
    value = Masked([1.0], [True])
    value._keras_mask = None
    assert value._keras_mask is None
    del value._keras_mask
    with pytest.raises(AttributeError, match="Cannot mutate attribute `other`"):
        value.other = 1


class Weighted(tf.experimental.ExtensionType):
    __name__ = "tests.Weighted"
    values: tf.Tensor
    weights: typing.Mapping[str, tf.Tensor]
    shape: tf.TensorShape


class TestSavedModels:
    def test_a_named_type_stands_in_signatures(self, tmp_path):
        class Grow(tf.Module):
            def __init__(self):
                self.v = tf.Variable(3.0)

            @tf.function
            def __call__(self, x: Weighted) -> Weighted:
                return Weighted(x.values * self.v, x.weights, x.shape)

        x = Weighted([1.0, 2.0], {"a": [1, 2]}, [2])
        module = Grow()
        module(x)
        tf.saved_model.save(module, str(tmp_path))
        y = tf.saved_model.load(str(tmp_path))(x)
        assert type(y) is Weighted and y.shape == tf.TensorShape([2])
        np.testing.assert_array_equal(y.values, [3.0, 6.0])
        np.testing.assert_array_equal(y.weights["a"], [1, 2])

    def test_a_name_is_given_once(self):
        with pytest.raises(ValueError, match=r"Name tests\.Weighted\.Spec has already been registered"):

            class Other(tf.experimental.ExtensionType):
                __name__ = "tests.Weighted"
                values: tf.Tensor

    def test_a_type_without_a_name_is_refused(self, tmp_path):
        module = tf.Module()
        module.f = tf.function(lambda x: x.values)
        module.f(Masked([1.0], [True]))
        with pytest.raises(ValueError, match="cannot be written into a SavedModel"):
            tf.saved_model.save(module, str(tmp_path))


def test_copies_of_specs():
    spec = tf.type_spec_from_value(Masked([1.0], [True]))
    assert copy.deepcopy(spec) == spec == copy.copy(spec)
    assert copy.deepcopy(spec).values == tf.TensorSpec([1])


def test_a_handler_without_a_name_works_in_a_name_scope():
    class Marked(tf.experimental.ExtensionType):
        values: tf.Tensor

    @tf.experimental.dispatch_for_api(tf.math.log, {"x": Marked})
    def log(x):
        return Marked(tf.math.log(x.values))

    try:
        with tf.Graph().as_default():
            assert tf.math.log(Marked([1.0]), name="given").values.name == "given/Log:0"
    finally:
        tf.experimental.unregister_dispatch_for(log)


def test_inner_modules_dispatch_too():
    tf.install_as_tensorflow()
    from tensorflow.python.ops import math_ops

    class Marked(tf.experimental.ExtensionType):
        values: tf.Tensor

    assert math_ops.negative(tf.constant(1.0)) == -1.0

    @tf.experimental.dispatch_for_api(math_ops.negative, {"x": Marked})
    def negative(x, name=None):
        return Marked(-x.values)

    try:
        assert math_ops.negative(Marked(1.0)).values == -1.0
        assert tf.negative(Marked(1.0)).values == -1.0
    finally:
        tf.experimental.unregister_dispatch_for(negative)


def test_classes_may_refer_to_later_ones():
    class First(tf.experimental.ExtensionType):
        rest: "tuple[Second, ...]"  # noqa: F821

    with pytest.raises(TypeError, match="something that is not there"):
        First(())

    globals()["Second"] = type("Second", (tf.experimental.ExtensionType,), {"__annotations__": {"x": tf.Tensor}})
    try:
        assert First((globals()["Second"](1.0),)).rest[0].x == 1.0
    finally:
        del globals()["Second"]
