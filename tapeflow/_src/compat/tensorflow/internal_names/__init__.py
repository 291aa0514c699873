"""Names of `tf.__internal__`, `tf.__operators__` and inner modules that Keras 2 and the libraries on it are built on.

They are loaded when one of them is asked for; `inner_modules` also puts them where TensorFlow's files have them.
"""

from tapeflow._src.compat.tensorflow.internal_names import (
    containers,
    contexts,
    converted_functions,
    dispatchers,
    graph_comparison,
    keras_hooks,
    operators,
    saved_models,
    tracking,
    training,
)
