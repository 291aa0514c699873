"""The types of the C++ core as Python sees them; `mypy.stubtest` compares them with the module that was built."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from types import TracebackType
from typing import Any, Generic, Literal, Self, TypeVar, final, overload, type_check_only

import numpy as np
from typing_extensions import disjoint_base

from tapeflow._src.types.dtypes import DType
from tapeflow._src.types.enums import UnconnectedGradients
from tapeflow._src.types.like import DTypeLike, NumericTensorLike, TensorLike
from tapeflow._src.types.tensor import Reference
from tapeflow._src.types.tensor_shape import TensorShape

@type_check_only
class _Operators:
    """Python's operators, which tensors and variables share. There is no such class at run time."""

    def __abs__(self) -> Tensor: ...
    def __neg__(self) -> Tensor: ...
    def __pos__(self) -> Tensor: ...
    def __invert__(self) -> Tensor: ...
    def __add__(self, value: TensorLike, /) -> Tensor: ...
    def __radd__(self, value: TensorLike, /) -> Tensor: ...
    def __sub__(self, value: NumericTensorLike, /) -> Tensor: ...
    def __rsub__(self, value: NumericTensorLike, /) -> Tensor: ...
    def __mul__(self, value: NumericTensorLike, /) -> Tensor: ...
    def __rmul__(self, value: NumericTensorLike, /) -> Tensor: ...
    def __truediv__(self, value: NumericTensorLike, /) -> Tensor: ...
    def __rtruediv__(self, value: NumericTensorLike, /) -> Tensor: ...
    def __floordiv__(self, value: NumericTensorLike, /) -> Tensor: ...
    def __rfloordiv__(self, value: NumericTensorLike, /) -> Tensor: ...
    def __mod__(self, value: NumericTensorLike, /) -> Tensor: ...
    def __rmod__(self, value: NumericTensorLike, /) -> Tensor: ...
    def __pow__(self, value: NumericTensorLike, mod: None = None, /) -> Tensor: ...
    def __rpow__(self, value: NumericTensorLike, mod: None = None, /) -> Tensor: ...
    def __matmul__(self, value: NumericTensorLike, /) -> Tensor: ...
    def __rmatmul__(self, value: NumericTensorLike, /) -> Tensor: ...
    def __and__(self, value: NumericTensorLike, /) -> Tensor: ...
    def __rand__(self, value: NumericTensorLike, /) -> Tensor: ...
    def __or__(self, value: NumericTensorLike, /) -> Tensor: ...
    def __ror__(self, value: NumericTensorLike, /) -> Tensor: ...
    def __xor__(self, value: NumericTensorLike, /) -> Tensor: ...
    def __rxor__(self, value: NumericTensorLike, /) -> Tensor: ...
    def __eq__(self, value: object, /) -> Tensor: ...  # type: ignore[override]
    def __ne__(self, value: object, /) -> Tensor: ...  # type: ignore[override]
    def __lt__(self, value: TensorLike, /) -> Tensor: ...
    def __le__(self, value: TensorLike, /) -> Tensor: ...
    def __gt__(self, value: TensorLike, /) -> Tensor: ...
    def __ge__(self, value: TensorLike, /) -> Tensor: ...
    def __hash__(self) -> int: ...
    def __getitem__(self, key: Any, /) -> Any: ...
    def __iter__(self) -> Iterator[Tensor]: ...
    def __len__(self) -> int: ...
    def __bool__(self) -> bool: ...
    def __int__(self) -> int: ...
    def __float__(self) -> float: ...
    def __complex__(self) -> complex: ...
    def __index__(self) -> int: ...
    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray[Any, Any]: ...
    __array_priority__: int
    is_tensor_like: bool
    @property
    def dtype(self) -> DType:
        """The type of the elements, a tf.DType."""
    @property
    def shape(self) -> TensorShape:
        """The shape, a tf.TensorShape."""
    @property
    def device(self) -> str: ...
    def get_shape(self) -> TensorShape:
        """The shape; the same as `.shape`."""
    def ref(self) -> Reference:
        """A hashable reference, for dictionaries and sets."""
    def numpy(self) -> Any:
        """The elements as a NumPy array (a scalar for a tensor of rank 0)."""

@final
class Tensor(_Operators):
    """An array that operations take and give: it has a shape and a dtype, and never changes."""

    OVERLOADABLE_OPERATORS: set[str]
    def __getitem__(self, key: Any, /) -> Tensor: ...
    def __nonzero__(self) -> bool: ...
    def __format__(self, specification: str) -> str: ...
    def __dlpack__(self, **options: Any) -> Any: ...
    def __dlpack_device__(self) -> tuple[int, int]: ...
    @property
    def ndim(self) -> int:
        """Number of dimensions."""
    @property
    def name(self) -> str:
        """The name in its graph, as `add:0`."""
    @property
    def graph(self) -> Any: ...
    @property
    def op(self) -> Any:
        """The operation that gives this tensor, in a graph."""
    @property
    def value_index(self) -> int: ...
    @property
    def backing_device(self) -> str: ...
    def consumers(self) -> list[Any]:
        """The operations that take this tensor."""
    def eval(self, feed_dict: Mapping[Any, Any] | None = None, session: Any = None) -> Any:
        """The value, computed in the session or in the default one."""
    def set_shape(self, shape: Any) -> None:
        """Checks that the shape is compatible with `shape`."""
    def cpu(self, memo: Any = None) -> Tensor: ...

@disjoint_base
class Variable(_Operators):
    # `tf.Variable`, of which every variable is, adds these.
    @property
    def name(self) -> Any: ...
    @property
    def graph(self) -> Any: ...
    def fetched_value(self) -> Any: ...
    @property
    def trainable(self) -> bool:
        """Whether tapes watch this variable by themselves."""
    @trainable.setter
    def trainable(self, value: bool) -> None: ...
    def assign(
        self, value: TensorLike, use_locking: bool = False, name: str | None = None, read_value: bool = True
    ) -> Self:
        """Puts a new value into the variable."""
    def assign_add(
        self, delta: NumericTensorLike, use_locking: bool = False, name: str | None = None, read_value: bool = True
    ) -> Self:
        """Adds to the variable's value."""
    def assign_sub(
        self, delta: NumericTensorLike, use_locking: bool = False, name: str | None = None, read_value: bool = True
    ) -> Self:
        """Subtracts from the variable's value."""
    def value(self) -> Tensor:
        """The value, as a tensor."""
    def read_value(self) -> Tensor:
        """The value, as a tensor."""
    def _set_up(self, value: Tensor, shape: TensorShape | None, trainable: bool, name: str, /) -> None: ...
    def _declare(self, *args: Any) -> None: ...
    def _exchange(self, value: Any, /) -> Any: ...
    def _set_copies(self, copies: tuple[Any, ...], /) -> None: ...
    def _first_copy(self, kind: type, /) -> Any: ...
    def _is_initialized(self) -> bool: ...
    def _assign_slice(self, key: Any, value: Any, /) -> Self: ...
    def _update_rows(self, indices: Any, values: Any, how: str, /) -> Self: ...

@disjoint_base
class TensorShapeBase:
    _dims: Any
    def __new__(cls, *args: Any, **kwargs: Any) -> Self: ...
    @overload
    def __getitem__(self, key: slice, /) -> TensorShape: ...
    @overload
    def __getitem__(self, key: int, /) -> Any: ...
    def __iter__(self) -> Iterator[Any]: ...
    def __len__(self) -> int: ...
    # A size or a rank may be None. It is not in nearly all code, so users need not check: `Any` stands for it.
    def as_list(self) -> list[Any]:
        """Returns the dimensions as a list of int or None."""
    @property
    def rank(self) -> int | Any:
        """Number of dimensions, or None."""
    @property
    def ndims(self) -> int | Any:
        """Number of dimensions, or None."""

@final
class OpFunction:
    """A primitive as a Python callable. Operations with several results give a tuple, which unpacks alike."""

    __name__: str
    __qualname__: str
    __text_signature__: str
    @property
    def __signature__(self) -> Any: ...
    def __call__(self, *args: Any, **kwargs: Any) -> Tensor: ...

_Function = TypeVar("_Function", bound=Callable[..., Any])

@final
class Composition(Generic[_Function]):
    """A function of other operations as a Python callable, which can be traced as one node."""

    __name__: str
    __wrapped__: _Function
    def __new__(cls, function: Callable[..., Any], /) -> Self: ...
    def __call__(self, *args: Any, **kwargs: Any) -> Any: ...

@disjoint_base
class FunctionBase:
    def __call__(self, *args: Any, **kwargs: Any) -> Any: ...
    def __getattr__(self, name: str) -> Any: ...

@disjoint_base
class CallCounter:
    calls: int

@type_check_only
class _Context:
    def __enter__(self) -> Self: ...
    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None, /
    ) -> None: ...

_Key = TypeVar("_Key")
_Gradients = Literal[UnconnectedGradients.NONE, "none"]
_Zeros = Literal[UnconnectedGradients.ZERO, "zero"]

@disjoint_base
class GradientTape(_Context):
    def __new__(
        cls, persistent: bool = False, watch_accessed_variables: bool = True, *, strict: bool = False
    ) -> Self: ...
    def watch(self, tensor: Any) -> None:
        """Watches a tensor, a variable, or a nested structure of them."""
    def watched_variables(self) -> tuple[Any, ...]:
        """The variables that the tape watches, in the order of their first use."""
    def reset(self) -> None:
        """Forgets everything recorded so far."""
    @overload
    def gradient(
        self,
        target: Any,
        sources: Tensor | Variable,
        output_gradients: Any = None,
        unconnected_gradients: _Gradients = ...,
    ) -> Tensor | None:
        """Derivatives of `target` by each of `sources`, in the structure of `sources`."""
    @overload
    def gradient(
        self, target: Any, sources: Tensor | Variable, output_gradients: Any = None, *, unconnected_gradients: _Zeros
    ) -> Tensor: ...
    @overload
    def gradient(
        self,
        target: Any,
        sources: Sequence[Tensor | Variable],
        output_gradients: Any = None,
        unconnected_gradients: _Gradients = ...,
    ) -> list[Tensor | None]: ...
    @overload
    def gradient(
        self,
        target: Any,
        sources: Sequence[Tensor | Variable],
        output_gradients: Any = None,
        *,
        unconnected_gradients: _Zeros,
    ) -> list[Tensor]: ...
    @overload
    def gradient(
        self,
        target: Any,
        sources: Mapping[_Key, Tensor | Variable],
        output_gradients: Any = None,
        unconnected_gradients: UnconnectedGradients | str = ...,
    ) -> dict[_Key, Tensor | None]: ...
    @overload
    def gradient(
        self,
        target: Any,
        sources: Any,
        output_gradients: Any = None,
        unconnected_gradients: UnconnectedGradients | str = ...,
    ) -> Any: ...
    def __getattr__(self, name: str) -> Any: ...

@disjoint_base
class ForwardAccumulator(_Context):
    def _watch(self, primals: Any, tangents: Any, /) -> None: ...
    def _tangent(self, primal: Any, /) -> Any: ...
    def __getattr__(self, name: str) -> Any: ...

@final
class StopRecording(_Context):
    def __new__(cls, *args: Any) -> Self: ...

@final
class NumericsCheck:
    def __new__(cls, *args: Any) -> Self: ...
    def start(self) -> None:
        """Listens on this thread, in place of another one."""
    def stop(self) -> None:
        """Listens no more."""
    def measure(self, on: bool, /) -> None:
        """Adds up the times of operations from now on, or no more."""
    def times(self) -> list[tuple[str, Any, int, bool, int, int, int, float]]:
        """The times by operation and line, as measured so far."""

@disjoint_base
class Graph(_Context):
    """The graph that operations are added to; its subclasses keep more about it than the core knows."""

    scope: str
    control_scope: Any
    changing: list[Any]
    frozen: bool
    names_nodes: bool
    def __new__(cls, *args: Any, **kwargs: Any) -> Self: ...
    @property
    def inputs(self) -> list[Tensor]: ...
    @property
    def outputs(self) -> list[Tensor]: ...
    @property
    def captures(self) -> list[Any]: ...
    @property
    def captured_variables(self) -> list[Any]: ...
    @property
    def variables_used(self) -> list[Any]: ...
    @property
    def node_count(self) -> int: ...
    @property
    def outer(self) -> Any: ...
    def add_constant(self, *args: Any) -> Tensor:
        """A node that gives a tensor."""
    def add_no_op(self, name: str, /) -> int:
        """A node that does nothing; gives its number."""
    def call(self, inputs: Sequence[Any], /) -> list[Any]:
        """Runs the graph as one operation."""
    def node(self, number: int, /) -> tuple[Any, ...]:
        """A description of a node."""
    def set_node_name(self, number: int, name: str, /) -> None: ...
    def add_placeholder(self, dtype: Any, shape: Any, name: str, /) -> Any:
        """A tensor that has to be fed."""
    def add_placeholder_with_default(self, value: Any, shape: Any, name: str, /) -> Any:
        """A tensor that can be fed."""
    def unique_name(self, name: str, /) -> str: ...
    def __getattr__(self, name: str) -> Any: ...
    def __setattr__(self, name: str, value: Any) -> None: ...

def convert_to_tensor(
    value: Any, dtype: DTypeLike | None, preferred: DTypeLike | None, who: str | None, /
) -> Tensor: ...
def current_graph() -> Any:
    """The graph that operations go to, or None."""

def swap_stage(graph: Any, /) -> Any: ...
def hoist_last(graph: Any, /) -> int:
    """Moves the last node of a graph to as early a place as its inputs allow; gives its number."""

def place(device: int, replica: int, among_several: bool, /) -> tuple[int, int, bool]:
    """Says where this thread computes: device + 1, the replica in this process; gives what held before."""

def current_place() -> tuple[int, int, bool]: ...
def has_made_tensors() -> bool: ...
def forget_first_tensor() -> None: ...
def device_of(value: Any, /) -> int: ...
def is_tracing() -> bool: ...
def is_symbolic(value: object, /) -> bool:
    """Whether the object is a tensor that stands for a value of a graph."""

def is_tensor(value: object, /) -> bool:
    """Whether the object is a tensor or a variable."""

def is_recording() -> bool:
    """Whether a tape or an accumulator is open on this thread."""

def keep_interpreter_lock() -> None:
    """Runs all kernels under the interpreter lock from now on; waits for those that do not."""

def unlock_from(microseconds: float | None, /) -> None:
    """Runs kernels that take so long without the interpreter lock; None for the default."""

def op_functions() -> list[tuple[str, OpFunction, OpFunction, list[str], dict[str, Any]]]:
    """All primitives, one row each."""

def set_class_attributes(cls: type, values: dict[str, Any], /) -> None:
    """Sets attributes of a class; its slots stay."""

def register_objects(object_by_name: Mapping[str, Any], /) -> None:
    """Hands over Python objects that the core uses, by name."""

def register_dtypes(dtype_by_enum: Any, /) -> None:
    """Hands over the tf.DType objects, by number."""

def call_python(
    function: Any,
    inputs: Sequence[Any],
    dtypes: Sequence[DTypeLike],
    shapes: Sequence[Any],
    rule: Any = None,
    effect: Any = False,
    traceable: Any = ...,
    /,
) -> list[Any]: ...
def get_run_eagerly() -> bool: ...
def run_as_graphs(calls: int, /) -> None: ...
def eager_function_calls() -> int: ...
def set_run_eagerly(run_eagerly: bool, /) -> None:
    """Whether traced functions are called as Python functions."""

def place_of(tensor: Tensor, /) -> tuple[Any, int, int] | None: ...
def crc32c(data: Any, start: int = 0, /) -> int:
    """The CRC-32C of bytes, after others of which the checksum is `start`."""

def narrow_shape(tensor: Tensor, shape: TensorShape, /) -> None: ...

# What only one place in the package calls, or what is still renamed with the core.
def __getattr__(name: str) -> Any: ...
