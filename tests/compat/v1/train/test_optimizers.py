"""Optimizers, learning rates and losses of TensorFlow 1 against the values that TensorFlow 2.21 gives."""

import json
from pathlib import Path

import numpy as np
import pytest

import tapeflow
from tapeflow.compat import v1 as tf

VALUES = json.loads((Path(__file__).parents[1] / "tensorflow_values.json").read_text())
OPTIMIZERS = {
    "sgd": lambda: tf.train.GradientDescentOptimizer(0.1),
    "momentum": lambda: tf.train.MomentumOptimizer(0.1, 0.9),
    "nesterov": lambda: tf.train.MomentumOptimizer(0.1, 0.9, use_nesterov=True),
    "adam": lambda: tf.train.AdamOptimizer(0.1),
    "adagrad": lambda: tf.train.AdagradOptimizer(0.3),
    "rmsprop": lambda: tf.train.RMSPropOptimizer(0.05, momentum=0.5),
    "rmsprop_centered": lambda: tf.train.RMSPropOptimizer(0.05, centered=True),
    "adadelta": lambda: tf.train.AdadeltaOptimizer(1.0),
    "ftrl": lambda: tf.train.FtrlOptimizer(0.3, l1_regularization_strength=0.01, l2_regularization_strength=0.02),
    "ftrl_power": lambda: tf.train.FtrlOptimizer(
        0.3, learning_rate_power=-0.3, l2_shrinkage_regularization_strength=0.1, beta=0.2
    ),
    "proximal": lambda: tf.train.ProximalGradientDescentOptimizer(0.1, 0.05, 0.1),
    "proximal_adagrad": lambda: tf.train.ProximalAdagradOptimizer(0.3, 0.1, 0.05, 0.1),
}
BATCHES = [
    ([0, 2, 2], [[1.0], [2.0], [0.0]]),
    ([1, 1], [[1.0], [-1.0]]),
    ([2, 0], [[0.5], [0.5]]),
    ([3, 3, 1], [[1.0], [0.0], [2.0]]),
]
ROWS, WEIGHTS = np.linspace(-1, 1, 8).reshape(4, 2).astype("f"), np.array([[0.5], [-0.3]], "f")


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_sparse_and_dense_steps_are_tensorflows(name):
    with tapeflow.Graph().as_default():
        e, w = tf.get_variable("e", initializer=ROWS), tf.get_variable("w", initializer=WEIGHTS)
        ids, y = tf.placeholder(tf.int32, [None]), tf.placeholder(tf.float32, [None, 1])
        loss = tf.reduce_mean(tf.square(tf.matmul(tf.nn.embedding_lookup(e, ids), w) - y))
        optimizer = OPTIMIZERS[name]()
        step = optimizer.minimize(loss)
        with tf.Session() as session:
            session.run(tf.global_variables_initializer())
            for rows, targets in BATCHES:
                session.run(step, {ids: rows, y: targets})
            found = [value.ravel() for value in session.run([e, w])]
        names = [v.name for v in tf.global_variables()]
        facts = [step.name, step.type, names, optimizer.get_slot_names(), [v.name for v in optimizer.variables()]]
    for value, expected in zip(found, VALUES[name]):
        np.testing.assert_allclose(value, expected, rtol=2e-5, atol=2e-6)
    assert facts == VALUES[f"{name}_names"]


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_eager_steps_are_those_of_a_graph(name):
    e, w, optimizer = tapeflow.Variable(ROWS), tapeflow.Variable(WEIGHTS), OPTIMIZERS[name]()
    for rows, targets in BATCHES:
        optimizer.minimize(
            lambda rows=rows, targets=targets: tapeflow.reduce_mean(
                tapeflow.square(tapeflow.matmul(tapeflow.gather(e, rows), w) - targets)
            )
        )
    for variable, expected in zip((e, w), VALUES[name]):
        np.testing.assert_allclose(variable.numpy().ravel(), expected, rtol=2e-5, atol=2e-6)


def rates(step):
    decays = tf.train
    return [
        decays.exponential_decay(0.1, step, 10, 0.5),
        decays.exponential_decay(0.1, step, 10, 0.5, staircase=True),
        decays.natural_exp_decay(0.1, step, 10, 0.5),
        decays.inverse_time_decay(0.1, step, 10, 0.5),
        decays.polynomial_decay(0.1, step, 10, 0.01, 2.0),
        decays.polynomial_decay(0.1, step, 10, 0.01, cycle=True),
        decays.piecewise_constant(step, [3, 10], [1.0, 0.5, 0.1]),
        decays.cosine_decay(0.1, step, 10, 0.1),
        decays.cosine_decay_restarts(0.1, step, 10),
        decays.linear_cosine_decay(0.1, step, 10),
    ]


@pytest.mark.parametrize("step", [0, 3, 10, 17, 25])
def test_learning_rates(step):
    with tapeflow.Graph().as_default(), tf.Session() as session:
        np.testing.assert_allclose(session.run(rates(tf.constant(step))), VALUES[f"decay{step}"], rtol=1e-4, atol=1e-7)
    eager = [rate().numpy() for rate in rates(tapeflow.Variable(step))]
    np.testing.assert_allclose(eager, VALUES[f"decay{step}"], rtol=1e-4, atol=1e-7)


def test_losses():
    with tapeflow.Graph().as_default(), tf.Session() as session:
        losses = tf.losses
        found = [
            losses.mean_squared_error([1.0, 2.0], [3.0, 5.0]),
            losses.mean_squared_error([1.0, 2.0], [3.0, 5.0], weights=[1.0, 0.0]),
            losses.huber_loss([0.0, 0.0], [0.5, 3.0]),
            losses.log_loss([1.0, 0.0], [0.8, 0.3]),
            losses.sigmoid_cross_entropy([[1.0, 0.0]], [[0.3, -2.0]], label_smoothing=0.1),
            losses.softmax_cross_entropy([[1.0, 0.0]], [[0.3, -2.0]], label_smoothing=0.1),
            losses.hinge_loss([1.0, 0.0], [0.3, 0.2]),
            losses.absolute_difference([1.0, 2.0], [3.0, 5.0], weights=[2.0, 3.0], reduction=losses.Reduction.MEAN),
            losses.get_total_loss(),
        ]
        np.testing.assert_allclose(session.run(found), VALUES["losses"], rtol=1e-5)


def test_errors_are_tensorflows():
    with pytest.raises(RuntimeError, match=r"should be a function when eager execution is enabled"):
        tf.train.GradientDescentOptimizer(0.1).minimize(tapeflow.constant(1.0))
    with tapeflow.Graph().as_default():
        optimizer = tf.train.GradientDescentOptimizer(0.1)
        with pytest.raises(ValueError, match=r"No variables to optimize\."):
            optimizer.minimize(tf.constant(1.0))
        a, b = tf.Variable(1.0), tf.Variable(1.0)
        with pytest.raises(ValueError, match=r"No gradients provided for any variable"):
            optimizer.minimize(b * 2.0, var_list=[a])
        with pytest.raises(ValueError, match=r"gate_gradients must be one of"):
            optimizer.compute_gradients(a * 2.0, gate_gradients=7)


def test_constraints_and_global_step():
    with tapeflow.Graph().as_default(), tf.Session() as session:
        w = tf.get_variable("w", initializer=1.0, constraint=lambda x: tf.maximum(x, 0.9))
        step = tf.train.get_or_create_global_step()
        train = tf.train.GradientDescentOptimizer(0.5).minimize(w**2, global_step=step)
        session.run(tf.global_variables_initializer())
        session.run(train)
        assert session.run([w, step]) == [np.float32(0.9), 1]
        assert tf.train.get_or_create_global_step() is step
        assert tf.train.global_step(session, step) == 1


def test_scopes_name_what_an_optimizer_keeps():
    with tapeflow.Graph().as_default():
        w = tf.Variable(1.0, name="w")
        with tf.name_scope("ns"):
            tf.train.AdamOptimizer().minimize(w * w)
        with tf.variable_scope("vs"):
            tf.train.MomentumOptimizer(0.1, 0.9).minimize(w * w)
            tf.train.ExponentialMovingAverage(0.9).apply([w])
        names = ["ns/beta1_power", "ns/beta2_power", "w/Adam", "w/Adam_1", "vs/w/Momentum"]
        names.append("vs/w/ExponentialMovingAverage")
        assert [v.op.name for v in tf.global_variables()[1:]] == names


def test_adagrad_by_dual_averages():
    with tapeflow.Graph().as_default(), tf.Session() as session:
        v, step = tf.Variable([1.0, 2.0]), tf.train.get_or_create_global_step()
        optimizer = tf.train.AdagradDAOptimizer(0.5, step)
        train = optimizer.minimize(tf.reduce_sum(v**2) + tf.reduce_sum(tf.gather(v, [0])), global_step=step)
        assert optimizer.get_slot_names() == ["gradient_accumulator", "gradient_squared_accumulator"]
        session.run(tf.global_variables_initializer())
        for _ in range(3):
            session.run(train)
        np.testing.assert_allclose(session.run(v), [-0.49877, -0.27118], atol=1e-5)


class OwnMomentum(tf.train.Optimizer):
    """An optimizer as programs write them."""

    def __init__(self, rate):
        super().__init__(False, "Own")
        self._rate = rate

    def _create_slots(self, var_list):
        for v in var_list:
            self._zeros_slot(v, "m", self._name)

    def _prepare(self):
        self._rate_tensor = tf.convert_to_tensor(self._call_if_callable(self._rate), name="rate")

    def _apply_dense(self, grad, var):
        m = self.get_slot(var, "m")
        new = m.assign(0.5 * m + grad)
        return tf.group(tf.assign_sub(var, self._rate_tensor * new), new)

    def _finish(self, update_ops, name_scope):
        return tf.group(*update_ops, name=name_scope)


def test_a_program_can_define_an_optimizer():
    with tapeflow.Graph().as_default(), tf.Session() as session:
        w, table = tf.Variable([1.0, 2.0], name="w"), tf.Variable([[1.0], [2.0]], name="t")
        optimizer = OwnMomentum(lambda: 0.1)
        train = optimizer.minimize(tf.reduce_sum(w * w) + tf.reduce_sum(tf.gather(table, [1])))
        assert [v.name for v in tf.global_variables()] == ["w:0", "t:0", "w/Own:0", "t/Own:0"]
        session.run(tf.global_variables_initializer())
        session.run(train)
        session.run(train)
        np.testing.assert_allclose(session.run(w), [0.54, 1.08], rtol=1e-5)
        np.testing.assert_allclose(session.run(table), [[1.0], [1.75]], rtol=1e-5)


def test_weights_of_losses_must_fit():
    labels, predictions = tf.ones([3, 2]), tf.zeros([3, 2])
    for loss in (tf.losses.mean_squared_error, tf.losses.sigmoid_cross_entropy):
        with pytest.raises(ValueError, match=r"weights can not be broadcast to values. values.rank=2. weights.rank=1"):
            loss(labels, predictions, weights=[1.0, 2.0])
    with pytest.raises(ValueError, match=r"Mismatch at dim 0\. values.shape=\[3\], weights.shape=\[2\]"):
        tf.losses.softmax_cross_entropy(labels, predictions, weights=[1.0, 2.0])
    with pytest.raises(ValueError, match="Argument `onehot_labels` must not be None"):
        tf.losses.softmax_cross_entropy(None, predictions)
    with pytest.raises(ValueError, match=r"Shapes \(3, 2\) and \(2,\) are incompatible"):
        tf.losses.sigmoid_cross_entropy(tf.ones([2]), predictions)


def test_a_loss_of_integers():
    with tf.Graph().as_default():
        tf.Variable(1.0)
        with pytest.raises(ValueError, match=r"Invalid type tf.int32 for Const:0, expected: \[tf.float32"):
            tf.train.GradientDescentOptimizer(0.1).minimize(tf.constant(1))


def test_tensors_are_not_updated():
    optimizer, x = tf.train.GradientDescentOptimizer(3.0), tapeflow.constant(1.0)
    pairs = optimizer.compute_gradients(lambda: x * x, [x])
    assert pairs[0][0].numpy() == 2.0
    with pytest.raises(NotImplementedError, match="Trying to update a Tensor"):
        optimizer.apply_gradients(pairs)
