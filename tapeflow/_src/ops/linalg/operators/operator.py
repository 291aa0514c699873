"""`tf.linalg.LinearOperator`, its spec, and what its subclasses share."""

from __future__ import annotations

from inspect import signature
from typing import Any, ClassVar

import numpy as np

from tapeflow._src import _core, primitives
from tapeflow._src._core import Tensor
from tapeflow._src.module import Module
from tapeflow._src.namespace import public
from tapeflow._src.ops.arrays.constants import eye
from tapeflow._src.ops.arrays.conversion import convert_to_tensor
from tapeflow._src.ops.effects.assertions import Assert
from tapeflow._src.ops.effects.host_call import host_effect
from tapeflow._src.ops.linalg.operators.gradients import OperatorGradient
from tapeflow._src.ops.linalg.operators.slicing import sliced_operator
from tapeflow._src.ops.linalg.operators.specs import LinearOperatorSpec, spec_class_of
from tapeflow._src.ops.linalg.operators.staging import stage_methods
from tapeflow._src.ops.linalg.products import adjoint as adjoint_matrix
from tapeflow._src.types import nest
from tapeflow._src.types.dtypes import as_dtype
from tapeflow._src.types.errors import InvalidArgumentError
from tapeflow._src.types.tensor_shape import Dimension, TensorShape
from tapeflow._src.types.tensor_spec import CompositeTensor


def keep_parameter(value: Any, dtype: Any = None) -> Any:
    """A parameter as an operator holds it: variables stay variables, so that each use reads them anew."""
    return value if isinstance(value, _core.Variable) else convert_to_tensor(value, dtype=dtype)


def broadcast_batch(*shapes: Any) -> list[int]:
    """The batch dimensions that several shapes have together."""
    sizes = [tuple(TensorShape(s).as_list()) for s in shapes]
    rank = max(map(len, sizes), default=0)
    result: list[Any] = []
    for column in zip(*((1,) * (rank - len(s)) + s for s in sizes)):
        wide = set(column) - {1, None}
        if len(wide) > 1:
            raise ValueError(f"Incompatible shapes of batches: {' vs. '.join(map(str, sizes))}")
        result.append(wide.pop() if wide else None if None in column else 1)
    return result


def with_batch(x: Any, batch: list[int], kept: int = 2) -> Tensor:
    """`x` with the batch dimensions `batch` before its last `kept` ones."""
    dims = x.shape.as_list()
    wanted = batch + dims[len(dims) - kept :]
    return x if dims == wanted else primitives.BroadcastTo(x, wanted)


def solve_broadcast(matrix: Any, rhs: Any, adjoint: bool = False) -> Any:
    """`tf.linalg.solve` for batches that broadcast."""
    batch = broadcast_batch(matrix.shape[:-2], rhs.shape[:-2])
    return primitives.MatrixSolve(with_batch(matrix, batch), with_batch(rhs, batch), adjoint)


def require_equal_sizes(a: Any, b: Any) -> None:
    if a != b and None not in (a, b):
        raise ValueError(f"Operators are incompatible. Dimensions {a} and {b} are not compatible")


_returned_class_by_name: dict[str, type[LinearOperator]] = {}


def returned_by_methods(cls: type[LinearOperator]) -> type[LinearOperator]:
    """Registers a subclass that methods of LinearOperator return, such as the adjoint."""
    _returned_class_by_name[cls.__name__] = cls
    return cls


def returned_class(name: str) -> type[LinearOperator]:
    """The class of this name that methods of LinearOperator return."""
    return _returned_class_by_name[name]


class _KeepsArguments:
    """Keeps the arguments with which an object was made."""

    def __new__(cls, *args: Any, **kwargs: Any) -> Any:
        made: Any = super().__new__(cls)
        made._arguments = args, kwargs
        return made


@public("linalg.LinearOperator")
class LinearOperator(Module, CompositeTensor, _KeepsArguments):
    """A batch of matrices that is known by what it does; subclasses use their structure where it saves work.

    A subclass gives `_shape()`, `_matmul(x, adjoint, adjoint_arg)` and, where it knows better, other methods that
    begin with an underscore. `_composite_tensor_fields` names those of its arguments that are tensors or operators.

    >>> tf.linalg.LinearOperatorDiag([1., 2.]).matvec([3., 3.])
    <tf.Tensor: shape=(2,), dtype=float32, numpy=array([3., 6.], dtype=float32)>
    """

    _TF_MODULE_IGNORED_PROPERTIES = frozenset({"_arguments", "_graph_parents", "_parameters"})
    __composite_gradient__ = OperatorGradient()
    _composite_tensor_fields: tuple[str, ...] = ()
    _composite_tensor_prefer_static_fields: tuple[str, ...] = ()
    _spec_class: ClassVar[type[LinearOperatorSpec]]
    _matrix_ndims: ClassVar[dict[str, int]] = {}  # dimensions of each tensor argument that belong to one matrix

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        stage_methods(cls)
        cls._spec_class = spec_class_of(cls)

    def __init__(
        self,
        dtype: Any,
        graph_parents: Any = None,
        is_non_singular: bool | None = None,
        is_self_adjoint: bool | None = None,
        is_positive_definite: bool | None = None,
        is_square: bool | None = None,
        name: str | None = None,
        parameters: dict[str, Any] | None = None,
    ) -> None:
        if is_positive_definite:
            if is_non_singular is False:
                raise ValueError("A positive definite matrix is always non-singular.")
            is_non_singular = True
        if is_non_singular:
            if is_square is False:
                raise ValueError("A non-singular matrix is always square.")
            is_square = True
        if is_self_adjoint:
            if is_square is False:
                raise ValueError("A self-adjoint matrix is always square.")
            is_square = True
        self._dtype = as_dtype(dtype).base_dtype if dtype is not None else None
        self._is_non_singular = is_non_singular
        self._is_self_adjoint = is_self_adjoint
        self._is_positive_definite = is_positive_definite
        self._is_square = is_square
        self._name = name or type(self).__name__
        self._graph_parents = list(graph_parents or [])
        self._parameters = dict(parameters or {})

    # ---- what it is

    @property
    def _type_spec(self) -> LinearOperatorSpec:
        return self._spec_class.from_operator(self)

    def _divided_arguments(self) -> tuple[dict[str, Any], dict[str, Any]]:
        return _divided_arguments(self)

    def _convert_variables_to_tensors(self) -> LinearOperator:
        """The same operator of the present values of its variables."""
        spec = self._type_spec
        parts = [convert_to_tensor(x) if isinstance(x, _core.Variable) else x for x in spec._to_tensor_list(self)]
        operator: LinearOperator = spec._from_tensor_list(parts)
        return operator

    @property
    def name(self) -> str:
        """The name it was given."""
        return self._name

    @property
    def dtype(self) -> Any:
        """The dtype of the matrices."""
        return self._dtype

    @property
    def graph_parents(self) -> list[Any]:
        """Tensors that it was built from, as TensorFlow 1 wants them."""
        return self._graph_parents

    @property
    def parameters(self) -> dict[str, Any]:
        """The arguments it was made with."""
        return dict(self._parameters)

    @property
    def is_non_singular(self) -> bool | None:
        """True, False, or None where it was not said."""
        return self._is_non_singular

    @property
    def is_self_adjoint(self) -> bool | None:
        """True, False, or None where it was not said."""
        return self._is_self_adjoint

    @property
    def is_positive_definite(self) -> bool | None:
        """True, False, or None where it was not said."""
        return self._is_positive_definite

    @property
    def is_square(self) -> bool | None:
        """Whether it has as many rows as columns; None where neither sizes nor hints say it."""
        rows, columns = self.shape[-2], self.shape[-1]
        square = None if rows is None or columns is None else rows == columns
        if self._is_square is False and square:
            raise ValueError("User set is_square hint to False, but the operator was square.")
        return square if self._is_square is None else self._is_square

    @property
    def variables(self) -> tuple[Any, ...]:
        """The variables among its parameters, and those of the operators it is made of."""
        found: dict[int, Any] = {}
        _collect_variables(self._parameters, found)
        return tuple(found.values())

    @property
    def trainable_variables(self) -> tuple[Any, ...]:
        """The variables that training may change."""
        return tuple(v for v in self.variables if v.trainable)

    @property
    def non_trainable_variables(self) -> tuple[Any, ...]:
        """The variables that training leaves alone."""
        return tuple(v for v in self.variables if not v.trainable)

    # ---- shapes

    @property
    def shape(self) -> TensorShape:
        """Batch dimensions, rows and columns."""
        if _core.is_tracing() and self._has_unknown_rank():
            return TensorShape(None)
        try:
            return TensorShape(self._shape())
        except ValueError:
            if self._has_unknown_rank():  # of a graph that was built before, or of a variable
                return TensorShape(None)
            raise

    def _has_unknown_rank(self) -> bool:
        parts = nest.flatten(_divided_arguments(self)[0], expand_composites=True)
        held = [part for part in parts if _core.is_symbolic(part) or isinstance(part, _core.Variable)]
        return any(part.shape.rank is None for part in held)

    @property
    def batch_shape(self) -> TensorShape:
        """The dimensions before rows and columns."""
        return self.shape[:-2]

    @property
    def tensor_rank(self) -> int:
        """How many dimensions the dense form has."""
        return self.shape.rank

    @property
    def domain_dimension(self) -> Dimension:
        """The number of columns."""
        return Dimension(self.shape[-1])

    @property
    def range_dimension(self) -> Dimension:
        """The number of rows."""
        return Dimension(self.shape[-2])

    def shape_tensor(self, name: str = "shape_tensor") -> Any:
        """The shape as a tensor."""
        if self.shape.is_fully_defined():
            return convert_to_tensor(self.shape.as_list(), dtype="int32")
        return primitives.Shape(self.to_dense())

    def batch_shape_tensor(self, name: str = "batch_shape_tensor") -> Any:
        """The batch shape as a tensor."""
        if self.batch_shape.is_fully_defined():
            return convert_to_tensor(self.batch_shape.as_list(), dtype="int32")
        return self.shape_tensor()[:-2]

    def tensor_rank_tensor(self, name: str = "tensor_rank_tensor") -> Any:
        """The rank as a tensor."""
        if self.tensor_rank is None:
            return primitives.Shape(self.shape_tensor())[0]
        return convert_to_tensor(self.tensor_rank)

    def domain_dimension_tensor(self, name: str = "domain_dimension_tensor") -> Any:
        """The number of columns as a tensor."""
        return self._size_tensor(-1)

    def range_dimension_tensor(self, name: str = "range_dimension_tensor") -> Any:
        """The number of rows as a tensor."""
        return self._size_tensor(-2)

    def _size_tensor(self, axis: int) -> Any:
        size = self.shape[axis]
        return self.shape_tensor()[axis] if size is None else convert_to_tensor(size)

    # ---- products and equations

    def matmul(self, x: Any, adjoint: bool = False, adjoint_arg: bool = False, name: str = "matmul") -> Any:
        """The operator (or its adjoint) times a matrix (or its adjoint) or another operator."""
        if isinstance(x, LinearOperator):
            left = self.adjoint() if adjoint else self
            right = x.adjoint() if adjoint_arg else x
            require_equal_sizes(left.shape[-1], right.shape[-2])
            return left._compose(right)
        x = convert_to_tensor(x, dtype=None if hasattr(x, "dtype") else self.dtype)
        self._check_dtype(x)
        require_equal_sizes(self.shape[-2 if adjoint else -1], x.shape[-1 if adjoint_arg else -2])
        return self._matmul(x, adjoint, adjoint_arg)

    def __matmul__(self, other: Any) -> Any:
        return self.matmul(other)

    def __getitem__(self, slices: Any) -> LinearOperator:
        operator: LinearOperator = sliced_operator(self, slices)
        return operator

    def matvec(self, x: Any, adjoint: bool = False, name: str = "matvec") -> Tensor:
        """The operator (or its adjoint) times a vector."""
        x = convert_to_tensor(x, dtype=None if hasattr(x, "dtype") else self.dtype)
        self._check_dtype(x)
        require_equal_sizes(self.shape[-2 if adjoint else -1], x.shape[-1])
        return primitives.Squeeze(self._matmul(primitives.ExpandDims(x, -1), adjoint, False), -1)

    def solve(self, rhs: Any, adjoint: bool = False, adjoint_arg: bool = False, name: str = "solve") -> Any:
        """`X` in `A X = rhs`, for the operator (or its adjoint) and a matrix (or its adjoint) or another operator."""
        self._check_solvable()
        if isinstance(rhs, LinearOperator):
            left = self.adjoint() if adjoint else self
            right = rhs.adjoint() if adjoint_arg else rhs
            require_equal_sizes(left.shape[-1], right.shape[-2])
            return left.inverse()._compose(right)
        rhs = convert_to_tensor(rhs, dtype=None if hasattr(rhs, "dtype") else self.dtype)
        self._check_dtype(rhs)
        require_equal_sizes(self.shape[-1 if adjoint else -2], rhs.shape[-1 if adjoint_arg else -2])
        return self._solve(rhs, adjoint, adjoint_arg)

    def solvevec(self, rhs: Any, adjoint: bool = False, name: str = "solve") -> Any:
        """`x` in `A x = rhs` for a vector."""
        self._check_solvable()
        rhs = convert_to_tensor(rhs, dtype=None if hasattr(rhs, "dtype") else self.dtype)
        self._check_dtype(rhs)
        require_equal_sizes(self.shape[-1 if adjoint else -2], rhs.shape[-1])
        return primitives.Squeeze(self._solve(primitives.ExpandDims(rhs, -1), adjoint, False), -1)

    # ---- other operators

    def adjoint(self, name: str = "adjoint") -> LinearOperator:
        """The operator of the conjugate transpose."""
        return self if self.is_self_adjoint else self._adjoint()

    H = property(adjoint)

    def inverse(self, name: str = "inverse") -> LinearOperator:
        """The operator of the inverse."""
        if self.is_square is False:
            raise ValueError("Cannot take the Inverse: This operator represents a non square matrix.")
        if self.is_non_singular is False:
            raise ValueError("Cannot take the Inverse: This operator represents a singular matrix.")
        return self._inverse()

    def cholesky(self, name: str = "cholesky") -> LinearOperator:
        """The lower triangular operator `L` with `L L^H` equal to this one."""
        if not self._can_use_cholesky():
            raise ValueError("Cannot take the Cholesky decomposition: Not a positive definite self adjoint matrix.")
        return self._cholesky()

    # ---- numbers

    def to_dense(self, name: str = "to_dense") -> Any:
        """The matrices, element by element."""
        return self._to_dense()

    def __tf_tensor__(self, dtype: Any = None, name: str | None = None) -> Any:
        dense = self._to_dense()
        return dense if dtype is None else convert_to_tensor(dense, dtype=dtype)

    def diag_part(self, name: str = "diag_part") -> Any:
        """The main diagonal."""
        return self._diag_part()

    def trace(self, name: str = "trace") -> Any:
        """The sum of the main diagonal."""
        return self._trace()

    def determinant(self, name: str = "det") -> Any:
        """The determinant."""
        if self.is_square is False:
            raise NotImplementedError("Determinant not implemented for an operator that is expected to not be square.")
        return self._determinant()

    def log_abs_determinant(self, name: str = "log_abs_det") -> Any:
        """The logarithm of the absolute value of the determinant."""
        if self.is_square is False:
            raise NotImplementedError("Determinant not implemented for an operator that is expected to not be square.")
        return self._log_abs_determinant()

    def eigvals(self, name: str = "eigvals") -> Any:
        """The eigenvalues, rising, of a self-adjoint operator."""
        if not self.is_self_adjoint:
            raise NotImplementedError("Only self-adjoint matrices are supported.")
        return self._eigvals()

    def cond(self, name: str = "cond") -> Any:
        """The greatest over the least singular value."""
        if self.is_self_adjoint and not self.dtype.is_complex:
            values = primitives.Abs(self._eigvals())
            return primitives.Max(values, -1) / primitives.Min(values, -1)
        values = primitives.Svd(self._to_dense(), False)[0]
        return primitives.Max(values, -1) / primitives.Min(values, -1)

    def add_to_tensor(self, x: Any, name: str = "add_to_tensor") -> Any:
        """The matrices plus `x`."""
        return self._add_to_tensor(convert_to_tensor(x, dtype=None if hasattr(x, "dtype") else self.dtype))

    # ---- assertions

    def assert_non_singular(self, name: str = "assert_non_singular") -> Any:
        """Fails if the condition number is beyond what the dtype can resolve; in a graph, an operation that does."""
        limit = 1.0 / np.finfo(self.dtype.real_dtype.as_numpy_dtype).eps
        condition = self.cond()
        condition = primitives.ComplexAbs(condition) if condition.dtype.is_complex else primitives.Abs(condition)
        within = primitives.All(primitives.Less(condition, limit))
        return Assert(within, ["assert_non_singular: Singular matrix up to precision epsilon."])

    def assert_positive_definite(self, name: str = "assert_positive_definite") -> Any:
        """Fails if the matrices are not positive definite; in a graph, an operation that does."""
        return host_effect(_check_positive_definite, [self.to_dense()])

    def assert_self_adjoint(self, name: str = "assert_self_adjoint") -> Any:
        """Fails if the matrices are not equal to their adjoints; in a graph, an operation that does."""
        return host_effect(_check_self_adjoint, [self.to_dense()])

    # ---- what subclasses may know better

    def _shape(self) -> Any:
        raise NotImplementedError("_shape is not implemented.")

    def _matmul(self, x: Any, adjoint: bool, adjoint_arg: bool) -> Any:
        raise NotImplementedError("_matmul is not implemented.")

    def _solve(self, rhs: Any, adjoint: bool, adjoint_arg: bool) -> Any:
        rhs = adjoint_matrix(rhs) if adjoint_arg else rhs
        if not self._can_use_cholesky():
            return solve_broadcast(self._to_dense(), rhs, adjoint)
        factor = primitives.Cholesky(self._to_dense())
        half = primitives.MatrixTriangularSolve(factor, rhs, True, False)
        return primitives.MatrixTriangularSolve(factor, half, True, True)

    def _to_dense(self) -> Any:
        shape = self.shape.as_list()
        return self._matmul(eye(shape[-1], batch_shape=shape[:-2], dtype=self.dtype), False, False)

    def _diag_part(self) -> Any:
        return primitives.MatrixDiagPartV3(self._to_dense(), 0, 0)

    def _trace(self) -> Any:
        return primitives.Sum(self._diag_part(), -1)

    def _determinant(self) -> Any:
        if self._can_use_cholesky():
            return primitives.Exp(self._log_abs_determinant())
        return primitives.MatrixDeterminant(self._to_dense())

    def _log_abs_determinant(self) -> Any:
        if self._can_use_cholesky():
            return 2.0 * primitives.Sum(
                primitives.Log(primitives.MatrixDiagPartV3(primitives.Cholesky(self._to_dense()), 0, 0)), -1
            )
        return primitives.LogMatrixDeterminant(self._to_dense())[1]

    def _eigvals(self) -> Any:
        return primitives.SelfAdjointEigV2(self._to_dense(), False)[0]

    def _add_to_tensor(self, x: Any) -> Any:
        return self._to_dense() + x

    def _adjoint(self) -> LinearOperator:
        return returned_class("LinearOperatorAdjoint")(self, is_non_singular=self.is_non_singular)

    def _inverse(self) -> LinearOperator:
        return returned_class("LinearOperatorInversion")(
            self, self.is_non_singular, self.is_self_adjoint, self.is_positive_definite, self.is_square
        )

    def _cholesky(self) -> LinearOperator:
        return returned_class("LinearOperatorLowerTriangular")(
            primitives.Cholesky(self.to_dense()), is_non_singular=True, is_self_adjoint=False, is_square=True
        )

    def _compose(self, right: LinearOperator) -> LinearOperator:
        """The operator of the product with another one."""
        if right._leaves(self):
            return self
        shortcut = right._compose_after(self)
        return returned_class("LinearOperatorComposition")([self, right]) if shortcut is None else shortcut

    def _compose_after(self, left: LinearOperator) -> LinearOperator | None:
        """The product `left` times this operator, if this operator knows a short form of it."""
        return None

    def _leaves(self, other: LinearOperator) -> bool:
        """Whether the product with `other` is `other`."""
        return False

    def _can_use_cholesky(self) -> bool:
        return bool(self.is_self_adjoint and self.is_positive_definite)

    def _check_dtype(self, x: Any) -> None:
        if x.dtype.base_dtype != self.dtype:
            raise TypeError(
                f"{self.name}: Input argument must have the operator's dtype {self.dtype.name}; got {x.dtype.name}"
            )

    def _check_solvable(self) -> None:
        if self.is_non_singular is False:
            raise NotImplementedError("Exact solve not implemented for an operator that is expected to be singular.")
        if self.is_square is False:
            raise NotImplementedError("Exact solve not implemented for an operator that is expected to not be square.")


stage_methods(LinearOperator)


def _check_positive_definite(matrix: Any) -> None:
    if np.isnan(np.asarray(primitives.Cholesky(matrix))).any():
        raise InvalidArgumentError.of("assert_positive_definite: Matrix was not positive definite.")


def _check_self_adjoint(matrix: Any) -> None:
    dense = np.asarray(matrix)
    if not np.array_equal(dense, dense.conj().swapaxes(-1, -2)):
        raise InvalidArgumentError.of("assert_self_adjoint: Matrix was not equal to its adjoint, not self-adjoint.")


def _collect_variables(value: Any, found: dict[int, Any]) -> None:
    if isinstance(value, _core.Variable):
        found.setdefault(id(value), value)
    elif isinstance(value, LinearOperator):
        _collect_variables(value._parameters, found)
    elif isinstance(value, dict | list | tuple):
        for part in value.values() if isinstance(value, dict) else value:
            _collect_variables(part, found)


def _divided_arguments(operator: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """The arguments that are tensors, variables or operators, and the others, without the name."""
    args, kwargs = operator._arguments
    given = signature(operator.__init__).bind(*args, **kwargs)
    given.apply_defaults()
    components, plain = {}, {}
    for name, value in given.arguments.items():
        if isinstance(value, LinearOperator) or _core.is_tensor(value) or _holds_operators(value):
            components[name] = value
        elif name in operator._composite_tensor_fields and value is not None:
            is_list = isinstance(value, list | tuple) and all(_core.is_tensor(x) for x in value)
            components[name] = [keep_parameter(x) for x in value] if is_list else keep_parameter(value)
        elif name != "name":
            plain[name] = value
    return components, plain


def _holds_operators(value: Any) -> bool:
    return isinstance(value, list | tuple) and any(isinstance(x, LinearOperator) for x in nest.flatten(value))


def hints_of(operators: list[LinearOperator]) -> dict[str, bool | None]:
    """What a product or block diagonal of operators inherits: non-singular if all are."""
    return {"is_non_singular": True if all(o.is_non_singular for o in operators) else None}


def require_operator(operator: Any) -> LinearOperator:
    """The operator itself, if it is one."""
    if not isinstance(operator, LinearOperator):
        raise TypeError(f"Expected a LinearOperator; got {type(operator).__name__}: {operator}")
    return operator


def check_operators(operators: Any) -> list[LinearOperator]:
    """A list of at least one operator of one dtype."""
    operators = [require_operator(operator) for operator in operators]
    if not operators:
        raise ValueError("Expected a non-empty list of operators: it must be a list of >=1 operators. Found: []")
    for operator in operators[1:]:
        if operator.dtype != operators[0].dtype:
            found = [(o.name, o.dtype.name) for o in operators]
            raise TypeError(f"Expected all operators to have the same dtype.  Found {found}")
    result: list[LinearOperator] = operators
    return result
