"""The operations of the core as Python callables, by TensorFlow's operation name: `primitives.MatMul(a, b)`."""

import functools
import re
from typing import TYPE_CHECKING

from tapeflow._src import _core, primitive_docs

if TYPE_CHECKING:

    def __getattr__(name: str) -> _core.OpFunction: ...


_rows = _core.op_functions()


@functools.cache
def function_name(operation: str) -> str:
    """What an operation without a public path is called: `"GatherV2"` is `"gather"`."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", re.sub(r"V\d$", "", operation)).lower()


# (public path, function) for `namespace.install`: each primitive under its public names, without those of raw_ops.
definitions = [(path, function) for _, function, _, paths, _ in _rows for path in paths]

# (operation name, function with keywords only) for `raw_ops`: of the primitives that are public.
raw_functions = [(name, raw) for name, _, raw, paths, _ in _rows if paths]

# What the entry of a primitive says besides its function, by operation name and by public function name.
facts_by_name = {name: facts for name, _, _, _, facts in _rows}
facts_by_function = {path.rpartition(".")[2]: facts for _, _, _, paths, facts in _rows for path in paths}
# The operations whose results have elements of their operands, one operand at a time.
_moving_operations = {
    name
    for operation, _, _, paths, facts in _rows
    for name in (operation, *paths)
    if facts["copies_elements"] and facts["family"] != "binary"
}
# The functions that look elements up by position, those of operations without a public path included.
indexing_functions = {
    name
    for operation, _, _, paths, facts in _rows
    for name in ([path.rpartition(".")[2] for path in paths] or [function_name(operation)])
    if facts["indexes"]
}

# The elementwise primitives, those of `raw_ops` included.
elementwise_functions = {
    function for _, *functions, _, facts in _rows for function in functions if facts["elementwise"]
}


def _signature_from_text(text: str) -> object:
    """The signature that `inspect.signature` shows for a primitive."""
    import inspect  # slow to import, and only asked for by people and their editors

    return inspect.signature(eval(f"lambda {text[1:-1]}: None"))


def _document(name: str, doc: str) -> str:
    """The doc of a primitive, with the sections that follow from its parameters."""
    return primitive_docs.complete(doc, _function_by_name[name].__text_signature__, facts_by_name[name])


def moves_elements(name: str) -> bool:
    """Whether a primitive, by operation name or public path, only moves elements.

    >>> moves_elements("reshape"), moves_elements("maximum")
    (True, False)
    """
    return name in _moving_operations


def operation_name(primitive: _core.OpFunction) -> str:
    """The name that nodes of a graph have for this primitive.

    >>> operation_name(tf.range)
    'Range'
    """
    return next(name for name, function in _function_by_name.items() if function is primitive)


_function_by_name = {name: function for name, function, _, _, _ in _rows}


def _operation(*args: object, **kwargs: object) -> None:
    """What programs see of the Python code of a primitive: it takes anything."""


_core.register_objects(
    {
        "signature_from_text": _signature_from_text,
        "doc_of_primitive": _document,
        "function_of_primitives": _operation,
    }
)
globals().update(_function_by_name)
