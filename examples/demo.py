"""Trains a small network on two moons with a tape, explains a gradient that is None, finds the origin of a NaN, and has
the doctor examine a broken program.

python examples/demo.py
"""

import itertools
import os
import sys
import tempfile
import textwrap
import time

import numpy as np

import tapeflow as tf

STEPS = 400
RATE = 0.01


def two_moons(count: int, rng: np.random.Generator):
    """Points on two interleaved half circles, with noise, and the moon each belongs to."""
    angle = rng.uniform(0, np.pi, count)
    label = rng.integers(0, 2, count)
    x = np.where(label, 1 - np.cos(angle), np.cos(angle))
    y = np.where(label, 0.5 - np.sin(angle), np.sin(angle))
    points = np.stack([x, y], axis=1) + rng.normal(0, 0.15, (count, 2))
    return tf.constant(points.astype("float32")), tf.constant(label.astype("int32"))


class Network:
    """2 inputs, two hidden layers of 32, 2 classes."""

    def __init__(self, rng: np.random.Generator, sizes=(2, 32, 32, 2)):
        pairs = list(itertools.pairwise(sizes))
        self.weights = [tf.Variable((rng.normal(0, 1, p) / np.sqrt(p[0])).astype("float32")) for p in pairs]
        self.biases = [tf.Variable(tf.zeros([outputs])) for _, outputs in pairs]
        self.variables = self.weights + self.biases

    def __call__(self, points):
        hidden = points
        for weight, bias in zip(self.weights[:-1], self.biases[:-1]):
            hidden = tf.tanh(tf.matmul(hidden, weight) + bias)
        return tf.matmul(hidden, self.weights[-1]) + self.biases[-1]


class Adam:
    def __init__(self, variables, rate: float):
        self.variables, self.rate, self.step = variables, rate, 0
        self.means = [tf.Variable(tf.zeros_like(v)) for v in variables]
        self.squares = [tf.Variable(tf.zeros_like(v)) for v in variables]

    def apply(self, gradients):
        self.step += 1
        rate = self.rate * (1 - 0.999**self.step) ** 0.5 / (1 - 0.9**self.step)
        for variable, mean, square, gradient in zip(self.variables, self.means, self.squares, gradients):
            mean.assign(0.9 * mean + 0.1 * gradient)
            square.assign(0.999 * square + 0.001 * tf.square(gradient))
            variable.assign_sub(rate * mean / (tf.sqrt(square) + 1e-7))


def loss_and_accuracy(network, points, labels):
    logits = network(points)
    loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits))
    accuracy = (np.argmax(logits.numpy(), axis=1) == labels.numpy()).mean()
    return loss, float(accuracy)


def show_progress(step: int, loss: float, accuracy: float):
    """A bar that moves in a terminal; a few lines elsewhere."""
    done = round(30 * step / STEPS)
    line = f"  [{'#' * done}{'.' * (30 - done)}] step {step:3d}/{STEPS}   loss {loss:.4f}   accuracy {accuracy:6.1%}"
    if sys.stdout.isatty():
        print(f"\r{line}", end="\n" if step == STEPS else "", flush=True)
    elif step == 1 or step % (STEPS // 8) == 0:
        print(line)


def train():
    rng = np.random.default_rng(0)
    points, labels = two_moons(512, rng)
    network = Network(rng)
    adam = Adam(network.variables, RATE)

    print("Two moons, 512 points, a 2-32-32-2 network, Adam\n")
    start = time.perf_counter()
    for step in range(1, STEPS + 1):
        with tf.GradientTape() as tape:
            loss, accuracy = loss_and_accuracy(network, points, labels)
        adam.apply(tape.gradient(loss, network.variables))
        show_progress(step, float(loss), accuracy)
    seconds = time.perf_counter() - start

    loss, accuracy = loss_and_accuracy(network, *two_moons(2048, rng))
    print(f"\n{STEPS} steps in {seconds:.2f} s. On 2,048 new points: loss {float(loss):.4f}, accuracy {accuracy:.1%}\n")


def show_none():
    x = tf.Variable(7.0)
    with tf.GradientTape(persistent=True) as tape:
        target = tf.square(x // 2.0)
        smooth = tf.square(x / 2.0)
    print("A gradient that is None\n")
    print("  target = tf.square(x // 2.0)      d target / dx =", tape.gradient(target, x))
    print("  smooth = tf.square(x / 2.0)       d smooth / dx =", tape.gradient(smooth, x).numpy())
    zeros = tape.gradient(target, x, unconnected_gradients=tf.UnconnectedGradients.ZERO)
    print("  target, unconnected_gradients=ZERO              =", zeros.numpy())
    print("\n  tape.explain(target, x) says:\n")
    print(textwrap.fill(str(tape.explain(target, x)), 100, initial_indent="  ", subsequent_indent="  "))


def show_nan():
    x = tf.Variable([3.0, 0.0])
    with tf.experimental.FirstNan() as search:
        with tf.GradientTape() as tape:
            y = tf.reduce_sum(tf.where(x > 0.0, x * tf.math.log(x), 0.0))  # the usual trap
        gradient = tape.gradient(y, x)
    print("\nA gradient that is NaN\n")
    print(f"  d y / dx = {gradient.numpy()}, and tf.experimental.FirstNan() says:\n")
    print(textwrap.indent(str(search.found), "  "))


def broken_training():
    """Predictions of shape [n, 1] and labels of shape [n], and a path through NumPy."""
    rng = np.random.default_rng(1)
    points, labels = rng.normal(size=(64, 3)).astype("float32"), rng.normal(size=64).astype("float32")
    w = tf.Variable(tf.ones([3, 1]), name="w")
    for _ in range(10):
        with tf.GradientTape() as tape:
            penalty = np.sum(w.numpy() ** 2)
            loss = tf.reduce_mean((points @ w - labels) ** 2) + penalty * tf.reduce_sum(w)
        w.assign_sub(0.01 * tape.gradient(loss, w))


def show_doctor():
    with tf.debugging.Doctor() as doctor:
        broken_training()
    print("\nThe doctor on a program that runs without an error\n")
    print(textwrap.indent(str(doctor), "  "))
    page = os.path.join(tempfile.mkdtemp(prefix="tapeflow-"), "report.html")
    doctor.save_html(page)
    print(f"\n  The same as a page: {page}")


if __name__ == "__main__":
    train()
    show_none()
    show_nan()
    show_doctor()
