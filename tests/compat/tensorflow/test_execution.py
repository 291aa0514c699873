"""Operations run by name, counters that libraries keep, and what tapes record, under TensorFlow's inner names."""

import pytest

import tapeflow as tf
from tapeflow._src.compat.tensorflow.inner_modules import table


def inner(path):
    return table.find(f"python.{path}")


def execute(name, count, inputs, *attrs):
    return inner("eager.execute").execute(name, count, inputs, attrs, None)


def test_an_operation_by_its_name():
    (y,) = execute(b"MatMul", 1, [[[3.0]], [[5.0]]], "transpose_a", True, "T", 1)
    assert y.numpy() == 15.0
    parts = execute("Split", 3, [1, [[0, 1, 2]]], "num_split", 3, "T", 3)
    assert [part.numpy().tolist() for part in parts] == [[[0]], [[1]], [[2]]]
    assert execute("AddN", 1, [3, 4], "T", 3, "N", 2)[0].numpy() == 7


@pytest.mark.parametrize(
    ("name", "inputs", "attrs", "error"),
    [
        ("NoSuchOperation", [], (), tf.errors.NotFoundError),
        ("Identity", [3], ("unknown", 1), tf.errors.InvalidArgumentError),
        ("AddN", [3, 4], ("N", "2"), tf.errors.InvalidArgumentError),
        ("Squeeze", [[[3.0]]], ("squeeze_dims", 0), tf.errors.InvalidArgumentError),
        ("Bucketize", [[3.0]], ("boundaries", ["4.0"]), tf.errors.InvalidArgumentError),
        ("CheckNumerics", [3.0], ("message", 1), tf.errors.InvalidArgumentError),
    ],
)
def test_wrong_names_and_attributes(name, inputs, attrs, error):
    with pytest.raises(error):
        execute(name, 1, inputs, *attrs)


def test_kinds_of_attributes():
    backprop, numbers = inner("eager.backprop"), inner("pywrap_tfe")
    assert backprop.op_attr_type("Add", "T") == numbers.TF_ATTR_TYPE
    assert backprop.op_attr_type("MaxPool", "ksize") == [numbers.TF_ATTR_INT]
    assert backprop.make_attr(numbers.TF_ATTR_TYPE, 1) == tf.float32
    assert backprop.make_attr([numbers.TF_ATTR_STRING], ["a"]) == [b"a"]
    assert backprop.make_attr(numbers.TF_ATTR_SHAPE, [1, None]) == tf.TensorShape([1, None]).as_proto()


def test_arguments_of_generated_functions():
    module = inner("eager.execute")
    kind, tensors = module.args_to_matching_eager([1, tf.constant(2.0)], None, [])
    assert (kind, [t.dtype for t in tensors]) == (1, [tf.float32] * 2)
    assert module.convert_to_mixed_eager_tensors(["a", 1.0], None)[0] == [7, 1]
    assert module.make_shape([1, None], "shape") == [1, None]
    with pytest.raises(TypeError, match="Expected bool for argument 'flag' not 1"):
        module.make_bool(1, "flag")


def test_counters_and_histograms():
    monitoring = inner("eager.monitoring")
    counter = monitoring.Counter("calls", "how often", "kind")
    counter.get_cell("a").increase_by(2)
    with monitoring.MonitoredTimer(counter.get_cell("time"), "section"):
        assert "section" in monitoring.MonitoredTimerSections
    assert counter.get_cell("a").value() == 2
    assert counter.get_cell("time").value() >= 0
    sampler = monitoring.Sampler("sizes", monitoring.ExponentialBuckets(1.0, 2.0, 2), "how large")
    for sample in (1.0, 5.0):
        sampler.get_cell().add(sample)
    found = sampler.get_cell().value()
    assert (found.min, found.max, found.num, found.sum) == (1.0, 5.0, 2.0, 6.0)


def test_recording_stops_for_all_tapes():
    x = tf.constant(3.0)
    with tf.GradientTape() as tape:
        tape.watch(x)
        with inner("eager.record").stop_recording():
            y = x * x
    assert tape.gradient(y, x) is None


def test_sums_of_gradients():
    add = inner("eager.backprop_util").AggregateIndexedSlicesGradients
    one = tf.IndexedSlices(tf.constant([[1.0]]), tf.constant([0]), tf.constant([2, 1]))
    two = tf.IndexedSlices(tf.constant([[2.0]]), tf.constant([1], tf.int64), tf.constant([2, 1]))
    assert add([]) is None
    assert add([one]) is one
    assert add([one, None, two]).indices.numpy().tolist() == [0, 1]
    assert add([one, tf.ones([2, 1])]).numpy().tolist() == [[2.0], [1.0]]


def test_generated_functions_of_variables():
    variable, generated = tf.Variable([1.0, 2.0]), inner("ops.gen_resource_variable_ops")
    generated.assign_add_variable_op(variable.handle, [1.0, 1.0])
    assert generated.read_variable_op(variable.handle, tf.float32).numpy().tolist() == [2.0, 3.0]
    assert inner("ops.resource_variable_ops").variable_shape(variable.handle).numpy().tolist() == [2]
    with pytest.raises(tf.errors.InvalidArgumentError, match="wrong dtype"):
        generated.read_variable_op(variable.handle, tf.int32)
    with tf.GradientTape() as tape:
        y = generated.resource_gather(variable.handle, [1, 1], tf.float32)
    assert tf.convert_to_tensor(tape.gradient(y, variable)).numpy().tolist() == [0.0, 2.0]


def test_the_list_of_devices():
    devices = inner("client.device_lib").list_local_devices()
    assert [(device.name, device.device_type) for device in devices] == [("/device:CPU:0", "CPU")]
    assert 'device_type: "CPU"' in str(devices[0])


def test_a_typed_function_gives_one_result_bare():
    double = inner("framework.function").Defun(tf.float32)(lambda x: [x * 2.0])
    assert double(3.0).numpy() == 6.0


def test_names_of_generated_functions():
    names = inner("ops.gen_math_ops"), inner("ops.gen_array_ops")
    assert names[0].mat_mul([[2.0]], [[3.0]]).numpy() == 6.0
    assert names[1].gather_nd([5.0, 6.0], [[1]]).numpy() == [6.0]
    with pytest.raises(AttributeError):
        names[0].no_such_operation  # noqa: B018


def test_counts_of_sparse_tensors():
    x = tf.sparse.from_dense([[1, 2, 2], [3, 3, 3]])
    assert (
        inner("ops.sparse_ops").bincount(x, axis=-1).numpy().tolist() == tf.math.bincount(x, axis=-1).numpy().tolist()
    )


def test_a_bound_method_runs_with_newer_control_flow():
    class Case:
        def seen(self, factor):
            return self.values.append(factor)

    case = Case()
    case.values = []
    inner("framework.test_util").enable_control_flow_v2(case.seen)(3)
    assert case.values == [3]


def test_a_reset_context_lets_devices_be_set_anew():
    context, (processor,) = inner("eager.context"), tf.config.list_physical_devices("CPU")
    tf.constant(1.0)
    context._reset_context()
    try:
        tf.config.set_logical_device_configuration(processor, [tf.config.LogicalDeviceConfiguration()] * 2)
        assert len(tf.config.list_logical_devices("CPU")) == 2
    finally:
        context._reset_context()
