"""Small questions about graphs and conversions that `tensorflow.python.framework.ops` and its neighbours answer."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

import numpy as np

from tapeflow._src import _core
from tapeflow._src.compat.v1.graph.graph import defaults
from tapeflow._src.namespace import find_public


def convert_to_tensor(
    value: Any,
    dtype: Any = None,
    name: str | None = None,
    as_ref: bool = False,
    preferred_dtype: Any = None,
    dtype_hint: Any = None,
    accepted_result_types: Any = None,
) -> Any:
    """A tensor of a value, as `tf.convert_to_tensor`, with the arguments of TensorFlow 1."""
    hint = preferred_dtype if dtype_hint is None else dtype_hint
    return find_public("convert_to_tensor")(value, dtype, hint, name)


def convert_n_to_tensor(
    values: Any, dtype: Any = None, name: str | None = None, preferred_dtype: Any = None
) -> list[Any]:
    """Tensors of several values."""
    return [convert_to_tensor(value, dtype, name, preferred_dtype=preferred_dtype) for value in values]


def has_default_graph() -> bool:
    """Whether a graph has been made the default."""
    return bool(defaults.graphs) or _core.current_graph() is not None


def get_all_collection_keys() -> list[str]:
    """The names of the collections of the default graph."""
    found: list[str] = find_public("compat.v1.get_default_graph")().get_all_collection_keys()
    return found


def name_scope(
    name: str | None, default_name: str | None = None, values: Any = None, skip_on_eager: bool = True
) -> Any:
    """A name scope, as `tf.compat.v1.name_scope`; with `skip_on_eager` none where operations run at once."""
    if skip_on_eager and not _core.is_tracing():
        return contextlib.nullcontext()
    return find_public("compat.v1.name_scope")(name, default_name, values)


def name_from_scope_name(name: str) -> str:
    """A name scope without the slash at its end."""
    return name.removesuffix("/")


def strip_name_scope(name: str, export_scope: str | None) -> str:
    """A name without the name scope that it begins with."""
    if export_scope and name.startswith(export_scope.rstrip("/") + "/"):
        return name[len(export_scope.rstrip("/")) + 1 :]
    return name


def prepend_name_scope(name: str, import_scope: str | None) -> str:
    """A name below a name scope."""
    return f"{import_scope.rstrip('/')}/{name}" if import_scope else name


def tensor_id(tensor: Any) -> int:
    """A number that no other tensor of the program has."""
    return id(tensor)


def is_constant(value: Any) -> bool:
    """Whether a tensor or an operation is a constant."""
    operation = value if hasattr(value, "outputs") else getattr(value, "op", None)
    return operation is not None and operation.type == "Const"


def max_error(grad1: Any, grad2: Any) -> float:
    """The largest difference between two lists of Jacobians."""
    differences = [float(np.max(np.abs(a - b))) for a, b in zip(grad1, grad2) if np.size(a) or np.size(b)]
    return max(differences, default=0.0)


def with_dependencies(dependencies: Any, output_tensor: Any, name: str | None = None) -> Any:
    """A tensor that is there once the given operations have run."""
    if not _core.is_tracing():
        return output_tensor
    with find_public("control_dependencies")(dependencies):
        return find_public("identity")(output_tensor, name=name)


def add_exit_callback_to_default_func_graph(fn: Callable[[], Any]) -> None:
    """Has a function called when the function that is being traced has been."""
    graph = _core.current_graph()
    if not is_in_function():
        raise RuntimeError(f"Cannot add scope exit callbacks when not building a function.  Default graph: {graph}")
    graph.exit_callbacks.append(fn)


def is_in_function() -> bool:
    """Whether a function is being traced."""
    return bool(find_public("inside_function")())


def increment_global_step(increment: int, graph: Any = None) -> Any:
    """The operation that adds to the global step of a graph."""
    step = find_public("compat.v1.train.get_or_create_global_step")(graph)
    return step.assign_add(increment)
