"""Marks that say what a page of documentation shows: `tensorflow.tools.docs.doc_controls`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

Marked = TypeVar("Marked")


def _mark(name: str) -> Callable[[Marked], Marked]:
    def mark(obj: Marked) -> Marked:
        setattr(obj, name, None)
        return obj

    return mark


do_not_generate_docs: Callable[[Any], Any] = _mark("_tf_docs_do_not_document")
do_not_doc_inheritable: Callable[[Any], Any] = _mark("_tf_docs_do_not_doc_inheritable")
for_subclass_implementers: Callable[[Any], Any] = _mark("_tf_docs_tools_for_subclass_implementers")
doc_private: Callable[[Any], Any] = _mark("_tf_docs_doc_private")
doc_in_current_and_subclasses: Callable[[Any], Any] = _mark("_tf_docs_doc_in_current_and_subclasses")
set_deprecated: Callable[[Any], Any] = _mark("_tf_docs_deprecated")


def inheritable_header(text: str) -> Callable[[Marked], Marked]:
    """A mark with a text that pages of subclasses begin with."""

    def mark(obj: Marked) -> Marked:
        obj._tf_docs_inheritable_header = text  # type: ignore[attr-defined]
        return obj

    return mark
