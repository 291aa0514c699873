"""An entry owns what is known about an operation, and an operation that is added is found everywhere."""

import ast
import functools
import importlib
import json
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

import tapeflow as tf
from tapeflow._src import _core, primitives
from tapeflow._src.primitives import facts_by_name

ROOT = Path(__file__).parents[2]
BUILD = ROOT / "build"
CPP_FILES = sorted(p for end in ("*.cc", "*.h") for p in (ROOT / "core").rglob(end))
# TensorFlow's graphs, in which operations are names, are read and written here.
FORMATS = ("compat", "train/saved_model")
PYTHON_FILES = sorted(
    p
    for p in (ROOT / "tapeflow" / "_src").rglob("*.py")
    if not p.relative_to(ROOT / "tapeflow" / "_src").as_posix().startswith(FORMATS)
)


def literals(path: Path) -> list[str]:
    """The short string literals of a C++ file."""
    text = re.sub(r"//[^\n]*", "", re.sub(r'R"\((?:.|\n)*?\)"', "", path.read_text()))
    return re.findall(r'"(\w+)"', text)


@functools.cache
def inner_names() -> list[str]:
    """The names of entries that are not in the registry, one for each definition."""
    return [
        name
        for path in CPP_FILES
        for name in re.findall(r'\.name = "(\w+)"', path.read_text())
        if name not in facts_by_name
    ]


def test_a_name_stands_only_in_its_entry():
    definitions = Counter(inner_names()) + Counter(facts_by_name.keys())
    found = Counter(literal for path in CPP_FILES for literal in literals(path) if literal in definitions)
    assert "Case" in definitions and "Sin" in definitions
    assert {name: found[name] for name, count in definitions.items() if found[name] != count} == {}


def looked_up(tree: ast.AST) -> list[ast.expr]:
    """What a program looks up or compares: keys of dictionaries, members of sets, operands of comparisons, cases."""
    found: list[ast.expr | None] = []
    for node in ast.walk(tree):
        match node:
            case ast.Dict():
                found += node.keys
            case ast.Set():
                found += node.elts
            case ast.Compare():
                found.append(node.left)
                for operand in node.comparators:
                    found += operand.elts if isinstance(operand, ast.Tuple | ast.List) else [operand]
            case ast.MatchValue():
                found.append(node.value)
    return [node for node in found if node is not None]


@pytest.mark.parametrize("path", PYTHON_FILES, ids=lambda p: str(p.relative_to(ROOT / "tapeflow" / "_src")))
def test_python_keeps_no_table_by_operation_name(path):
    constants = [node for node in looked_up(ast.parse(path.read_text())) if isinstance(node, ast.Constant)]
    names = {*facts_by_name, *inner_names()}
    assert [(node.lineno, node.value) for node in constants if node.value in names] == []


def test_parameters_have_names():
    numbered = re.compile(r"\bparams(?:\.at\(\d|\[\d|\.value\(\d)")
    found = [f"{p.relative_to(ROOT)}: {m[0]}" for p in CPP_FILES for m in numbered.finditer(p.read_text())]
    assert found == []


def test_dispatch_stays_small():
    assert len((ROOT / "core/op/dispatch.cc").read_text().splitlines()) <= 150


# ---- an operation is added


def compile_command(source: Path, target: Path) -> list[str]:
    """As a file of a family is compiled, without optimisation."""
    commands = json.loads((BUILD / "compile_commands.json").read_text())
    words = next(c["command"].split() for c in commands if c["file"].endswith("core/ops/math/trigonometric.cc"))
    words = words[: words.index("-o")]
    return [w for w in words if not w.startswith("-O") and "ccache" not in w] + [
        "-O0",
        "-o",
        str(target),
        "-c",
        str(source),
    ]


def objects_of(*folders: str) -> list[str]:
    """The objects of these folders of the core."""
    commands = json.loads((BUILD / "compile_commands.json").read_text())
    # Some folders are compiled as one file, whose path in the build folder is the folder's.
    paths = {
        c["command"]: Path(c["file"]).relative_to(BUILD if BUILD in Path(c["file"]).parents else ROOT) for c in commands
    }
    wanted = tuple(f"core/{folder}" for folder in folders)
    words = [command.split() for command, path in paths.items() if f"{path.with_suffix('')}/".startswith(wanted)]
    return [str(BUILD / w[w.index("-o") + 1]) for w in words]


def copy_of_package(folder: Path) -> Path:
    """A package of links, without the core."""
    source, inner = folder / "tapeflow", folder / "tapeflow" / "_src"
    math = inner / "ops" / "math"
    math.mkdir(parents=True)
    for place in (source, inner, inner / "ops", math):
        for path in (ROOT / "tapeflow" / place.relative_to(source)).iterdir():
            link = place / path.name
            if not link.exists() and not path.name.startswith(("_core.", "__pycache__")):
                link.symlink_to(path)
    return inner


@pytest.fixture(scope="module")
def package(tmp_path_factory):
    """A folder with a copy of the package that has the operations of the two small files."""
    if not (BUILD / "compile_commands.json").exists():
        pytest.skip("the core was not built in this folder")
    folder = tmp_path_factory.mktemp("added")
    inner = copy_of_package(folder)
    here = Path(__file__).parent
    added = folder / "added.o"
    subprocess.run(compile_command(here / "added_operations.cc", added), check=True, cwd=BUILD)
    module = inner / Path(_core.__file__).name
    linker = compile_command(added, added)[0]
    sanitizers = re.findall(r"-fsanitize=[\w,]+", " ".join(compile_command(added, added)))
    libraries = ["-lpthread", "-ldl"]
    command = [linker, "-shared", *sanitizers, "-o", str(module), *objects_of(""), str(added), *libraries]
    subprocess.run(command, check=True)
    (inner / "ops/math/added.py").write_text((here / "added_composition.py").read_text())
    imports = inner / "ops" / "__init__.py"
    text = imports.read_text()
    imports.unlink()
    imports.write_text(text + "import tapeflow._src.ops.math.added\n")
    return folder


def run_in(package: Path, program: str) -> str:
    result = subprocess.run(
        [sys.executable, "-c", program],
        env={"PYTHONPATH": f"{package}:{ROOT}", "PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
        cwd=package,
    )
    assert result.returncode == 0, result.stderr
    return result.stdout


PROGRAM = """
import inspect, tapeflow as tf
assert tf.__file__.startswith({package!r}), tf.__file__
x = tf.constant([1., -2., 3.])

def check(f, by_name, raw, value, slope, curvature):
    assert f is by_name and f(x).numpy().tolist() == value
    assert raw(x=x).numpy().tolist() == value
    with tf.GradientTape() as outer:
        outer.watch(x)
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = f(x)
        dx = tape.gradient(y, x)
    assert dx.numpy().tolist() == slope
    second = outer.gradient(dx, x, unconnected_gradients="zero")
    assert second.numpy().tolist() == curvature
    with tf.autodiff.ForwardAccumulator(x, tf.ones_like(x)) as forward:
        y = f(x)
    assert forward.jvp(y).numpy().tolist() == slope
    traced = tf.function(lambda t: f(t))
    assert traced(x).numpy().tolist() == value
    rows = tf.stack([x, x])
    assert tf.vectorized_map(f, rows).numpy().tolist() == [value, value]
    assert f.__doc__ and "name" in inspect.signature(f).parameters

check(tf.math.added_thrice, tf.math.added_thrice, tf.raw_ops.AddedThrice, [3., -6., 9.], [3.] * 3, [0.] * 3)
check(tf.math.added_weighted_square, tf.added_weighted_square, tf.raw_ops.AddedWeightedSquare,
      [1., 4., 9.], [2., -4., 6.], [2.] * 3)
assert float(tf.added_weighted_square(3., factor=2.)) == 18.

y = tf.math.added_distance(x, 1.)
assert y.numpy().tolist() == [0., 3., 2.] and tf.math.added_distance.__doc__
assert tf.function(tf.math.added_distance)(x, 1.).numpy().tolist() == [0., 3., 2.]
with tf.GradientTape() as tape:
    tape.watch(x)
    y = tf.math.added_distance(x, 4.)
assert tape.gradient(y, x).numpy().tolist() == [-1.] * 3

from tools import surface
lines = {{path: surface.signature(value) for path, value in surface.public_definitions()}}
print(lines["math.added_thrice"], lines["added_weighted_square"], lines["raw_ops.AddedWeightedSquare"],
      lines["math.added_distance"], sep="\\n")
"""


def test_an_added_operation_is_found_everywhere(package):
    printed = run_in(package, PROGRAM.format(package=str(package)))
    assert printed.splitlines() == [
        "(x, name=None)",
        "(x, factor=1.0, name=None)",
        "(*, x, factor=1.0, name=None)",
        "(x, y, name=None)",
    ]


def test_a_key_at_another_place_is_refused(tmp_path, package):
    """Inserting a parameter before another one, without its key, fails when the entry registers."""
    source = tmp_path / "misplaced.cc"
    source.write_text(
        """#include "op/op.h"
namespace tapeflow {
constexpr struct : Keys {
  Key<bool> first = next("first"), second = next("second");
} misplaced_params;
void define_misplaced() {
  define_inner(Op{.name = "Misplaced", .arguments = {flag(misplaced_params.second)}});
}
}
int main() {
  try {
    tapeflow::define_misplaced();
  } catch (const tapeflow::Error& error) {
    return std::string(error.what()).find("'second' is parameter 0; its key says 1") == std::string::npos;
  }
  return 2;
}
"""
    )
    core = objects_of("base/", "tensor/", "kernels/", "op/")
    target = tmp_path / "misplaced.o"
    subprocess.run(compile_command(source, target), check=True, cwd=BUILD)
    program = tmp_path / "misplaced"
    command = [
        compile_command(source, target)[0],
        "-o",
        str(program),
        *core,
        str(target),
        "-lpthread",
        "-ldl",
    ]
    subprocess.run(command, check=True)
    assert subprocess.run([program]).returncode == 0


def test_the_type_of_functions_says_its_module():
    assert _core.OpFunction.__module__ == primitives.Sin.__module__ == "tapeflow"


def test_a_function_is_found_in_its_module():
    for function, place in ((tf.nn.relu6, "tapeflow.nn"), (tf.sin, "tapeflow"), (tf.linalg.det, "tapeflow.linalg")):
        assert function.__module__ == place
        assert vars(importlib.import_module(place))[function.__name__] is function
