"""Steps of optimizers as raw operations; the numbers are those of TensorFlow 2.21."""

import numpy as np
import pytest

import tapeflow as tf

ADAM = {"beta1_power": 0.8, "beta2_power": 0.9, "lr": 0.1, "beta1": 0.9, "beta2": 0.99, "epsilon": 1e-3}
ADAMAX = {name: value for name, value in ADAM.items() if name != "beta2_power"}
RMSPROP = {"lr": 0.1, "rho": 0.9, "momentum": 0.5, "epsilon": 1e-3}
FTRL = {"lr": 0.1, "l1": 0.1, "l2": 0.2, "lr_power": -0.5}
MOMENTUM = {"lr": 0.1, "momentum": 0.9}
CASES = [
    ("ApplyMomentum", "var accum", MOMENTUM, {"use_nesterov": False}, [34.201, 88.408]),
    ("ApplyKerasMomentum", "var accum", MOMENTUM, {"use_nesterov": False}, [49.943, 15.884]),
    ("SparseApplyKerasMomentum", "var accum", MOMENTUM, {"use_nesterov": False}, [54.769, 32.173]),
    ("ApplyAdam", "var m v", ADAM, {"use_nesterov": False}, [20.592, 45.508, 51.046]),
    ("ApplyFtrl", "var accum linear", FTRL, {"multiply_linear_by_lr": False}, [0.994, 89.204, -9.239]),
    ("ApplyFtrlV2", "var accum linear", {**FTRL, "l2_shrinkage": 0.05}, {}, [-0.719, 75.83, 11.307]),
    ("ApplyMomentum", "var accum", MOMENTUM, {"use_nesterov": True}, [22.512, 90.603]),
    ("ApplyKerasMomentum", "var accum", MOMENTUM, {"use_nesterov": True}, [52.408, 26.118]),
    ("SparseApplyKerasMomentum", "var accum", MOMENTUM, {"use_nesterov": True}, [54.88, 30.169]),
    ("ApplyAdam", "var m v", ADAM, {"use_nesterov": True}, [46.129, 36.169, 38.904]),
    ("ApplyFtrl", "var accum linear", FTRL, {"multiply_linear_by_lr": True}, [-32.716, 66.79, 29.075]),
    (
        "ApplyFtrlV2",
        "var accum linear",
        {**FTRL, "l2_shrinkage": 0.05},
        {"multiply_linear_by_lr": True},
        [-44.904, 78.945, 41.937],
    ),
    ("ApplyGradientDescent", "var", {"alpha": 0.1}, {}, [42.933]),
    ("ApplyAdamWithAmsgrad", "var m v vhat", ADAM, {}, [28.323, 24.963, 38.384, 46.639]),
    ("ApplyAdaMax", "var m v", ADAMAX, {}, [28.397, 39.03, 62.085]),
    ("ApplyAdagrad", "var accum", {"lr": 0.1}, {}, [28.037, 74.024]),
    ("ApplyAdagradV2", "var accum", {"lr": 0.1, "epsilon": 1e-3}, {}, [31.832, 76.323]),
    ("SparseApplyAdagradV2", "var accum", {"lr": 0.1, "epsilon": 1e-3}, {}, [26.499, 58.19]),
    (
        "ApplyAdadelta",
        "var accum accum_update",
        {"lr": 0.1, "rho": 0.9, "epsilon": 1e-3},
        {},
        [27.591, 58.084, 39.003],
    ),
    (
        "SparseApplyAdadelta",
        "var accum accum_update",
        {"lr": 0.1, "rho": 0.9, "epsilon": 1e-3},
        {},
        [38.762, 35.472, 34.572],
    ),
    ("ApplyRMSProp", "var ms mom", RMSPROP, {}, [23.885, 47.171, 23.797]),
    ("SparseApplyRMSProp", "var ms mom", RMSPROP, {}, [19.023, 42.755, 28.909]),
    ("ApplyCenteredRMSProp", "var mg ms mom", {**RMSPROP, "epsilon": 1.0}, {}, [7.589, 33.221, 45.915, 22.728]),
    ("SparseApplyFtrlV2", "var accum linear", {**FTRL, "l2_shrinkage": 0.05}, {}, [14.363, 52.753, 4.251]),
]


@pytest.fixture(scope="module")
def recorded():
    """What each case gives: the variables are drawn one after the other, as when the numbers were recorded."""
    random = np.random.RandomState(0)
    gradient, rows = random.rand(4, 3).astype("f"), random.rand(2, 3).astype("f")
    weights, found = np.arange(1, 13).reshape(4, 3), []
    for name, names, numbers, flags, _ in CASES:
        variables = {key: tf.Variable(random.rand(4, 3).astype("f")) for key in names.split()}
        arguments = {key: tf.constant(value, tf.float32) for key, value in numbers.items()}
        sparse = name.startswith("Sparse")
        arguments["delta" if "alpha" in numbers else "grad"] = tf.constant(rows if sparse else gradient)
        if sparse:
            arguments["indices"] = tf.constant([3, 1])
        handles = {key: variable.handle for key, variable in variables.items()}
        getattr(tf.raw_ops, f"Resource{name}")(**handles, **arguments, **flags)
        found.append([float(np.sum(variable.numpy() * weights)) for variable in variables.values()])
    return found


@pytest.mark.parametrize("number", range(len(CASES)), ids=lambda number: f"{number}-{CASES[number][0]}")
def test_one_step(recorded, number):
    np.testing.assert_allclose(recorded[number], CASES[number][-1], atol=2e-3)


@pytest.mark.parametrize("name, expected", [("Add", [1.0, 5.0]), ("Update", [1.0, 3.0]), ("Mul", [1.0, 6.0])])
def test_rows_in_a_function(name, expected):
    v = tf.Variable([1.0, 2.0])

    @tf.function
    def step(rows):
        getattr(tf.raw_ops, f"ResourceScatter{name}")(resource=v.handle, indices=[1], updates=rows)

    step(tf.constant([3.0]))
    assert v.numpy().tolist() == expected


def test_in_a_graph_they_are_operations_that_others_wait_for():
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        v, count = tf.Variable([1.0, 2.0]), tf.Variable(0)
        step = tf.raw_ops.ResourceApplyGradientDescent(var=v.handle, alpha=1.0, delta=[1.0, 1.0])
        added = tf.raw_ops.ResourceScatterAdd(resource=v.handle, indices=[0], updates=[5.0])
        assert isinstance(step, tf.Operation)
        assert isinstance(added, tf.Operation)
        with tf.control_dependencies([step]):
            counted = count.assign_add(1, read_value=False)
        assert isinstance(counted, tf.Operation)
        session.run(tf.compat.v1.global_variables_initializer())
        counted.run()
        np.testing.assert_array_equal(session.run(v), [0.0, 1.0])
        assert session.run(count) == 1
        added.run()
        np.testing.assert_array_equal(session.run(v), [5.0, 1.0])


def test_indices_that_lie_outside_are_ignored_on_request():
    raw, indices = tf.raw_ops, [[0], [7], [-1]]
    given = {"indices": indices, "bad_indices_policy": "IGNORE"}
    assert raw.GatherNd(params=[1.0, 2.0], **given).numpy().tolist() == [1.0, 0.0, 0.0]
    assert raw.ScatterNd(updates=[5.0, 6.0, 7.0], shape=[2], **given).numpy().tolist() == [5.0, 0.0]
    for name, expected in (("Update", 5.0), ("Add", 6.0), ("Sub", -4.0), ("Max", 5.0), ("Min", 1.0)):
        operation = getattr(raw, f"TensorScatter{name}")
        assert operation(tensor=[1.0, 2.0], updates=[5.0, 6.0, 7.0], **given).numpy().tolist() == [expected, 2.0]
    assert tf.compat.v1.gather_nd([1.0], [[9]], bad_indices_policy="IGNORE").numpy().tolist() == [0.0]
    with pytest.raises(tf.errors.InvalidArgumentError):
        raw.GatherNd(params=[1.0, 2.0], indices=indices)
    with pytest.raises(tf.errors.InvalidArgumentError, match="bad_indices_policy"):
        raw.GatherNd(params=[1.0, 2.0], indices=indices, bad_indices_policy="OTHER")


def test_rows_in_place_count_from_the_end():
    assert tf.raw_ops.InplaceUpdate(x=tf.zeros([3]), i=[-1], v=[5.0]).numpy().tolist() == [0.0, 0.0, 5.0]
