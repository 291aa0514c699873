"""Variables as TensorFlow 1 makes, initialises and changes them."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from typing import Any, ClassVar

from tapeflow._src import _core
from tapeflow._src.compat.v1.graph.collections import GraphKeys
from tapeflow._src.compat.v1.graph.graph import get_default_graph
from tapeflow._src.namespace import find_public, public
from tapeflow._src.ops.arrays.conversion import convert_to_tensor
from tapeflow._src.ops.arrays.passing import group, no_op
from tapeflow._src.ops.effects.host_call import host_call, host_effect
from tapeflow._src.types.dtypes import as_dtype
from tapeflow._src.types.enums import VariableAggregation, VariableSynchronization
from tapeflow._src.types.errors import FailedPreconditionError, OutOfRangeError
from tapeflow._src.types.indexed_slices import IndexedSlices
from tapeflow._src.types.tensor_shape import TensorShape
from tapeflow._src.variable_rows import batch_places
from tapeflow._src.variables import Variable, session_graph


@public("compat.v1.Variable")
class VariableV1(Variable):
    """A variable; in a graph it has no value until its initializer has run.

    >>> with tf.Graph().as_default(), tf.compat.v1.Session() as session:
    ...     v = tf.compat.v1.Variable([1., 2.], name="v")
    ...     session.run(v.initializer)
    ...     session.run(v + 1.)
    array([2., 3.], dtype=float32)
    """

    _constructor_arguments: ClassVar[dict[str, Any]] = {
        "initial_value": None, "trainable": None, "collections": None, "validate_shape": True, "caching_device": None,
        "name": None, "variable_def": None, "dtype": None, "expected_shape": None, "import_scope": None,
        "constraint": None, "use_resource": None, "synchronization": VariableSynchronization.AUTO,
        "aggregation": VariableAggregation.NONE, "shape": None, "experimental_enable_variable_lifting": None,
    }  # fmt: skip

    def __init__(
        self,
        initial_value: Any = None,
        trainable: bool | None = None,
        collections: Any = None,
        validate_shape: bool = True,
        caching_device: Any = None,
        name: str | None = None,
        variable_def: Any = None,
        dtype: Any = None,
        expected_shape: Any = None,
        import_scope: str | None = None,
        constraint: Callable[[Any], Any] | None = None,
        use_resource: bool | None = None,
        synchronization: Any = VariableSynchronization.AUTO,
        aggregation: Any = VariableAggregation.NONE,
        shape: Any = None,
        experimental_enable_variable_lifting: bool | None = None,
    ) -> None:
        graph = session_graph()
        if graph is not None:
            graph.wanted_collections = collections
        try:
            super().__init__(
                initial_value, trainable, validate_shape, caching_device, name, variable_def, dtype, import_scope,
                constraint, synchronization, aggregation, shape,
            )  # fmt: skip
        finally:
            if graph is not None:
                graph.wanted_collections = None


def _collection(key: str, scope: str | None) -> list[Any]:
    return get_default_graph().get_collection(key, scope)


@public("compat.v1.global_variables")
def global_variables(scope: str | None = None) -> list[Any]:
    """The variables of the graph.

    >>> with tf.Graph().as_default():
    ...     v = tf.compat.v1.get_variable("v", [2])
    ...     [v.name for v in tf.compat.v1.global_variables()]
    ['v:0']
    """
    return _collection(GraphKeys.GLOBAL_VARIABLES, scope)


public("compat.v1.all_variables")(global_variables)


@public("compat.v1.trainable_variables")
def trainable_variables(scope: str | None = None) -> list[Any]:
    """The variables of the graph that optimizers change.

    >>> with tf.Graph().as_default():
    ...     v = tf.compat.v1.get_variable("v", [2], trainable=False)
    ...     tf.compat.v1.trainable_variables()
    []
    """
    return _collection(GraphKeys.TRAINABLE_VARIABLES, scope)


@public("compat.v1.local_variables")
def local_variables(scope: str | None = None) -> list[Any]:
    """The variables of the graph that are not saved.

    >>> tf.compat.v1.local_variables()
    []
    """
    return _collection(GraphKeys.LOCAL_VARIABLES, scope)


@public("compat.v1.model_variables")
def model_variables(scope: str | None = None) -> list[Any]:
    """The variables that were added to the collection of a model's variables.

    >>> tf.compat.v1.model_variables()
    []
    """
    return _collection(GraphKeys.MODEL_VARIABLES, scope)


@public("compat.v1.moving_average_variables")
def moving_average_variables(scope: str | None = None) -> list[Any]:
    """The variables that have moving averages.

    >>> tf.compat.v1.moving_average_variables()
    []
    """
    return _collection(GraphKeys.MOVING_AVERAGE_VARIABLES, scope)


@public("compat.v1.variables_initializer", "compat.v1.initializers.variables", "compat.v1.initialize_variables")
def variables_initializer(var_list: Any, name: str = "init") -> Any:
    """The operation that gives the variables their first values.

    >>> with tf.Graph().as_default():
    ...     v = tf.compat.v1.Variable(1.)
    ...     tf.compat.v1.variables_initializer([v])
    <tf.Operation 'init' type=NoOp>
    """
    initializers = [v.initializer for v in var_list if v.graph is not None]
    return group(*initializers, name=name) if initializers else no_op(name=name)


@public(
    "compat.v1.global_variables_initializer",
    "compat.v1.initializers.global_variables",
    "compat.v1.initialize_all_variables",
)
def global_variables_initializer() -> Any:
    """The operation that gives all variables of the graph their first values.

    >>> with tf.Graph().as_default():
    ...     v = tf.compat.v1.Variable(1.)
    ...     tf.compat.v1.global_variables_initializer()
    <tf.Operation 'init' type=NoOp>
    """
    return variables_initializer(global_variables())


@public(
    "compat.v1.local_variables_initializer",
    "compat.v1.initializers.local_variables",
    "compat.v1.initialize_local_variables",
)
def local_variables_initializer() -> Any:
    """The operation that gives all local variables of the graph their first values.

    >>> with tf.Graph().as_default():
    ...     tf.compat.v1.local_variables_initializer()
    <tf.Operation 'init' type=NoOp>
    """
    return variables_initializer(local_variables())


@public("compat.v1.tables_initializer", "compat.v1.initializers.tables_initializer")
def tables_initializer(name: str = "init_all_tables") -> Any:
    """The operation that fills lookup tables of an imported graph; those of a program are full from the beginning.

    >>> with tf.Graph().as_default():
    ...     tf.compat.v1.tables_initializer()
    <tf.Operation 'init_all_tables' type=NoOp>
    """
    initializers = get_default_graph().get_collection(GraphKeys.TABLE_INITIALIZERS)
    return group(*initializers, name=name) if initializers else no_op(name=name)


@public("compat.v1.is_variable_initialized")
def is_variable_initialized(variable: Any) -> Any:
    """Whether the variable has a value.

    >>> tf.compat.v1.is_variable_initialized(tf.Variable(1.))
    <tf.Tensor: shape=(), dtype=bool, numpy=True>
    """
    return variable.is_initialized()


@public("compat.v1.report_uninitialized_variables")
def report_uninitialized_variables(var_list: Any = None, name: str = "report_uninitialized_variables") -> Any:
    """The names of the variables that have no value yet.

    >>> with tf.Graph().as_default(), tf.compat.v1.Session() as session:
    ...     v = tf.compat.v1.Variable(1., name="v")
    ...     session.run(tf.compat.v1.report_uninitialized_variables()).tolist()
    [b'v']
    """
    variables = [*global_variables(), *local_variables()] if var_list is None else list(var_list)
    flags = [v.is_initialized() for v in variables]
    names = [v.op.name.encode() for v in variables]

    def missing(values: list[Any]) -> list[Any]:
        absent = [name for name, there in zip(names, values) if not bool(there)]
        return [_core.convert_to_tensor(absent, "string", None, "report_uninitialized_variables")]

    shape = TensorShape([None])
    return _core.call_python(missing, flags, [as_dtype("string")], [shape], None, False)[0]


@public("compat.v1.assert_variables_initialized")
def assert_variables_initialized(var_list: Any = None) -> Any:
    """An operation that fails if a variable has no value.

    >>> with tf.Graph().as_default(), tf.compat.v1.Session() as session:
    ...     v = tf.compat.v1.Variable(1.)
    ...     session.run(v.initializer)
    ...     session.run(tf.compat.v1.assert_variables_initialized())
    """
    variables = [*global_variables(), *local_variables()] if var_list is None else list(var_list)
    names = [v.op.name for v in variables]

    def check(*there: Any) -> None:
        for name, flag in zip(names, there):
            if not bool(flag):
                raise FailedPreconditionError.of(f"Attempting to use uninitialized value {name}")

    return host_effect(check, [v.is_initialized() for v in variables]) if variables else None


# ---- changes


@public("compat.v1.assign")
def assign(
    ref: Any, value: Any, validate_shape: bool | None = None, use_locking: bool | None = None, name: str | None = None
) -> Any:
    """Puts a value into a variable; in a graph, the tensor that does so when it runs.

    >>> tf.compat.v1.assign(tf.Variable(1.), 2.).numpy()
    np.float32(2.0)
    """
    return ref.assign(value)


@public("compat.v1.assign_add")
def assign_add(ref: Any, value: Any, use_locking: bool | None = None, name: str | None = None) -> Any:
    """Adds to a variable.

    >>> tf.compat.v1.assign_add(tf.Variable(1.), 2.).numpy()
    np.float32(3.0)
    """
    return ref.assign_add(value)


@public("compat.v1.assign_sub")
def assign_sub(ref: Any, value: Any, use_locking: bool | None = None, name: str | None = None) -> Any:
    """Subtracts from a variable.

    >>> tf.compat.v1.assign_sub(tf.Variable(1.), 2.).numpy()
    np.float32(-1.0)
    """
    return ref.assign_sub(value)


@public("compat.v1.count_up_to")
def count_up_to(ref: Any, limit: int, name: str | None = None) -> Any:
    """Adds one to a variable and gives what it was before; an OutOfRangeError if that is `limit`.

    >>> tf.compat.v1.count_up_to(tf.Variable(3), 10).numpy()
    np.int32(3)
    """

    def check(value: Any) -> list[Any]:
        if int(value) >= limit:
            raise OutOfRangeError.of(f"Reached limit of {limit}")
        return [value]

    before = ref.read_value()
    (before,) = host_call(check, [before], [(before.dtype, before.shape)], effect=True)
    after = ref.assign(before + 1)
    graph = _core.current_graph()
    if graph is None or not graph.graph_mode:
        return before
    with graph.control_dependencies([after]):
        return before + 0


def _scatter(method: str, paths: tuple[str, ...]) -> None:
    def scatter(ref: Any, indices: Any, updates: Any, use_locking: bool = False, name: str | None = None) -> Any:
        slices = IndexedSlices(convert_to_tensor(updates, dtype=ref.dtype), convert_to_tensor(indices))
        return getattr(ref, method)(slices)

    scatter.__name__ = scatter.__qualname__ = method
    scatter.__doc__ = f"""Changes the rows `indices` of a variable by `updates`, as `Variable.{method}` does.

    >>> tf.compat.v1.{method}(tf.Variable([1., 2.]), [0], [1.]).shape
    TensorShape([2])
    """
    public(*paths)(scatter)


def _scatter_nd(method: str, paths: tuple[str, ...]) -> None:
    def scatter(ref: Any, indices: Any, updates: Any, use_locking: bool = True, name: str | None = None) -> Any:
        return getattr(ref, method)(indices, updates)

    scatter.__name__ = scatter.__qualname__ = method
    scatter.__doc__ = f"""Changes the elements `indices` of a variable by `updates`, as `Variable.{method}` does.

    >>> tf.compat.v1.{method}(tf.Variable([1., 2.]), [[0]], [1.]).shape
    TensorShape([2])
    """
    public(*paths)(scatter)


for _name in ("add", "sub", "mul", "div", "max", "min", "update"):
    _scatter(f"scatter_{_name}", (f"compat.v1.scatter_{_name}",))
for _name in ("add", "sub", "update"):
    _scatter_nd(f"scatter_nd_{_name}", (f"compat.v1.scatter_nd_{_name}",))


@public("compat.v1.batch_scatter_update")
def batch_scatter_update(
    ref: Any, indices: Any, updates: Any, use_locking: bool = True, name: str | None = None
) -> Any:
    """Puts rows in place of the old ones: `ref[i..., indices[i..., j]] = updates[i..., j]`.

    >>> v = tf.Variable([[1., 2.], [3., 4.]])
    >>> tf.compat.v1.batch_scatter_update(v, [[1], [0]], [[8.], [9.]]).numpy()
    array([[1., 8.],
           [9., 4.]], dtype=float32)
    """
    with find_public("name_scope")(name) if name else nullcontext():
        return ref.scatter_nd_update(batch_places(indices), updates)
