"""The report page: complete without JavaScript, safe with any text, and working in a browser."""

import json
import math
import re
import shutil
import subprocess
from html.parser import HTMLParser

import pytest

from tapeflow._src.diagnostics.report.page import html
from tapeflow._src.diagnostics.report_data import as_json

SOURCE = "import tensorflow as tf\nx = tf.Variable(1.)\ny = tf.round(x)  # <b>\nprint(y)\n"
VOID = {"meta", "input", "br", "hr", "img", "link"}


@pytest.fixture
def report():
    finding = {
        "id": "F1",
        "kind": "none-gradient",
        "severity": "severe",
        "message": "gradient of <x> is None",
        "file": "/a/t.py",
        "line": 3,
        "variable": "x",
        "evidence": {"lost": 1.0},
        "remedy": "-old & out\n+new",
        "confidence": 0.9,
    }
    return {
        "version": 1,
        "program": "/a/t.py",
        "verdict": "findings",
        "findings": [
            {**finding, "id": "F2", "severity": "hint", "message": "later", "line": None, "file": None},
            finding,
        ],
        "variables": [
            {
                "name": name,
                "shape": [2, 2],
                "dtype": "float32",
                "grad_norms": norms,
                "update_ratios": [ratio],
                "zeros": 0.5,
                "status": "ok",
                "file": "/a/t.py",
                "line": 2,
            }
            for name, norms, ratio in (
                ("b/kernel", [1.0, math.nan, 0.5], 0.02),
                ("a/kernel", [2.0], 0.1),
                ("c", [], None),
            )
        ],
        "steps": [
            {"step": i, "loss": 1.0 / (i + 1), "grad_norm": 1.0, "events": ["F1"] if i == 2 else []} for i in range(4)
        ],
        "lines": [
            {"file": "/a/t.py", "line": 3, "forward_seconds": 0.002, "backward_seconds": 0.0, "bytes_kept": 2048}
        ],
        "sources": {"/a/t.py": SOURCE},
        "flow": [{"layer": "dense", "norm": 1.0, "cut": False}, {"layer": "gate", "norm": None, "cut": True}],
        "memory": {"peak": 4096, "at_peak": [{"file": "/a/t.py", "line": 3, "bytes": 4096}]},
        "checks": [{"name": "reverse against forward", "result": "agrees", "detail": ""}],
        "environment": {"python": "3"},
        "thresholds": {"vanishing": 1e-7},
        "tape": [{"operation": op, "inputs": ["1.0"], "value": "1.0", "gradient": None} for op in ("read", "round")],
    }


class Balanced(HTMLParser):
    def __init__(self):
        super().__init__()
        self.open = []

    def handle_starttag(self, tag, attrs):
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def test_the_page_is_whole_and_needs_no_network(report):
    page = html(report)
    parser = Balanced()
    parser.feed(page)
    assert parser.open == []
    assert not re.search(r'(src|href)="(?!#)', page) and "http" not in page.replace("http://www.w3.org/2000/svg", "")
    for text in (
        "gradient of &lt;x&gt; is None",
        "old &amp; out",
        "# &lt;b&gt;",
        "b/kernel",
        "2 ms",
        "2.0 KB",
        "agrees",
        "cut",
    ):
        assert text in page
    assert page.index('id="F1"') < page.index('id="F2"')  # the severe one first
    assert re.search(r'class="guilty"><b>   3</b> y = tf.round', page)
    assert len(page) < 1_000_000


def test_sections_without_data_are_left_out(report):
    for key in [*report]:
        page = html({k: v for k, v in report.items() if k != key})
        Balanced().feed(page)
    page = html({"version": 1, "program": "p.py", "verdict": "healthy", "findings": []})
    assert "healthy" in page and 'id="variables"' not in page and "Nothing to report" in page


def test_a_screen_reader_and_a_keyboard_can_use_it(report):
    page = html(report)
    tables = page.count("<table")
    assert tables == page.count("<caption>") == page.count('<div class="wide" tabindex="0" role="region" aria-label=')
    assert all(f'aria-labelledby="{key}-title"' in page and f'id="{key}-title"' in page for key in ("findings", "tape"))
    body = page[page.index('id="variables-table"') : page.index('<section id="program"')]
    assert body.count("<th scope=row") == 3 and body.count('<th scope="col"') == 7
    assert 'aria-label="severe: gradient of &lt;x&gt; is None"' in page  # the mark beside the line
    assert "(the line of this finding)" in page and '<span class="unseen">ok: </span>' in page  # not by colour alone
    assert 'aria-label="timeline of loss from 1 to 0.25; gradient norm from 1 to 1"' in page


@pytest.mark.skipif(shutil.which("chromium") is None, reason="Chromium is not installed")
def test_a_browser_sorts_filters_and_steps(report, tmp_path):
    script = """
    const errors = []; addEventListener("error", (e) => errors.push(e.message));
    addEventListener("load", () => {
      const rows = () => [...document.querySelectorAll("#variables-table tbody tr:not([hidden])")];
      const names = () => rows().map((r) => r.cells[0].firstChild.data);
      document.querySelectorAll("#variables-table th button")[4].click();
      const sorted = names().join() + document.querySelectorAll("#variables-table th")[4].getAttribute("aria-sort");
      const box = document.querySelector("input[data-filter]");
      box.value = "b/"; box.dispatchEvent(new Event("input"));
      const slider = document.getElementById("tape-slider");
      slider.value = 2; slider.dispatchEvent(new Event("input"));
      const record = [...document.querySelectorAll(".record:not([hidden]) h3")].map((h) => h.textContent.trim()).join();
      const found = document.querySelector("output[for=variables-filter]").value;
      const said = [found, slider.getAttribute("aria-valuetext")];
      document.title = [sorted, names().join(), said.join(), record, errors.join()].join("|");
    });"""
    page = tmp_path / "report.html"
    page.write_text(html(report).replace("<style>", f"<script>{script}</script><style>", 1))
    flags = [
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        "--disable-quic",
        "--no-first-run",
        "--disable-sync",
        "--disable-background-networking",
        "--disable-component-update",
        f"--user-data-dir={tmp_path / 'profile'}",
    ]
    run = subprocess.run(
        ["chromium", *flags, "--dump-dom", page.as_uri()], capture_output=True, text=True, timeout=120, check=True
    )
    assert "<title>c,b/kernel,a/kernelascending|b/kernel|1 of 3,2. round  of 2|2. round|</title>" in run.stdout


def huge_report():
    finding = {
        "id": "none-gradient-1", "kind": "none-gradient", "severity": "severe", "message": "the gradient is None" * 5,
        "file": "/program.py", "line": 1, "variable": "w", "evidence": {"cause": "no path"}, "remedy": "x" * 100,
        "confidence": 0.9,
    }  # fmt: skip
    variable = {
        "name": "w", "shape": [3], "dtype": "float32", "steps": 9, "grad_norms": [0.1 * i for i in range(100)],
        "update_ratios": [0.1] * 100, "zeros": 0.0, "dead_units": None, "file": "/program.py", "line": 1,
    }  # fmt: skip
    return {
        "version": 1, "program": "program.py", "verdict": "findings", "findings": [finding] * 3000,
        "variables": [variable] * 3000, "sources": {"/program.py": "w = tf.Variable(1.0)\n" * 4000},
    }  # fmt: skip


def test_the_page_of_a_huge_report_is_below_its_limit():
    text = html(huge_report())
    assert len(text.encode()) <= 1_000_000
    assert "3000 severe" in text and "more findings" in text and "more variables" in text


def test_the_json_of_a_huge_report_says_what_it_leaves_out():
    others = ("trace", "tape", "retraces", "operations", "lines", "checks", "steps", "environment")
    empty: dict = {name: [] for name in others}
    text = as_json(huge_report() | empty | {"sources": {}})
    report = json.loads(text)
    assert len(text.encode()) <= 256 * 1024
    assert len(report["findings"]) + report["left_out"]["findings"] == 3000
    assert len(report["findings"]) > 200
