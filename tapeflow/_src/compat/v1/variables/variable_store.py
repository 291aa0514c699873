"""The stores in which `get_variable` finds variables by their names, or puts those that it makes."""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from functools import partial
from inspect import Parameter, signature
from typing import Any

from tapeflow._src import _core
from tapeflow._src.compat.v1.graph.collections import GraphKeys
from tapeflow._src.compat.v1.graph.graph import defaults, get_default_graph
from tapeflow._src.compat.v1.variables.partitions import PartitionedVariable, PartitionInfo, partition_sizes
from tapeflow._src.compat.v1.variables.variables import VariableV1
from tapeflow._src.module import name_scope
from tapeflow._src.namespace import find_public, public
from tapeflow._src.ops.arrays.conversion import convert_to_tensor
from tapeflow._src.ops.nn.constant_initializers import ZerosInitializer
from tapeflow._src.ops.nn.initializers import GlorotUniformInitializerV1
from tapeflow._src.types.dtypes import as_dtype, float32
from tapeflow._src.types.enums import VariableAggregation, VariableSynchronization
from tapeflow._src.types.tensor_shape import TensorShape, as_shape
from tapeflow._src.variables import session_graph


class _Reuse(enum.Enum):
    """How `get_variable` treats a variable that exists."""

    AUTO_REUSE = 1


AUTO_REUSE = _Reuse.AUTO_REUSE
public("compat.v1.AUTO_REUSE")(AUTO_REUSE)


class VariableStore:
    """The variables by name, and the scope that is open."""

    def __init__(self, keeps_eager: bool = False) -> None:
        self.keeps_eager = keeps_eager  # else a variable that is made eagerly belongs to whoever holds it
        self.variable_by_name: dict[str, Any] = {}
        self.whole_by_name: dict[str, PartitionedVariable] = {}  # of variables that are kept in parts
        self.scope: Any = None  # the one that is open; see variable_scope.py
        self.uses_by_scope: dict[str, int] = {}
        self.replacement: Any = None  # a store of a library that answers `get_variable` in place of this one

    _vars = property(lambda self: self.variable_by_name)  # libraries read it under this name

    def get_variable(
        self,
        name: str,
        shape: Any = None,
        dtype: Any = float32,
        initializer: Any = None,
        regularizer: Any = None,
        reuse: Any = None,
        custom_getter: Callable[..., Any] | None = None,
        **options: Any,
    ) -> Any:
        """The variable of this full name, whatever scope is open: a new one, or unless `reuse` is False an old one."""
        options |= {"shape": shape, "dtype": dtype, "initializer": initializer, "regularizer": regularizer}
        options["reuse"] = AUTO_REUSE if reuse is None else reuse
        with outside_of_name_scopes():
            if custom_getter is None:
                return self.find_or_make(name, **options)
            return custom_getter(self.find_or_make, name, **options)

    def find_or_make(
        self,
        name: str,
        shape: Any = None,
        dtype: Any = float32,
        initializer: Any = None,
        regularizer: Any = None,
        reuse: Any = None,
        trainable: bool | None = None,
        collections: Any = None,
        validate_shape: bool = True,
        constraint: Any = None,
        synchronization: Any = VariableSynchronization.AUTO,
        aggregation: Any = VariableAggregation.NONE,
        dtype_was_given: bool = True,
        partitioner: Any = None,
        **accepted: Any,
    ) -> Any:
        eager = _core.current_graph() is None
        keeps = self.keeps_eager or not eager
        reuse = AUTO_REUSE if self.keeps_eager and eager else reuse
        if partitioner is not None and shape is None and initializer is not None and not callable(initializer):
            shape = convert_to_tensor(initializer).shape
        if partitioner is not None and shape is not None and as_shape(shape).rank:
            options = {
                "regularizer": regularizer, "reuse": reuse, "trainable": trainable, "collections": collections,
                "constraint": constraint, "validate_shape": validate_shape, "dtype_was_given": dtype_was_given,
                "synchronization": synchronization, "aggregation": aggregation,
            }  # fmt: skip
            return self._find_or_make_parts(name, as_shape(shape), dtype, initializer, partitioner, options, keeps)
        found = self.variable_by_name.get(name) if keeps else None
        if found is None and reuse and keeps and name in self.whole_by_name:
            return self.whole_by_name[name]
        if found is not None:
            if reuse in (None, False):
                raise ValueError(
                    f"Variable {name} already exists, disallowed. Did you mean to set reuse=True or "
                    "reuse=tf.AUTO_REUSE in VarScope?"
                )
            _check_shared(found, name, shape, dtype)
            return found
        if reuse is True:
            raise ValueError(
                f"Variable {name} does not exist, or was not created with tf.get_variable(). Did you mean to set "
                "reuse=tf.AUTO_REUSE in VarScope?"
            )
        value, dtype = _first_value(name, shape, dtype, initializer, dtype_was_given)
        variable = VariableV1(
            value, trainable=synchronization != VariableSynchronization.ON_READ if trainable is None else trainable,
            collections=collections, name=name, dtype=dtype,
            validate_shape=validate_shape, constraint=constraint, synchronization=synchronization,
            aggregation=aggregation,
        )  # fmt: skip
        if keeps:
            self.variable_by_name[name] = variable
        if eager and keeps:
            _collect(variable, collections)
        _regularize(variable, regularizer)
        return variable

    def _find_or_make_parts(
        self,
        name: str,
        shape: TensorShape,
        dtype: Any,
        initializer: Any,
        partitioner: Any,
        options: dict[str, Any],
        keeps: bool,
    ) -> Any:
        """The variable of this name in parts, each of which is a variable below it: "w/part_0"."""
        counts = partitioner(shape=shape, dtype=as_dtype(dtype))
        found = self.whole_by_name.get(name) if keeps else None
        if found is not None and options["reuse"]:
            _check_shared(found, name, shape, dtype)
            if found._get_partitions() != list(counts):
                raise ValueError(
                    f"Trying to reuse partitioned variable {name}, but specified partitions {list(counts)} and found "
                    f"partitions {found._get_partitions()}."
                )
            return found
        axis, sizes = partition_sizes(shape, counts)
        parts, start = [], 0
        for number, size in enumerate(sizes):
            sizes_of_part = [size if i == axis else length for i, length in enumerate(shape.as_list())]
            begin = [start if i == axis else 0 for i in range(len(shape))]
            first = initializer
            part_shape: list[Any] | None = sizes_of_part
            if initializer is not None and not callable(initializer):
                index = tuple(slice(start, start + size) if i == axis else slice(None) for i in range(len(shape)))
                first, part_shape = convert_to_tensor(initializer, dtype)[index], None
            elif initializer is not None:
                first = _for_part(initializer, PartitionInfo(shape.as_list(), begin))
            part = self.find_or_make(f"{name}/part_{number}", part_shape, dtype, first, **options)
            part._set_save_slice_info(VariableV1.SaveSliceInfo(name, shape.as_list(), begin, sizes_of_part))
            parts.append(part)
            start += size
        whole = PartitionedVariable(name, shape, dtype, parts, counts)
        if keeps:
            self.whole_by_name[name] = whole
        return whole


class EagerVariableStore:
    """Keeps the variables that `get_variable` makes eagerly, so that the same name finds them again."""

    def __init__(self, store: VariableStore | None = None) -> None:
        if store is not None and not store.keeps_eager:
            raise ValueError(
                "Cannot construct EagerVariableStore from a VariableStore object that does not hold eager variables."
            )
        self._store = VariableStore(keeps_eager=True) if store is None else store

    def as_default(self) -> Any:
        """A block in which `get_variable` finds and makes the variables of this store."""
        return with_variable_store(self._store)

    def variables(self) -> list[Any]:
        """Its variables, by their names."""
        return sorted(self._store.variable_by_name.values(), key=lambda variable: str(variable.name))

    def trainable_variables(self) -> list[Any]:
        """Those that optimizers change."""
        return [variable for variable in self.variables() if variable.trainable]

    def non_trainable_variables(self) -> list[Any]:
        """The others."""
        return [variable for variable in self.variables() if not variable.trainable]

    def copy(self) -> EagerVariableStore:
        """A store with copies of the variables."""
        result = EagerVariableStore()
        for name, variable in self._store.variable_by_name.items():
            copy = VariableV1(variable.read_value(), trainable=variable.trainable, name=variable.name.partition(":")[0])
            result._store.variable_by_name[name] = copy
        return result


def _collect(variable: Any, collections: Any) -> None:
    graph = get_default_graph()
    for key in collections or [GraphKeys.GLOBAL_VARIABLES]:
        graph.add_to_collection(key, variable)
    if variable.trainable:
        graph.add_to_collection(GraphKeys.TRAINABLE_VARIABLES, variable)


def variable_store() -> VariableStore:
    holder: Any = session_graph()
    if holder is None:
        holder = defaults  # eagerly, one store for the thread
        if not hasattr(holder, "variable_store"):
            holder.variable_store = None
    if holder.variable_store is None:
        holder.variable_store = VariableStore()
    result: VariableStore = holder.variable_store
    return result


@contextmanager
def with_variable_store(store: Any) -> Iterator[None]:
    """Lets `store.get_variable` find and make the variables of `get_variable`, as Keras 2's tracking layers do."""
    own = variable_store()
    before, own.replacement = own.replacement, store
    try:
        yield
    finally:
        own.replacement = before


def default_variable_store() -> Any:
    """The store that answers `get_variable`."""
    own = variable_store()
    return own if own.replacement is None else own.replacement


@contextmanager
def outside_of_name_scopes() -> Iterator[None]:
    """Name scopes do not touch the names of variables that `get_variable` makes."""
    graph = session_graph()
    if graph is None:
        with name_scope(""):
            yield
        return
    scope, graph.scope = graph.scope, ""
    try:
        yield
    finally:
        graph.scope = scope


def _for_part(initializer: Any, info: PartitionInfo) -> Any:
    """The initializer of a part; it is told which part it is if it has an argument for that."""
    initializer = initializer() if isinstance(initializer, type) else initializer
    try:
        takes_info = "partition_info" in signature(initializer).parameters
    except (TypeError, ValueError):  # a function of C
        takes_info = False
    if not takes_info:
        return initializer
    return lambda shape, dtype=None: initializer(shape, dtype=dtype, partition_info=info)


def _check_shared(found: Any, name: str, shape: Any, dtype: Any) -> None:
    if shape is not None and not as_shape(shape).is_compatible_with(found.shape):
        raise ValueError(
            f"Trying to share variable {name}, but specified shape {as_shape(shape)} and found shape {found.shape}."
        )
    if as_dtype(dtype) != found.dtype:
        raise ValueError(
            f"Trying to share variable {name}, but specified dtype {as_dtype(dtype).name} and found dtype "
            f"{found.dtype.name}."
        )


def _first_value(name: str, shape: Any, dtype: Any, initializer: Any, dtype_was_given: bool) -> tuple[Any, Any]:
    known = None if shape is None else as_shape(shape)
    if initializer is None:
        if known is None:
            raise ValueError(f"Variable {name} did not get an initializer, so its `shape` argument must be specified.")
        initializer = _default_initializer(name, as_dtype(dtype))
    if isinstance(initializer, type):
        initializer = initializer()
    if not callable(initializer):
        if known is not None and known.is_fully_defined():
            raise ValueError("If initializer is a constant, do not specify shape.")
        tensor = convert_to_tensor(initializer, dtype if dtype_was_given else None)
        return tensor, None
    if known is not None and known.is_fully_defined():
        if _takes_nothing(initializer):
            return initializer, dtype
        return partial(initializer, known.as_list(), dtype=as_dtype(dtype)), dtype
    if known is None and not _needs_arguments(initializer):
        return initializer, dtype if dtype_was_given else None
    if known is not None:
        raise ValueError(f"Shape of a new variable ({name}) must be fully defined, but instead was {known}.")
    raise ValueError(
        "The initializer passed is not valid. It should be a callable with no arguments and the shape should not be "
        "provided or an instance of `tf.keras.initializers.*' and `shape` should be fully defined."
    )


def _takes_nothing(initializer: Any) -> bool:
    code = getattr(initializer, "__code__", None)
    return code is not None and code.co_argcount == 0


def _needs_arguments(initializer: Any) -> bool:
    """Whether an initializer cannot be called without arguments."""
    try:
        parameters = signature(initializer).parameters.values()
    except (TypeError, ValueError):  # a function of C
        return True
    named = (Parameter.POSITIONAL_ONLY, Parameter.POSITIONAL_OR_KEYWORD, Parameter.KEYWORD_ONLY)
    return any(p.default is Parameter.empty and p.kind in named for p in parameters)


def _default_initializer(name: str, dtype: Any) -> Any:
    if dtype.is_floating:
        return GlorotUniformInitializerV1()
    if dtype.is_integer or dtype.is_bool:
        return ZerosInitializer()
    if dtype.name == "string":
        return lambda shape, dtype=dtype: find_public("fill")(shape, "")
    raise ValueError(f"An initializer for variable {name} of {dtype} is required")


def _regularize(variable: Any, regularizer: Any) -> None:
    if regularizer is None:
        return
    graph = session_graph()
    with nullcontext() if graph is None else graph.name_scope(f"{variable.op.name}/Regularizer/"):
        loss = regularizer(variable)
    if loss is not None:
        get_default_graph().add_to_collection(GraphKeys.REGULARIZATION_LOSSES, loss)
