"""`pytest --tapeflow-doctor`: every test runs under a doctor; a severe finding fails it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tapeflow._src.diagnostics.doctor import Doctor


def pytest_addoption(parser: Any) -> None:
    """The options. The first is a flag: with a value of its own it would take the path of a test for it."""
    group = parser.getgroup("tapeflow")
    group.addoption(
        "--tapeflow-doctor",
        action="store_true",
        help="run each test under tf.debugging.Doctor; a severe finding fails it",
    )
    group.addoption(
        "--tapeflow-doctor-level",
        choices=["severe", "warning", "report"],
        help="the same, and fail a test on findings of this severity or worse, or only report them",
    )


@pytest.hookimpl(hookwrapper=True)
def pytest_pyfunc_call(pyfuncitem: Any) -> Iterator[None]:
    """Around the body of each test."""
    level = pyfuncitem.config.getoption("--tapeflow-doctor-level")
    if level is None and not pyfuncitem.config.getoption("--tapeflow-doctor"):
        yield
        return
    doctor = Doctor()
    with doctor:
        outcome: Any = yield
    findings = doctor.findings
    if findings:
        pyfuncitem.add_report_section("call", "tapeflow doctor", str(doctor))
    fatal = {"report": (), "warning": ("severe", "warning")}.get(level, ("severe",))
    if outcome.excinfo is None and any(f.severity in fatal for f in findings):
        outcome.force_exception(pytest.fail.Exception(str(doctor), pytrace=False))  # no line of ours is at fault
