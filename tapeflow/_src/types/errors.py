"""`tf.errors`: the exceptions that operations raise, one class per status code; the core chooses among them."""

from __future__ import annotations

import warnings
from typing import Any, Self

from tapeflow._src import _core
from tapeflow._src.namespace import public


@public("errors.OpError", "compat.v1.errors.OpError", "compat.v1.OpError")
class OpError(Exception):
    """The base of the errors of operations; `error_code` is one of the constants of `tf.errors`.

    >>> str(tf.errors.InvalidArgumentError(None, None, "shapes differ"))
    'shapes differ'
    """

    def __init__(self, node_def: Any, op: Any, message: str, error_code: int, *args: dict[str, Any]) -> None:
        super().__init__(message)
        self._node_def = node_def
        self._op = op
        self._message = message
        self._error_code = error_code
        self._payloads: dict[str, Any] = args[0] if args and isinstance(args[0], dict) else {}

    @property
    def message(self) -> str:
        """What went wrong."""
        return self._message

    @property
    def error_code(self) -> int:
        """The number of the status, such as `tf.errors.NOT_FOUND`."""
        return self._error_code

    @property
    def op(self) -> Any:
        """The graph operation that failed, if it is known."""
        return self._op

    @property
    def node_def(self) -> Any:
        """The definition of the node that failed, if it is known."""
        return self._node_def

    @property
    def experimental_payloads(self) -> dict[str, Any]:
        """Further facts about the error, by key."""
        return dict(self._payloads)

    def __str__(self) -> str:
        return self._message

    def __reduce__(self) -> tuple[Any, ...]:
        code = (self._error_code,) if type(self) is OpError else ()
        payloads = (self._payloads,) if self._payloads else ()
        return type(self), (self._node_def, self._op, self._message, *code, *payloads)


class _StatusError(OpError):
    """An error whose class determines its code."""

    code: int

    def __init__(self, node_def: Any, op: Any, message: str, *args: dict[str, Any]) -> None:
        super().__init__(node_def, op, message, self.code, *args)

    @classmethod
    def of(cls, message: str) -> Self:
        """An error without a node of a graph: `NotFoundError.of("no such file")`."""
        return cls(None, None, message)


@public("errors.CancelledError", "compat.v1.errors.CancelledError")
class CancelledError(_StatusError):
    """The operation was cancelled."""

    code = 1


@public("errors.UnknownError", "compat.v1.errors.UnknownError")
class UnknownError(_StatusError):
    """An error for which no other class fits."""

    code = 2


@public("errors.InvalidArgumentError", "compat.v1.errors.InvalidArgumentError")
class InvalidArgumentError(_StatusError):
    """An argument is wrong, whatever the state of the program."""

    code = 3

    @classmethod
    def of(cls, message: str) -> Self:
        """An error without a node of a graph; while a graph is built it is a ValueError, too, as in TensorFlow."""
        refused = _core.is_tracing() and cls is InvalidArgumentError
        return (InvalidArgumentWhileTracingError if refused else cls)(None, None, message)  # type: ignore[return-value]


class InvalidArgumentWhileTracingError(InvalidArgumentError, ValueError):
    """An operation refused its arguments while a graph was built, where TensorFlow raises a ValueError."""


class RefusedDtypeError(TypeError):
    """An operation refused the dtype of an argument while a graph was built."""


def refused_dtype(who: str, argument: str, attr: str, dtype: Any, allowed: str) -> Exception:
    """What is raised for an argument of a wrong dtype: as in TensorFlow, a TypeError while a graph is built."""
    if _core.is_tracing():
        return RefusedDtypeError(
            f"{who}: Value passed to parameter '{argument}' has DataType {dtype.name} not in list of allowed values: "
            f"{allowed}"
        )
    return InvalidArgumentError.of(
        f"{who}: Value for attr '{attr}' of {dtype.name} is not in the list of allowed values: {allowed}; "
        f"argument '{argument}' has dtype {dtype.name}"
    )


@public("errors.DeadlineExceededError", "compat.v1.errors.DeadlineExceededError")
class DeadlineExceededError(_StatusError):
    """The time limit passed before the operation was done."""

    code = 4


@public("errors.NotFoundError", "compat.v1.errors.NotFoundError")
class NotFoundError(_StatusError):
    """A file or another thing that was asked for does not exist."""

    code = 5


@public("errors.AlreadyExistsError", "compat.v1.errors.AlreadyExistsError")
class AlreadyExistsError(_StatusError):
    """A file or another thing that should be made exists."""

    code = 6


@public("errors.PermissionDeniedError", "compat.v1.errors.PermissionDeniedError")
class PermissionDeniedError(_StatusError):
    """The caller may not do this."""

    code = 7


@public("errors.ResourceExhaustedError", "compat.v1.errors.ResourceExhaustedError")
class ResourceExhaustedError(_StatusError):
    """Memory or another resource is used up."""

    code = 8


@public("errors.FailedPreconditionError", "compat.v1.errors.FailedPreconditionError")
class FailedPreconditionError(_StatusError):
    """The state of the program does not allow the operation, such as reading an unset variable."""

    code = 9


@public("errors.AbortedError", "compat.v1.errors.AbortedError")
class AbortedError(_StatusError):
    """The operation was stopped, mostly by another one at the same time."""

    code = 10


@public("errors.OutOfRangeError", "compat.v1.errors.OutOfRangeError")
class OutOfRangeError(_StatusError):
    """The operation went past the end, as at the end of a dataset."""

    code = 11


@public("errors.UnimplementedError", "compat.v1.errors.UnimplementedError")
class UnimplementedError(_StatusError):
    """The operation is not there for these types or on this device."""

    code = 12


@public("errors.InternalError", "compat.v1.errors.InternalError")
class InternalError(_StatusError):
    """Something that must always hold does not: a mistake in the library."""

    code = 13


@public("errors.UnavailableError", "compat.v1.errors.UnavailableError")
class UnavailableError(_StatusError):
    """The service cannot be reached at the moment."""

    code = 14


@public("errors.DataLossError", "compat.v1.errors.DataLossError")
class DataLossError(_StatusError):
    """Data is lost or damaged."""

    code = 15


@public("errors.UnauthenticatedError", "compat.v1.errors.UnauthenticatedError")
class UnauthenticatedError(_StatusError):
    """The caller did not prove who it is."""

    code = 16


@public("errors.OperatorNotAllowedInGraphError")
class OperatorNotAllowedInGraphError(TypeError):
    """A Python operation that needs a tensor's value was used on a symbolic tensor."""


def _name_codes(**code_by_name: int) -> dict[str, int]:
    for name, code in code_by_name.items():
        public(f"errors.{name}", f"compat.v1.errors.{name}")(code)
    return code_by_name


code_by_name = _name_codes(
    OK=0,
    CANCELLED=1,
    UNKNOWN=2,
    INVALID_ARGUMENT=3,
    DEADLINE_EXCEEDED=4,
    NOT_FOUND=5,
    ALREADY_EXISTS=6,
    PERMISSION_DENIED=7,
    RESOURCE_EXHAUSTED=8,
    FAILED_PRECONDITION=9,
    ABORTED=10,
    OUT_OF_RANGE=11,
    UNIMPLEMENTED=12,
    INTERNAL=13,
    UNAVAILABLE=14,
    DATA_LOSS=15,
    UNAUTHENTICATED=16,
)

error_class_by_code: dict[int, type[OpError]] = {kind.code: kind for kind in _StatusError.__subclasses__()}


@public("compat.v1.errors.exception_type_from_error_code")
def exception_type_from_error_code(error_code: int) -> type[OpError]:
    """The class of the errors with that code.

    >>> tf.compat.v1.errors.exception_type_from_error_code(5).__name__
    'NotFoundError'
    """
    if error_code not in error_class_by_code:
        raise ValueError(f"There is no error class with code {error_code}; codes are {sorted(error_class_by_code)}")
    return error_class_by_code[error_code]


@public("compat.v1.errors.error_code_from_exception_type")
def error_code_from_exception_type(cls: type[OpError]) -> int:
    """The code of the errors of that class.

    >>> tf.compat.v1.errors.error_code_from_exception_type(tf.errors.NotFoundError)
    5
    """
    for code, kind in error_class_by_code.items():
        if kind is cls:
            return code
    warnings.warn(f"{cls!r} is not a class of tf.errors; its code is UNKNOWN.", stacklevel=2)
    return UnknownError.code
