"""What tests ask about the build and the machine before they run: there is one kind of device, the processor."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable
from typing import Any

from tapeflow._src.namespace import public


@public("test.is_gpu_available")
def is_gpu_available(cuda_only: bool = False, min_cuda_compute_capability: Any = None) -> bool:
    """Whether there is a GPU to compute on: False.

    >>> tf.test.is_gpu_available()
    False
    """
    return False


@public("test.gpu_device_name")
def gpu_device_name() -> str:
    """The name of a GPU: empty.

    >>> tf.test.gpu_device_name()
    ''
    """
    return ""


@public("test.is_built_with_cuda")
def is_built_with_cuda() -> bool:
    """Whether the build knows CUDA: False.

    >>> tf.test.is_built_with_cuda()
    False
    """
    return False


@public("test.is_built_with_rocm")
def is_built_with_rocm() -> bool:
    """Whether the build knows ROCm: False.

    >>> tf.test.is_built_with_rocm()
    False
    """
    return False


@public("test.is_built_with_gpu_support")
def is_built_with_gpu_support() -> bool:
    """Whether the build knows GPUs: False.

    >>> tf.test.is_built_with_gpu_support()
    False
    """
    return False


@public("test.is_built_with_xla")
def is_built_with_xla() -> bool:
    """Whether the build contains XLA: False.

    >>> tf.test.is_built_with_xla()
    False
    """
    return False


_TARGETS = {"x86_64": "x86", "amd64": "x86", "aarch64": "aarch64", "arm64": "aarch64"}


@public("test.is_cpu_target_available")
def is_cpu_target_available(target: str) -> bool:
    """Whether code for a processor, "x86" or "aarch64", can run here.

    >>> tf.test.is_cpu_target_available("abacus")
    False
    """
    return _TARGETS.get(os.uname().machine.lower()) == target


@public("test.disable_with_predicate")
def disable_with_predicate(pred: Callable[[], bool], skip_message: str) -> Callable[..., Any]:
    """A decorator that skips a test of a `tf.test.TestCase` where `pred()` is true.

    >>> skip = tf.test.disable_with_predicate(tf.test.is_built_with_rocm, "not with ROCm")
    >>> skip(lambda self: 7)(None)
    7
    """

    def decorate(test: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(test)
        def run(self: Any, *args: Any, **kwargs: Any) -> Any:
            return self.skipTest(skip_message) if pred() else test(self, *args, **kwargs)

        return run

    return decorate


@public("test.with_eager_op_as_function")
def with_eager_op_as_function(cls: Any = None, only_as_function: bool = False) -> Any:
    """A decorator of test cases that has nothing to change here.

    >>> @tf.test.with_eager_op_as_function
    ... class Tests:
    ...     pass
    """
    return (lambda decorated: decorated) if cls is None else cls


@public("test.experimental.sync_devices")
def sync_devices() -> None:
    """Waits until devices have done their work: they have when a call returns.

    >>> tf.test.experimental.sync_devices()
    """
