"""`Defun`, which made functions of graphs before `tf.function`: the dtypes of its arguments are given."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from tapeflow._src.namespace import find_public


def defun(*input_types: Any, func_name: str | None = None, **options: Any) -> Callable[[Callable[..., Any]], Any]:
    """Makes a graph of a function whose arguments are tensors of the given dtypes.

    Options that name things or say where they run change nothing; gradients of one's own are those of
    `tf.custom_gradient`.
    """
    refused = [name for name in ("grad_func", "python_grad_func", "shape_func") if options.get(name) is not None]
    if refused:
        raise NotImplementedError(f"Defun: {refused[0]} is not supported; write the function with tf.custom_gradient")

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        traced = find_public("function")(function, autograph=False)

        @functools.wraps(function)
        def call(*args: Any, name: str | None = None) -> Any:
            if input_types and len(args) != len(input_types):
                raise ValueError(f"Expected number of arguments: {len(input_types)}, received: {len(args)}")
            convert = find_public("convert_to_tensor")
            types = input_types or [None] * len(args)
            result = traced(*(convert(value, dtype) for value, dtype in zip(args, types)))
            return result[0] if isinstance(result, list | tuple) and len(result) == 1 else result

        call.name = func_name or function.__name__  # type: ignore[attr-defined]
        return call

    return decorate
