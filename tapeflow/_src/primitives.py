"""The operations of the core as Python callables, by TensorFlow's operation name: `primitives.MatMul(a, b)`."""

from typing import TYPE_CHECKING

from tapeflow._src import _core, primitive_docs

if TYPE_CHECKING:

    def __getattr__(name: str) -> _core.OpFunction: ...


_rows = _core.op_functions()

# (public path, function) for `namespace.install`: each primitive under its public names, without those of raw_ops.
definitions = [(path, function) for _, function, _, paths, _ in _rows for path in paths]

# What the tests ask about every primitive: its gradient, family and dtypes, by operation name.
facts_by_name = {name: facts for name, _, _, _, facts in _rows}


def _signature_from_text(text: str) -> object:
    """The signature that `inspect.signature` shows for a primitive."""
    import inspect  # slow to import, and only asked for by people and their editors

    return inspect.signature(eval(f"lambda {text[1:-1]}: None"))


def _document(name: str, doc: str) -> str:
    """The doc of a primitive, with the sections that follow from its parameters."""
    return primitive_docs.complete(doc, _function_by_name[name].__text_signature__, facts_by_name[name])


_function_by_name = {name: function for name, function, _, _, _ in _rows}
_core.register_objects({"signature_from_text": _signature_from_text, "doc_of_primitive": _document})
globals().update(_function_by_name)
