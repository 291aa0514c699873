"""In which modes and on which machines tests run: `tensorflow.python.framework.test_util`."""

from __future__ import annotations

import functools
import gc
import unittest
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import pairwise
from typing import Any

from tapeflow._src import _core
from tapeflow._src.compat.tensorflow.inner_modules.execution_context import eager_mode, graph_mode, placed_anywhere
from tapeflow._src.compat.v1.graph import control_flow as switches
from tapeflow._src.compat.v1.graph.graph import Graph
from tapeflow._src.namespace import find_public
from tapeflow._src.types import nest

_Test = Callable[..., Any]


def _tests_of(cls: type) -> list[str]:
    names = unittest.TestLoader().getTestCaseNames(cls)
    return [name for name in names if name != "test_session"]


def for_all_test_methods(decorator: Callable[..., Any], *args: Any, **kwargs: Any) -> Callable[[type], type]:
    """Decorates a class by decorating each of its tests."""

    def decorate(cls: type) -> type:
        for name in _tests_of(cls):
            setattr(cls, name, decorator(*args, **kwargs)(getattr(cls, name)))
        return cls

    return decorate


def _with_or_without_arguments(make: Callable[..., Callable[[_Test], _Test]]) -> Callable[..., Any]:
    """Lets a decorator of tests stand with arguments or bare."""

    @functools.wraps(make)
    def decorator(func: Any = None, *args: Any, **kwargs: Any) -> Any:
        if callable(func):
            return make()(func)
        return make(*args, **kwargs) if func is None else make(func, *args, **kwargs)

    return decorator


@_with_or_without_arguments
def run_in_graph_and_eager_modes(
    config: Any = None, use_gpu: bool = True, assert_no_eager_garbage: bool = False
) -> Callable[[_Test], _Test]:
    """Runs a test in a graph with a session, then eagerly."""

    def decorate(test: _Test) -> _Test:
        if isinstance(test, type):
            raise ValueError(
                "`run_in_graph_and_eager_modes` only supports test methods. Did you mean to use "
                "`run_all_in_graph_and_eager_modes`?"
            )

        @functools.wraps(test)
        def decorated(self: Any, *args: Any, **kwargs: Any) -> None:
            try:
                with graph_mode(), self.test_session(use_gpu=use_gpu, config=config):
                    test(self, *args, **kwargs)
            except unittest.SkipTest:
                pass
            self.tearDown()
            self._folder = None  # eagerly with a folder of its own
            with Graph().as_default(), eager_mode():
                self.setUp()
                test(self, *args, **kwargs)

        return decorated

    return decorate


def run_all_in_graph_and_eager_modes(cls: type) -> type:
    """Runs each test of a class in a graph and eagerly."""
    return for_all_test_methods(run_in_graph_and_eager_modes)(cls)


def _in_graph(test: _Test) -> _Test:
    @functools.wraps(test)
    def decorated(self: Any, *args: Any, **kwargs: Any) -> Any:
        if isinstance(self, type):
            return test(self, *args, **kwargs)
        with graph_mode():
            return test(self, *args, **kwargs)

    return decorated


def deprecated_graph_mode_only(func: Any = None) -> Any:
    """Runs a test, or all of a class, in a graph."""
    if isinstance(func, type):
        for name in ("setUp", *_tests_of(func)):
            setattr(func, name, _in_graph(getattr(func, name)))
        return func
    return deprecated_graph_mode_only if func is None else _in_graph(func)


def run_all_in_deprecated_graph_mode_only(cls: type) -> type:
    """Runs each test of a class in a graph."""
    return for_all_test_methods(lambda: _in_graph)(cls)


def _skips(reason: str, wanted: Callable[[], bool]) -> Callable[..., Any]:
    """A decorator `(reason)`, or without arguments, that skips tests unless they are wanted."""

    def decorate(test: Any) -> Any:
        if isinstance(test, type):
            test.setUp = decorate(test.setUp)  # type: ignore[attr-defined]
            return test

        @functools.wraps(test)
        def decorated(self: Any, *args: Any, **kwargs: Any) -> Any:
            if not wanted():
                self.skipTest(reason)
            return test(self, *args, **kwargs)

        return decorated

    def decorator(given: Any = None, func: Any = None) -> Any:
        test = given if callable(given) else func
        return decorate if test is None else decorate(test)

    return decorator


run_v1_only = _skips("Test is only compatible with v1", lambda: False)
run_v2_only = _skips("Test is only compatible with v2", lambda: True)
run_gpu_only = _skips("Test requires GPU", lambda: False)
run_cuda_only = _skips("Test requires CUDA GPU", lambda: False)
run_gpu_or_tpu = _skips("Test requires GPU or TPU", lambda: False)


def as_it_is(given: Any = None, *_: Any, **__: Any) -> Any:
    """A decorator, with or without arguments, that changes nothing: what it speaks of is not here."""
    return given if callable(given) else lambda test: test


def skip_if(condition: Any) -> Callable[[_Test], _Test]:
    """Passes over a test if a condition holds, or gives True when called."""

    def decorate(test: _Test) -> _Test:
        @functools.wraps(test)
        def decorated(self: Any, *args: Any, **kwargs: Any) -> Any:
            return None if (condition() if callable(condition) else condition) else test(self, *args, **kwargs)

        return decorated

    return decorate


@contextmanager
def skip_if_error(case: unittest.TestCase, error_type: Any, messages: Any = None) -> Iterator[None]:
    """Skips a test in which an error of a kind is raised, whose text has one of the messages."""
    wanted = [messages] if isinstance(messages, str) else messages
    try:
        yield
    except error_type as error:
        if wanted and not any(text in str(error) for text in wanted):
            raise
        case.skipTest(f"Skipping error: {type(error)}: {error}")


def assert_no_garbage_created(test: _Test) -> _Test:
    """Fails if a test leaves cycles of objects for the garbage collector."""

    @functools.wraps(test)
    def decorated(self: Any, *args: Any, **kwargs: Any) -> None:
        gc.collect()
        flags, count = gc.get_debug(), len(gc.garbage)
        gc.set_debug(gc.DEBUG_SAVEALL)
        try:
            test(self, *args, **kwargs)
            gc.collect()
            found = gc.garbage[count:]
        finally:
            gc.set_debug(flags)
            del gc.garbage[count:]
        self.assertEqual([], found)

    return decorated


def enable_control_flow_v2(test: _Test) -> _Test:
    """Runs a test with the control flow of TensorFlow 2."""
    return _with_control_flow(test, True)


def disable_control_flow_v2(reason: Any = None) -> Callable[[_Test], _Test]:
    """Marks a test that `with_control_flow_v2` shall not run a second time."""

    def decorate(test: _Test) -> _Test:
        test._disable_control_flow_v2 = True  # type: ignore[attr-defined]
        return test

    return decorate


def _switch(newer: bool) -> None:
    (switches.enable_control_flow_v2 if newer else switches.disable_control_flow_v2)()


def _with_control_flow(test: _Test, newer: bool) -> _Test:
    @functools.wraps(test)
    def decorated(*args: Any, **kwargs: Any) -> None:
        before = switches.control_flow_v2_enabled()
        _switch(newer)
        try:
            test(*args, **kwargs)
        finally:
            _switch(before)

    return decorated


def with_control_flow_v2(cls: type) -> type:
    """Gives each test of a class a second one, with the control flow of TensorFlow 2."""
    for name in _tests_of(cls):
        test = getattr(cls, name)
        if not getattr(test, "_disable_control_flow_v2", False):
            setattr(cls, f"{name}WithControlFlowV2", enable_control_flow_v2(test))
    return cls


def build_as_function_and_v1_graph(func: Any = None) -> Any:
    """Runs a test in a graph, then in the graph of a function."""

    def decorate(test: _Test) -> _Test:
        if isinstance(test, type):
            raise ValueError("`run_in_graph_mode_and_function` only supports test methods.")

        @functools.wraps(test)
        def decorated(self: Any, *args: Any, **kwargs: Any) -> None:
            with Graph().as_default():
                test(self, *args, **kwargs)
            self.tearDown()
            self.setUp()

            def body() -> Any:
                test(self, *args, **kwargs)
                return find_public("constant")(0)

            find_public("function")(body, autograph=False)()

        return decorated

    return decorate if func is None else decorate(func)


def also_run_as_tf_function(test: _Test) -> Callable[..., Any]:
    """Runs a function of tensors eagerly, then as a `tf.function`."""

    def decorated(*args: Any, **kwargs: Any) -> None:
        with eager_mode():
            test(*args, **kwargs)
            find_public("function")(autograph=False)(lambda: (test(*args, **kwargs), None)[1])()

    return decorated


def py_func_if_in_function(function: Callable[..., Any]) -> Callable[..., Any]:
    """Calls a function with the values of its arguments, also while a function is traced."""

    def decorated(*args: Any, **kwargs: Any) -> Any:
        if not _core.is_tracing():
            return function(*args, **kwargs)
        tensors = [x for x in nest.flatten(args) if _core.is_tensor(x)]

        def call(*values: Any) -> None:
            given = iter(values)
            function(*nest.map_structure(lambda x: next(given) if _core.is_tensor(x) else x, args), **kwargs)

        find_public("py_function")(call, tensors, [])
        return None

    return decorated


@contextmanager
def run_functions_eagerly(run_eagerly: bool) -> Iterator[None]:
    """Functions inside run their Python at each call."""
    before = find_public("config.functions_run_eagerly")()
    find_public("config.run_functions_eagerly")(run_eagerly)
    try:
        yield
    finally:
        find_public("config.run_functions_eagerly")(before)


class MemoryChecker:
    """Counts Python objects by type at the beginning, whenever it is asked to, and at the end."""

    def __init__(self) -> None:
        self._snapshots: list[Counter[str]] = []

    def __enter__(self) -> MemoryChecker:
        self.record_snapshot()
        return self

    def __exit__(self, *exception: Any) -> None:
        self.record_snapshot()

    def record_snapshot(self) -> None:
        """Records how many objects there are."""
        gc.collect()
        own = {id(snapshot) for snapshot in self._snapshots}
        self._snapshots.append(Counter(type(thing).__qualname__ for thing in gc.get_objects() if id(thing) not in own))

    def _new(self) -> Counter[str]:
        return self._snapshots[-1] - self._snapshots[0]

    def report(self) -> None:
        """Prints which objects have become more."""
        for name, count in self._new().most_common():
            print(f"{name}: {count} more")

    def assert_no_leak_if_all_possibly_except_one(self) -> None:
        """An error if objects became more from each snapshot to the next, but for one at most."""
        totals = [snapshot.total() for snapshot in self._snapshots]
        if len(totals) > 2 and sum(after <= before for before, after in pairwise(totals)) <= 1:
            raise AssertionError(f"objects become more and more: {totals}; {dict(self._new())}")

    def assert_no_new_python_objects(self, threshold: dict[str, int] | None = None) -> None:
        """An error if there are more objects of a type than at the beginning, by more than is allowed for it."""
        allowed = threshold or {}
        found = {name: count for name, count in self._new().items() if count > allowed.get(name, 0)}
        if found:
            raise AssertionError(f"there are new objects: {found}")


def never() -> bool:
    """Whether something is there that is not."""
    return False


def assert_ops_in_graph(expected_ops: dict[str, str], graph: Any) -> dict[str, Any]:
    """The nodes of the given names; an error unless all are there, with the given kinds."""
    found = {}
    for node in graph.as_graph_def().node:
        if node.name in expected_ops:
            if expected_ops[node.name] != node.op:
                wanted = expected_ops[node.name]
                raise ValueError(f"Expected op for node {node.name} is different. {wanted} vs {node.op}")
            found[node.name] = node
    if set(expected_ops) != set(found):
        raise ValueError(f"Not all expected ops are present. Expected {set(expected_ops)}, found {set(found)}")
    return found


def _reordered(value: Any, order: dict[int, list[int]]) -> Any:
    is_tensor = _core.is_tensor(value)
    positions = order[len(value.shape) if is_tensor else len(value)]
    if is_tensor:
        return find_public("transpose")(value, positions)
    return [value[i] for i in positions]


def nchw_to_nhwc(input_tensor: Any) -> Any:
    """Moves the channels, of a tensor or a list of sizes, from the second place to the last."""
    return _reordered(input_tensor, {4: [0, 2, 3, 1], 5: [0, 2, 3, 4, 1]})


def nhwc_to_nchw(input_tensor: Any) -> Any:
    """Moves the channels, of a tensor or a list of sizes, from the last place to the second."""
    return _reordered(input_tensor, {4: [0, 3, 1, 2], 5: [0, 4, 1, 2, 3]})


def matmul_without_tf32(a: Any, b: Any, *args: Any, **kwargs: Any) -> Any:
    """The matrix product, in its full precision."""
    return find_public("matmul")(a, b, *args, **kwargs)


def get_node_def_from_graph(node_name: str, graph_def: Any) -> Any:
    """The node of a name, or None."""
    return next((node for node in graph_def.node if node.name == node_name), None)


_UNCHANGED = [
    "disable_asan",
    "disable_cudnn_autotune",
    "disable_eager_op_as_function",
    "disable_mlir_bridge",
    "disable_msan",
    "disable_tfrt",
    "disable_tsan",
    "disable_ubsan",
    "disable_xla",
    "enable_c_shapes",
    "enable_eager_op_as_function",
    "enable_output_all_intermediates",
    "enable_nested_function_shape_inference",
    "enable_tf_xla_constant_folding",
    "enable_quantized_dtypes_training",
    "no_xla_auto_jit",
    "assert_no_new_pyobjects_executing_eagerly",
    "assert_no_new_tensors",
    "run_all_without_tensor_float_32",
    "run_in_async_and_sync_mode",
    "run_without_tensor_float_32",
    "set_xla_env_flag",
    "with_c_shapes",
    "with_forward_compatibility_horizons",
    "xla_allow_fallback",
    "add_graph_building_optimization_tests",
]
_ABSENT = [
    "GpuSupportsHalfMatMulAndConv",
    "IsBuiltWithNvcc",
    "IsBuiltWithROCm",
    "IsBuiltWithXLA",
    "IsCPUTargetAvailable",
    "IsMklEnabled",
    "is_asan_enabled",
    "is_mlir_bridge_enabled",
    "is_msan_enabled",
    "is_tsan_enabled",
    "is_ubsan_enabled",
    "is_xla_enabled",
]
_ANYWHERE = ["deterministic_ops", "device", "force_cpu", "force_gpu", "use_gpu"]

names: dict[str, Any] = {
    **dict.fromkeys(_UNCHANGED, as_it_is),
    **dict.fromkeys(_ABSENT, never),
    **dict.fromkeys(_ANYWHERE, placed_anywhere),
    "NCHWToNHWC": nchw_to_nhwc,
    "NHWCToNCHW": nhwc_to_nchw,
    "also_run_as_tf_function": also_run_as_tf_function,
    "assert_no_garbage_created": assert_no_garbage_created,
    "assert_ops_in_graph": assert_ops_in_graph,
    "build_as_function_and_v1_graph": build_as_function_and_v1_graph,
    "deprecated_graph_mode_only": deprecated_graph_mode_only,
    "disable_control_flow_v2": disable_control_flow_v2,
    "enable_control_flow_v2": enable_control_flow_v2,
    "for_all_test_methods": for_all_test_methods,
    "get_node_def_from_graph": get_node_def_from_graph,
    "matmul_without_tf32": matmul_without_tf32,
    "py_func_if_in_function": py_func_if_in_function,
    "run_all_in_deprecated_graph_mode_only": run_all_in_deprecated_graph_mode_only,
    "run_all_in_graph_and_eager_modes": run_all_in_graph_and_eager_modes,
    "run_cuda_only": run_cuda_only,
    "run_deprecated_v1": deprecated_graph_mode_only,
    "run_functions_eagerly": run_functions_eagerly,
    "run_gpu_only": run_gpu_only,
    "run_gpu_or_tpu": run_gpu_or_tpu,
    "run_in_graph_and_eager_modes": run_in_graph_and_eager_modes,
    "run_v1_only": run_v1_only,
    "run_v2_only": run_v2_only,
    "skip_if": skip_if,
    "skip_if_error": skip_if_error,
    "with_control_flow_v2": with_control_flow_v2,
}
