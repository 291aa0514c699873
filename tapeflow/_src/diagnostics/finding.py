"""What the doctor finds: one fault with its line, evidence and remedy; and how a program silences it."""

from __future__ import annotations

import hashlib
import linecache
import os
import re
from dataclasses import dataclass, field
from typing import Any

from tapeflow._src.diagnostics.html import findings as html

SEVERITIES = ("severe", "warning", "hint")


@dataclass
class Finding:
    """One fault of a program. `kind` is one of those that docs/doctor.md lists."""

    kind: str
    severity: str
    message: str
    file: str | None = None
    line: int | None = None
    variable: str | None = None
    evidence: dict[str, Any] = field(default_factory=dict)
    remedy: str = ""
    confidence: float = 0.9

    @property
    def id(self) -> str:
        """The same for the same fault in two runs."""
        where = f"{self.kind}|{os.path.basename(self.file or '')}|{self.line}|{self.variable}"
        return f"{self.kind}-{hashlib.sha1(where.encode()).hexdigest()[:6]}"

    def as_dict(self) -> dict[str, Any]:
        """As report.json holds it."""
        return {
            "id": self.id,
            "kind": self.kind,
            "severity": self.severity,
            "message": self.message,
            "file": self.file,
            "line": self.line,
            "source": source_text(self.file, self.line),
            "variable": self.variable,
            "evidence": self.evidence,
            "remedy": self.remedy,
            "confidence": round(self.confidence, 2),
        }

    def _repr_html_(self) -> str:
        return html.finding(self.as_dict())


class Findings(list[Finding]):
    """A list of findings, which notebooks show as a table."""

    def _repr_html_(self) -> str:
        return html.findings([found.as_dict() for found in self])


def source_text(file: str | None, line: int | None) -> str:
    """The line of the program, without indentation."""
    return linecache.getline(file, line).strip() if file and line else ""


def is_silenced(finding: Finding) -> bool:
    """Whether the line has a comment `# tapeflow: ok`, for all kinds or for those that it names."""
    found = re.search(r"#\s*tapeflow:\s*ok\b([\w\s,-]*)", source_text(finding.file, finding.line))
    if found is None:
        return False
    kinds = re.split(r"[\s,]+", found[1].strip())
    return kinds == [""] or finding.kind in kinds
