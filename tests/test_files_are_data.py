"""Nothing that is read from a file is run: no pickles, no `eval` or `exec` of what a file holds."""

import ast
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[1] / "tapeflow"
FILES = sorted(PACKAGE.rglob("*.py"))

# Calls that run text of the program itself, never of a data file.
ALLOWED = {
    ("_src/primitives.py", "eval"): "the signature of a primitive, as the core prints it",
    ("_src/ops/extension/extension_fields.py", "eval"): "an annotation of a class of the program",
    ("_src/function/autograph/conversion.py", "exec"): "a function of the program, after AutoGraph has rewritten it",
    ("_src/function/autograph/conversion.py", "compile"): "the same",
    ("__main__.py", "exec"): "the program that the user asks to run",
    ("__main__.py", "compile"): "the same",
}
UNSAFE_MODULES = {"pickle", "cPickle", "dill", "cloudpickle", "marshal", "shelve", "joblib"}


def findings(tree):
    """What may run code: an unsafe module, `eval`, `exec`, `compile`, or NumPy's pickles."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names if alias.name in UNSAFE_MODULES)
        elif isinstance(node, ast.ImportFrom) and node.module in UNSAFE_MODULES:
            yield node.lineno, node.module
        elif isinstance(node, ast.Call):
            if isinstance(node.func, ast.Name) and node.func.id in ("eval", "exec", "compile", "__import__"):
                yield node.lineno, node.func.id
            for keyword in node.keywords:
                is_false = isinstance(keyword.value, ast.Constant) and keyword.value.value is False
                if keyword.arg == "allow_pickle" and not is_false:
                    yield node.lineno, "allow_pickle"


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_no_file_runs_code(path):
    name = path.relative_to(PACKAGE).as_posix()
    found = [(line, what) for line, what in findings(ast.parse(path.read_text())) if (name, what) not in ALLOWED]
    assert not found, f"{name}: {found}: files are data; use protocol buffers, JSON or npz with allow_pickle=False"


def test_the_search_finds_what_it_looks_for():
    text = "import pickle\nfrom marshal import loads\neval(x)\nexec(y)\nnp.load(f, allow_pickle=True)\n"
    assert {what for _, what in findings(ast.parse(text))} == {"pickle", "marshal", "eval", "exec", "allow_pickle"}
    assert not list(findings(ast.parse("np.load(f, allow_pickle=False)\nmodel.eval()\nre.compile(p)\n")))
