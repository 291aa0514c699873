"""Concrete functions: how they are called, by structure or one tensor at a time, and what they tell of themselves."""

import threading

import pytest

import tapeflow as tf


def test_tensors_are_given_by_the_names_of_the_inputs():
    @tf.function
    def add(x, **kwargs):
        a, b = x
        return a + 10.0 * b + 100.0 * kwargs["d"]

    spec = tf.TensorSpec(None, tf.float32)
    concrete = add.get_concrete_function((spec, spec), d=spec)
    assert concrete._arg_keywords == ["x", "x_1", "d"]
    assert concrete(x=tf.constant(1.0), x_1=tf.constant(2.0), d=tf.constant(3.0)).numpy() == 321.0
    assert concrete(tf.constant(1.0), tf.constant(2.0), tf.constant(3.0)).numpy() == 321.0
    with pytest.raises(TypeError, match="missing a required argument: 'd'"):
        concrete((tf.constant(1.0), tf.constant(2.0)))


def test_names_of_specifications():
    @tf.function
    def same(x):
        return x

    named = same.get_concrete_function(tf.TensorSpec(None, tf.float32, "y"))
    assert named(y=tf.constant(3.0)).numpy() == 3.0
    assert same.get_concrete_function(tf.TensorSpec(None, tf.float32)) is named
    other = same.get_concrete_function(tf.TensorSpec(None, tf.float32, "z"))
    assert other.structured_input_signature[0][0].name == "z"
    assert same.experimental_get_tracing_count() == 2


def test_shapes_are_checked_while_another_function_is_traced():
    concrete = tf.function(lambda x: x + 1.0).get_concrete_function(tf.constant([1.0]))
    assert concrete(tf.constant([1.0, 2.0])).numpy().tolist() == [2.0, 3.0]
    with pytest.raises(TypeError, match=r"Can not cast TensorSpec\(shape=\(2,\).* to TensorSpec\(shape=\(1,\)"):
        tf.function(lambda: concrete(tf.constant([1.0, 2.0])))()


def test_a_tensor_is_no_python_value_while_tracing():
    @tf.function
    def outer():
        inner = tf.function(lambda x: x)
        with pytest.raises(TypeError, match=r"Binding inputs to tf.function failed"):
            inner.get_concrete_function(1)(tf.constant(1))
        return inner.get_concrete_function(tf.constant(1))(1)

    assert outer().numpy() == 1


def test_types():
    concrete = tf.function(lambda x, y=2: {"sum": x + y}).get_concrete_function(tf.TensorSpec([], tf.int32))
    kind = concrete.function_type
    assert [(p.name, p.kind.name) for p in kind.parameters.values()] == [
        ("x", "POSITIONAL_OR_KEYWORD"),
        ("y", "POSITIONAL_OR_KEYWORD"),
    ]
    assert kind.parameters["x"].type_constraint == tf.TensorSpec([], tf.int32)
    assert kind.output == {"sum": tf.TensorSpec([], tf.int32)}
    assert concrete.pretty_printed_signature(verbose=False).startswith("(x: TensorSpec(shape=(), dtype=tf.int32")


def test_variables_in_signatures():
    a, b = tf.Variable(1.0), tf.Variable(2.0)
    add = tf.function(lambda x, y: x + y)
    for given, aliases in (((a, a), [0, 0]), ((a, b), [0, 1])):
        (specs, _) = add.get_concrete_function(*given).structured_input_signature
        assert [spec.alias_id for spec in specs] == aliases
    with pytest.raises(TypeError, match="input_signature doesn't support VariableSpec"):
        tf.function(lambda v: v, input_signature=[specs[0]])


def test_all_graphs_and_copies():
    double = tf.function(lambda x: 2.0 * x, reduce_retracing=True)
    double(tf.constant(1.0))
    assert len(double._list_all_concrete_functions()) == 1
    triple = double._clone(python_function=lambda x: 3.0 * x)
    assert triple(tf.constant(2.0)).numpy() == 6.0 and triple._reduce_retracing
    assert triple.get_initialization_function(tf.constant(1.0))() is None


def test_the_graph_of_an_input_signature_is_traced_to_be_saved():
    specified = tf.function(lambda x: 2.0 * x, input_signature=[tf.TensorSpec([])])
    assert len(specified._list_all_concrete_functions_for_serialization()) == 1


def test_a_list_that_keeps_its_tensors_but_not_its_structure():
    @tf.function(autograph=False)
    def move(lists):
        lists[0].append(lists[1].pop(0))

    with pytest.raises(ValueError, match="should not modify its Python input arguments"):
        move([[tf.constant(0.0)], [tf.constant(1.0), tf.constant(2.0)]])


def test_a_function_made_again_and_again_is_warned_of(caplog):
    logger = tf.get_logger()
    logger.propagate, before = True, logger.propagate
    try:
        for number in range(5):

            @tf.function
            def again(x):
                return x

            again(number)
    finally:
        logger.propagate = before
    assert "Tracing is expensive" in caplog.text


def test_arguments_that_would_have_one_name():
    with pytest.raises(ValueError, match="Name collision after sanitization"):
        tf.function(lambda **k: k["a_b"] + k["a/b"])(**{"a_b": 1, "a/b": 2})


def test_operations_as_people_read_them():
    cube = tf.function(lambda x: x**3).get_concrete_function(tf.TensorSpec([], tf.float32))
    operations = cube.graph.get_operations()
    assert [operation.name for operation in operations] == ["x", "pow/y", "pow", "Identity"]
    assert [operation.type for operation in operations] == ["Placeholder", "Const", "Pow", "Identity"]
    assert [operation.name for operation in operations] == [node.name for node in cube.graph.as_graph_def().node]
    assert cube.graph.get_operation_by_name("pow/y").outputs[0].numpy() == 3.0
    assert cube.graph.get_operation_by_name("x").outputs[0] is cube.inputs[0]


def test_the_graph_as_a_plain_function():
    bias = tf.constant([10.0])

    @tf.function
    def f(x, pair):
        return {"y": x * pair[0] + bias, "z": pair[1]}

    specs = tf.TensorSpec([None]), (tf.TensorSpec([]), tf.TensorSpec([]))
    concrete = f.get_concrete_function(*specs)
    atomic = concrete.inference_fn
    x, pair = tf.constant([1.0, 2.0]), (tf.constant(3.0), tf.constant(4.0))
    assert concrete.inference_fn is atomic and atomic.graph is concrete.graph and atomic.name == concrete.name
    assert atomic(x, pair)["y"].numpy().tolist() == [13.0, 16.0]
    assert len(atomic.call_flat(x, *pair)) == 2
    assert atomic.call_preflattened([x, *pair])["z"].numpy() == 4.0
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = atomic(x, pair)["y"]
    assert tape.gradient(y, x) is None
    with pytest.raises(ValueError, match="Signature specifies"):
        atomic.call_flat(x)
    assert repr(atomic).startswith("<AtomicFunction> __inference_f")


def test_the_definition_of_the_function():
    v = tf.Variable(2.0)
    cube = tf.function(lambda x: x**3 * v).get_concrete_function(tf.TensorSpec([], tf.float32))
    definition = cube.function_def
    assert definition.signature.name == cube.name.decode()
    assert [(a.name, a.type) for a in definition.signature.input_arg] == [("x", 1), ("resource_0", 20)]
    assert [a.name for a in definition.signature.output_arg] == ["identity"]
    assert [node.op for node in definition.node_def if node.op in ("Pow", "Mul", "ReadVariableOp")] == [
        "Pow", "ReadVariableOp", "Mul",
    ]  # fmt: skip
    assert definition.ret["identity"].startswith("Identity")
    assert type(definition).FromString(definition.SerializeToString()) == definition


def test_arguments_of_another_structure_are_refused_by_kind():
    f = tf.function(lambda x: x)
    pair = (tf.constant(1), tf.constant(1))
    for given, other, message in (
        ({"a": pair[0], "b": pair[1]}, pair[0], "to a Dict type"),
        (pair, pair[0], "to tuple type"),
        (tf.ragged.constant([[1, 2], [3]]), {"a": pair[0]}, "don't have the same nested structure"),
    ):
        with pytest.raises(TypeError, match=message):
            f.get_concrete_function(given)(other)


def test_a_clone_keeps_the_options():
    f = tf.function(lambda x: x, reduce_retracing=None, jit_compile=False)
    clone = f._clone(lambda x: x + 1)
    assert (clone._reduce_retracing, clone._jit_compile) == (None, False)
    assert clone(tf.constant(1)).numpy() == 2


def test_keywords_that_were_not_given_in_order():
    f = tf.function(lambda **given: given["a"] * 2.0 + tf.cast(given["b"], tf.float32))
    concrete = f.get_concrete_function(b=tf.TensorSpec([], tf.int32), a=tf.TensorSpec([], tf.float32))
    for given in ({"a": 2.0, "b": 3}, {"b": 3, "a": 2.0}):
        assert float(concrete(**{name: tf.constant(value) for name, value in given.items()})) == 7.0


def test_threads_that_trace_at_once_get_one_graph():
    begun = threading.Barrier(4, timeout=60)
    found = []

    @tf.function
    def f(x):
        begun.wait()  # all threads are tracing
        return x * 2.0

    spec = tf.TensorSpec([2])
    threads = [threading.Thread(target=lambda: found.append(f.get_concrete_function(spec))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 4 and len({id(concrete) for concrete in found}) == 1
    assert f(tf.constant([1.0, 2.0])).numpy().tolist() == [2.0, 4.0]


def test_the_graph_knows_its_structures():
    def swapped(pair, *, scale=2.0):
        return {"first": pair[1] * scale, "rest": [pair[0], None]}

    concrete = tf.function(swapped).get_concrete_function((tf.TensorSpec([None], name="a"), tf.TensorSpec([])))
    outputs = concrete.graph.structured_outputs
    assert outputs["first"] is concrete.outputs[0] and outputs["rest"][0] is concrete.outputs[1]
    assert outputs["rest"][1] is None
    assert concrete.graph.structured_input_signature == concrete.structured_input_signature
    assert concrete.graph.structured_input_signature[0][0][0] == tf.TensorSpec([None], name="a")
    v = tf.Variable(1.0)
    twice = tf.function(lambda a, b: a + b).get_concrete_function(v, v).graph.structured_input_signature[0]
    assert twice[0] == twice[1]
    assert tf.__internal__.FuncGraph("sketch", structured_outputs=[1]).structured_outputs == [1]


def test_values_of_python_inside_structures_are_those_of_the_trace():
    x = tf.constant(2.0)
    concrete = tf.function(lambda pair: pair[0] * pair[1]["x"]).get_concrete_function((3.0, {"x": x}))
    assert concrete((3.0, {"x": x})).numpy() == 6.0
    with pytest.raises(TypeError, match=r"Can not cast 4\.0 to Literal\[3\.0\]"):
        concrete((4.0, {"x": x}))
    with pytest.raises(TypeError, match=r"to Literal\[3\.0\]"):
        concrete((tf.constant(3.0), {"x": x}))
