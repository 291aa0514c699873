"""Compares the printed stubs with the package at run time, namespace by namespace: `mypy.stubtest` without `_src`."""

from __future__ import annotations

import sys
from pathlib import Path

from mypy import stubtest
from mypy.options import Options

ALLOWED = Path(__file__).with_name("stubtest_allowed.txt")


def namespaces() -> list[str]:
    """The public namespaces, and the core, whose stub is written by hand."""
    from tapeflow._src import namespace

    namespace.load_later_definitions()
    paths = sorted(path for path in namespace.installed_namespaces())
    return ["tapeflow._src._core", *(f"tapeflow.{path}" if path else "tapeflow" for path in paths)]


def complaints() -> list[str]:
    """What `stubtest` finds in the public namespaces, less what `stubtest_allowed.txt` lists with a reason."""
    modules = namespaces()
    options = Options()
    options.ignore_missing_imports = True
    stubtest.build_stubs(modules, options, find_submodules=False)
    allowed = {line.partition("#")[0].strip() for line in ALLOWED.read_text().splitlines()}
    found = []
    for module in modules:
        for error in stubtest.test_module(module):
            if error.object_desc not in allowed and not error.is_missing_stub():
                found.append(error.get_description(concise=True))
    return found


if __name__ == "__main__":
    found = complaints()
    print("\n".join(found), file=sys.stderr)
    sys.exit(bool(found))
