"""Why functions are traced again: TensorFlow's warning, and which argument was new."""

from __future__ import annotations

from collections.abc import Callable
from types import CodeType
from typing import Any
from weakref import WeakKeyDictionary

from tapeflow._src import _core
from tapeflow._src.function.signature import CallSignature, Signature, spec_text
from tapeflow._src.types.logging import get_logger
from tapeflow._src.types.tensor_spec import TensorSpec

_TRACES, _CALLS = 5, 10  # a warning for so many traces within the last calls
_WARNINGS = 2  # per function


_history_by_code: WeakKeyDictionary[CodeType, History] = WeakKeyDictionary()


def history_of(function: Callable[..., Any]) -> History:
    """The history of all functions that were made of the same lines: one that is made in a loop is traced each time."""
    while hasattr(function, "__wrapped__"):
        function = function.__wrapped__
    code = getattr(getattr(function, "__func__", function), "__code__", None)
    return History() if code is None else _history_by_code.setdefault(code, History())


class History(_core.CallCounter):
    """The calls and traces of one function, as far back as the warning looks. Calls that need no Python count, too."""

    def __init__(self) -> None:
        self._traced_at: list[int] = []
        self._warnings = 0

    def add_call(self) -> None:
        """One more call."""
        self.calls += 1

    def add_trace(self, function: Callable[..., Any]) -> None:
        """The last call was a trace; warns if too many were."""
        self._traced_at = [call for call in self._traced_at if call > self.calls - _CALLS]
        self._traced_at.append(self.calls)
        if len(self._traced_at) < _TRACES or self._warnings == _WARNINGS:
            return
        self._warnings += 1
        get_logger().warning(
            "%d out of the last %d calls to %s triggered tf.function retracing. Tracing is expensive and the excessive "
            "number of tracings could be due to (1) creating @tf.function repeatedly in a loop, (2) passing tensors "
            "with different shapes, (3) passing Python objects instead of tensors. For (1), please define your "
            "@tf.function outside of the loop. For (2), @tf.function has reduce_retracing=True option that can avoid "
            "unnecessary retracing. For (3), please refer to "
            "https://www.tensorflow.org/guide/function#controlling_retracing and "
            "https://www.tensorflow.org/api_docs/python/tf/function for  more details. `explain_retrace()` of the "
            "function shows which argument was new.",
            len(self._traced_at),
            min(self.calls, _CALLS),
            function,
        )


def explain(name: str, signature: Signature, call: CallSignature, known: list[CallSignature]) -> str:
    """Which arguments differ from the nearest call that has a graph, and what to do about each."""
    if not known:
        return f"{name}: this is the first trace."
    args, kwargs = call.described()
    names = signature.argument_names(args, kwargs)
    values = [*args, *kwargs.values()]

    def differences(other: CallSignature) -> list[tuple[str, Any, Any]]:
        other_args, other_kwargs = other.described()
        before = [*other_args, *other_kwargs.values()]
        pairs = [(n, a, b) for n, a, b in zip(names, before, values) if spec_text(a) != spec_text(b) or _other(a, b)]
        extra = names[len(before) :] if len(values) > len(before) else []
        return pairs + [(n, "nothing", "an argument") for n in extra]

    nearest = min((differences(other) for other in known), key=len)
    lines = [f"{name}: no graph fits these arguments. Against the nearest of {len(known)} traced before:"]
    for argument, before, now in nearest:
        lines.append(f"  argument '{argument}': was {spec_text(before)}, is {spec_text(now)}")
        lines.append(f"    {_advice(argument, before, now)}")
    if len(lines) == 1:
        lines.append("  the arguments look the same; an object among them is another one. Pass the same object again.")
    return "\n".join(lines)


def _other(a: Any, b: Any) -> bool:
    return a is not b and not isinstance(a, TensorSpec) and a != b


def _advice(argument: str, before: Any, now: Any) -> str:
    if isinstance(before, TensorSpec) and isinstance(now, TensorSpec):
        if before.dtype != now.dtype:
            return f"Cast it to one dtype before the call: tf.cast({argument}, tf.{before.dtype.name})."
        return "Give the function reduce_retracing=True, or an input_signature with None for the sizes that change."
    if isinstance(before, int | float) and isinstance(now, int | float):
        return f"A Python number is part of the graph. Pass a tensor: tf.constant({now!r})."
    if isinstance(before, TensorSpec) != isinstance(now, TensorSpec):
        return "Pass a tensor in every call."
    return "Python values are part of the graph: each new one is traced. Pass tensors, or the same object again."
