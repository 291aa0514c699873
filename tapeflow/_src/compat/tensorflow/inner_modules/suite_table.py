"""The names of inner modules that tests in the style of TensorFlow's own use, beside those of `table`."""

from __future__ import annotations

import functools
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from tapeflow._src import _core
from tapeflow._src.compat.tensorflow.inner_modules import whole_files
from tapeflow._src.compat.tensorflow.inner_modules.autograph_operators import staged_builtin
from tapeflow._src.compat.tensorflow.inner_modules.ops.linear_operators import assert_is_batch_matrix
from tapeflow._src.compat.tensorflow.inner_modules.variable_values import convert_variables_to_tensors
from tapeflow._src.compat.tensorflow.internal_names import test_combinations, training
from tapeflow._src.namespace import find_public
from tapeflow._src.numpy import conversion_modes, weak_types
from tapeflow._src.numpy.behavior import take_numpy_behavior
from tapeflow._src.numpy.weak_tensor import EagerWeakTensor, GraphWeakTensor, WeakTensor, maybe_weak
from tapeflow._src.ops.linalg.operators.operator import solve_broadcast
from tapeflow._src.ops.ragged.ragged_tensor import RaggedTensor
from tapeflow._src.types.sparse_tensor import SparseTensor
from tapeflow._src.types.tensor_shape import TensorShape, as_shape


class AbstractGradientTape:
    """A tape, or a stand-in for one in a graph that takes gradients by `tf.gradients`."""

    def __init__(self, use_tape: bool, persistent: bool = False) -> None:
        self._block = find_public("GradientTape")(persistent=persistent) if use_tape else _graph_tape()

    def __enter__(self) -> Any:
        return self._block.__enter__()

    def __exit__(self, *exception: Any) -> None:
        self._block.__exit__(*exception)


class _GraphTape:
    def watch(self, x: Any) -> None:
        """Nothing: a graph keeps all operations."""

    def gradient(self, y: Any, x: Any, grad_ys: Any = None) -> Any:
        """The gradients by `tf.gradients`, one alone for one tensor."""
        found = find_public("gradients")(y, x, grad_ys)
        return found if isinstance(x, list | tuple) else found[0]


@contextmanager
def _graph_tape() -> Iterator[_GraphTape]:
    yield _GraphTape()


def rank_internal(input: Any, name: str | None = None, optimize: bool = True) -> Any:
    """The rank of a tensor; unless `optimize`, as a tensor of the graph."""
    return find_public("rank")(input, name=name)


def size_internal(input: Any, name: str | None = None, optimize: bool = True, out_type: Any = "int32") -> Any:
    """The number of elements; unless `optimize`, as a tensor of the graph."""
    return find_public("size")(input, out_type=find_public("as_dtype")(out_type), name=name)


def broadcast_shape(shape_x: TensorShape, shape_y: TensorShape) -> TensorShape:
    """The shape to which both shapes broadcast."""
    return TensorShape(find_public("broadcast_static_shape")(as_shape(shape_x), as_shape(shape_y)))


def is_broadcast_compatible(shape_x: TensorShape, shape_y: TensorShape) -> bool:
    """Whether two known shapes broadcast."""
    if shape_x.rank is None or shape_y.rank is None:
        return False
    try:
        find_public("broadcast_static_shape")(shape_x, shape_y)
    except ValueError:
        return False
    return True


def is_ragged(value: Any) -> bool:
    """Whether a value is a ragged tensor, or one that a session gave."""
    return isinstance(value, RaggedTensor | find_public("compat.v1.ragged.RaggedTensorValue"))


def is_sparse(value: Any) -> bool:
    """Whether a value is a sparse tensor, or one that a session gave."""
    return isinstance(value, SparseTensor | find_public("compat.v1.SparseTensorValue"))


def convert_to_tensor_or_ragged_tensor(
    value: Any, dtype: Any = None, preferred_dtype: Any = None, name: str | None = None
) -> Any:
    """A tensor or ragged tensor of a value."""
    if isinstance(value, RaggedTensor):
        if dtype is not None and not find_public("as_dtype")(dtype).is_compatible_with(value.dtype):
            wanted = find_public("as_dtype")(dtype).name
            raise ValueError(
                f"Tensor conversion requested dtype {wanted} for RaggedTensor with dtype {value.dtype.name}: {value}."
            )
        return value
    convert = find_public("convert_to_tensor")
    if is_ragged(value):
        flat = convert(value.flat_values, dtype=dtype, dtype_hint=preferred_dtype)
        return RaggedTensor.from_nested_row_splits(flat, value.nested_row_splits, validate=False)
    return convert(value, dtype=dtype, dtype_hint=preferred_dtype, name=name)


def np_where(condition: Any, x: Any = None, y: Any = None) -> Any:
    """`np.where`, which takes a number for a vector of one element."""
    if x is None and y is None:
        return np.atleast_1d(np.asarray(condition)).nonzero()
    return np.where(condition, x, y)


def non_deterministic_ints(shape: Any, dtype: Any = np.int64) -> Any:
    """Random integers that no seed repeats."""
    dtype = find_public("as_dtype")(dtype)
    kind = np.dtype(dtype.as_numpy_dtype)
    count = int(np.prod(as_shape(shape).as_list(), dtype=np.int64))
    values = np.frombuffer(secrets.token_bytes(count * kind.itemsize), kind).reshape(as_shape(shape).as_list())
    return find_public("constant")(values, dtype=dtype)


def _counter_size(algorithm: Any) -> int:
    """How many numbers of a generator's state count what was drawn."""
    return {1: 2, 2: 1}[int(algorithm)]


def _state_size(algorithm: Any) -> int:
    return _counter_size(algorithm) + 1


def _signed(n: int) -> int:
    """The int64 with the bits of an unsigned number."""
    return n - 2**64 if n > 2**63 - 1 else n


def mul_dispatch(x: Any, y: Any, name: str | None = None) -> Any:
    """`x * y`; of booleans, whether both hold."""
    tensors = [value for value in (x, y) if _core.is_tensor(value)]
    if any(value.dtype == find_public("bool") for value in tensors):
        cast = find_public("cast")
        return cast(cast(x, "int32") * cast(y, "int32"), "bool")
    return find_public("multiply")(x, y, name=name)


def tensor_equals(self: Any, other: Any) -> Any:
    """`self == other`, by elements."""
    return self == other


def tensor_not_equals(self: Any, other: Any) -> Any:
    """`self != other`, by elements."""
    return self != other


def _as_indexed_slices(x: Any, optimize: bool = True) -> Any:
    """All rows of a tensor, as slices."""
    slices = find_public("IndexedSlices")
    if isinstance(x, slices):
        return x
    shape = find_public("shape")(x)
    return slices(x, find_public("range")(0, shape[0]), dense_shape=shape)


def broadcast_matrix_batch_dims(batch_matrices: Any, name: str | None = None) -> list[Any]:
    """Matrices with the batch dimensions that all of them broadcast to."""
    if not isinstance(batch_matrices, list | tuple):
        raise TypeError(f"Expected iterable, found {batch_matrices!r}")
    matrices = [find_public("convert_to_tensor")(matrix) for matrix in batch_matrices]
    for matrix in matrices:
        assert_is_batch_matrix(matrix)
    if len(matrices) < 2:
        return matrices
    shape, broadcast = find_public("shape"), find_public("broadcast_dynamic_shape")
    batch = functools.reduce(broadcast, [shape(matrix)[:-2] for matrix in matrices], shape(1.0))
    concat, broadcast_to = find_public("concat"), find_public("broadcast_to")
    return [broadcast_to(matrix, concat([batch, shape(matrix)[-2:]], 0)) for matrix in matrices]


def matrix_solve_with_broadcast(matrix: Any, rhs: Any, adjoint: bool = False, name: str | None = None) -> Any:
    """`tf.linalg.solve` for batches that broadcast."""
    matrix, rhs = find_public("convert_to_tensor")(matrix), find_public("convert_to_tensor")(rhs)
    if matrix.shape.is_fully_defined() and rhs.shape.is_fully_defined():
        return solve_broadcast(matrix, rhs, adjoint)
    return find_public("linalg.solve")(*broadcast_matrix_batch_dims([matrix, rhs]), adjoint=adjoint)


_BUILTINS = ["abs", "all", "any", "enumerate", "float", "int", "len", "max", "min", "range", "sorted", "zip", "sum"]
_ALGORITHMS = find_public("random.Algorithm")

names_by_path: dict[str, dict[str, Any]] = {
    "python.autograph.operators.py_builtins": {f"{name}_": staged_builtin(name) for name in _BUILTINS},
    "python.framework.combinations": {
        "EagerGraphCombination": test_combinations.EagerGraphCombination,
        "TFVersionCombination": test_combinations.TFVersionCombination,
    },
    "python.framework.common_shapes": {
        "broadcast_shape": broadcast_shape,
        "is_broadcast_compatible": is_broadcast_compatible,
    },
    "python.framework.composite_tensor": {"convert_variables_to_tensors": convert_variables_to_tensors},
    "python.framework.flexible_dtypes": {
        "PromoMode": weak_types.PromoMode,
        "_BINARY_DTYPE_RES_FULL": weak_types.promotion_table(),
        "_BINARY_DTYPE_RES_HALF": weak_types.promotion_table(),
        "result_type": weak_types.result_type,
    },
    "python.framework.ops": {
        "PromoMode": weak_types.PromoMode,
        "get_dtype_conversion_mode": conversion_modes.get_dtype_conversion_mode,
        "is_auto_dtype_conversion_enabled": conversion_modes.is_auto_dtype_conversion_enabled,
        "promo_mode_enum_to_string": conversion_modes.promo_mode_enum_to_string,
        "set_dtype_conversion_mode": conversion_modes.set_dtype_conversion_mode,
    },
    "python.framework.weak_tensor": {
        "EagerWeakTensor": EagerWeakTensor,
        "GraphWeakTensor": GraphWeakTensor,
        "WeakTensor": WeakTensor,
        "convert_to_weak_tensor_or_tensor": maybe_weak,
    },
    "python.framework.random_seed": {"DEFAULT_GRAPH_SEED": 87654321},
    "python.framework.sparse_tensor": {"is_sparse": is_sparse},
    "python.framework.test_combinations": {"generate": test_combinations.generate_for},
    "python.framework.test_util": {"AbstractGradientTape": AbstractGradientTape},
    "python.lib.io.file_io": whole_files.names,
    "python.ops.array_ops": {"newaxis": None, "rank_internal": rank_internal, "size_internal": size_internal},
    "python.ops.linalg.linear_operator_util": {
        "broadcast_matrix_batch_dims": broadcast_matrix_batch_dims,
        "matrix_solve_with_broadcast": matrix_solve_with_broadcast,
    },
    "python.ops.math_ops": {
        "_as_indexed_slices": _as_indexed_slices,
        "_mul_dispatch": mul_dispatch,
        "tensor_equals": tensor_equals,
        "tensor_not_equals": tensor_not_equals,
    },
    "python.ops.numpy_ops.np_math_ops": {"enable_numpy_methods_on_tensor": take_numpy_behavior},
    "python.ops.ragged.ragged_factory_ops": {
        "constant_value": find_public("compat.v1.ragged.constant_value"),
        "placeholder": find_public("compat.v1.ragged.placeholder"),
    },
    "python.ops.ragged.ragged_math_ops": {
        **{
            f"reduce_{kind}": find_public(f"reduce_{kind}")
            for kind in ["sum", "prod", "min", "max", "mean", "any", "all"]
        },
        "reduce_std": find_public("math.reduce_std"),
        "reduce_variance": find_public("math.reduce_variance"),
        "ragged_cumsum": find_public("cumsum"),
    },
    "python.ops.ragged.ragged_tensor": {
        "convert_to_tensor_or_ragged_tensor": convert_to_tensor_or_ragged_tensor,
        "is_ragged": is_ragged,
    },
    "python.ops.stateful_random_ops": {
        "PHILOX_STATE_SIZE": 3,
        "RNG_ALG_PHILOX": _ALGORITHMS.PHILOX.value,
        "RNG_ALG_THREEFRY": _ALGORITHMS.THREEFRY.value,
        "SEED_TYPE": "int64",
        "STATE_TYPE": "int64",
        "THREEFRY_STATE_SIZE": 2,
        "_get_counter_size": _counter_size,
        "_get_state_size": _state_size,
        "_uint_to_int": _signed,
        "non_deterministic_ints": non_deterministic_ints,
    },
    "python.ops.tensor_math_operator_overrides": {"_mul_dispatch_factory": mul_dispatch},
    "python.ops.weights_broadcast_ops": {"assert_broadcastable": training.assert_broadcastable},
    "python.util.numpy_compat": {"np_where": np_where},
}
