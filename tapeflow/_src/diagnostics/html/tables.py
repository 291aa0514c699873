"""Blocks and tables of HTML for notebooks. Text is escaped here; colours fit light and dark pages."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from html import escape

# Two classes make the rules stronger than those of notebooks for all tables.
_STYLE = (
    "<style>"
    ".tfh.tfh{font:13px/1.45 system-ui,sans-serif;color:inherit;max-width:100%;overflow-x:auto}"
    ".tfh.tfh p{margin:2px 0}.tfh.tfh .fact{margin-left:12px;opacity:.8}"
    ".tfh.tfh table{border-collapse:collapse;margin:4px 0;font-size:13px;color:inherit}"
    ".tfh.tfh th,.tfh.tfh td{border:1px solid rgba(128,128,128,.35);padding:2px 8px;text-align:left;"
    "vertical-align:top;background:none;color:inherit;white-space:normal;max-width:60em}"
    ".tfh.tfh th{font-weight:600;background:rgba(128,128,128,.12)}"
    ".tfh.tfh td.number,.tfh.tfh th.number{text-align:right;white-space:nowrap;font-variant-numeric:tabular-nums}"
    ".tfh.tfh pre{margin:2px 0;padding:0;background:none;color:inherit;font-size:12px;white-space:pre;overflow-x:auto}"
    ".tfh.tfh td pre{white-space:pre-wrap}"
    ".tfh.tfh .mark{display:inline-block;padding:0 6px;border-radius:3px;font-weight:600;"
    "background:rgba(128,128,128,.25)}"
    ".tfh.tfh .severe{background:#b3261e;color:#fff}.tfh.tfh .warning{background:#f2b84b;color:#241a00}"
    ".tfh.tfh .good{background:#1f7a3a;color:#fff}"
    "</style>"
)


class Html(str):
    """Text that is HTML already; other text is escaped where it is put in."""

    __slots__ = ()


def as_html(value: object) -> str:
    """HTML as it is, any other value as escaped text.

    >>> as_html("<script>"), as_html(Html("<b>"))
    ('&lt;script&gt;', '<b>')
    """
    return value if isinstance(value, Html) else escape(str(value))


def block(title: object, facts: Mapping[str, object], *parts: Html) -> str:
    """What one object shows: a title with facts beside it, then its parts."""
    beside = "".join(
        f'<span class="fact">{escape(name)} <code>{as_html(value)}</code></span>' for name, value in facts.items()
    )
    return f'<div class="tfh">{_STYLE}<p><b>{as_html(title)}</b>{beside}</p>{"".join(parts)}</div>'


def table(head: Sequence[object], rows: Iterable[Sequence[object]], numbers: Sequence[int] = ()) -> Html:
    """A table; the columns in `numbers` are aligned to the right."""
    mark = [' class="number"' if column in numbers else "" for column in range(len(head))]
    heads = "".join(f'<th scope="col"{m}>{as_html(name)}</th>' for m, name in zip(mark, head))
    body = "".join(
        "<tr>" + "".join(f"<td{m}>{as_html(cell)}</td>" for m, cell in zip(mark, row)) + "</tr>" for row in rows
    )
    return Html(f"<table><thead><tr>{heads}</tr></thead><tbody>{body}</tbody></table>")


def sheet(rows: Iterable[tuple[str, object]]) -> Html:
    """A table of two columns whose rows have names."""
    body = "".join(f'<tr><th scope="row">{escape(name)}</th><td>{as_html(value)}</td></tr>' for name, value in rows)
    return Html(f"<table><tbody>{body}</tbody></table>")


def mark(text: str, kind: str) -> Html:
    """A word on a coloured ground: "severe", "warning", "good", or any other kind on grey."""
    return Html(f'<span class="mark {escape(kind)}">{escape(text)}</span>')


def code(text: str) -> Html:
    """Lines of a program or of values, as they are."""
    return Html(f"<pre>{escape(text)}</pre>")
