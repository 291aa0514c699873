"""Who may include or import whom: a layer uses itself and what stands before it, never a neighbour or what follows."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]

CPP_LAYERS = [{"base"}, {"tensor", "kernels"}, {"op"}, {"ops"}, {"autodiff"}, {"graph"}, {"python"}]
PYTHON_LAYERS = [
    {"_core"},
    {"namespace", "advice", "primitives"},
    {"v1_names"},
    {"types"},
    {"module", "config"},
    {"ops"},
    {"variables"},
    {"random_generator"},
    {"diagnostics"},
    {"autodiff"},
    {"control_flow"},
    {"function"},
    {"train"},
    {"v1", "data"},
    {"distribute", "testing"},
    {"tensorflow_places"},
    {"tensorflow_alias"},
    {"keras_bridge", "inner_modules"},
    {"__init__"},
    {"__main__"},
]


def may_use(layers: list, user: str, used: str) -> bool:
    level = {name: number for number, names in enumerate(layers) for name in names}
    return user == used or level[used] < level[user]


# ---------------------------------------------------------------------------------------------------------------- C++

CPP_FILES = sorted(path for path in (ROOT / "core").rglob("*") if path.suffix in (".h", ".cc"))


@pytest.mark.parametrize("path", CPP_FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_includes_go_down(path):
    layer = path.relative_to(ROOT / "core").parts[0]
    for number, line in enumerate(path.read_text().splitlines(), 1):
        where = f"{path.relative_to(ROOT)}:{number}: {line.strip()}"
        if match := re.match(r'\s*#\s*include\s+"([^"]+)"', line):
            assert (ROOT / "core" / match[1]).is_file(), f"{where}\nwrite the path as seen from core/"
            assert may_use(CPP_LAYERS, layer, match[1].split("/")[0]), f"{where}\n{layer} may not use this layer"
        if re.match(r"\s*#\s*include\s+<(Python|numpy/.*)\.h>", line):
            assert layer == "python", f"{where}\nonly core/python knows Python"


def test_every_cpp_folder_has_a_layer():
    assert CPP_FILES
    assert {path.relative_to(ROOT / "core").parts[0] for path in CPP_FILES} <= set().union(*CPP_LAYERS)


# ------------------------------------------------------------------------------------------------------------- Python

PYTHON_FILES = sorted((ROOT / "tapeflow").rglob("*.py"))


def layer_of(module: str) -> str:
    """The layer of a dotted name: `tapeflow.ops.nn` is in ops, `tapeflow` and its public names are __init__."""
    second = (module.split(".") + ["__init__"])[1]
    return second if second in set().union(*PYTHON_LAYERS) else "__init__"


def imported_modules(path: Path, tree: ast.AST):
    """Line, module name and whether it stands inside a function, for each import of a module of tapeflow."""
    inside = {
        id(n) for f in ast.walk(tree) if isinstance(f, ast.FunctionDef | ast.AsyncFunctionDef) for n in ast.walk(f)
    }
    package = ("tapeflow", *path.relative_to(ROOT / "tapeflow").parts[:-1])
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            start = list(package[: len(package) - node.level + 1]) if node.level else []
            base = ".".join(start + ([node.module] if node.module else []))
            names = [f"{base}.{alias.name}" for alias in node.names]
        else:
            continue
        for name in names:
            if name.split(".")[0] == "tapeflow":
                yield node.lineno, name, id(node) in inside


@pytest.mark.parametrize("path", PYTHON_FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_imports_go_down(path):
    parts = path.relative_to(ROOT / "tapeflow").with_suffix("").parts
    for line, module, inside_function in imported_modules(path, ast.parse(path.read_text())):
        where = f"{path.relative_to(ROOT)}:{line}: {module}"
        if parts[0] == "tensorflow_alias":  # it answers with public names, so it needs no inner module
            assert layer_of(module) in ("__init__", "namespace", "tensorflow_places"), (
                f"{where}\ntensorflow_alias uses public names alone"
            )
            continue
        assert may_use(PYTHON_LAYERS, parts[0], layer_of(module)), f"{where}\n{parts[0]} may not use this layer"
        assert not inside_function or parts[0] == "__main__", f"{where}\nan import inside a function hides a cycle"


def test_every_python_folder_has_a_layer():
    assert PYTHON_FILES
    names = {path.relative_to(ROOT / "tapeflow").with_suffix("").parts[0] for path in PYTHON_FILES}
    assert names <= set().union(*PYTHON_LAYERS)


# ------------------------------------------------------------------------------------------------- the test of the test


def test_rules_reject_upward_edges():
    assert may_use(CPP_LAYERS, "ops", "kernels")
    assert not may_use(CPP_LAYERS, "kernels", "tensor")
    assert not may_use(CPP_LAYERS, "op", "autodiff")
    assert not may_use(PYTHON_LAYERS, "types", layer_of("tapeflow.ops.nn"))
    assert not may_use(PYTHON_LAYERS, "ops", layer_of("tapeflow"))
    assert may_use(PYTHON_LAYERS, "autodiff", layer_of("tapeflow.diagnostics.why_none"))
