"""`tf.config`, `tf.device` and `tf.DeviceSpec` give TensorFlow's answers for a machine with one processor."""

import pytest

import tapeflow as tf

config, experimental = tf.config, tf.config.experimental


@pytest.fixture(autouse=True)
def settings(monkeypatch):
    """Each test begins with the settings of a fresh process."""
    from tapeflow._src import config as module

    monkeypatch.setattr(module, "_settings", module._Settings())
    module.forget_devices_used()
    yield
    tf.config.threading.set_intra_op_parallelism_threads(0)


def test_devices():
    physical = config.list_physical_devices()
    assert repr(physical) == "[PhysicalDevice(name='/physical_device:CPU:0', device_type='CPU')]"
    assert repr(config.list_logical_devices("CPU")) == "[LogicalDevice(name='/device:CPU:0', device_type='CPU')]"
    assert config.list_physical_devices("GPU") == config.list_logical_devices("GPU") == []
    assert physical == experimental.list_physical_devices("CPU") == config.get_visible_devices()
    assert isinstance(physical[0], config.PhysicalDevice)
    assert experimental.get_device_details(physical[0]) == {}
    with pytest.raises(ValueError, match=r"device must be a tf.config.PhysicalDevice, but got: 5"):
        experimental.get_device_details(5)


def test_visible_devices():
    config.set_visible_devices([], "GPU")
    assert config.get_visible_devices() == config.list_physical_devices()
    config.set_visible_devices([], "CPU")
    assert config.get_visible_devices() == []
    config.set_visible_devices(config.list_physical_devices()[0])
    assert len(config.get_visible_devices("CPU")) == 1
    for wrong in ("foo", ["foo"]):
        with pytest.raises(ValueError, match="Unrecognized device: 'foo'"):
            config.set_visible_devices(wrong)


def test_threads():
    threading = config.threading
    assert (threading.get_intra_op_parallelism_threads(), threading.get_inter_op_parallelism_threads()) == (0, 0)
    threading.set_intra_op_parallelism_threads(1)
    threading.set_inter_op_parallelism_threads(3)
    assert (threading.get_intra_op_parallelism_threads(), threading.get_inter_op_parallelism_threads()) == (1, 3)
    with pytest.raises(TypeError):
        threading.set_intra_op_parallelism_threads("a")


def test_thread_count_reaches_the_core():
    from tapeflow._src import _core

    default = _core.thread_count()
    config.threading.set_intra_op_parallelism_threads(1)
    assert _core.thread_count() == 1
    config.threading.set_intra_op_parallelism_threads(0)
    assert _core.thread_count() == default


def test_memory():
    info = experimental.get_memory_info("CPU:0")
    assert sorted(info) == ["current", "peak"]
    assert info["peak"] >= info["current"] >= 0
    experimental.reset_memory_stats("/device:CPU:0")
    assert experimental.get_memory_usage("CPU:0") >= 0
    with pytest.raises(ValueError, match="No matching devices found for 'GPU:0'"):
        experimental.get_memory_info("GPU:0")
    with pytest.raises(ValueError, match=r"Failed parsing device name: 'foo'. Note a valid device string should"):
        experimental.get_memory_info("foo")


def use_nothing():
    tf.random.set_seed(1)
    tf.config.list_physical_devices()
    tf.TensorSpec([2])


def use_a_graph():
    with tf.Graph().as_default():
        tf.constant(1.0)
        set_two_processors()


def use_a_device():
    with tf.device("/cpu:0"):
        pass


def set_two_processors():
    (device,) = config.list_physical_devices("CPU")
    config.set_logical_device_configuration(device, [config.LogicalDeviceConfiguration()] * 2)


@pytest.mark.parametrize("use", [use_nothing, use_a_graph])
def test_logical_devices_are_set_before_they_are_used(use):
    use()
    set_two_processors()
    assert len(config.list_logical_devices("CPU")) == 2


@pytest.mark.parametrize(
    "use",
    [
        lambda: tf.constant(1.0),
        lambda: tf.Variable(1.0),
        lambda: config.list_logical_devices(),
        lambda: tf.distribute.MirroredStrategy(),
        use_a_device,
    ],
)
def test_devices_do_not_change_after_they_are_used(use):
    use()
    with pytest.raises(RuntimeError, match="Virtual devices cannot be modified after being initialized"):
        set_two_processors()
    with pytest.raises(RuntimeError, match="Visible devices cannot be modified after being initialized"):
        config.set_visible_devices([], "CPU")
    config.set_visible_devices([], "GPU")
    config.set_visible_devices(config.list_physical_devices("CPU"), "CPU")
    with pytest.raises(ValueError, match="Unrecognized device"):
        config.set_visible_devices(config.list_physical_devices("CPU"), "GPU")


def test_settings_are_kept():
    device = config.list_physical_devices()[0]
    experimental.set_memory_growth(device, True)
    with pytest.raises(ValueError, match="Unrecognized device: 'foo'"):
        experimental.set_memory_growth("foo", True)
    assert config.get_logical_device_configuration(device) is None
    config.set_logical_device_configuration(device, [config.LogicalDeviceConfiguration()] * 2)
    assert config.get_logical_device_configuration(device) == [config.LogicalDeviceConfiguration()] * 2
    for setting in ("memory_limit", "experimental_priority", "experimental_device_ordinal"):
        with pytest.raises(ValueError, match=f"Setting {setting} on CPU virtual devices is currently not supported"):
            config.set_logical_device_configuration(device, [config.LogicalDeviceConfiguration(**{setting: 3})])
    assert config.optimizer.get_jit() == ""
    config.optimizer.set_jit("autoclustering")
    assert config.optimizer.get_jit() == "autoclustering"
    config.optimizer.set_experimental_options({"constant_folding": True})
    assert config.optimizer.get_experimental_options()["constant_folding"]
    experimental.enable_op_determinism()
    assert experimental.tensor_float_32_execution_enabled()
    experimental.enable_tensor_float_32_execution(False)
    assert not experimental.tensor_float_32_execution_enabled()
    assert experimental.get_synchronous_execution()
    assert experimental.get_device_policy() == "silent"
    with pytest.raises(ValueError, match="Invalid argument `device_policy`: 'foo'"):
        experimental.set_device_policy("foo")


@pytest.mark.parametrize(
    "name",
    ["/CPU:0", "cpu:0", "CPU", "/device:CPU:0", "/device:CPU:*", "/job:localhost/replica:0/task:0/device:CPU:0", "",
     None, "/GPU:0", "/TPU:0", "/CPU:1", tf.DeviceSpec(device_type="CPU", device_index=0),
     tf.config.LogicalDevice("/device:CPU:0", "CPU")],
    ids=repr,
)  # fmt: skip
def test_device_accepts(name):
    with tf.device(name):
        assert "CPU:0" in tf.constant(1.0).device


@pytest.mark.parametrize(
    ("name", "error", "message"),
    [
        ("foo", ValueError, "Unknown attribute 'foo' is encountered while parsing the device spec: 'foo'."),
        ("CPU:0:1", ValueError, "Unknown attribute 'CPU' is encountered"),
        ("/CPU:a", ValueError, "invalid literal for int"),
        (5, ValueError, "Expecting a string device name. Got <class 'int'>"),
        (lambda op: "/CPU:0", RuntimeError, "tf.device does not support functions."),
        ("/job:foo", tf.errors.InvalidArgumentError, "/job:foo/replica:0/task:0/device:CPU:0 unknown device."),
    ],
)
def test_device_refuses(name, error, message):
    with pytest.raises(error, match=message), tf.device(name):
        pass


def test_device_without_soft_placement():
    config.set_soft_device_placement(False)
    assert not config.get_soft_device_placement()
    with tf.device("/CPU:0"):
        pass
    with (
        pytest.raises(tf.errors.InvalidArgumentError, match="Could not satisfy device specification"),
        tf.device("/GPU:0"),
    ):
        pass


def test_device_spec():
    spec = tf.DeviceSpec.from_string("/job:w/replica:0/task:1/device:GPU:3")
    assert spec.to_string() == "/job:w/replica:0/task:1/device:GPU:3"
    assert repr(spec.replace(task=5)) == ("<DeviceSpec(job=w, replica=0, task=5, device_type=GPU, device_index=3)>")
    assert tf.DeviceSpec.from_string("/gpu:3") == tf.DeviceSpec(device_type="GPU", device_index=3)
    merged = tf.DeviceSpec(job="w").make_merged_spec(tf.DeviceSpec(task=2))
    assert (merged.job, merged.task, merged.replica) == ("w", 2, None)
