"""`get_variable` and `variable_scope`: variables that are found again by their names."""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from functools import partial
from inspect import signature
from typing import Any

from tapeflow._src import _core
from tapeflow._src.compat.v1.graph.collections import GraphKeys
from tapeflow._src.compat.v1.graph.contexts import lasting_context
from tapeflow._src.compat.v1.graph.graph import defaults, get_default_graph
from tapeflow._src.compat.v1.variables.partitions import PartitionedVariable, PartitionInfo, partition_sizes
from tapeflow._src.compat.v1.variables.variables import VariableV1
from tapeflow._src.module import name_scope
from tapeflow._src.namespace import find_public, public
from tapeflow._src.ops.arrays.conversion import convert_to_tensor
from tapeflow._src.ops.nn.constant_initializers import ZerosInitializer
from tapeflow._src.ops.nn.initializers import GlorotUniformInitializerV1
from tapeflow._src.types.dtypes import as_dtype, float32
from tapeflow._src.types.enums import VariableSynchronization
from tapeflow._src.types.tensor_shape import TensorShape, as_shape
from tapeflow._src.variables import session_graph


class _Reuse(enum.Enum):
    """How `get_variable` treats a variable that exists."""

    AUTO_REUSE = 1


AUTO_REUSE = _Reuse.AUTO_REUSE
public("compat.v1.AUTO_REUSE")(AUTO_REUSE)


class _Store:
    """The variables by name, and the scope that is open."""

    def __init__(self) -> None:
        self.variable_by_name: dict[str, Any] = {}
        self.whole_by_name: dict[str, PartitionedVariable] = {}  # of variables that are kept in parts
        self.scope = VariableScope(False)
        self.uses_by_scope: dict[str, int] = {}
        self.replacement: Any = None  # a store of a library that answers `get_variable` in place of this one

    _vars = property(lambda self: self.variable_by_name)  # libraries read it under this name


@public("compat.v1.VariableScope")
class VariableScope:
    """The prefix of variables' names, and what holds for those that are made in it.

    >>> with tf.Graph().as_default(), tf.compat.v1.variable_scope("layer") as scope:
    ...     scope.name
    'layer'
    """

    def __init__(
        self,
        reuse: Any,
        name: str = "",
        initializer: Any = None,
        regularizer: Any = None,
        caching_device: Any = None,
        partitioner: Any = None,
        custom_getter: Callable[..., Any] | None = None,
        name_scope: str = "",
        dtype: Any = float32,
        use_resource: bool | None = None,
        constraint: Any = None,
    ) -> None:
        self._reuse, self._name, self._name_scope = reuse, name, name_scope
        self._initializer, self._regularizer, self._constraint = initializer, regularizer, constraint
        self._custom_getter, self._dtype = custom_getter, dtype
        self._caching_device, self._partitioner, self._use_resource = caching_device, partitioner, use_resource

    name = property(lambda self: self._name)
    original_name_scope = property(lambda self: self._name_scope)
    reuse = property(lambda self: self._reuse)
    initializer = property(lambda self: self._initializer)
    regularizer = property(lambda self: self._regularizer)
    constraint = property(lambda self: self._constraint)
    custom_getter = property(lambda self: self._custom_getter)
    dtype = property(lambda self: self._dtype)
    caching_device = property(lambda self: self._caching_device)
    partitioner = property(lambda self: self._partitioner)
    use_resource = property(lambda self: self._use_resource)

    def reuse_variables(self) -> None:
        """From now on `get_variable` finds variables and makes none."""
        self._reuse = True

    def set_initializer(self, initializer: Any) -> None:
        """The initializer of variables that have none of their own."""
        self._initializer = initializer

    def set_regularizer(self, regularizer: Any) -> None:
        """The regularizer of variables that have none of their own."""
        self._regularizer = regularizer

    def set_custom_getter(self, custom_getter: Any) -> None:
        """The function that `get_variable` calls in place of its own."""
        self._custom_getter = custom_getter

    def set_dtype(self, dtype: Any) -> None:
        """The dtype of variables that have none of their own."""
        self._dtype = dtype

    def set_use_resource(self, use_resource: bool) -> None:
        """Accepted, and without effect."""
        self._use_resource = use_resource

    def set_partitioner(self, partitioner: Any) -> None:
        """The partitioner of variables that have none of their own."""
        self._partitioner = partitioner

    def set_caching_device(self, caching_device: Any) -> None:
        """Accepted, and without effect."""
        self._caching_device = caching_device

    def get_collection(self, name: str) -> list[Any]:
        """The members of a collection whose names begin with this scope."""
        scope = f"{self._name}/" if self._name else self._name
        return get_default_graph().get_collection(name, scope)

    def trainable_variables(self) -> list[Any]:
        """The trainable variables of this scope."""
        return self.get_collection(GraphKeys.TRAINABLE_VARIABLES)

    def global_variables(self) -> list[Any]:
        """The variables of this scope."""
        return self.get_collection(GraphKeys.GLOBAL_VARIABLES)

    def local_variables(self) -> list[Any]:
        """The local variables of this scope."""
        return self.get_collection(GraphKeys.LOCAL_VARIABLES)

    def get_variable(self, var_store: Any, name: str, **options: Any) -> Any:
        """The variable of this name in this scope."""
        return _get(self, name, **options)

    def copy_with(self, **changes: Any) -> VariableScope:
        """A scope like this one but for the given parts."""
        other = VariableScope(self._reuse)
        other.__dict__.update(self.__dict__)
        other.__dict__.update({f"_{key}": value for key, value in changes.items() if value is not None})
        return other


def _store() -> _Store:
    holder: Any = session_graph()
    if holder is None:
        holder = defaults  # eagerly, one store for the thread
        if not hasattr(holder, "variable_store"):
            holder.variable_store = None
    if holder.variable_store is None:
        holder.variable_store = _Store()
    result: _Store = holder.variable_store
    return result


@contextmanager
def with_variable_store(store: Any) -> Iterator[None]:
    """Lets `store.get_variable` find and make the variables of `get_variable`, as Keras 2's tracking layers do."""
    own = _store()
    before, own.replacement = own.replacement, store
    try:
        yield
    finally:
        own.replacement = before


def default_variable_store() -> Any:
    """The store that answers `get_variable`."""
    own = _store()
    return own if own.replacement is None else own.replacement


@public("compat.v1.get_variable_scope")
def get_variable_scope() -> VariableScope:
    """The scope that is open.

    >>> with tf.Graph().as_default():
    ...     tf.compat.v1.get_variable_scope().name
    ''
    """
    return _store().scope


def _check_nesting(scope: VariableScope) -> None:
    if _store().scope is not scope:
        raise RuntimeError("Improper nesting of variable_scope.")


@public("compat.v1.variable_scope")
@partial(lasting_context, leaving=_check_nesting)
def variable_scope(
    name_or_scope: Any,
    default_name: str | None = None,
    values: Any = None,
    initializer: Any = None,
    regularizer: Any = None,
    caching_device: Any = None,
    partitioner: Any = None,
    custom_getter: Callable[..., Any] | None = None,
    reuse: Any = None,
    dtype: Any = None,
    use_resource: bool | None = None,
    constraint: Any = None,
    auxiliary_name_scope: bool = True,
) -> Iterator[VariableScope]:
    """A scope for `get_variable`: names inside begin with it. With `reuse`, variables that exist are found again.

    >>> with tf.Graph().as_default():
    ...     with tf.compat.v1.variable_scope("layer"):
    ...         w = tf.compat.v1.get_variable("w", [2])
    ...     with tf.compat.v1.variable_scope("layer", reuse=True):
    ...         tf.compat.v1.get_variable("w", [2]) is w
    True
    """
    if name_or_scope is None and default_name is None:
        raise TypeError("If default_name is None then name_or_scope is required")
    if reuse not in (None, False, True, AUTO_REUSE):
        raise ValueError("The reuse parameter must be True or False or None.")
    if name_or_scope is None and reuse is True:
        raise ValueError("reuse=True cannot be used without a name_or_scope")
    if not isinstance(name_or_scope, str | VariableScope | None):
        raise TypeError("VariableScope: name_or_scope must be a string or VariableScope.")
    store = _store()
    outer = store.scope
    uses = store.uses_by_scope
    if isinstance(name_or_scope, VariableScope):
        full, base, name = name_or_scope._name, name_or_scope, name_or_scope._name.rpartition("/")[2]
    else:
        name = name_or_scope if name_or_scope is not None else _unique(store, outer._name, str(default_name))
        full, base = (f"{outer._name}/{name}" if outer._name else name), outer
        uses[full] = uses.get(full, 0) + 1
    for key in [key for key in uses if key.startswith(f"{full}/")]:
        del uses[key]
    inherited = base._reuse if isinstance(name_or_scope, VariableScope) else outer._reuse
    scope = base.copy_with(
        initializer=initializer, regularizer=regularizer, dtype=dtype, constraint=constraint, partitioner=partitioner,
        caching_device=caching_device, use_resource=use_resource,
    )  # fmt: skip
    scope._name, scope._reuse = full, reuse or inherited
    scope._custom_getter = _chained(base._custom_getter, custom_getter)
    names = name_scope(str(default_name) if name_or_scope is None else name) if auxiliary_name_scope and name else None
    store.scope = scope
    try:
        with names or nullcontext("") as entered:
            if names is not None:
                scope._name_scope = base._name_scope if base is name_or_scope else entered
            yield scope
    finally:
        store.scope = outer


@contextmanager
def beside_the_model(named_by_operations: bool = False) -> Iterator[None]:
    """Where a graph gets variables that go with others: they wait for nothing, and only variable scopes name them.

    With `named_by_operations` it is the name scope that names them, as it does operations.
    """
    graph = session_graph()
    if graph is None:
        yield
        return
    scope, controls = graph.scope, graph.control_scope
    graph.control_scope = []
    if not named_by_operations:
        name = _store().scope._name
        graph.scope = f"{name}/" if name else ""
    try:
        yield
    finally:
        graph.scope, graph.control_scope = scope, controls


def _chained(outer: Callable[..., Any] | None, inner: Callable[..., Any] | None) -> Callable[..., Any] | None:
    if outer is None or inner is None:
        return inner or outer
    return lambda getter, *args, **kwargs: inner(partial(outer, getter), *args, **kwargs)


def _unique(store: _Store, outer: str, wanted: str) -> str:
    prefix = f"{outer}/" if outer else ""
    count, name = 0, wanted
    while store.uses_by_scope.get(prefix + name):
        count += 1
        name = f"{wanted}_{count}"
    return name


@public("compat.v1.variable_op_scope")
@lasting_context
def variable_op_scope(
    values: Any, name_or_scope: Any, default_name: str | None = None, **options: Any
) -> Iterator[VariableScope]:
    """The same as `variable_scope`, with its arguments in another order.

    >>> with tf.Graph().as_default(), tf.compat.v1.variable_op_scope([], "layer") as scope:
    ...     scope.name
    'layer'
    """
    with variable_scope(name_or_scope, default_name, values, **options) as scope:
        yield scope


@public("compat.v1.get_variable")
def get_variable(
    name: str,
    shape: Any = None,
    dtype: Any = None,
    initializer: Any = None,
    regularizer: Any = None,
    trainable: bool | None = None,
    collections: Any = None,
    caching_device: Any = None,
    partitioner: Any = None,
    validate_shape: bool = True,
    use_resource: bool | None = None,
    custom_getter: Callable[..., Any] | None = None,
    constraint: Any = None,
    synchronization: Any = VariableSynchronization.AUTO,
    aggregation: Any = 0,
) -> Any:
    """The variable of this name in the open scope: a new one, or one that exists if the scope says so.

    >>> with tf.Graph().as_default():
    ...     tf.compat.v1.get_variable("w", [2, 3]).shape
    TensorShape([2, 3])
    """
    return _get(
        _store().scope, name, shape=shape, dtype=dtype, initializer=initializer, regularizer=regularizer,
        trainable=trainable, collections=collections, validate_shape=validate_shape, custom_getter=custom_getter,
        partitioner=partitioner, constraint=constraint, synchronization=synchronization, aggregation=aggregation,
    )  # fmt: skip


@public("compat.v1.get_local_variable")
def get_local_variable(name: str, *args: Any, **kwargs: Any) -> Any:
    """The same for a variable that is neither trained nor saved.

    >>> with tf.Graph().as_default():
    ...     tf.compat.v1.get_local_variable("n", [], tf.int32).name
    'n:0'
    """
    kwargs.setdefault("collections", [GraphKeys.LOCAL_VARIABLES])
    kwargs["trainable"] = False
    return get_variable(name, *args, **kwargs)


def _get(scope: VariableScope, name: str, custom_getter: Callable[..., Any] | None = None, **options: Any) -> Any:
    full = f"{scope._name}/{name}" if scope._name and name else scope._name or name
    if options.get("dtype") is None:
        options["dtype"] = scope._dtype
        options["dtype_was_given"] = False
    if options.get("initializer") is None:
        options["initializer"] = scope._initializer
    if options.get("regularizer") is None:
        options["regularizer"] = scope._regularizer
    if options.get("constraint") is None:
        options["constraint"] = scope._constraint
    if options.get("partitioner") is None:
        options["partitioner"] = scope._partitioner
    replacement = _store().replacement
    if replacement is not None:
        options.pop("dtype_was_given", None)
        getter = _chained(scope._custom_getter, custom_getter)
        with _outside_of_name_scopes():
            return replacement.get_variable(full, reuse=scope._reuse, custom_getter=getter, **options)
    options["reuse"] = scope._reuse if _core.current_graph() is not None or scope._reuse else AUTO_REUSE
    getter = _chained(scope._custom_getter, custom_getter)
    with _outside_of_name_scopes():
        if getter is None:
            return _find_or_make(full, **options)
        options.pop("dtype_was_given", None)
        return getter(_find_or_make, full, **options)


@contextmanager
def _outside_of_name_scopes() -> Iterator[None]:
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


def _find_or_make(
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
    aggregation: Any = 0,
    dtype_was_given: bool = True,
    partitioner: Any = None,
    **accepted: Any,
) -> Any:
    variables = _store().variable_by_name
    if partitioner is not None and shape is not None and as_shape(shape).rank:
        options = {
            "regularizer": regularizer, "reuse": reuse, "trainable": trainable, "collections": collections,
            "constraint": constraint, "validate_shape": validate_shape, "dtype_was_given": dtype_was_given,
        }  # fmt: skip
        return _find_or_make_parts(name, as_shape(shape), dtype, initializer, partitioner, options)
    found = variables.get(name)
    if found is not None:
        if reuse in (None, False):
            raise ValueError(
                f"Variable {name} already exists, disallowed. Did you mean to set reuse=True or reuse=tf.AUTO_REUSE in "
                "VarScope?"
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
        value, trainable=True if trainable is None else trainable, collections=collections, name=name, dtype=dtype,
        validate_shape=validate_shape, constraint=constraint, synchronization=synchronization,
        aggregation=aggregation,
    )  # fmt: skip
    variables[name] = variable
    _regularize(variable, regularizer)
    return variable


def _find_or_make_parts(
    name: str, shape: TensorShape, dtype: Any, initializer: Any, partitioner: Any, options: dict[str, Any]
) -> Any:
    """The variable of this name in parts, each of which is a variable below it: "w/part_0"."""
    counts = partitioner(shape=shape, dtype=as_dtype(dtype))
    whole_by_name = _store().whole_by_name
    found = whole_by_name.get(name)
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
        first = initializer
        part_shape: list[Any] | None = sizes_of_part
        if initializer is not None and not callable(initializer):
            index = tuple(slice(start, start + size) if i == axis else slice(None) for i in range(len(shape)))
            first, part_shape = convert_to_tensor(initializer, dtype)[index], None
        elif initializer is not None:
            begin = [start if i == axis else 0 for i in range(len(shape))]
            first = _for_part(initializer, PartitionInfo(shape.as_list(), begin))
        parts.append(_find_or_make(f"{name}/part_{number}", part_shape, dtype, first, **options))
        start += size
    whole_by_name[name] = PartitionedVariable(name, shape, dtype, parts, counts)
    return whole_by_name[name]


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
    if known is None or not known.is_fully_defined():
        if known is None and not _takes_shape(initializer):
            return initializer, dtype
        raise ValueError(
            f"Shape of a new variable ({name}) must be fully defined, but instead was "
            f"{known if known is not None else TensorShape(None)}."
        )
    if not _takes_shape(initializer):
        return initializer, dtype
    return partial(initializer, known.as_list(), dtype=as_dtype(dtype)), dtype


def _takes_shape(initializer: Any) -> bool:
    code = getattr(initializer, "__code__", None)
    return code is None or code.co_argcount > 0


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
