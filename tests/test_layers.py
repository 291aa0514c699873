"""Who may include or import whom: a layer uses itself and what stands before it, never a neighbour or what follows."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]

CPP_LAYERS = [
    {"base"},
    {"tensor", "kernels"},
    {"op"},
    {"ops", "collectives"},
    {"autodiff"},
    {"graph"},
    {"transforms"},
    {"control_flow"},
    {"vmap"},
    {"plan"},
    {"python"},
]
PYTHON_LAYERS = [
    {"_core"},
    {"advice"},
    {"namespace", "primitive_docs"},
    {"primitives"},
    {"types"},
    {"module", "config"},
    {"config_optimizer"},
    {"ops", "collectives"},
    {"io"},
    {"numpy"},
    {"variable_rows", "variable_slices"},
    {"variables"},
    {"random_generator"},
    {"diagnostics"},
    {"autodiff"},
    {"control_flow"},
    {"function"},
    {"train"},
    {"data"},
    {"distribute"},
    {"compat.raw_ops"},
    {"compat.graph_def"},
    {"compat.onnx"},
    {"compat.v1"},
    {"compat.feature_columns"},
    {"compat.saved_model"},
    {"testing"},
    {"compat.tensorflow"},
    {"compat.lazy_names"},
    {"assembly"},
    {"__init__"},
    {"array_api"},
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

PACKAGE = ROOT / "tapeflow"
PYTHON_FILES = sorted(PACKAGE.rglob("*.py"))
PYTHON_NAMES = set().union(*PYTHON_LAYERS)


def layer_of(module: str) -> str:
    """The layer of a dotted name: `tapeflow._src.ops.nn` is in ops, `tapeflow` and its public names are __init__."""
    parts = module.split(".")
    if parts[1:2] != ["_src"]:
        return parts[1] if parts[1:2] in (["__main__"], ["array_api"]) else "__init__"
    room, *below = parts[2:] or ["assembly"]
    return f"compat.{below[0]}" if room == "compat" and below else room


def module_of(path: Path) -> str:
    return ".".join(("tapeflow", *path.relative_to(PACKAGE).with_suffix("").parts)).removesuffix(".__init__")


def imported_modules(tree: ast.AST):
    """Line, module name and whether it stands inside a function, for each import of a module of tapeflow."""
    inside = {
        id(n) for f in ast.walk(tree) if isinstance(f, ast.FunctionDef | ast.AsyncFunctionDef) for n in ast.walk(f)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert not node.level, f"line {node.lineno}: imports are absolute"
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        else:
            continue
        for name in names:
            if name.split(".")[0] == "tapeflow":
                yield node.lineno, name, id(node) in inside


@pytest.mark.parametrize("path", PYTHON_FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_imports_go_down(path):
    layer = layer_of(module_of(path))
    for line, module, inside_function in imported_modules(ast.parse(path.read_text())):
        where = f"{path.relative_to(ROOT)}:{line}: {module}"
        assert may_use(PYTHON_LAYERS, layer, layer_of(module)), f"{where}\n{layer} may not use this layer"
        assert not inside_function or layer == "__main__", f"{where}\nan import inside a function hides a cycle"


def patched_classes(tree: ast.AST):
    """Line and text of each assignment, by `=` or `setattr`, to an attribute of a class of another tapeflow module."""
    imports = [n for n in ast.walk(tree) if isinstance(n, ast.ImportFrom) and n.module.startswith("tapeflow.")]
    imported = {alias.asname or alias.name: alias.name for node in imports for alias in node.names}
    classes = {name for name, whole in imported.items() if whole[0].isupper()}
    modules = imported.keys() - classes
    for node in ast.walk(tree):
        targets = node.targets if isinstance(node, ast.Assign) else []
        owners = [target.value for target in targets if isinstance(target, ast.Attribute)]
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "setattr":
            owners = [node.args[0]]
        for owner in owners:
            in_module = isinstance(owner, ast.Attribute) and ast.unparse(owner.value) in modules
            if (isinstance(owner, ast.Name) and owner.id in classes) or (in_module and owner.attr[0].isupper()):
                yield node.lineno, ast.unparse(node)


@pytest.mark.parametrize("path", PYTHON_FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_no_class_of_another_module_is_patched(path):
    found = [f"{path.relative_to(ROOT)}:{line}: {text}" for line, text in patched_classes(ast.parse(path.read_text()))]
    assert not found, f"{found}\ngive the class a method, or members that load when they are used (lazy_members)"


def test_every_python_folder_has_a_layer():
    assert PYTHON_FILES
    packages = {"tapeflow._src", "tapeflow._src.compat"}
    assert {layer_of(m) for p in PYTHON_FILES if (m := module_of(p)) not in packages} <= PYTHON_NAMES


def test_only_the_package_and_its_command_are_public():
    assert {path.name for path in PACKAGE.glob("*.py")} == {"__init__.py", "__main__.py"}


# ------------------------------------------------------------------------------------------------- the test of the test


def test_rules_reject_upward_edges():
    assert may_use(CPP_LAYERS, "ops", "kernels")
    assert not may_use(CPP_LAYERS, "kernels", "tensor")
    assert not may_use(CPP_LAYERS, "op", "autodiff")
    assert not may_use(CPP_LAYERS, "graph", "plan")
    assert not may_use(PYTHON_LAYERS, "types", layer_of("tapeflow._src.ops.nn"))
    assert not may_use(PYTHON_LAYERS, "ops", layer_of("tapeflow"))
    assert may_use(PYTHON_LAYERS, "autodiff", layer_of("tapeflow._src.diagnostics.why_none"))


def test_patches_are_found():
    program = (
        "from tapeflow._src.types.tensor import Tensor\nTensor.op = 1\nsetattr(Tensor, 'graph', 2)\nTensor().op = 3\n"
        "from tapeflow._src import _core\n_core.Tensor.op = 4\n_core.switch = 5"
    )
    assert sorted(line for line, _ in patched_classes(ast.parse(program))) == [2, 3, 6]
