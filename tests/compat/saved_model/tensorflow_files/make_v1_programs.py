"""Writes `v1_programs.zip` with TensorFlow 2.21: a graph whose condition takes the result of a loop, a function whose
variables became constants, and a graph with a partitioned variable that is trained.

.peers/bin/python tests/compat/saved_model/tensorflow_files/make_v1_programs.py
"""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import numpy as np
import tensorflow as tf
from make import zipped
from tensorflow.python.framework.convert_to_constants import convert_variables_to_constants_v2

v1 = tf.compat.v1
X = np.arange(6, dtype=np.float32).reshape(2, 3) / 6 - 0.3


def conditions(folder: Path) -> dict[str, np.ndarray]:
    """A loop over a list whose length has a default, a condition after it, and loops in each other."""
    v1.disable_control_flow_v2()
    with tf.Graph().as_default() as graph, v1.Session() as session:
        x = v1.placeholder(tf.float32, [None, 3], name="x")
        n = v1.placeholder_with_default(3, [], name="n")
        rows = tf.TensorArray(tf.float32, size=n, element_shape=[3])
        _, h, rows = tf.while_loop(
            lambda i, *_: i < n,
            lambda i, h, rows: (i + 1, tf.tanh(h + x), rows.write(i, tf.reduce_mean(h, 0))),
            [0, x, rows],
        )
        rows = tf.identity(rows.stack(), "rows")
        y = tf.identity(tf.cond(tf.reduce_sum(h) > 0, lambda: h * 2, lambda: -h), "y")
        v1.io.write_graph(graph.as_graph_def(), str(folder), "conditions.pb", as_text=False)
        found = {
            f"{name}{k}": session.run(t, {x: X, n: k}) for k in (0, 2, 5) for name, t in (("y", y), ("rows", rows))
        }
    return found | {"default": session_value(graph, y, {x: X})}


def session_value(graph: tf.Graph, tensor: tf.Tensor, feeds: dict) -> np.ndarray:
    with v1.Session(graph=graph) as session:
        return session.run(tensor, feeds)


def frozen(folder: Path) -> dict[str, np.ndarray]:
    """Its loops and conditions have nodes of TensorFlow 1, and no structure of arguments is written."""
    v1.enable_control_flow_v2()
    v = tf.Variable(X.T @ X)

    @tf.function
    def run(x):
        for _ in tf.range(tf.shape(x)[0]):
            x = tf.tanh(x @ v)
        return {"a": x, "b": tf.cond(tf.reduce_sum(x) > 0, lambda: v + 1, lambda: v - 1)}

    module = tf.Module()
    module.f = convert_variables_to_constants_v2(run.get_concrete_function(tf.TensorSpec([None, 3], name="x")))
    tf.saved_model.save(module, folder / "frozen", signatures=module.f)
    return {f"frozen_{key}": value.numpy() for key, value in run(X).items()}


def partitioned(folder: Path) -> dict[str, np.ndarray]:
    """A meta graph with its checkpoint, whose training has a condition."""
    with tf.Graph().as_default(), v1.Session() as session:
        x = v1.placeholder(tf.float32, [None, 3], name="x")
        with v1.variable_scope("net"):
            start = tf.constant_initializer(0.5)
            w = v1.get_variable("w", [3, 2], initializer=start, partitioner=v1.fixed_size_partitioner(3))
        loss = tf.reduce_mean(tf.square(tf.matmul(x, w) - 1), name="loss")
        step = v1.train.get_or_create_global_step()
        rate = tf.cond(step > 2, lambda: 0.1, lambda: 0.2)
        train = v1.train.GradientDescentOptimizer(rate).minimize(loss, step)
        v1.add_to_collection("train", train)
        session.run(v1.global_variables_initializer())
        for _ in range(2):
            session.run(train, {x: X})
        v1.train.Saver().save(session, str(folder / "meta" / "model"))
        losses = [session.run([loss, train], {x: X})[0] for _ in range(3)]
        return {"losses": np.asarray(losses)}


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        os.makedirs(folder / "meta")
        expected = {"x": X, **conditions(folder), **frozen(folder), **partitioned(folder)}
        zipped(folder, "v1_programs", expected)


if __name__ == "__main__":
    main()
