"""`get_variable` and `variable_scope`: variables that are found again by their names."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from functools import partial
from typing import Any

from tapeflow._src import _core
from tapeflow._src.compat.v1.graph.collections import GraphKeys
from tapeflow._src.compat.v1.graph.contexts import lasting_context
from tapeflow._src.compat.v1.graph.graph import get_default_graph
from tapeflow._src.compat.v1.variables.variable_store import (
    AUTO_REUSE,
    VariableStore,
    outside_of_name_scopes,
    variable_store,
)
from tapeflow._src.module import name_scope
from tapeflow._src.namespace import public
from tapeflow._src.ops.arrays.conversion import convert_to_tensor
from tapeflow._src.types.dtypes import as_dtype, float32
from tapeflow._src.types.enums import VariableAggregation, VariableSynchronization
from tapeflow._src.variables import session_graph


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


def _store() -> VariableStore:
    store = variable_store()
    if store.scope is None:
        store.scope = VariableScope(False)
    return store


@public("compat.v1.get_variable_scope")
def get_variable_scope() -> VariableScope:
    """The scope that is open.

    >>> with tf.Graph().as_default():
    ...     tf.compat.v1.get_variable_scope().name
    ''
    """
    scope: VariableScope = _store().scope
    return scope


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
    if not isinstance(auxiliary_name_scope, bool):
        raise TypeError(f"The auxiliary_name_scope must be `True` or `False`, while get {auxiliary_name_scope}")
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
    before = dict(uses)
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
        if base is name_or_scope:  # the numbers of default names go on where they were
            uses.clear()
            uses.update(before)
        else:
            for key in [key for key in uses if key.startswith(f"{full}/")]:
                del uses[key]


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
    if outer is None or inner is None or not callable(inner):
        return inner or outer
    return lambda getter, *args, **kwargs: inner(partial(outer, getter), *args, **kwargs)


def _unique(store: VariableStore, outer: str, wanted: str) -> str:
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
    aggregation: Any = VariableAggregation.NONE,
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
def get_local_variable(
    name: str,
    shape: Any = None,
    dtype: Any = None,
    initializer: Any = None,
    regularizer: Any = None,
    trainable: bool | None = False,
    collections: Any = None,
    caching_device: Any = None,
    partitioner: Any = None,
    validate_shape: bool = True,
    use_resource: bool | None = None,
    custom_getter: Callable[..., Any] | None = None,
    constraint: Any = None,
    synchronization: Any = VariableSynchronization.AUTO,
    aggregation: Any = VariableAggregation.NONE,
) -> Any:
    """The same for a variable that is neither trained nor saved.

    >>> with tf.Graph().as_default():
    ...     tf.compat.v1.get_local_variable("n", [], tf.int32).name
    'n:0'
    """
    return get_variable(
        name, shape, dtype, initializer, regularizer, False, [*(collections or []), GraphKeys.LOCAL_VARIABLES],
        caching_device, partitioner, validate_shape, use_resource, custom_getter, constraint, synchronization,
        aggregation,
    )  # fmt: skip


def _get(scope: VariableScope, name: str, custom_getter: Callable[..., Any] | None = None, **options: Any) -> Any:
    full = f"{scope._name}/{name}" if scope._name and name else scope._name or name
    initializer = options.get("initializer")
    if options.get("dtype") is not None and initializer is not None and not callable(initializer):
        given, wanted = convert_to_tensor(initializer).dtype, as_dtype(options["dtype"])
        if given != wanted:
            raise ValueError(f"Initializer type '{given.name}' and explicit dtype '{wanted.name}' don't match.")
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
    getter = _chained(scope._custom_getter, custom_getter)
    if getter is not None and not callable(getter):
        raise ValueError(f"Passed a custom_getter which is not callable: {getter}")
    store, given = _store(), options.pop("dtype_was_given", True)
    if store.replacement is not None:
        with outside_of_name_scopes():
            return store.replacement.get_variable(full, reuse=scope._reuse, custom_getter=getter, **options)
    options["reuse"] = scope._reuse if _core.current_graph() is not None else False
    with outside_of_name_scopes():
        if getter is None:
            return store.find_or_make(full, dtype_was_given=given, **options)
        return getter(store.find_or_make, full, **options)
