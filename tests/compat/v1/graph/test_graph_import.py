"""Messages that become nodes again: of graphs of this program, and of graphs that TensorFlow wrote."""

import numpy as np
import pytest

import tapeflow as tf

v1 = tf.compat.v1
FLOAT = tf.float32.as_datatype_enum


def example():
    with tf.Graph().as_default() as graph:
        x = v1.placeholder(tf.float32, [None, 2], name="x")
        y = tf.reduce_sum(tf.nn.softmax(x * [1.0, 3.0]), axis=0, keepdims=True, name="y")
        with tf.control_dependencies([y]):
            tf.while_loop(lambda i: i < 3, lambda i: i + 1, [tf.constant(0)])
        tf.split(x, 2, axis=1, name="halves")
    return graph


def test_a_graph_of_this_program():
    graph = example()
    with tf.Graph().as_default(), v1.Session() as session:
        y, x, loop = tf.import_graph_def(graph.as_graph_def(), return_elements=["y:0", "x", "while"])
        assert (y.name, x.name, y.shape) == ("import/y:0", "import/x", [1, 2])
        assert [operation.name for operation in loop.control_inputs] == ["import/y"]
        given = np.array([[1.0, 2.0], [3.0, 4.0]], np.float32)
        expected = tf.reduce_sum(tf.nn.softmax(given * [1.0, 3.0]), axis=0, keepdims=True)
        found = session.run([y, loop.outputs[0], "import/halves:1"], {"import/x:0": given})
        np.testing.assert_allclose(found[0], session.run(expected), rtol=1e-6)
        assert found[1] == 3 and found[2].tolist() == [[2.0], [4.0]]
        assert tf.import_graph_def(graph.as_graph_def()) is None
        assert session.graph.get_tensor_by_name("import_1/y:0").shape == [1, 2]


def test_inputs_that_are_replaced():
    graph = example()
    with tf.Graph().as_default(), v1.Session() as session:
        ones = tf.ones([4, 2])
        (halves,) = v1.import_graph_def(graph.as_graph_def(), {"x:0": ones}, ["halves:0"], name="")
        assert halves.name == "halves:0" and session.run(halves).shape == (4, 1)
        with pytest.raises(ValueError, match=r"Attempted to map inputs that were not found in graph_def: \[no:0\]"):
            tf.import_graph_def(graph.as_graph_def(), {"no:0": ones})
        for element in ("no", "no:0", "y:1"):
            with pytest.raises(ValueError, match="not found in graph def"):
                tf.import_graph_def(graph.as_graph_def(), return_elements=[element])
    with pytest.raises(TypeError, match="must be a GraphDef proto"):
        tf.import_graph_def(b"")


def node(name, op, inputs=(), **attributes):
    return v1.NodeDef(name=name, op=op, input=list(inputs), attr=attributes)


def constant(name, value):
    dtype = v1.AttrValue(type=tf.as_dtype(value.dtype).as_datatype_enum)
    return node(name, "Const", value=v1.AttrValue(tensor=tf.make_tensor_proto(value)), dtype=dtype)


def listed(**values):
    attribute = v1.AttrValue()
    for kind, items in values.items():
        getattr(attribute.list, kind).extend(items)
    return attribute


def test_a_graph_that_tensorflow_wrote():
    kernel = np.arange(12.0, dtype=np.float32).reshape(2, 2, 1, 3)
    one = v1.AttrValue(type=FLOAT)
    definition = v1.GraphDef(
        node=[
            node("out", "ConcatV2", ["relu", "relu", "axis"], N=v1.AttrValue(i=2), T=one),
            node("relu", "Relu", ["conv", "^ready"], T=one),
            node("conv", "Conv2D", ["x", "kernel"], T=one, strides=listed(i=[1, 1, 1, 1]),
                 data_format=v1.AttrValue(s=b"NHWC"), padding=v1.AttrValue(s=b"VALID")),
            node("ready", "NoOp"),
            node("x", "Placeholder", dtype=one),
            constant("kernel", kernel),
            constant("axis", np.array(3, np.int32)),
        ]
    )  # fmt: skip
    definition = v1.GraphDef.FromString(definition.SerializeToString())
    with tf.Graph().as_default(), v1.Session() as session:
        (out,) = tf.import_graph_def(definition, return_elements=["out:0"], name="net")
        assert out.name == "net/out:0"
        image = np.ones([1, 2, 2, 1], np.float32)
        expected = kernel.sum((0, 1, 2))
        np.testing.assert_array_equal(session.run(out, {"net/x:0": image}).ravel(), [*expected, *expected])


def test_what_cannot_be_imported():
    with tf.Graph().as_default():
        with pytest.raises(ValueError, match="Op type not registered 'NoSuchOp'"):
            tf.import_graph_def(v1.GraphDef(node=[node("a", "NoSuchOp")]))
        with pytest.raises(ValueError, match="Node 'a': Unknown input node 'b'"):
            tf.import_graph_def(v1.GraphDef(node=[node("a", "Relu", ["b"])]))


def test_variables_are_imported_without_values():
    with tf.Graph().as_default() as graph:
        v = v1.get_variable("v", initializer=[1.0, 2.0])
        tf.multiply(v, 3.0, name="y")
    definition = graph.as_graph_def()
    assert {"VarHandleOp", "ReadVariableOp", "Mul"} <= {node.op for node in definition.node}
    with tf.Graph().as_default(), v1.Session() as session:
        y, handle = tf.import_graph_def(definition, return_elements=["y:0", "v:0"], name="")
        session.run(handle.initializer)
        session.run(handle.assign([5.0, 6.0]))
        assert session.run(y).tolist() == [15.0, 18.0]


def test_a_frozen_graph_in_wrap_function():
    with tf.Graph().as_default() as graph:
        x = v1.placeholder(tf.float32, [None, 2], name="x")
        tf.nn.relu(tf.matmul(x, [[1.0], [-2.0]]), name="out")
    text = graph.as_graph_def().SerializeToString()
    definition = v1.GraphDef.FromString(text)
    wrapped = v1.wrap_function(lambda: v1.import_graph_def(definition, name=""), [])
    element = wrapped.graph.as_graph_element
    function = wrapped.prune(tf.nest.map_structure(element, ["x:0"]), tf.nest.map_structure(element, ["out:0"]))
    x = tf.constant([[3.0, 1.0], [1.0, 3.0]])
    with tf.GradientTape() as tape:
        tape.watch(x)
        (y,) = function(x)
    assert y.numpy().tolist() == [[1.0], [0.0]]
    assert tape.gradient(y, x).numpy().tolist() == [[1.0, -2.0], [0.0, 0.0]]


def test_messages_are_protocol_buffers():
    from google.protobuf import json_format, text_format

    with tf.Graph().as_default() as graph:
        tf.reduce_sum(tf.ones([2, 3]), axis=1, name="y")
    definition = graph.as_graph_def()
    assert text_format.Parse(text_format.MessageToString(definition), v1.GraphDef()) == definition
    assert json_format.Parse(json_format.MessageToJson(definition), v1.GraphDef()) == definition
    node = next(node for node in definition.node if node.name == "y")
    assert (
        node.op == "Sum" and node.attr["keep_dims"].b is False and node.attr["Tidx"].type == tf.int32.as_datatype_enum
    )
    assert all(len(other.input) or other.op in ("Const", "Placeholder") for other in definition.node)


def test_the_last_element_of_a_message_fills_its_shape():
    message = tf.make_tensor_proto([10, 11, 12], shape=[2, 3], dtype=tf.int16)
    assert tf.make_ndarray(message).tolist() == [[10, 11, 12], [12, 12, 12]]
    assert tf.make_ndarray(tf.make_tensor_proto(5.0, shape=[2])).tolist() == [5.0, 5.0]


@pytest.mark.parametrize("wrong", [{}, {"s": b"2"}], ids=["nothing", "bytes"])
def test_a_shape_of_another_kind(wrong):
    graph_def = v1.GraphDef()
    graph_def.node.add(name="x", op="Placeholder").attr["dtype"].type = tf.float32.as_datatype_enum
    graph_def.node[0].attr["shape"].MergeFrom(v1.AttrValue(**wrong))
    with pytest.raises(ValueError, match=r"expected type 'shape'.*node x"):
        v1.wrap_function(lambda: v1.import_graph_def(graph_def), [])


def test_constants_are_constants():
    with tf.Graph().as_default() as graph:
        tf.add(v1.placeholder(tf.float32, [2], name="x"), tf.constant([1.0, 2.0], name="c"), name="y")
    with tf.Graph().as_default() as copy:
        tf.import_graph_def(graph.as_graph_def(), name="")
    made = copy.get_operation_by_name("c")
    assert made.type == "Const" and not list(made.inputs) and made.outputs[0].name == "c:0"
    assert [x.name for x in copy.get_operation_by_name("y").inputs] == ["x:0", "c:0"]
    assert [n.op for n in copy.as_graph_def().node] == [n.op for n in graph.as_graph_def().node]


@pytest.mark.parametrize("shape", [None, [None, 2]])
def test_variables_of_unknown_shapes(shape):
    with tf.Graph().as_default() as graph:
        first = tf.zeros([1, 2])
        v1.Variable(first, False, validate_shape=False, use_resource=True, shape=tf.TensorShape(shape), name="v")
    message = graph.as_graph_def()
    with tf.Graph().as_default(), v1.Session() as session:
        (variable,) = tf.import_graph_def(message, return_elements=["v:0"], name="")
        assert variable.shape.rank == (None if shape is None else 2)
        session.run(variable.assign(tf.ones([3, 2])))
        assert session.run(variable.read_value()).shape == (3, 2)


class TestGraphsThatAreWrong:
    @staticmethod
    def graph(*nodes):
        message = v1.GraphDef()
        for op, name, inputs, attributes in nodes:
            node = message.node.add(op=op, name=name, input=inputs)
            for key, value in attributes.items():
                setattr(node.attr[key], "i" if key == "N" else "type", value)
        return message

    def refused(self, message, text):
        with tf.Graph().as_default(), pytest.raises(ValueError, match=text):
            tf.import_graph_def(message)

    def test_an_output_that_is_not_there(self):
        x = ("Placeholder", "x", [], {"dtype": FLOAT})
        message = self.graph(x, ("Neg", "y", ["x:3"], {"T": FLOAT}))
        self.refused(message, "Node 'y': Connecting to invalid output 3 of source node x which has 1 outputs")

    @pytest.mark.parametrize(("op", "inputs"), [("AddN", ["x"]), ("AddN", ["x"] * 4), ("Neg", []), ("Neg", ["x", "x"])])
    def test_the_number_of_inputs(self, op, inputs):
        attributes = {"T": FLOAT, **({"N": 3} if op == "AddN" else {})}
        message = self.graph(("Placeholder", "x", [], {"dtype": FLOAT}), (op, "y", inputs, attributes))
        self.refused(message, f"takes {attributes.get('N', 1)} inputs by its attributes; got {len(inputs)}")

    def test_a_function_that_calls_itself(self):
        message = self.graph(("Placeholder", "x", [], {"dtype": FLOAT}), ("f", "y", ["x"], {}))
        function = message.library.function.add()
        function.signature.name = "f"
        function.signature.input_arg.add(name="a", type=FLOAT)
        function.signature.output_arg.add(name="b", type=FLOAT)
        function.node_def.add(op="f", name="inner", input=["a"])
        function.ret["b"] = "inner:b:0"
        self.refused(message, "calls itself, or functions are nested too deeply")
