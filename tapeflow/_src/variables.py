"""`tf.Variable`: construction, sparse updates, printing. The cell itself is in the core."""

from __future__ import annotations

import functools
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from enum import Enum
from threading import local
from types import MethodDescriptorType
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from tapeflow._src import _core, primitives, variable_slices
from tapeflow._src.module import variable_name_prefix
from tapeflow._src.namespace import find_public, lazy_members, public
from tapeflow._src.ops.arrays.conversion import convert_to_tensor
from tapeflow._src.ops.effects.program_order import run_later
from tapeflow._src.types.dtypes import as_dtype
from tapeflow._src.types.enums import VariableAggregationV2 as VariableAggregation
from tapeflow._src.types.enums import VariableSynchronization
from tapeflow._src.types.errors import InvalidArgumentError
from tapeflow._src.types.indexed_slices import IndexedSlices
from tapeflow._src.types.tensor import Tensor, add_array_behaviour, element_repr
from tapeflow._src.types.tensor_shape import TensorShape, as_shape
from tapeflow._src.types.trackable import Trackable
from tapeflow._src.variable_rows import (
    ROW_UPDATES,
    SCATTER_BY_FUNCTION,
    SCATTER_BY_METHOD,
    batch_places,
    check_declared,
    check_rows,
    fail_index,
    fail_rows,
)


class _Creators(local):
    """The functions of open `variable_creator_scope`s, outermost first, and the trace that `tf.init_scope` has left."""

    def __init__(self) -> None:
        self.stack: list[Callable[..., Any]] = []
        self.left_graph: Any = None


_creators = _Creators()


@contextmanager
def counted_for(graph: Any) -> Iterator[None]:
    """A block outside of a trace whose variables count as made by the traced function: it is traced again."""
    before, _creators.left_graph = _creators.left_graph, graph
    try:
        yield
    finally:
        _creators.left_graph = before


def variable_creators() -> list[Callable[..., Any]]:
    """The functions of the open `variable_creator_scope`s, outermost first."""
    return list(_creators.stack)


def _as_function(name: str) -> Callable[..., Any]:
    """A method of the core as a Python function. Variables themselves call the core's method."""
    method = getattr(_core.Variable, name)

    def assign(
        self: Any, value: Any, use_locking: bool = False, name: str | None = None, read_value: bool = True
    ) -> Any:
        return method(self, value, use_locking, name, read_value)

    assign.__name__, assign.__qualname__, assign.__doc__ = name, f"Variable.{name}", method.__doc__
    return assign


_functions = {getattr(_core.Variable, name): _as_function(name) for name in ("assign", "assign_add", "assign_sub")}
_ARGUMENTS_OF_V1 = {"use_resource", "collections", "expected_shape"}  # `tf.Variable` takes them; they mean nothing


class _VariableType(type):
    """Lets the open creator scopes take part when `tf.Variable` itself is called."""

    def __getattribute__(cls, name: str) -> Any:
        found = super().__getattribute__(name)
        # Tests replace `tf.Variable.assign` by a mock, which is a method only if what it stands for is a function.
        return _functions.get(found, found) if type(found) is MethodDescriptorType else found

    @property
    def __signature__(cls) -> Any:
        import inspect  # slow to import, and only people and their editors ask

        signature = inspect.signature(inspect.getattr_static(cls, "__init__"))
        return signature.replace(parameters=[*signature.parameters.values()][1:])

    if not TYPE_CHECKING:  # else type checkers take its result, Any, for that of the class

        def __call__(cls, *args, per_worker_variable=False, **kwargs):  # without parameter servers all are alike
            if kwargs.get("variable_def") is not None:
                return cls.from_proto(kwargs["variable_def"], kwargs.get("import_scope"))
            defaults = vars(cls).get("_constructor_arguments")
            if defaults is not None and kwargs:
                for name in _ARGUMENTS_OF_V1 - defaults.keys():
                    kwargs.pop(name, None)
            if defaults is None or not _creators.stack:
                return super().__call__(*args, **kwargs)
            arguments = {**defaults, **dict(zip(defaults, args)), **kwargs}  # creators get all of them
            create: Callable[..., Any] = super().__call__
            for creator in _creators.stack:
                create = _wrap_creator(creator, create)
            return create(**arguments)


def _wrap_creator(creator: Callable[..., Any], next_creator: Callable[..., Any]) -> Callable[..., Any]:
    return lambda **kwargs: creator(next_creator, **kwargs)


def session_graph() -> Any:
    """The graph of TensorFlow 1 that is being built, perhaps from inside a branch or function; None without one."""
    graph = _core.current_graph()
    while graph is not None and not graph.graph_mode:
        graph = graph.outer
    return graph


@contextmanager
def _outside_of_graph(variable: Any, initial_value: Any) -> Iterator[Any]:
    """A variable made while a function is traced exists at once: its initial value is computed outside of the graph."""
    graph = _core.current_graph()
    if graph is None:
        yield initial_value
        if _creators.left_graph is not None:
            _creators.left_graph.created_variables.append(variable)
        return
    if not graph.may_create_variables:
        if getattr(graph, "follows_first_call", False):
            raise ValueError("Creating variables on a non-first call to a function decorated with tf.function.")
        raise ValueError(
            "tf.function only supports singleton tf.Variables created on the first call. Make sure the tf.Variable is "
            "only created once or created outside tf.function. See "
            "https://www.tensorflow.org/guide/function#creating_tfvariables for more information."
        )
    if _core.is_symbolic(initial_value):
        initial_value = graph.first_value(initial_value)
    _core.swap_stage(None)
    try:
        yield initial_value
    finally:
        _core.swap_stage(graph)
    graph.created_variables.append(variable)


_core_trainable: Any = _core.Variable.trainable


class _OfValue:
    """An attribute of variables with a value. Others, of a subclass with `__getattr__`, find it by that method."""

    def __init__(self, holder: type, name: str) -> None:
        self._holder, self._name = holder, name

    def __get__(self, instance: Any, owner: Any) -> Any:
        if instance is None:
            return getattr(Variable, self._name)
        if "_made_at" not in instance.__dict__:
            raise AttributeError(f"'{owner.__name__}' object has no attribute '{self._name}'")
        return getattr(super(self._holder, instance), self._name)


def _operator_of_value(name: str) -> Callable[..., Any]:
    operator = getattr(Tensor, name)

    @functools.wraps(operator, updated=())
    def call(self: Any, *args: Any) -> Any:
        return operator(self.value(), *args)

    return call


def _mode(kind: type[Enum], given: Any, what: str, name: str | None) -> Any:
    """A member of an enumeration; its value or None, which is the first, may stand for it."""
    if isinstance(given, Enum):
        return given
    try:
        return kind(0 if given is None else given)
    except ValueError:
        raise ValueError(f"Invalid variable {what} mode: {given} for variable: {name}") from None


@public("Variable")
class Variable(_core.Variable, Trackable, metaclass=_VariableType):
    """A tensor that can be changed, and that tapes watch by themselves if it is trainable.

    >>> v = tf.Variable([1., 2.])
    >>> v.assign_add([10., 10.])
    <tf.Variable 'Variable:0' shape=(2,) dtype=float32, numpy=array([11., 12.], dtype=float32)>
    """

    _constructor_arguments: ClassVar[dict[str, Any]] = {
        "initial_value": None, "trainable": None, "validate_shape": True, "caching_device": None, "name": None,
        "variable_def": None, "dtype": None, "import_scope": None, "constraint": None,
        "synchronization": VariableSynchronization.AUTO, "aggregation": VariableAggregation.NONE, "shape": None,
        "experimental_enable_variable_lifting": None,
    }  # fmt: skip

    def __init__(
        self,
        initial_value: Any = None,
        trainable: bool | None = None,
        validate_shape: bool = True,
        caching_device: Any = None,
        name: str | None = None,
        variable_def: Any = None,
        dtype: Any = None,
        import_scope: str | None = None,
        constraint: Callable[[Any], Any] | None = None,
        synchronization: VariableSynchronization = VariableSynchronization.AUTO,
        aggregation: VariableAggregation = VariableAggregation.NONE,
        shape: Any = None,
        experimental_enable_variable_lifting: bool | None = True,
    ) -> None:
        self._made_at = _core.current_line()
        original = getattr(initial_value, "handle", None)  # Keras's variables have one too
        self._copy_of = weakref.ref(original) if isinstance(original, _core.Variable) else None
        if initial_value is None:
            raise ValueError(
                "The `initial_value` arg to `tf.Variable` must be specified except when you are not providing a "
                "`variable_def`. You provided neither."
            )
        if constraint is not None and not callable(constraint):
            raise ValueError("Variable: the `constraint` argument must be a callable.")
        synchronization = _mode(VariableSynchronization, synchronization, "synchronization", name)
        aggregation = _mode(VariableAggregation, aggregation, "aggregation", name)
        if trainable is None:
            trainable = synchronization != VariableSynchronization.ON_READ
        self._synchronization, self._aggregation, self._constraint = synchronization, aggregation, constraint
        graph = session_graph()
        if graph is not None:
            stage = _core.swap_stage(graph)
            try:
                graph.add_variable(self, initial_value, bool(trainable), name, dtype, shape, validate_shape)
            finally:
                _core.swap_stage(stage)
            return
        if shape is None and _core.is_symbolic(initial_value) and not initial_value.shape.is_fully_defined():
            shape = initial_value.shape  # what a function is called with may have another one next time
        with _core.StopRecording(True), _outside_of_graph(self, initial_value) as initial_value:
            value = initial_value() if callable(initial_value) else initial_value
            if dtype is not None and _core.is_tensor(value) and value.dtype != as_dtype(dtype):
                raise ValueError(
                    f"Variable: the initial value has dtype {value.dtype.name}, not the given {as_dtype(dtype).name}"
                )
            tensor = _core.convert_to_tensor(value, dtype, None, "Variable")
            if shape is not None:
                check_declared(tensor.shape, as_shape(shape))
        self._name = variable_name_prefix() + (name or "Variable")
        self._set_up(tensor, None if shape is None else as_shape(shape), bool(trainable), f"{self._name}:0")
        self._unique_id = f"{self._name}_{id(self)}"

    name = property(lambda self: f"{self._name}:0", doc="The name, with the scopes it was made in.")
    synchronization = property(lambda self: self._synchronization)
    aggregation = property(lambda self: self._aggregation)
    constraint = property(lambda self: self._constraint)
    handle = property(lambda self: self, doc="What identifies the variable to a tape: the variable itself.")

    _handle = property(lambda self: self.handle)

    @property
    def _handle_name(self) -> str:
        """The name; Keras 2 gives a variable that it reads back the name in the file."""
        return str(self.name)

    @_handle_name.setter
    def _handle_name(self, name: str) -> None:
        self._name = name.removesuffix(":0")

    def __init_subclass__(cls, **kwargs: Any) -> None:
        """A class with `__getattr__` may stand for another variable: what TensorFlow's base lacks is that one's."""
        super().__init_subclass__(**kwargs)
        if "__getattr__" in vars(cls):
            for name in {"handle", "numpy", "is_initialized", "_in_graph_mode"} - vars(cls).keys():
                setattr(cls, name, _OfValue(cls, name))

    @classmethod
    def _OverloadAllOperators(cls) -> None:  # noqa: N802  TensorFlow's name
        """Python's operators of a class whose `value` is another: they take that value."""
        for name in Tensor.OVERLOADABLE_OPERATORS - {"__eq__", "__ne__"}:
            setattr(cls, name, _operator_of_value(name))

    SaveSliceInfo = variable_slices.SaveSliceInfo
    _save_slice_info: variable_slices.SaveSliceInfo | None = None  # of a part of a larger variable

    def _set_save_slice_info(self, save_slice_info: variable_slices.SaveSliceInfo | None) -> None:
        self._save_slice_info = save_slice_info

    _graph: Any = None
    op = property(lambda self: self if self._graph is None else self._graph.variable_operation(self))
    graph = property(lambda self: self._graph)
    _shared_name = property(lambda self: self._name)
    is_tensor_like = True

    @property
    def _trainable(self) -> bool:
        """Libraries written for TensorFlow set this, as it is where TensorFlow keeps `trainable`."""
        return bool(_core_trainable.__get__(self))

    @_trainable.setter
    def _trainable(self, value: bool) -> None:
        _core_trainable.__set__(self, value)  # a subclass may have another `trainable`, which reads this

    @property
    def _in_graph_mode(self) -> bool:
        """Whether the variable is part of a graph of TensorFlow 1."""
        return self._graph is not None

    @property
    def ndim(self) -> int | None:
        """The number of dimensions."""
        return self.shape.rank

    def _dense_var_to_tensor(self, dtype: Any = None, name: str | None = None, as_ref: bool = False) -> Any:
        """The value, as wrappers of libraries ask for it."""
        if dtype is not None and not as_dtype(dtype).is_compatible_with(self.dtype):
            raise ValueError(
                f"Incompatible type conversion requested to type {as_dtype(dtype).name} for tf.Variable of type "
                f"{self.dtype.name}. (Variable: {self!r})"
            )
        return self.value()

    def initialized_value(self) -> Any:
        """The value, as a tensor; in a graph the first value, for the initializers of other variables."""
        return self.read_value() if self._graph is None else self.initial_value

    def is_initialized(self, name: str | None = None) -> Any:
        """Whether the variable has a value."""
        return self._is_initialized()

    def _in_graph(self, what: str) -> Any:
        if self._graph is None:
            raise AttributeError(f"{what} not supported while eager execution is enabled.")
        return self._graph

    @property
    def initializer(self) -> Any:
        """The operation of a graph that gives the variable its first value; eagerly None: it has one."""
        return None if self._graph is None else self._graph.initializer_of(self)

    @property
    def initial_value(self) -> Any:
        """The tensor of a graph that is the variable's first value."""
        return self._in_graph("initial_value").initial_value_of(self)

    def fetched_value(self) -> Any:
        """The tensor of its graph that a session computes when the variable is asked for."""
        return self._in_graph("fetched_value").reading_of(self)

    def eval(self, session: Any = None) -> Any:
        """The value in a session."""
        if self._graph is None:
            raise RuntimeError("This operation is not supported when eager execution is enabled.")
        return self.fetched_value().eval(session=session)

    def load(self, value: Any, session: Any = None) -> None:
        """Puts a value into the variable: of a graph in a session, otherwise at once."""
        if self._graph is None:
            self.assign(value)
        else:
            self._graph.load_variable(self, value, session)

    def to_proto(self, export_scope: str | None = None) -> Any:
        """The `VariableDef` that stands for a variable of a graph; None if it is not within `export_scope`."""
        if self._graph is None:
            raise RuntimeError("to_proto not supported in EAGER mode.")
        return self._graph.variable_def(self, export_scope)

    @staticmethod
    def from_proto(variable_def: Any, import_scope: str | None = None) -> Any:
        """The variable of the default graph that a `VariableDef` stands for."""
        graph = session_graph()
        if graph is None:
            raise ValueError("Creating a variable from a `VariableDef` is not supported in eager execution.")
        return graph.variable_of_def(variable_def, import_scope)

    def set_shape(self, shape: Any) -> None:
        """Checks that the shape is compatible with `shape`."""
        if not self.shape.is_compatible_with(as_shape(shape)):
            raise ValueError(f"Shapes {self.shape} and {as_shape(shape)} are incompatible")

    # ---- sparse updates: rows of `values` go to the rows `indices`

    def _update_later(self, update: Callable[..., Any], *args: Any) -> Any:
        """A node of the graph that is traced: it changes the variable as `update(*args)` does."""
        operation = run_later(functools.partial(update, self), args, {}, update, self)
        graph = _core.current_graph()
        if not any(v is self for v in graph.changing):
            graph.changing = [*graph.changing, self]
        if operation is None:
            return self
        with graph.control_dependencies([operation]):
            return self.read_value()

    def _scatter(self, slices: IndexedSlices, who: str, combine: Callable[..., Any] = np.add.at) -> Variable:
        if not isinstance(slices, IndexedSlices):
            raise TypeError(f"{who}: Argument `sparse_delta` must be a `tf.IndexedSlices`. Received arg: {slices}")
        if _core.is_tracing():
            return self._scatter_in_graph(slices, who)
        if who in ROW_UPDATES:
            return self._update_rows(slices.indices, slices.values, who)
        with _core.StopRecording(True):
            values = np.array(self.numpy())
            given = np.asarray(slices.indices)
            indices = given.reshape(-1)
            wanted = (*given.shape, *values.shape[1:])
            if values.ndim == 0 or np.shape(slices.values) not in ((), wanted):
                fail_rows(who, np.shape(slices.values), given.shape, values.shape)
            if indices.size and (indices.min() < 0 or indices.max() >= values.shape[0]):
                bad = int(np.argmax((indices < 0) | (indices >= values.shape[0])))
                fail_index(who, bad, int(indices[bad]), values.shape[0])
            updates = np.asarray(convert_to_tensor(slices.values, dtype=self.dtype))
            combine(values, indices, np.broadcast_to(updates, wanted).reshape(indices.size, *values.shape[1:]))
        return self.assign(values)

    def _scatter_in_graph(self, slices: IndexedSlices, who: str) -> Variable:
        old, indices = self.read_value(), convert_to_tensor(slices.indices)
        updates = convert_to_tensor(slices.values, dtype=self.dtype)
        places = primitives.ExpandDims(indices, -1)
        if updates.shape.rank == 0:
            sizes = primitives.ConcatV2([primitives.Shape(indices), primitives.Shape(old)[1:]], 0)
            updates = primitives.BroadcastTo(updates, sizes)
        check_rows(who, updates.shape, indices.shape, old.shape)
        if who in SCATTER_BY_METHOD:
            return self.assign(SCATTER_BY_METHOD[who](old, places, updates))
        rows = primitives.GatherV2(old, indices, 0, 0)  # it checks the indices, too
        factors = primitives.BroadcastTo(updates, primitives.Shape(rows))
        product = primitives.UnsortedSegmentProd(factors, indices, primitives.Shape(old)[0])  # 1 where nothing is
        if who == "scatter_mul":
            return self.assign(old * product)
        exact = self.dtype.is_floating or self.dtype.is_complex
        return self.assign(old / product if exact else old // product)

    def scatter_add(self, sparse_delta: IndexedSlices, use_locking: bool = False, name: str | None = None) -> Variable:
        """Adds rows; repeated ones add up."""
        return self._scatter(sparse_delta, "scatter_add")

    def scatter_sub(self, sparse_delta: IndexedSlices, use_locking: bool = False, name: str | None = None) -> Variable:
        """Subtracts rows; repeated ones add up."""
        return self._scatter(sparse_delta, "scatter_sub")

    def scatter_mul(self, sparse_delta: IndexedSlices, use_locking: bool = False, name: str | None = None) -> Variable:
        """Multiplies by rows."""
        return self._scatter(sparse_delta, "scatter_mul", np.multiply.at)

    def scatter_div(self, sparse_delta: IndexedSlices, use_locking: bool = False, name: str | None = None) -> Variable:
        """Divides by rows."""
        divide = np.true_divide if self.dtype.is_floating or self.dtype.is_complex else np.floor_divide
        return self._scatter(sparse_delta, "scatter_div", divide.at)

    def scatter_max(self, sparse_delta: IndexedSlices, use_locking: bool = False, name: str | None = None) -> Variable:
        """Takes the larger of each element and the row's."""
        return self._scatter(sparse_delta, "scatter_max", np.maximum.at)

    def scatter_min(self, sparse_delta: IndexedSlices, use_locking: bool = False, name: str | None = None) -> Variable:
        """Takes the smaller of each element and the row's."""
        return self._scatter(sparse_delta, "scatter_min", np.minimum.at)

    def scatter_update(
        self, sparse_delta: IndexedSlices, use_locking: bool = False, name: str | None = None
    ) -> Variable:
        """Puts rows in place of the old ones."""
        return self._scatter(sparse_delta, "scatter_update")

    def batch_scatter_update(
        self, sparse_delta: IndexedSlices, use_locking: bool = False, name: str | None = None
    ) -> Variable:
        """Puts rows in place of the old ones, separately in each batch of the leading dimensions."""
        if _core.is_tracing():
            return self.scatter_nd_update(batch_places(sparse_delta.indices), sparse_delta.values)
        values = np.array(self.numpy())
        indices = np.asarray(sparse_delta.indices)
        if values.ndim < indices.ndim or indices.shape[:-1] != values.shape[: indices.ndim - 1]:
            raise InvalidArgumentError.of(
                "batch_scatter_update: indices must begin with the leading dimensions of the variable; got shapes "
                f"{list(indices.shape)} and {list(values.shape)}",
            )
        if indices.size and (indices.min() < 0 or indices.max() >= values.shape[indices.ndim - 1]):
            bad = int(np.argmax((indices < 0) | (indices >= values.shape[indices.ndim - 1])))
            fail_index("batch_scatter_update", bad, int(indices.flat[bad]), values.shape[indices.ndim - 1])
        flat = values.reshape(-1, *values.shape[indices.ndim - 1 :])
        rows = indices.reshape(-1, indices.shape[-1])
        updates = np.asarray(convert_to_tensor(sparse_delta.values, dtype=self.dtype)).reshape(
            -1, rows.shape[-1], *flat.shape[2:]
        )
        for batch, row, update in zip(flat, rows, updates):
            batch[row] = update
        return self.assign(flat.reshape(values.shape))

    def _scatter_nd(self, indices: Any, updates: Any, combine: Callable[..., Any] | None) -> Variable:
        with _core.StopRecording(True):
            old = self.read_value()
        return self.assign(SCATTER_BY_FUNCTION[combine](old, indices, convert_to_tensor(updates, dtype=self.dtype)))

    def scatter_nd_add(self, indices: Any, updates: Any, name: str | None = None) -> Variable:
        """Adds at the positions in the last dimension of `indices`."""
        return self._scatter_nd(indices, updates, np.add.at)

    def scatter_nd_sub(self, indices: Any, updates: Any, name: str | None = None) -> Variable:
        """Subtracts at the positions in the last dimension of `indices`."""
        return self._scatter_nd(indices, updates, np.subtract.at)

    def scatter_nd_update(self, indices: Any, updates: Any, name: str | None = None) -> Variable:
        """Puts new values at the positions in the last dimension of `indices`."""
        return self._scatter_nd(indices, updates, None)

    def scatter_nd_max(self, indices: Any, updates: Any, name: str | None = None) -> Variable:
        """Takes the larger values at the positions in the last dimension of `indices`."""
        return self._scatter_nd(indices, updates, np.maximum.at)

    def scatter_nd_min(self, indices: Any, updates: Any, name: str | None = None) -> Variable:
        """Takes the smaller values at the positions in the last dimension of `indices`."""
        return self._scatter_nd(indices, updates, np.minimum.at)

    def sparse_read(self, indices: Any, name: str | None = None) -> Any:
        """The rows with the given numbers; the gradient is an IndexedSlices."""
        return primitives.GatherV2(self, indices, 0, 0)

    def gather_nd(self, indices: Any, name: str | None = None) -> Any:
        """The slices at the positions in the last dimension of `indices`."""
        return primitives.GatherNd(self, indices, 0)

    def count_up_to(self, limit: int) -> Any:
        """Adds one and gives what it was before; an OutOfRangeError if that is `limit`."""
        return find_public("compat.v1.count_up_to")(self, limit)

    # ---- Python's protocols

    def __getitem__(self, key: Any) -> Any:
        tensor = super().__getitem__(key)
        tensor.assign = variable_slices.SliceAssignment(self, key)
        return tensor

    def __setitem__(self, key: Any, value: Any) -> None:
        raise TypeError("'Variable' object does not support item assignment. Use v[key].assign(value).")

    def __iter__(self) -> Iterator[Any]:
        return iter(self.read_value())

    def __len__(self) -> int:
        return len(self.read_value())

    def __bool__(self) -> bool:
        return bool(self.read_value())

    def __float__(self) -> float:
        return float(self.read_value())

    def __int__(self) -> int:
        return int(self.read_value())

    def __index__(self) -> int:
        return self.read_value().__index__()

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        values = np.asarray(self.numpy())
        return values if dtype is None else values.astype(dtype)

    def __format__(self, specification: str) -> str:
        return format(self.numpy(), specification) if specification else str(self)

    def __copy__(self) -> Variable:
        return self  # a shallow copy shares its state

    def __deepcopy__(self, memo: dict[int, Any]) -> Variable:
        copy = Variable(
            self.numpy(), trainable=self.trainable, name=self._name, dtype=self.dtype, shape=self.shape,
            constraint=self._constraint, synchronization=self._synchronization, aggregation=self._aggregation,
        )  # fmt: skip
        copy._copy_of = weakref.ref(self)
        memo[id(self)] = copy
        return copy

    def __reduce__(self) -> tuple[Any, ...]:
        return _restore, (self.numpy(), self.dtype, self.trainable, self._name, self.shape)

    def __repr__(self) -> str:
        if self._graph is not None:
            return f"<tf.Variable '{self.name}' shape={self.shape} dtype={self.dtype.name}>"
        values = element_repr(self.numpy())
        return f"<tf.Variable '{self.name}' shape={self.shape} dtype={self.dtype.name}, numpy={values}>"


add_array_behaviour(Variable)
lazy_members("tapeflow._src.diagnostics.html.values.VariableHtml", "_repr_html_")(Variable)


def _restore(values: Any, dtype: Any, trainable: bool, name: str, shape: TensorShape) -> Variable:
    return Variable(values, trainable=trainable, name=name, dtype=dtype, shape=shape)


@public("variable_creator_scope")
@contextmanager
def variable_creator_scope(variable_creator: Callable[..., Any]) -> Iterator[None]:
    """While open, `variable_creator(next_creator, **kwargs)` is called for every new `tf.Variable`.

    >>> with tf.variable_creator_scope(lambda make, **kwargs: make(**kwargs)):
    ...     tf.Variable(1.).name
    'Variable:0'
    """
    _creators.stack.append(variable_creator)
    try:
        yield
    finally:
        _creators.stack.remove(variable_creator)
