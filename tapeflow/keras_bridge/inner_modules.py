"""The inner modules of TensorFlow that Keras imports, each with the names that Keras uses and no others."""

from __future__ import annotations

from types import ModuleType
from typing import Any

from tapeflow.config import is_op_determinism_enabled
from tapeflow.keras_bridge import containers, execution_context, sparse_products, type_names
from tapeflow.keras_bridge.batch_size import compute_batch_size
from tapeflow.keras_bridge.known_names import PLACE_BY_CLASS, take_known_names
from tapeflow.keras_bridge.update_slice import dynamic_update_slice
from tapeflow.namespace import find_public

_NAMES_BY_PATH: dict[str, dict[str, Any]] = {
    "compiler.tf2xla.python.xla": {"dynamic_update_slice": dynamic_update_slice},
    "python.data.experimental.ops.distribute": {"compute_batch_size": compute_batch_size},
    "python.eager.context": {"async_wait": execution_context.async_wait, "context": execution_context.context},
    "python.framework.config": {"is_op_determinism_enabled": is_op_determinism_enabled},
    "python.framework.tensor_util": {"is_tf_type": find_public("is_tensor")},
    "python.framework.type_spec_registry": {"get_name": type_names.get_name, "lookup": type_names.lookup},
    "python.ops.linalg.sparse.sparse_csr_matrix_ops": {
        "csr_sparse_matrix_to_sparse_tensor": sparse_products.csr_sparse_matrix_to_sparse_tensor,
        "sparse_matrix_sparse_mat_mul": sparse_products.sparse_matrix_sparse_mat_mul,
        "sparse_tensor_to_csr_sparse_matrix": sparse_products.sparse_tensor_to_csr_sparse_matrix,
    },
    "python.ops.math_ops": {"is_nan": find_public("math.is_nan")},
    "python.trackable.data_structures": {
        "ListWrapper": containers.ListWrapper,
        "_DictWrapper": containers._DictWrapper,
    },
}

_module_by_path: dict[str, ModuleType] = {}


def _open(path: str) -> ModuleType:
    """The module at a path, made at the first call together with those above it."""
    module = _module_by_path.get(path)
    if module is None:
        module = _module_by_path[path] = ModuleType(f"tensorflow.{path}", "Names that Keras imports from TensorFlow.")
        module.__path__ = []
        above, _, name = path.rpartition(".")
        if above:
            setattr(_open(above), name, module)
    return module


for _path, _names in _NAMES_BY_PATH.items():
    vars(_open(_path)).update(_names)
for _kind, (_path, _name) in PLACE_BY_CLASS.items():
    setattr(_open(_path), _name, _kind)
take_known_names()


def find(path: str) -> ModuleType | None:
    """The module that answers to `tensorflow.path`, or None."""
    return _module_by_path.get(path)
