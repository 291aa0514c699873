"""`pytest --tapeflow-doctor`: every test runs under a doctor; a severe finding fails it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tapeflow._src.diagnostics.doctor import Doctor


def pytest_addoption(parser: Any) -> None:
    """The option."""
    parser.getgroup("tapeflow").addoption(
        "--tapeflow-doctor",
        nargs="?",
        const="severe",
        choices=["severe", "warning", "report"],
        help="run each test under tf.debugging.Doctor; fail it on such findings, or only report them",
    )


@pytest.hookimpl(hookwrapper=True)
def pytest_pyfunc_call(pyfuncitem: Any) -> Iterator[None]:
    """Around the body of each test."""
    level = pyfuncitem.config.getoption("--tapeflow-doctor")
    if level is None:
        yield
        return
    doctor = Doctor()
    with doctor:
        outcome: Any = yield
    findings = doctor.findings
    if findings:
        pyfuncitem.add_report_section("call", "tapeflow doctor", str(doctor))
    fatal = {"severe": ("severe",), "warning": ("severe", "warning")}.get(level, ())
    if outcome.excinfo is None and any(f.severity in fatal for f in findings):
        outcome.force_exception(AssertionError(str(doctor)))
