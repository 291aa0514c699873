"""`tf.function`: which calls share a graph, what a concrete function tells, and the errors of wrong calls."""

import copy
import gc
import pickle
import weakref
from collections import namedtuple

import numpy as np
import pytest

import tapeflow as tf

Pair = namedtuple("Pair", "a b")


def traces(function, *calls):
    for args in calls:
        function(*args)
    return function.experimental_get_tracing_count()


# ---- which calls share a graph


@pytest.mark.parametrize(
    ("calls", "count"),
    [
        ([(tf.constant(1.0),), (tf.constant(2.0),)], 1),
        ([(tf.constant(1.0),), (tf.constant([2.0]),)], 2),
        ([(tf.constant(1.0),), (tf.constant(1),)], 2),
        ([(np.ones(3),), (np.zeros(3),)], 1),
        ([("a",), ("b",), ("a",)], 2),
        ([([1, 2],), ((1, 2),), ([1, 2],)], 2),
        ([({"a": 1},), ({"a": 1},), ({"b": 1},)], 2),
        ([(Pair(tf.constant(1), 2),), (Pair(tf.constant(3), 2),)], 1),
        ([(float("nan"),), (float("nan"),)], 1),
        ([(None,), (None,)], 1),
    ],
)
def test_kinds_of_arguments(calls, count):
    assert traces(tf.function(lambda x: 0), *calls) == count


def test_python_numbers_of_different_types_are_different():
    function = tf.function(lambda x: x)
    assert function(1).dtype == tf.int32
    assert function(1.0).dtype == tf.float32
    assert function(True).dtype == tf.bool


def test_objects_by_identity_and_weakly():
    class Thing:
        pass

    function = tf.function(lambda x: 0)
    first, second = Thing(), Thing()
    assert traces(function, (first,), (first,), (second,)) == 2
    seen = weakref.ref(first)
    del first
    gc.collect()
    assert seen() is None


def test_unhashable_arguments_are_refused():
    with pytest.raises(TypeError, match="Could not generate a generic TraceType"):
        tf.function(lambda x: 0)({1, 2})


def test_defaults_and_keywords_are_the_same_call():
    @tf.function
    def function(x, y=2):
        return x

    for call in (lambda: function(1), lambda: function(1, 2), lambda: function(1, y=2), lambda: function(x=1)):
        call()
    assert function.experimental_get_tracing_count() == 1


def test_variable_arguments():
    function = tf.function(lambda v, k: v.assign_add(k))
    v = tf.Variable(1.0)
    function(v, tf.constant(2.0))
    function(v, tf.constant(3.0))
    assert v.numpy() == 6.0
    assert function.experimental_get_tracing_count() == 1


def test_star_arguments():
    function = tf.function(lambda *args, **kwargs: (args, kwargs))
    args, kwargs = function(1, tf.constant(2), z=np.ones(1))
    assert [a.numpy() for a in args] == [1, 2]
    assert kwargs["z"].dtype == tf.float64


def test_more_general_graph_is_used_for_new_shapes():
    function = tf.function(lambda x: x * 2)
    function(tf.ones([1]))
    function.get_concrete_function(tf.TensorSpec([None], tf.float32))
    function(tf.ones([5]))
    function(tf.ones([6]))
    assert function.experimental_get_tracing_count() == 2


def test_reduce_retracing():
    function = tf.function(lambda x: tf.shape(x), reduce_retracing=True)
    for size in (1, 2, 3, 4):
        assert function(tf.ones([size, 2])).numpy().tolist() == [size, 2]
    assert function.experimental_get_tracing_count() == 2
    function(tf.ones([2, 2, 2]))
    function(tf.ones([2]))
    assert function.experimental_get_tracing_count() == 3
    assert "shape=<unknown>" in function.pretty_printed_concrete_signatures()


def test_reduce_retracing_of_values_of_replicas_and_extension_types():
    class Pair(tf.experimental.ExtensionType):
        first: tf.Tensor
        rest: tuple[tf.Tensor, ...]

    strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])

    def both(size):
        return strategy.experimental_distribute_values_from_function(
            lambda context: tf.ones([size + context.replica_id_in_sync_group, 2])
        )

    def check(make, parts):
        shapes = []

        def traced(x):
            shapes.append([part.shape.as_list() for part in parts(x)])
            return [tf.reduce_sum(part) for part in parts(x)]

        function = tf.function(traced, reduce_retracing=True)
        for size in (1, 2, 0, 5):
            expected = [float(tf.size(part)) for part in parts(make(size))]
            assert [total.numpy() for total in function(make(size))] == expected
        assert len(shapes) == 2 and all(None in shape for shape in shapes[1])

    check(both, strategy.experimental_local_results)
    check(lambda size: Pair(tf.ones([size, 2]), (tf.ones([2, size]),)), lambda x: (x.first, *x.rest))


def test_retracing_warning_twice_per_function(caplog):
    function = tf.function(lambda x: 0)
    with caplog.at_level("WARNING", logger="tensorflow"):
        tf.get_logger().addHandler(caplog.handler)
        try:
            for i in range(9):
                function(i)
        finally:
            tf.get_logger().removeHandler(caplog.handler)
    texts = {r.getMessage() for r in caplog.records if "triggered tf.function retracing" in r.getMessage()}
    assert len(texts) == 2
    assert any(t.startswith("5 out of the last 5 calls to <function") for t in texts)


# ---- input_signature


@pytest.fixture
def doubled():
    return tf.function(lambda x: x * 2, input_signature=[tf.TensorSpec([None], tf.float32)])


def test_input_signature_casts_and_traces_once(doubled):
    for value in ([1.0], [1, 2], np.array([1, 2, 3]), tf.ones([4])):
        assert doubled(value).dtype == tf.float32
    assert doubled.experimental_get_tracing_count() == 1


@pytest.mark.parametrize(
    ("args", "problem"),
    [
        ((tf.constant([[1.0]]),), r"Can not cast TensorSpec\(shape=\(1, 1\), dtype=tf.float32, name=None\) to"),
        ((tf.constant([1]),), r"Can not cast TensorSpec\(shape=\(1,\), dtype=tf.int32, name=None\) to"),
        (("a",), "Cannot convert 'a' to EagerTensor of dtype float"),
        (([1.0], [2.0]), "too many positional arguments"),
        ((), "missing a required argument: 'x'"),
        ((None,), r"Attempt to convert a value \(None\)"),
    ],
)
def test_input_signature_mismatch(doubled, args, problem):
    with pytest.raises(TypeError, match=f"Binding inputs to tf.function failed due to `{problem}"):
        doubled(*args)


def test_nested_input_signature():
    @tf.function(input_signature=[tf.TensorSpec([], tf.float32), {"a": tf.TensorSpec([None], tf.int32)}])
    def function(x, d):
        return x + tf.cast(tf.reduce_sum(d["a"]), tf.float32)

    assert function(1.0, {"a": [1, 2]}).numpy() == 4.0
    with pytest.raises(TypeError, match="has different keys"):
        function(1.0, {"b": [1, 2]})
    with pytest.raises(TypeError, match=r"Can not cast .* to a Dict type"):
        function(1.0, [1, 2])


@pytest.mark.parametrize(
    ("function", "signature", "message"),
    [
        (lambda x: x, [tf.TensorSpec([]), tf.TensorSpec([])], "contains 1 extra type constraints"),
        (lambda x: x, tf.TensorSpec([]), "must be either a tuple or a list"),
        (lambda *, x: x, [tf.TensorSpec([])], "keyword-only parameter `x` must have a default value"),
    ],
)
def test_impossible_input_signatures(function, signature, message):
    with pytest.raises(TypeError, match=message):
        tf.function(function, input_signature=signature)


def test_unknown_rank():
    seen = []
    function = tf.function(lambda x: seen.append(x.shape.rank) or x + 1, input_signature=[tf.TensorSpec(None)])
    assert function(tf.ones([2])).shape == [2]
    assert function(tf.ones([])).shape == []
    assert seen == [None]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda f: f(1), "missing a required argument: 'b'"),
        (lambda f: f(1, 2, 3), "too many positional arguments"),
        (lambda f: f(1, 2, c=3), "got an unexpected keyword argument 'c'"),
    ],
)
def test_wrong_calls(call, message):
    with pytest.raises(TypeError, match=f"Binding inputs to tf.function failed due to `{message}`"):
        call(tf.function(lambda a, b: a))


# ---- variables, methods, recursion


def test_variables_are_created_on_the_first_call_only():
    class Model(tf.Module):
        weight = None

        @tf.function
        def __call__(self, x):
            if self.weight is None:
                self.weight = tf.Variable(2.0)
            return self.weight * x

    model = Model()
    assert model(tf.constant(3.0)).numpy() == 6.0
    assert model.__call__.experimental_get_tracing_count() == 2
    model(tf.constant(4.0))
    assert model.__call__.experimental_get_tracing_count() == 2


def test_variable_created_in_every_call_is_refused():
    with pytest.raises(ValueError, match=r"only supports singleton tf.Variables created on the first call"):
        tf.function(lambda x: x + tf.Variable(1.0))(1.0)


def test_variables_of_an_init_scope_count_as_made_by_the_function():
    made, traces = [], []

    @tf.function
    def f(x):
        traces.append(len(made))
        if not made:
            with tf.init_scope():
                made.append(tf.Variable(2.0))
        return made[0] * x

    assert [float(f(tf.constant(3.0))) for _ in range(2)] == [6.0, 6.0]
    assert traces == [0, 1]  # as in TensorFlow, the graph that is kept was traced without making variables


class Counter:
    def __init__(self, step):
        self.step = step

    @tf.function
    def add(self, x):
        return x + self.step


def test_methods_have_their_own_traces_and_keep_nothing_alive():
    one, ten = Counter(1), Counter(10)
    assert one.add(tf.constant(1)).numpy() == 2
    assert ten.add(tf.constant(1)).numpy() == 11
    assert one.add.experimental_get_tracing_count() == 1
    assert one.add is one.add
    seen = weakref.ref(one)
    del one
    assert seen() is None


def test_method_of_a_temporary_object_and_through_the_class():
    assert Counter(5).add(tf.constant(1)).numpy() == 6
    assert Counter.add(Counter(6), tf.constant(1)).numpy() == 7


def test_objects_without_weak_references():
    class Slots:
        __slots__ = ()

        @tf.function
        def twice(self, x):
            return 2 * x

    slots = Slots()
    assert slots.twice(tf.constant(3)).numpy() == 6
    assert slots.twice(tf.constant(4)).numpy() == 8
    assert slots.twice.experimental_get_tracing_count() == 1


def test_recursion_over_python_values():
    @tf.function
    def factorial(n):
        return tf.constant(1) if n <= 1 else n * factorial(n - 1)

    assert factorial(5).numpy() == 120
    assert factorial.experimental_get_tracing_count() == 5


def test_nested_function_with_a_variable_is_traced_once():
    v = tf.Variable(2.0)
    inner = tf.function(lambda x: x * v)
    outer = tf.function(lambda x: inner(x) + inner(x))
    assert outer(tf.constant(3.0)).numpy() == 12.0
    v.assign(5.0)
    assert inner(tf.constant(3.0)).numpy() == 15.0
    assert outer(tf.constant(3.0)).numpy() == 30.0
    assert inner.experimental_get_tracing_count() == 1


def test_inner_function_over_a_tensor_of_the_outer_one():
    @tf.function
    def outer(x):
        inner = tf.function(lambda y: x * y)
        return inner(x) + inner(x + 1)

    assert outer(tf.constant(3.0)).numpy() == 21.0


# ---- concrete functions


def test_concrete_function():
    @tf.function
    def function(x, d):
        return {"s": x + d["a"], "t": (x, None, 3)}

    concrete = function.get_concrete_function(
        tf.TensorSpec([], tf.float32), {"a": tf.TensorSpec([2], tf.float32, name="given")}
    )
    args, kwargs = concrete.structured_input_signature
    assert args[0] == tf.TensorSpec([], tf.float32, name="x")
    assert args[1]["a"].name == "given"
    assert kwargs == {}
    assert concrete.structured_outputs["t"][1] is None
    assert [t.name for t in concrete.inputs] == ["x:0", "given:0"]
    assert concrete.output_shapes["s"] == [2]
    assert concrete.name.startswith(b"__inference_function_")
    text = concrete.pretty_printed_signature()
    assert text.startswith("Input Parameters:\n  x (POSITIONAL_OR_KEYWORD): TensorSpec(shape=(), dtype=tf.float32")
    assert text.endswith("Captures:\n  None")
    assert "Dict[['s', TensorSpec(shape=(2,), dtype=tf.float32, name=None)]" in text
    one, pair = tf.constant(1.0), tf.constant([1.0, 2.0])
    for result in (
        concrete(one, {"a": pair}),
        concrete(x=one, d={"a": pair}),
        concrete(one, pair),
        concrete(x=one, given=pair),
    ):
        assert result["s"].numpy().tolist() == [2.0, 3.0]


def test_concrete_function_refuses_other_calls():
    function = tf.function(lambda x, y=2: x * y)
    concrete = function.get_concrete_function(tf.TensorSpec([None], tf.float32, name="q"))
    assert concrete(tf.constant([1.0])).numpy().tolist() == [2.0]
    assert concrete(q=tf.constant([1.0])).numpy().tolist() == [2.0]
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"input #0\(zero-based\) was expected to be a float"):
        concrete(tf.constant([1]))
    with pytest.raises(TypeError, match=r"missing a required argument: 'x'[\s\S]*missing required arguments: q"):
        concrete()
    with pytest.raises(TypeError, match="Can not cast 3 to Literal"):
        concrete(tf.constant([1.0]), 3)


def test_captures_and_variables():
    v, w = tf.Variable(1.0), tf.Variable(1.0, trainable=False)
    concrete = tf.function(lambda x: x + v + w).get_concrete_function(tf.constant(1.0))
    assert {id(x) for x in concrete.variables} == {id(v), id(w)}
    assert [x is v for x in concrete.trainable_variables] == [True]
    assert len(concrete.captured_inputs) == 2


def test_names():
    @tf.function
    def function(x):
        """Doc."""
        return x

    assert (function.__name__, function.name, function.__doc__) == ("function", "function", "Doc.")
    assert "function" in repr(function)
    assert function.python_function(3) == 3
    assert function.input_signature is None


def module_function(x):
    return x + 1


module_function_traced = tf.function(module_function)


def test_copies_and_pickles():
    copied = copy.deepcopy(module_function_traced)
    assert copied(tf.constant(1)).numpy() == 2
    assert copied.experimental_get_tracing_count() == 1
    assert pickle.loads(pickle.dumps(module_function_traced))(tf.constant(1)).numpy() == 2


# ---- ways of calling, results


def test_call_forms():
    assert tf.function(lambda x: x + 1)(tf.constant(1)).numpy() == 2
    assert tf.function()(lambda x: x + 1)(tf.constant(1)).numpy() == 2
    options = {"jit_compile": True, "experimental_implements": "x", "experimental_relax_shapes": True}
    assert tf.function(lambda x: x + 1, **options)(tf.constant(1)).numpy() == 2
    assert tf.function(tf.function(lambda x: x + 1))(tf.constant(1)).numpy() == 2


def test_results():
    a, b, c, d, e = tf.function(lambda: ("a", 1, 2.5, None, [np.ones(2)]))()
    assert (a.dtype, b.dtype, c.dtype, d, e[0].dtype) == (tf.string, tf.int32, tf.float32, None, tf.float64)
    with pytest.raises(TypeError, match=r"must return zero or more Tensors .* found return value of type object"):
        tf.function(lambda: object())()


def test_composite_arguments_and_results():
    ragged = tf.function(lambda r: r * 2.0)(tf.ragged.constant([[1.0], [2.0, 3.0]]))
    assert ragged.to_list() == [[2.0], [4.0, 6.0]]
    dense = tf.function(lambda s: tf.sparse.to_dense(s))(tf.sparse.from_dense([[0.0, 1.0]]))
    assert dense.numpy().tolist() == [[0.0, 1.0]]
    slices = tf.IndexedSlices(tf.constant([1.0]), tf.constant([1]), tf.constant([3]))
    assert tf.function(lambda s: tf.convert_to_tensor(s))(slices).numpy().tolist() == [0.0, 1.0, 0.0]
    array = tf.TensorArray(tf.float32, 2).write(0, 1.0).write(1, 2.0)
    assert tf.function(lambda a: a.stack())(array).numpy().tolist() == [1.0, 2.0]
    assert tf.function(lambda a: a)(array).stack().numpy().tolist() == [1.0, 2.0]


def test_run_functions_eagerly():
    function = tf.function(lambda: tf.executing_eagerly())
    assert not function().numpy()
    tf.config.run_functions_eagerly(True)
    try:
        assert function() is True
    finally:
        tf.config.run_functions_eagerly(False)


# ---- errors


def test_escaped_tensor_names_its_line():
    kept = []

    @tf.function
    def leaking(x):
        escaped = x + 1
        kept.append(escaped)
        return x

    leaking(tf.constant(1.0))
    for use in (lambda: kept[0] + 1, lambda: tf.function(lambda: kept[0] * 2)()):
        with pytest.raises(TypeError, match=r"is out of scope and cannot be used here.*[\s\S]*escaped = x \+ 1"):
            use()


def test_tensors_of_a_loop_that_is_over():
    @tf.function
    def leaking(n):
        kept = []
        for i in tf.range(n):
            kept.append(i)
        return kept

    with pytest.raises(ValueError, match="is out of scope and cannot be used here") as caught:
        leaking(tf.constant(3))
    assert type(caught.value).__name__ == "InaccessibleTensorError"


def test_errors_while_tracing_are_value_errors_at_the_users_line():
    @tf.function
    def wrong(x):
        y = x + 1
        return tf.matmul(y, y)

    with pytest.raises(ValueError, match="size-incompatible") as caught:
        wrong(tf.ones([2, 3]))
    assert caught.traceback[-1].name == "wrong"


def test_explain_retrace():
    @tf.function
    def function(x, n=3):
        return x

    function(tf.ones([2]))
    assert "nothing to compare" in function.explain_retrace()
    function(tf.ones([3]))
    assert "argument 'x'" in function.explain_retrace()
    assert "reduce_retracing=True" in function.explain_retrace()
    assert "tf.constant(4)" in function.explain_retrace(tf.ones([2]), n=4)
    assert "tf.cast(x, tf.float32)" in function.explain_retrace(tf.ones([2], tf.int32))
    assert "need no trace" in function.explain_retrace(tf.ones([2]))
    assert function.experimental_get_tracing_count() == 2


def test_text_and_drawing():
    function = tf.function(lambda x: tf.reduce_sum(x * x))
    text = function.experimental_get_compiler_ir(tf.ones([3]))(stage="hlo")
    assert "Mul(%0, %0) : float32[3]" in text
    assert "test_function.py" in text
    drawing = function.graph_svg()
    assert drawing.startswith("<svg")
    assert drawing.count("<rect") == 3


def test_errors_in_branches_and_loops_end_at_the_users_line():
    @tf.function
    def undefined(x):
        if x > 0:
            y = 1
        return y

    with pytest.raises(ValueError, match="'y' must also be initialized in the else branch") as caught:
        undefined(tf.constant(1.0))
    assert caught.traceback[-1].name == "undefined"

    @tf.function
    def growing(x):
        for _ in tf.range(3):
            x = tf.concat([x, x], 0)
        return x

    with pytest.raises(ValueError, match=r"'x' has shape \(2,\) before the loop, but shape \(4,\)") as caught:
        growing(tf.ones([2]))
    assert caught.traceback[-1].name == "growing"


def test_module_copies_have_their_own_variables():
    class Scale(tf.Module):
        def __init__(self):
            super().__init__()
            self.weight = tf.Variable(2.0)

        @tf.function
        def __call__(self, x):
            return self.weight * x

    scale = Scale()
    scale(tf.constant(1.0))
    other = copy.deepcopy(scale)
    other.weight.assign(5.0)
    assert (scale(tf.constant(1.0)).numpy(), other(tf.constant(1.0)).numpy()) == (2.0, 5.0)


def test_a_tensor_is_not_a_list_of_one():
    function = tf.function(lambda x: x[0] if isinstance(x, list) else x)
    x = tf.constant([1.0, 2.0])
    assert function([x]).shape == [2]
    assert function(x).shape == [2]
    assert function.experimental_get_tracing_count() == 2


def test_shapes_that_are_known_around_a_loop_are_known_in_it():
    @tf.function
    def f(x):
        shape = tf.stack([tf.shape(x)[0], 3])
        y = tf.while_loop(lambda i, y: i < 2, lambda i, y: (i + 1, tf.fill(shape, 1.0)), [0, tf.ones([2, 3])])[1]
        assert y.shape == [2, 3]
        return y

    assert f(tf.ones([2, 5])).shape == [2, 3]


@pytest.mark.parametrize("options", [None, tf.autograph.experimental.Feature.ALL])
def test_autograph_options_are_kept_as_given(options):
    f = tf.function(abs, experimental_autograph_options=options)
    assert f._experimental_autograph_options == options
    assert copy.deepcopy(f)._experimental_autograph_options == options


def test_an_inner_function_is_traced_again_once_its_variables_are_made():
    state = []

    @tf.function
    def inner(x):
        scale = state[0] if state else 8.0  # as Keras's loss scale, until its optimizer is built
        y = x * scale
        if not state:
            state.append(tf.Variable(2.0))
        return y

    outer = tf.function(lambda x: inner(x) + 1.0)
    assert float(outer(3.0)) == 7.0
    state[0].assign(5.0)
    assert float(outer(3.0)) == 16.0
