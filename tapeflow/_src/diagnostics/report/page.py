"""One HTML page of a report: no network, readable without JavaScript, light and dark, printable."""

from __future__ import annotations

import json
import os
from collections import defaultdict
from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any

from tapeflow._src.diagnostics.report.charts import (
    bars,
    bytes_text,
    number_text,
    seconds_text,
    sparkline,
    timeline,
)
from tapeflow._src.diagnostics.source_line import counted, short_file, short_place

Report = Mapping[str, Any]
_HERE = Path(__file__).parent
_AROUND = 3  # lines of the program before and after a finding
_SIZE_LIMIT = 1_000_000  # bytes
# Findings, variables and lines of one file that are shown: the most that keep the page below its limit.
_MOST_SHOWN = ((400, 1000, 1500), (150, 300, 1500), (60, 100, 400), (20, 30, 100))
_SEVERITIES = ("severe", "warning", "hint")
_FIGURES = ("Forward", "Backward", "Kept", "Largest gradient")  # beside the lines of the program


def html(report: Report) -> str:
    """The report as a page; keys that are missing leave out their section.

    >>> "healthy" in html({"version": 1, "program": "train.py", "verdict": "healthy", "findings": []})
    True
    """
    for most in _MOST_SHOWN:
        page = _page(report, *most)
        if len(page.encode()) <= _SIZE_LIMIT:
            break
    return page


def _page(report: Report, findings: int, variables: int, lines: int) -> str:
    """The page with so many findings, variables, and lines of one file."""
    shown_part = dict(report) | {
        "findings": list(report.get("findings", ()))[:findings],
        "variables": list(report.get("variables", ()))[:variables],
    }
    sections = [
        ("findings", "Findings", _findings(shown_part) + _more(report, "findings", findings)),
        ("variables", "Variables", _variables(shown_part) + _more(report, "variables", variables)),
        ("program", "Program", _program(shown_part, lines)),
        ("timeline", "Timeline", _timeline(report)),
        ("flow", "Flow of gradients", _flow(report)),
        ("memory", "Memory at the peak", _memory(report)),
        ("cost", "Time by operation", _cost(report)),
        ("tape", "One step of the tape", _tape(report)),
        ("checks", "Checks", _checks(report)),
        ("environment", "Environment and thresholds", _environment(report)),
    ]
    shown = [section for section in sections if section[2]]
    links = "".join(f'<a href="#{key}">{title}</a>' for key, title, _ in shown)
    body = "".join(
        f'<section id="{key}" aria-labelledby="{key}-title"><h2 id="{key}-title">{title}</h2>{content}</section>'
        for key, title, content in shown
    )
    program = escape(os.path.basename(str(report.get("program", ""))))
    return (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>Tapeflow doctor: {program}</title>'
        f'<meta name="viewport" content="width=device-width,initial-scale=1"><style>{_asset("page.css")}</style></head>'
        f'<body><a class="skip" href="#findings">Skip to the findings</a>'
        f"<header><h1>Tapeflow doctor</h1>{_verdict(report)}</header>"
        f'<nav aria-label="Sections">{links}</nav><main>{body}</main>'
        f"<script>{_asset('page.js')}</script></body></html>\n"
    )


def _more(report: Report, what: str, shown: int) -> str:
    count = len(report.get(what, ())) - shown
    return f"<p>And {count} more {what}, which --json lists as far as they fit.</p>" if count > 0 else ""


def _asset(name: str) -> str:
    return (_HERE / name).read_text(encoding="utf-8")


def _verdict(report: Report) -> str:
    verdict, findings = str(report.get("verdict", "")), report.get("findings", ())
    counts = {s: sum(f.get("severity") == s for f in findings) for s in _SEVERITIES}
    said = ", ".join(f"{count} {severity}" for severity, count in counts.items() if count) or "no findings"
    steps = report.get("steps", ())
    calls = max(report.get("gradient_calls", 0), len(steps))
    watched = f", {counted(calls, 'gradient call')}, {counted(len(steps), 'step')} measured" if steps else ""
    worst = " severe" if counts["severe"] else ""
    return (
        f'<p class="verdict {escape(verdict)}{worst}"><strong>{escape(verdict)}</strong> '
        f"<span>{escape(str(report.get('program', '')))}: {said}{watched}</span></p>"
    )


def _place(item: Mapping[str, Any]) -> str:
    file, line = item.get("file"), item.get("line")
    return short_place(file, line) if file else ""


def _anchor(file: str, line: Any) -> str:
    return escape(f"L-{os.path.basename(file)}-{line}")


# ------------------------------------------------------------------------------------------------------------ sections


def _findings(report: Report) -> str:
    found = sorted(
        report.get("findings", ()),
        key=lambda f: _SEVERITIES.index(f["severity"]) if f.get("severity") in _SEVERITIES else len(_SEVERITIES),
    )
    if not found:
        return "<p>Nothing to report.</p>"
    return "".join(_finding(item, report.get("sources", {})) for item in found)


def _finding(item: Mapping[str, Any], sources: Mapping[str, str]) -> str:
    rows = [(name, item.get(name.lower())) for name in ("Variable", "Evidence", "Confidence", "Reproduce")]
    facts = "".join(
        f"<dt>{name}</dt><dd>{_evidence(value)}</dd>" for name, value in rows if value not in (None, "", [], {})
    )
    remedy = item.get("remedy")
    return (
        f'<article class="finding {escape(str(item.get("severity")))}" id="{escape(str(item.get("id")))}">'
        f'<h3><span class="badge">{escape(str(item.get("severity")))}</span> {escape(str(item.get("message")))}</h3>'
        f'<p class="place">{escape(_place(item))} <code>{escape(str(item.get("kind")))}</code></p>'
        f"{_snippet(item, sources)}<dl>{facts}</dl>"
        f"{f'<h4>What to do</h4><pre class=remedy tabindex=0>{_diff(str(remedy))}</pre>' if remedy else ''}</article>"
    )


def _evidence(value: Any) -> str:
    """A fact, or a list of named facts without those that say nothing."""
    if not isinstance(value, Mapping):
        return escape(_plain(value))
    rows = [(key.replace("_", " "), item) for key, item in value.items() if item not in (None, "", [], {})]
    return "".join(f'<span class="fact">{escape(key)}: <b>{escape(_plain(item))}</b></span>' for key, item in rows)


def _plain(value: Any) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, float):
        return number_text(value)
    if isinstance(value, list) and all(isinstance(item, str) for item in value):
        return ", ".join(value)
    return json.dumps(value, default=str)


def _diff(text: str) -> str:
    marks = {"-": "del", "+": "ins"}
    lines = text.splitlines()
    return "\n".join(
        f"<{marks[line[0]]}>{escape(line)}</{marks[line[0]]}>" if line[:1] in marks else escape(line) for line in lines
    )


def _snippet(item: Mapping[str, Any], sources: Mapping[str, str]) -> str:
    text, line = sources.get(item.get("file") or ""), item.get("line")
    if text is None or not line:
        return ""
    lines = text.splitlines()
    first, last = max(1, line - _AROUND), min(len(lines), line + _AROUND)
    rows = [
        f'<span class="{"guilty" if number == line else "near"}"><b>{number:>4}</b> {escape(lines[number - 1])}'
        f"{_unseen(' (the line of this finding)') if number == line else ''}</span>"
        for number in range(first, last + 1)
    ]
    where = escape(f"Lines {first} to {last} of {short_file(str(item.get('file')))}")
    return f'<pre class="source" tabindex="0" role="region" aria-label="{where}">{"".join(rows)}</pre>'


def _variables(report: Report) -> str:
    found = report.get("variables", ())
    if not found:
        return ""
    heads = ("Variable", "Shape", "Gradient norm", "Last norm", "Update / weight", "Zeros", "Cause")
    rows = []
    for item in found:
        norms, ratios = item.get("grad_norms") or [], item.get("update_ratios") or []
        last, ratio = norms[-1] if norms else None, ratios[-1] if ratios else None
        zeros = item.get("zeros")
        status = str(item.get("status", "ok"))
        cells = [
            (str(item.get("name")), f"{escape(str(item.get('name')))}<small>{escape(_place(item))}</small>"),
            ("", escape(f"{item.get('dtype', '')}{list(item.get('shape') or [])}")),
            ("", sparkline(norms, f"gradient norm of {item.get('name')}")),
            (_sort_key(last), number_text(last)),
            (
                _sort_key(ratio),
                f'<span class="light {escape(status)}" title="{escape(status)}"></span>'
                f"{_unseen(f'{status}: ')}{number_text(ratio)}",
            ),
            (_sort_key(zeros), "-" if zeros is None else f"{100 * zeros:.0f} %"),
            ("", _cause(item.get("cause"))),
        ]
        rows.append(f'<tr class="{escape(status)}">{_row(cells)}</tr>')
    return (
        '<p class="tools"><label>Filter <input type="search" id="variables-filter" '
        'data-filter="variables-table"></label> <output for="variables-filter"></output></p>'
        + _table("Variables", heads, rows, ' id="variables-table" class="sortable"')
    )


def _row(cells: Sequence[tuple[str, str]]) -> str:
    """Cells by the keys that sort them and their HTML; the first one names the row."""
    tags = ["th scope=row", *["td"] * (len(cells) - 1)]
    return "".join(f'<{tag} data-key="{escape(key)}">{text}</{tag[:2]}>' for tag, (key, text) in zip(tags, cells))


def _table(title: str, heads: Sequence[str], rows: Sequence[str], attributes: str = "", classes: str = "") -> str:
    """A table with a title for screen readers; where it is wider than the page the keyboard can scroll it."""
    head = "".join(f'<th scope="col"{classes if name in _FIGURES else ""}>{name}</th>' for name in heads)
    return (
        f'<div class="wide" tabindex="0" role="region" aria-label="{escape(title)}"><table{attributes}>'
        f"<caption>{_unseen(title)}</caption><thead><tr>{head}</tr></thead><tbody>{''.join(rows)}</tbody></table></div>"
    )


def _unseen(text: str) -> str:
    """Text for screen readers, where sight tells it by colour or place."""
    return f'<span class="unseen">{escape(text)}</span>'


def _cause(finding: Any) -> str:
    """A link to the finding that is the cause."""
    return f'<a href="#{escape(str(finding))}">{escape(str(finding))}</a>' if finding else ""


def _sort_key(value: Any) -> str:
    return "-Infinity" if value is None else repr(float(value))


def _program(report: Report, most: int) -> str:
    sources = report.get("sources", {})
    facts: dict[tuple[str, int], Mapping[str, Any]] = {
        (row["file"], row["line"]): row for row in report.get("lines", ())
    }
    marks: dict[tuple[str, int], list[Any]] = defaultdict(list)
    for item in report.get("findings", ()):
        if item.get("file") and item.get("line"):
            marks[item["file"], item["line"]].append(item)
    return "".join(_listing(file, text.splitlines()[:most], facts, marks) for file, text in sources.items())


def _listing(file: str, lines: list[str], facts: Mapping[Any, Any], marks: Mapping[Any, Any]) -> str:
    rows = []
    for number, line in enumerate(lines, 1):
        row, found = facts.get((file, number), {}), marks.get((file, number), ())
        links = "".join(
            f'<a class="mark {escape(str(f.get("severity")))}" href="#{escape(str(f.get("id")))}" '
            f'title="{escape(str(f.get("message")))}" '
            f'aria-label="{escape(str(f.get("severity")))}: {escape(str(f.get("message")))}">●</a>'
            for f in found
        )
        cells = (
            seconds_text(row.get("forward_seconds")),
            seconds_text(row.get("backward_seconds")),
            bytes_text(row["bytes_kept"]) if row.get("bytes_kept") else "-",
            number_text(row.get("largest_gradient")),
        )
        columns = "".join(
            f'<td class="figure" data-label="{name.split()[0].lower()}">{"" if not row or cell == "-" else cell}</td>'
            for name, cell in zip(_FIGURES, cells)
        )
        guilty = ' class="guilty"' if found else ""
        rows.append(
            f'<tr id="{_anchor(file, number)}"{guilty}><td>{links}</td><td class="number">{number}</td>'
            f'{columns}<td class="code"><code>{escape(line)}</code></td></tr>'
        )
    # The figures come before the text, whose lines may be wider than the page.
    heads = ("Marks", "Line", *_FIGURES, "Program")
    name = short_file(file)
    return f"<h3>{escape(name)}</h3>{_table(f'Program {name}', heads, rows, ' class=listing', ' class=figure')}"


def _timeline(report: Report) -> str:
    steps: Sequence[Mapping[str, Any]] = report.get("steps", ())
    if len(steps) < 2:
        return ""
    rows = [
        (title, [step.get(key) for step in steps], logarithmic)
        for key, title, logarithmic in (
            ("loss", "loss", False),
            ("grad_norm", "gradient norm", True),
            ("memory", "memory in bytes", False),
        )
        if any(step.get(key) is not None for step in steps)
    ]
    events = [
        (position, f"step {step.get('step')}: {', '.join(map(str, step['events']))}")
        for position, step in enumerate(steps)
        if step.get("events")
    ]
    return timeline(rows, [int(step.get("step", i)) for i, step in enumerate(steps)], events) if rows else ""


def _flow(report: Report) -> str:
    rows = report.get("flow", ())
    return bars([(str(row.get("layer")), row.get("norm"), bool(row.get("cut"))) for row in rows]) if rows else ""


def _memory(report: Report) -> str:
    memory = report.get("memory") or {}
    if not memory.get("peak"):
        return ""
    rows = [(_place(row), float(row.get("bytes") or 0), False) for row in memory.get("at_peak", ())]
    kept = f" Tapes keep {bytes_text(memory['kept'])} of it, at these lines:" if memory.get("kept") else ""
    advice = "".join(
        f"<li>{escape(_place(row | {'line': row['first_line']}))}: <code>{escape(row['remedy'])}</code> saves "
        f"{bytes_text(row['saved'])}</li>"
        for row in memory.get("recompute", ())
    )
    if advice:
        advice = f"<h3>For a budget of {bytes_text(memory['budget'])}</h3><ul>{advice}</ul>"
    return f"<p>Peak: {bytes_text(memory['peak'])}.{kept}</p>{bars(rows, bytes_text) if rows else ''}{advice}"


def _cost(report: Report) -> str:
    rows = []
    for item in report.get("operations", ()):
        cells = [
            ("", escape(str(item.get("operation")))),
            (_sort_key(item.get("calls")), str(item.get("calls"))),
            (_sort_key(item.get("forward_seconds")), seconds_text(item.get("forward_seconds"))),
            (_sort_key(item.get("backward_seconds")), seconds_text(item.get("backward_seconds"))),
        ]
        rows.append(f"<tr>{_row(cells)}</tr>")
    heads = ("Operation", "Calls", "Forward, a step", "Backward, a step")
    table = _table("Time by operation", heads, rows, ' class="sortable"')
    traces = "".join(
        f"<li>{escape(_place(row))}, call {row.get('call')}: {escape(str(row.get('function')))}: "
        f"{escape(str(row.get('why')))}</li>"
        for row in list(report.get("retraces", ()))[:20]
    )
    breaks = "".join(
        f"<li>{escape(_place(row))}: {escape(str(row.get('operation')))}</li>" for row in report.get("graph_breaks", ())
    )
    parts = [
        table if rows else "",
        f"<h3>Traced again</h3><ul>{traces}</ul>" if traces else "",
        f"<h3>Python inside of graphs, which no plan holds</h3><ul>{breaks}</ul>" if breaks else "",
    ]
    return "".join(parts)


def _tape(report: Report) -> str:
    records = report.get("tape", ())
    if not records:
        return ""
    rows = []
    for number, record in enumerate(records, 1):
        operands = "".join(f"<li>{escape(str(value))}</li>" for value in record.get("inputs", ()))
        title = f"{number}. {escape(str(record.get('operation')))} <small>{escape(_place(record))}</small>"
        gradient = record.get("gradient")
        facts = (
            ("Inputs", f"<ul>{operands}</ul>"),
            ("Value", escape(str(record.get("value")))),
            ("Gradient that comes back", escape("none" if gradient is None else str(gradient))),
        )
        listed = "".join(f"<dt>{name}</dt><dd>{text}</dd>" for name, text in facts)
        formula = escape(str(record.get("formula") or ""))
        rows.append(f'<li class="record"><h3>{title}</h3><p><code>{formula}</code></p><dl>{listed}</dl></li>')
    return (
        '<p class="tools"><label>Record <input type="range" id="tape-slider" min="1" '
        f'max="{len(records)}" value="1"></label> '
        f'<output for="tape-slider" id="tape-place"></output></p><ol id="tape-records">{"".join(rows)}</ol>'
    )


def _checks(report: Report) -> str:
    keys = ("name", "result", "detail")
    cells = [[("", escape(str(check.get(key) or ""))) for key in keys] for check in report.get("checks", ())]
    rows = [f"<tr>{_row(row)}</tr>" for row in cells]
    return _table("Checks", ("Check", "Result", "Detail"), rows) if rows else ""


def _environment(report: Report) -> str:
    parts = []
    for key, title in (("environment", "Environment"), ("thresholds", "Thresholds")):
        facts = report.get(key) or {}
        rows = "".join(f"<dt>{escape(str(name))}</dt><dd>{escape(_plain(value))}</dd>" for name, value in facts.items())
        if rows:
            parts.append(
                f"<details{' open' if key == 'environment' else ''}><summary>{title}</summary><dl>{rows}</dl></details>"
            )
    return "".join(parts)
