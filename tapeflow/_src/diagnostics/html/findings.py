"""How notebooks show what a doctor found and what a tape answers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tapeflow._src.diagnostics import report_text
from tapeflow._src.diagnostics.html.tables import Html, as_html, block, code, mark, sheet, table
from tapeflow._src.diagnostics.source_line import short_place


def finding(found: dict[str, Any]) -> str:
    """One finding, as `Finding.as_dict` gives it."""
    rows = [("what", found["message"]), ("where", _where(found))]
    rows += [("variable", found["variable"])] if found["variable"] else []
    rows += [("evidence", _evidence(found["evidence"]))] if found["evidence"] else []
    rows += [("remedy", code(found["remedy"]))] if found["remedy"] else []
    rows += [("sure", f"{found['confidence']:.0%}"), ("silence", f"# tapeflow: ok {found['kind']}")]
    return block(Html(f"{mark(found['severity'], found['severity'])} {as_html(found['kind'])}"), {}, sheet(rows))


def findings(found: Sequence[dict[str, Any]]) -> str:
    """A list of findings."""
    title = f"{len(found)} finding{'' if len(found) == 1 else 's'}" if found else "no findings"
    return block(title, {}, *([findings_table(found)] if found else []))


def findings_table(found: Sequence[dict[str, Any]]) -> Html:
    """One row for each finding."""
    rows = [
        (mark(f["severity"], f["severity"]), f["message"], _where(f), code(f["remedy"]) if f["remedy"] else "")
        for f in found
    ]
    return table(("severity", "finding", "where", "remedy"), rows)


def doctor(report: dict[str, Any]) -> str:
    """The report of a doctor: the verdict, the findings, and the figures of the run."""
    kind = {"healthy": "good", "crashed": "severe"}.get(report["verdict"], "warning")
    found = report["findings"]
    parts = [Html(f"<p>{as_html(report_text.verdict(report))}</p>")] if report["verdict"] != "healthy" else []
    parts += [findings_table(found)] if found else []
    parts += [Html(f"<p>{as_html(line)}</p>") for line in report_text.figures(report).splitlines()]
    return block(Html(f"tf.debugging.Doctor {mark(report['verdict'], kind)}"), {}, *parts)


def _where(found: dict[str, Any]) -> object:
    if not found["file"]:
        return "the program"
    source = code(found["source"]) if found["source"] else ""
    return Html(f"{as_html(short_place(found['file'], found['line']))}{source}")


def _evidence(evidence: dict[str, Any]) -> Html:
    lines = (
        f"{as_html(name)}: {as_html(_number_text(value))}"
        for name, value in evidence.items()
        if value not in ([], {}, None, "")
    )
    return Html("<br>".join(lines))


def _number_text(value: Any) -> str:
    text = f"{value:.6g}" if isinstance(value, float) else str(value)
    return text if len(text) <= 200 else text[:200] + "..."
