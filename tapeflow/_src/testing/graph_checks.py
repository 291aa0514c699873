"""What tests of graphs ask for: gradients against differences in a session, equal graphs, benchmarks, a folder."""

from __future__ import annotations

import atexit
import functools
import os
import shutil
import tempfile
import time
import unittest.mock
from typing import Any

import numpy as np

from tapeflow._src.compat.v1.graph.gradients import gradients
from tapeflow._src.compat.v1.sessions.session import get_default_session
from tapeflow._src.namespace import find_public, public


def _reals(array: np.ndarray) -> np.ndarray:
    """The elements in a row, as a view; a complex one counts as two real ones."""
    flat = array.reshape(-1)
    return flat.view(flat.real.dtype) if np.iscomplexobj(flat) else flat


def _theoretical(x: Any, y: Any, y_shape: Any, value: np.ndarray, feeds: Any, dx: Any, dy: Any) -> np.ndarray:
    session = get_default_session()
    weights = np.zeros(y_shape, y.dtype.as_numpy_dtype)
    columns = []
    for column in range(_reals(weights).size):
        weights = np.zeros(y_shape, y.dtype.as_numpy_dtype)
        _reals(weights)[column] = 1
        columns.append(_reals(np.array(session.run(dx, {**feeds, x: value, dy: weights}))))
    return (
        np.stack(columns, axis=1) if columns else np.zeros([_reals(value).size, 0], x.dtype.real_dtype.as_numpy_dtype)
    )


def _numeric(x: Any, y: Any, y_shape: Any, value: np.ndarray, feeds: Any, delta: float) -> np.ndarray:
    session = get_default_session()
    columns = _reals(np.zeros(y_shape, y.dtype.as_numpy_dtype)).size
    jacobian = np.zeros([_reals(value).size, columns], x.dtype.real_dtype.as_numpy_dtype)
    for row in range(len(jacobian)):
        ends = []
        for step in (delta, -delta):
            moved = value.copy()
            _reals(moved)[row] += step
            ends.append(_reals(np.array(session.run(y, {**feeds, x: moved}))))
        jacobian[row] = (ends[0] - ends[1]) / (2 * delta)
    return jacobian


public("compat.v1.test.mock")(unittest.mock)


@public("compat.v1.test.compute_gradient")
def compute_gradient(
    x: Any,
    x_shape: Any,
    y: Any,
    y_shape: Any,
    x_init_value: Any = None,
    delta: float = 1e-3,
    init_targets: Any = None,
    extra_feed_dict: Any = None,
) -> Any:
    """The Jacobian [elements of x, elements of y] by gradients and by differences, in the default session.

    A complex element counts as two real ones.

    >>> with tf.Graph().as_default(), tf.compat.v1.Session():
    ...     x = tf.constant([1., 2.])
    ...     exact, differences = tf.compat.v1.test.compute_gradient(x, [2], x * x, [2], np.float32([1., 2.]))
    >>> exact.tolist()
    [[2.0, 0.0], [0.0, 4.0]]
    """
    if extra_feed_dict is None:
        extra_feed_dict = {}
    session = get_default_session()
    if init_targets is not None:
        session.run(init_targets)
    if isinstance(x, list):
        values = x_init_value if x_init_value is not None else [None] * len(x)
        return [
            compute_gradient(one, shape, y, y_shape, value, delta, None, extra_feed_dict)
            for one, shape, value in zip(x, x_shape, values)
        ]
    value = np.random.random_sample(x_shape) if x_init_value is None else np.asarray(x_init_value)
    value = value.astype(x.dtype.as_numpy_dtype)
    dy = find_public("compat.v1.placeholder")(y.dtype, y_shape)
    dx = find_public("convert_to_tensor")(gradients(y, x, dy)[0])
    exact = _theoretical(x, y, y_shape, value, extra_feed_dict, dx, dy)
    return exact, _numeric(x, y, y_shape, value, extra_feed_dict, delta)


@public("compat.v1.test.compute_gradient_error")
def compute_gradient_error(
    x: Any,
    x_shape: Any,
    y: Any,
    y_shape: Any,
    x_init_value: Any = None,
    delta: float = 1e-3,
    init_targets: Any = None,
    extra_feed_dict: Any = None,
) -> float:
    """The largest difference between the two Jacobians of `compute_gradient`.

    >>> with tf.Graph().as_default(), tf.compat.v1.Session():
    ...     x = tf.constant([1., 2.])
    ...     tf.compat.v1.test.compute_gradient_error(x, [2], 2. * x, [2], np.float32([1., 2.])) < 1e-3
    True
    """
    found = compute_gradient(x, x_shape, y, y_shape, x_init_value, delta, init_targets, extra_feed_dict)
    pairs = found if isinstance(found, list) else [found]
    return max((float(np.abs(a - b).max()) for a, b in pairs if a.size), default=0.0)


@public("test.assert_equal_graph_def", "compat.v1.test.assert_equal_graph_def")
def assert_equal_graph_def(actual: Any, expected: Any, **_: Any) -> None:
    """An error unless two messages have the same nodes, in any order.

    >>> with tf.Graph().as_default() as graph:
    ...     y = tf.constant(1.)
    >>> tf.test.assert_equal_graph_def(graph.as_graph_def(), graph.as_graph_def())
    """
    known, wanted = ({node.name: node for node in definition.node} for definition in (actual, expected))
    for name in [*known, *wanted]:
        if known.get(name) != wanted.get(name):
            raise AssertionError(f"Node {name!r} differs: {known.get(name)} and {wanted.get(name)}")


@public("compat.v1.test.get_temp_dir")
def get_temp_dir() -> str:
    """A folder for the files of this program's tests: always the same one, removed when the process ends.

    >>> tf.compat.v1.test.get_temp_dir() == tf.compat.v1.test.get_temp_dir()
    True
    """
    return _own_folder(os.getpid())


@functools.cache
def _own_folder(process: int) -> str:
    """A new folder, which tests may empty or remove; a forked process has one of its own."""
    folder = tempfile.mkdtemp(prefix="tests_", dir=os.environ.get("TEST_TMPDIR"))
    atexit.register(_remove_own_folder, process, folder)
    return folder


def _remove_own_folder(process: int, folder: str) -> None:
    if os.getpid() == process:
        shutil.rmtree(folder, ignore_errors=True)


@public("test.Benchmark")
class Benchmark:
    """A class whose methods measure how fast something is; `report_benchmark` prints one number.

    >>> tf.test.Benchmark().report_benchmark(name="nothing", iters=1, wall_time=0.5)
    nothing: 1 iterations, 0.5 s each
    """

    def report_benchmark(
        self,
        iters: int | None = None,
        cpu_time: float | None = None,
        wall_time: float | None = None,
        throughput: float | None = None,
        extras: Any = None,
        name: str | None = None,
        metrics: Any = None,
    ) -> None:
        """Prints what was measured."""
        print(f"{name or type(self).__name__}: {iters} iterations, {wall_time} s each", *([extras] if extras else []))

    def run_op_benchmark(
        self,
        sess: Any,
        op_or_tensor: Any,
        feed_dict: Any = None,
        burn_iters: int = 2,
        min_iters: int = 10,
        name: str | None = None,
        **options: Any,
    ) -> dict[str, Any]:
        """Measures how long a session takes for an operation."""
        for _ in range(burn_iters):
            sess.run(op_or_tensor, feed_dict)
        start = time.perf_counter()
        for _ in range(min_iters):
            sess.run(op_or_tensor, feed_dict)
        seconds = (time.perf_counter() - start) / min_iters
        self.report_benchmark(iters=min_iters, wall_time=seconds, name=name)
        return {"iters": min_iters, "wall_time": seconds, "name": name}
