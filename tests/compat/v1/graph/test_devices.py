"""Device names in graphs: blocks, functions of operations, colocation, messages."""

import pytest

import tapeflow as tf

v1 = tf.compat.v1


def test_inner_names_count_more_and_none_forgets_the_outer_ones():
    with tf.Graph().as_default(), tf.device("/job:worker/task:1"):
        assert tf.constant(1.0).device == "/job:worker/task:1"
        with tf.device("/job:ps/gpu:2"):
            assert tf.constant(1.0).op.device == "/job:ps/task:1/device:GPU:2"
            with v1.device(None):
                assert tf.constant(1.0).op.device == ""
                with v1.device("/cpu:0"):
                    assert tf.constant(1.0).op.device == "/device:CPU:0"
        assert tf.constant(1.0).op.device == "/job:worker/task:1"


def test_functions_see_each_operation_once():
    seen = []

    def place(op):
        seen.append(op.name)
        return f"/device:CPU:{len(seen)}"

    with tf.Graph().as_default() as graph, v1.device(place):
        a = tf.constant(1.0, name="a")
        b = tf.constant(2.0, name="b")
        with v1.colocate_with(a):
            c = tf.constant(3.0, name="c")
    assert [x.device for x in (b, a, c, b)] == ["/device:CPU:2", "/device:CPU:1", "/device:CPU:1", "/device:CPU:2"]
    assert seen == ["a", "b"]
    assert {node.name: node.device for node in graph.as_graph_def().node}["b"] == "/device:CPU:2"
    with pytest.raises(RuntimeError, match="does not support functions"):
        v1.device(place)


def test_variables_go_to_parameter_servers_in_turn():
    cluster = tf.train.ClusterSpec({"ps": ["a:1", "b:1"], "worker": ["c:1"]})
    with tf.Graph().as_default(), v1.device(v1.train.replica_device_setter(cluster=cluster)):
        variables = [v1.get_variable(name, [1], use_resource=True) for name in "uvw"]
        total = variables[0] + variables[1]
        with v1.device("/cpu:0"):
            pinned = v1.get_variable("x", [1], use_resource=True)
    assert [v.device for v in variables] == ["/job:ps/task:0", "/job:ps/task:1", "/job:ps/task:0"]
    assert variables[1].initializer.device == "/job:ps/task:1"
    assert total.device == "/job:worker"
    assert pinned.device == "/job:ps/task:1/device:CPU:0"
    assert v1.train.replica_device_setter(ps_tasks=0) is None
    with pytest.raises(TypeError, match="ps_strategy must be callable"):
        v1.train.replica_device_setter(ps_tasks=1, ps_strategy=3)


def test_graphs_with_devices_run_and_are_read_again():
    with tf.Graph().as_default() as graph:
        x = v1.placeholder(tf.float32, [], "x")
        with v1.device("/cpu:1"):
            tf.add(x, 1.0, name="y")
        definition = graph.as_graph_def(add_shapes=True)
    y = next(node for node in definition.node if node.name == "y")
    assert y.device == "/device:CPU:1"
    assert len(y.attr["_output_shapes"].list.shape) == 1
    with tf.Graph().as_default() as graph, v1.Session() as session:
        (y,) = tf.import_graph_def(definition, return_elements=["y:0"], name="")
        assert y.device == "/device:CPU:1"
        assert session.run(y, {"x:0": 2.0}) == 3.0


def test_specs_of_version_1_can_be_changed():
    spec = v1.DeviceSpec(job="ps", device_type="cpu")
    spec.task = 2
    spec.merge_from(tf.DeviceSpec(replica=1, device_index=3))
    assert spec.to_string() == "/job:ps/replica:1/task:2/device:CPU:3"
    assert spec.parse_from_string("/job:w/gpu:0") is spec
    assert spec.to_string() == "/job:w/device:GPU:0"
    assert isinstance(spec.replace(job="x"), v1.DeviceSpec)


def test_attributes_by_name():
    with tf.Graph().as_default():
        x = v1.placeholder(tf.float32, [2, None], "x")
        y = tf.cast(tf.matmul(x, x, transpose_b=True), tf.int32)
        product = y.op.inputs[0].op
        assert y.op.get_attr("DstT") == tf.int32
        assert product.get_attr("transpose_b") is True
        assert [dim.size for dim in x.op.get_attr("shape").dim] == [2, -1]
        with pytest.raises(ValueError, match="has no attr named 'speed'"):
            product.get_attr("speed")
