"""Tapeflow: TensorFlow 2's gradient system, made anew. `import tapeflow as tf`."""

from tapeflow._src import assembly as _assembly
from tapeflow._src.types import version as _version

__version__ = _version.VERSION  # TensorFlow's, whose interface this is
__tapeflow_version__ = _version.TAPEFLOW_VERSION
__git_version__, __compiler_version__ = _version.GIT_VERSION, _version.COMPILER_VERSION

_assembly.install(__name__)
