"""Small tools for writing libraries that TensorFlow keeps in `python.util` and `python.framework`."""

from __future__ import annotations

import functools
import sys
import threading
import types
import typing
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from importlib import import_module
from typing import Any

import numpy as np

from tapeflow._src.compat.tensorflow.inner_modules.decorators import make_decorator
from tapeflow._src.types.dtypes import DType
from tapeflow._src.types.logging import warn
from tapeflow._src.types.tensor_shape import Dimension, TensorShape

_LOGGING = "tensorflow.python.platform.tf_logging"


def _caller(offset: int) -> tuple[types.FrameType, bool]:
    """The frame of the caller's caller, `offset` frames further out; whether the stack was that deep."""
    frame = sys._getframe(2)
    for _ in range(offset):
        if frame.f_back is None:
            return frame, False
        frame = frame.f_back
    return frame, True


class Registry:
    """Objects by their names."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._entry_by_name: dict[str, tuple[Any, str]] = {}

    def register(self, candidate: Any, name: str | None = None) -> None:
        """Keeps an object under a name, its own unless one is given."""
        name = candidate.__name__ if name is None else name
        if name in self._entry_by_name:
            raise KeyError(
                f"Registering two {self._name} with name '{name}'! (Previous registration was in "
                f"{self._entry_by_name[name][1]})"
            )
        frame, _ = _caller(0)
        place = f"{frame.f_code.co_name} {frame.f_code.co_filename}:{frame.f_lineno}"
        self._entry_by_name[name] = candidate, place

    def list(self) -> list[str]:
        """The names."""
        return [*self._entry_by_name]

    def lookup(self, name: str) -> Any:
        """The object of a name."""
        if name not in self._entry_by_name:
            raise LookupError(f"{self._name} registry has no entry for: {name}")
        return self._entry_by_name[name][0]


class TraceableObject:
    """An object with the line of the program that made it."""

    SUCCESS, HEURISTIC_USED, FAILURE = 0, 1, 2

    def __init__(self, obj: Any, filename: str | None = None, lineno: int | None = None) -> None:
        self.obj, self.filename, self.lineno = obj, filename, lineno

    def set_filename_and_line_from_caller(self, offset: int = 0) -> int:
        """Takes the line of the caller, or of one `offset` frames further out; the outermost if there are fewer."""
        frame, found = _caller(offset)
        self.filename, self.lineno = frame.f_code.co_filename, frame.f_lineno
        return self.SUCCESS if found else self.HEURISTIC_USED

    def copy_metadata(self) -> TraceableObject:
        """The line, without the object."""
        return TraceableObject(None, self.filename, self.lineno)


class TraceableStack:
    """A stack of objects with the lines that put them there."""

    def __init__(self, existing_stack: list[TraceableObject] | None = None) -> None:
        self._stack = [] if existing_stack is None else existing_stack[:]

    def push_obj(self, obj: Any, offset: int = 0) -> int:
        """Puts an object on top, with the line of the caller."""
        traceable = TraceableObject(obj)
        self._stack.append(traceable)
        return traceable.set_filename_and_line_from_caller(offset + 1)

    def pop_obj(self) -> Any:
        """Takes the object on top."""
        return self._stack.pop().obj

    def peek_top_obj(self) -> Any:
        """The object on top."""
        return self._stack[-1].obj

    def peek_objs(self) -> Iterator[Any]:
        """The objects, the newest first."""
        return (traceable.obj for traceable in reversed(self._stack))

    def peek_traceable_objs(self) -> Iterator[TraceableObject]:
        """The objects with their lines, the newest first."""
        return reversed(self._stack)

    def __len__(self) -> int:
        return len(self._stack)

    def copy(self) -> TraceableStack:
        """A stack of the same objects."""
        return TraceableStack(self._stack)


def keyword_args_only(func: Callable[..., Any]) -> Callable[..., Any]:
    """A function that takes its arguments by name alone."""

    @functools.wraps(func)
    def call(*args: Any, **kwargs: Any) -> Any:
        if args:
            raise ValueError(
                f"The function {func.__name__} only accepts keyword arguments. Do not pass positional arguments. "
                f"Received the following positional arguments: {args}"
            )
        return func(**kwargs)

    return make_decorator(func, call, "keyword_args_only")


class GroupLock:
    """A lock that threads of one group hold together, and those of different groups never."""

    def __init__(self, num_groups: int = 2) -> None:
        if num_groups < 1:
            raise ValueError(f"num_groups must be a positive integer, got {num_groups}")
        self._changed = threading.Condition()
        self._group_member_counts = [0] * num_groups

    @contextmanager
    def group(self, group_id: int) -> Iterator[None]:
        """Holds the lock with a group."""
        self.acquire(group_id)
        try:
            yield
        finally:
            self.release(group_id)

    def acquire(self, group_id: int) -> None:
        """Waits until no other group holds the lock, and joins."""
        self._check(group_id)
        with self._changed:
            self._changed.wait_for(lambda: not self._held_by_others(group_id))
            self._group_member_counts[group_id] += 1

    def release(self, group_id: int) -> None:
        """Leaves the group that holds the lock."""
        self._check(group_id)
        with self._changed:
            self._group_member_counts[group_id] -= 1
            self._changed.notify_all()

    def _held_by_others(self, group_id: int) -> bool:
        return any(count > 0 for number, count in enumerate(self._group_member_counts) if number != group_id)

    def _check(self, group_id: int) -> None:
        if not 0 <= group_id < len(self._group_member_counts):
            raise ValueError(f"group_id={group_id} is not below the number of groups {len(self._group_member_counts)}")


def get_json_type(obj: Any) -> Any:
    """What `json.dumps` writes for shapes, dtypes, arrays and objects with a configuration."""
    if hasattr(obj, "get_config"):
        return {"class_name": type(obj).__name__, "config": obj.get_config()}
    if isinstance(obj, np.ndarray | np.generic):
        return obj.tolist() if isinstance(obj, np.ndarray) else obj.item()
    if isinstance(obj, DType):
        return obj.name
    if isinstance(obj, Dimension):
        return obj.value
    if isinstance(obj, TensorShape):
        return obj.as_list()
    if callable(obj) or type(obj).__name__ == type.__name__:
        return obj.__name__
    if isinstance(obj, Mapping):
        return dict(obj)
    raise TypeError(f"Object {obj} is not JSON-serializable. You may implement a `get_config()` method on the class.")


def _is_generic(*origins: Any) -> Callable[[Any], bool]:
    def ask(tp: Any) -> bool:
        return typing.get_origin(tp) in origins and bool(typing.get_args(tp))

    return ask


class LazyLoader(types.ModuleType):
    """A module that is imported when something of it is used; then it takes this one's place in a namespace."""

    def __init__(
        self, local_name: str, parent_module_globals: dict[str, Any], name: str, warning: str | None = None
    ) -> None:
        super().__init__(name)
        self.__dict__.update(_lazy_place=(local_name, parent_module_globals), _lazy_warning=warning)

    def _load(self) -> types.ModuleType:
        module = import_module(self.__name__)
        local_name, namespace = self.__dict__["_lazy_place"]
        namespace[local_name] = module
        warning = self.__dict__["_lazy_warning"]
        if warning:
            getattr(sys.modules.get(_LOGGING), "warning", warn)(warning)
            self.__dict__["_lazy_warning"] = None
        return module

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") and name not in ("__all__", "__version__"):
            raise AttributeError(name)  # those who look around, such as doctest, import nothing
        return getattr(self._load(), name)

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(self._load(), name, value)

    def __delattr__(self, name: str) -> None:
        delattr(self._load(), name)

    def __dir__(self) -> list[str]:
        return dir(self._load())

    def __reduce__(self) -> tuple[Any, ...]:
        return import_module, (self.__name__,)


names_by_path: dict[str, dict[str, Any]] = {
    "python.framework.registry": {"Registry": Registry},
    "python.framework.traceable_stack": {"TraceableObject": TraceableObject, "TraceableStack": TraceableStack},
    "python.util.keyword_args": {"keyword_args_only": keyword_args_only},
    "python.util.lazy_loader": {"LazyLoader": LazyLoader},
    "python.util.lock_util": {"GroupLock": GroupLock},
    "python.util.serialization": {"get_json_type": get_json_type},
    "python.util.type_annotations": {
        "get_generic_type_args": typing.get_args,
        "is_forward_ref": lambda tp: isinstance(tp, typing.ForwardRef),
        "is_generic_list": _is_generic(list),
        "is_generic_mapping": _is_generic(Mapping, dict),
        "is_generic_tuple": _is_generic(tuple),
        "is_generic_union": _is_generic(typing.Union, types.UnionType),
    },
}
