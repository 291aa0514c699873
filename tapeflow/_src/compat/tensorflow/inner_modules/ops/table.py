"""The rows of the inner modules below `tensorflow.python.ops` that are functions of their own."""

from __future__ import annotations

from typing import Any

from tapeflow._src.compat.tensorflow.inner_modules.module_map import find_object
from tapeflow._src.compat.tensorflow.inner_modules.ops import (
    arrays,
    circulant,
    distributions,
    initializers,
    linear_operators,
    numpy_dtypes,
    ragged,
    unconstrained,
)
from tapeflow._src.compat.tensorflow.internal_names import test_combinations
from tapeflow._src.compat.v1.distributions import special_functions
from tapeflow._src.compat.v1.distributions.distribution import divergence_by_classes
from tapeflow._src.compat.v1.variables.partitions import PartitionInfo
from tapeflow._src.io.protos import messages
from tapeflow._src.namespace import find_public
from tapeflow._src.ops.strings.hashing import DEFAULT_KEY


class CompositeTensorGradient:
    """How gradients of and by a composite tensor are taken: `__composite_gradient__` of its class is one of these."""

    def get_gradient_components(self, value: Any) -> Any:
        """The tensors of `value` that have derivatives."""
        raise NotImplementedError(f"{type(self).__name__}.get_gradient_components")

    def replace_gradient_components(self, value: Any, component_grads: Any) -> Any:
        """A composite tensor of the derivatives."""
        raise NotImplementedError(f"{type(self).__name__}.replace_gradient_components")


class TFRecordCompressionType:
    """How files of records are compressed."""

    NONE = 0
    ZLIB = 1
    GZIP = 2


def generate_combinations_with_testcase_name(**kwargs: Any) -> list[Any]:
    """All combinations of the values that the lists give, each with a name of letters and digits."""

    def written(part: Any) -> str:
        return "".join(filter(str.isalnum, str(part)))

    combinations = test_combinations.combine(**kwargs)
    for combination in combinations:
        parts = "".join(f"_{written(key)}_{written(value)}" for key, value in combination.items())
        combination["testcase_name"] = f"_test{parts}"
    return combinations


_NUMPY_TYPES = ["bool", "complex64", "complex128", "float16", "float32", "float64"] + [
    f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)
]

names_by_path: dict[str, dict[str, Any]] = {
    "core.framework.full_type_pb2": {
        **messages.enum_values("FullTypeId"),
        "FullTypeDef": messages.message_class("FullTypeDef"),
    },
    **unconstrained.names_by_path,
    "python.framework.composite_tensor_gradient": {"CompositeTensorGradient": CompositeTensorGradient},
    "python.framework.dtypes": {
        "_NP_TO_TF": {find_public(name).as_numpy_dtype: find_public(name) for name in _NUMPY_TYPES}
    },
    "python.framework.test_util": {
        "generate_combinations_with_testcase_name": generate_combinations_with_testcase_name
    },
    "python.lib.io.tf_record": {"TFRecordCompressionType": TFRecordCompressionType},
    "python.ops.array_ops": {"batch_gather_nd": arrays.batch_gather_nd},
    "python.ops.confusion_matrix": {"remove_squeezable_dimensions": arrays.remove_squeezable_dimensions},
    "python.ops.distributions.kullback_leibler": {"_DIVERGENCES": divergence_by_classes},
    "python.ops.distributions.special_math": special_functions.names,
    "python.ops.distributions.util": distributions.names,
    "python.ops.init_ops": initializers.v1_names,
    "python.ops.init_ops_v2": initializers.v2_names,
    "python.ops.inplace_ops": arrays.inplace_names,
    "python.ops.linalg.linear_operator_util": linear_operators.util_names,
    "python.ops.linalg.linear_operator_circulant": circulant.NAMES,
    "python.ops.linalg.linear_operator_toeplitz": {"_to_complex": circulant.to_complex},
    "python.ops.linalg.slicing": linear_operators.slicing_names,
    "python.ops.math_ops": {
        f"sparse_segment_{name}_grad_v2": find_object(f"raw_ops.SparseSegment{operation}GradV2")
        for name, operation in (("sum", "Sum"), ("mean", "Mean"), ("sqrt_n", "SqrtN"))
    },
    "python.ops.numpy_ops.np_dtypes": numpy_dtypes.names,
    "python.ops.ragged.ragged_array_ops": {
        "_DEFAULT_CROSS_HASH_KEY": DEFAULT_KEY,
        "fill_empty_rows": ragged.fill_empty_rows,
    },
    "python.ops.ragged.ragged_batch_gather_with_default_op": {
        "batch_gather_with_default": ragged.batch_gather_with_default
    },
    "python.ops.ragged.ragged_string_ops": {"ragged_tensor_to_string": ragged.ragged_tensor_to_string},
    "python.ops.ragged.ragged_util": {"repeat_ranges": ragged.repeat_ranges},
    "python.ops.random_grad": {"add_leading_unit_dimensions": arrays.add_leading_unit_dimensions},
    "python.ops.sparse_ops": {
        "_DEFAULT_HASH_KEY": DEFAULT_KEY,
        "deserialize_sparse": arrays.deserialize_sparse,
        "sparse_dense_cwise_add": arrays.sparse_dense_cwise_add,
    },
    "python.ops.variable_scope": {"_PartitionInfo": PartitionInfo},
}
