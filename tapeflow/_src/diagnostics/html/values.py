"""How notebooks show tensors and variables: name, shape and dtype, and the elements as a table if there are few."""

from __future__ import annotations

from typing import Any

import numpy as np

from tapeflow._src import _core
from tapeflow._src.diagnostics.html.tables import Html, as_html, block, code, mark
from tapeflow._src.diagnostics.source_line import place_text, source_line
from tapeflow._src.variables import Variable

_MOST, _EDGE = 10, 4  # rows or columns that are all shown; else those at both ends
_LONGEST = 60  # letters of an element


class TensorHtml:
    """The members of `tf.Tensor` that notebooks use."""

    def _repr_html_(self: Any) -> str:
        facts = {"shape": self.shape, "dtype": self.dtype.name}
        if _core.is_symbolic(self):
            return block("tf.Tensor", {"name": self.name, **facts})
        return block("tf.Tensor", facts, _elements(self.numpy()))


class VariableHtml:
    """The members of `tf.Variable` that notebooks use."""

    def _repr_html_(self: Any) -> str:
        written: Any = type(self).__repr__
        if written is not Variable.__repr__:  # a subclass that shows something else
            return block(type(self).__name__, {}, code(repr(self)))
        facts = {"name": self.name, "shape": self.shape, "dtype": self.dtype.name, "trainable": self.trainable}
        if self._made_at and self._made_at[0] is not None:
            facts["made at"] = place_text(*source_line(*self._made_at))
        if self._graph is not None:
            return block("tf.Variable", facts)
        return block("tf.Variable", facts, _elements(self.numpy()))


def _elements(values: Any) -> Html:
    """A table for vectors and matrices, NumPy's summary for more dimensions."""
    if not isinstance(values, np.ndarray) or values.ndim == 0:
        return Html(f"<p><code>{_element(values[()] if isinstance(values, np.ndarray) else values)}</code></p>")
    if values.ndim > 2 or values.size == 0:
        return code(str(values))
    matrix = values if values.ndim == 2 else values[np.newaxis]
    rows, columns = _shown(matrix.shape[0]), _shown(matrix.shape[1])
    head = "".join(f'<th scope="col" class="number">{"..." if c is None else c}</th>' for c in columns)
    body = []
    for r in rows:
        cells = "".join(
            f'<td class="number">{"..." if r is None or c is None else _element(matrix[r, c])}</td>' for c in columns
        )
        label = "" if values.ndim == 1 else f'<th scope="row" class="number">{"..." if r is None else r}</th>'
        body.append(f"<tr>{label}{cells}</tr>")
    corner = "" if values.ndim == 1 else "<th></th>"
    return Html(f"<table><thead><tr>{corner}{head}</tr></thead><tbody>{''.join(body)}</tbody></table>")


def _shown(size: int) -> list[int | None]:
    """The numbers of the rows or columns that are shown; None stands for those that are left out."""
    if size <= _MOST:
        return [*range(size)]
    return [*range(_EDGE), None, *range(size - _EDGE, size)]


def _element(value: Any) -> str:
    """One element as HTML, with NumPy's precision; NaN and infinity are marked."""
    if isinstance(value, bytes | str):
        text = repr(value)
        return as_html(text if len(text) <= _LONGEST else text[:_LONGEST] + "...")
    if isinstance(value, np.bool_ | np.integer):
        return as_html(value)
    digits = np.get_printoptions()["precision"]
    try:
        number = complex(value) if np.iscomplexobj(value) else float(value)
    except (TypeError, ValueError):  # not a number, such as an element of a structured dtype
        return as_html(value)
    text = f"{number:.{digits}g}"
    return as_html(text) if np.isfinite(number) else mark(text, "severe")
