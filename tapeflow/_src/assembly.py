"""Puts the package together: imports every layer, hands its types to the core, and sets the public names."""

from __future__ import annotations

import atexit
import gc
import os
import sys

import numpy

from tapeflow._src import _core, namespace, primitives
from tapeflow._src.types import dtypes, errors, indexed_slices, library_folders, symbolic, tensor, tensor_shape

_core.set_skipped_folders(namespace.PACKAGE_FOLDER, os.path.join(os.path.dirname(numpy.__file__), ""))
_core.set_library_folders(*library_folders.LIBRARY_FOLDERS)
_core.register_dtypes(dtypes.dtype_by_enum)
atexit.register(_core.keep_interpreter_lock)
_core.register_objects({name: getattr(errors, name) for name in vars(errors) if name.endswith("Error")})
_core.register_objects(
    {
        "TensorShape": tensor_shape.TensorShape,
        "IndexedSlices": indexed_slices.IndexedSlices,
        "as_dtype": dtypes.as_dtype,
    }
)

_collecting = gc.isenabled()
gc.disable()  # importing makes many objects and no garbage
try:
    from tapeflow._src import (
        autodiff,
        config,
        config_optimizer,
        control_flow,
        data,
        distribute,
        function,
        io,
        module,
        ops,
        random_generator,
        testing,
        train,
        types,
        variables,
    )
    from tapeflow._src import numpy as _numpy_names
    from tapeflow._src.compat import lazy_names
    from tapeflow._src.compat.raw_ops import ctc_ops as _raw_ctc
    from tapeflow._src.compat.raw_ops import cudnn_rnn_ops as _raw_rnn
    from tapeflow._src.compat.raw_ops import gradients as _raw_gradients
    from tapeflow._src.compat.raw_ops import table as _raw_ops
finally:
    if _collecting:
        gc.enable()


def install(package: str) -> None:
    """Sets every public name on the module `package` and on the namespaces below it."""
    root = sys.modules[package]
    namespace.install(root, [*primitives.definitions, *_raw_ops.definitions(), ("compat.v2", root)])
    sys.modules[f"{package}.compat.v2"] = root
