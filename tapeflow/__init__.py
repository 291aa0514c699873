"""Tapeflow: TensorFlow 2's gradient system, made anew. `import tapeflow as tf`."""

import gc
import os
import sys

import numpy

from tapeflow import _core, namespace, primitives
from tapeflow import types as _types
from tapeflow.types import dtypes, errors, indexed_slices, symbolic, tensor, tensor_shape, version

__version__ = version.VERSION
__git_version__, __compiler_version__ = version.GIT_VERSION, version.COMPILER_VERSION

_core.set_skipped_folders(*(os.path.dirname(os.path.abspath(file)) + os.sep for file in (__file__, numpy.__file__)))
_core.register_dtypes(dtypes.dtype_by_enum)
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
    from tapeflow import (
        autodiff,
        config,
        control_flow,
        data,
        distribute,
        function,
        inner_modules,
        keras_bridge,
        module,
        ops,
        random_generator,
        tensorflow_alias,
        testing,
        train,
        v1_names,
        variables,
    )
    from tapeflow.v1 import operation as _operation  # tensors of any graph have one

    namespace.install(sys.modules[__name__], primitives.definitions + ops.raw.definitions())
finally:
    if _collecting:
        gc.enable()
sys.modules["tapeflow.compat"].v2 = sys.modules["tapeflow.compat.v2"] = sys.modules[__name__]
