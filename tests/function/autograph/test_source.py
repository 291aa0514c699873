"""Where a function's source begins and ends."""

import ast
import importlib.util

import pytest

from tapeflow._src.function.autograph.source import syntax_of

SOURCE = '''
def dedented(x):
    text = """
not the end: a string
"""
    if x:
# not the end: a comment
        return (text,
x)
    total = 1 + \\
2

    def inner(y):
# nor is this one
        return y
    pass


def one_line(x): return x
def docstring_only():
    """Nothing
else."""


class Holder:
    @staticmethod
    @property
    def decorated(
        x,
    ):
        return x
    after = 1
'''

LAST_LINES = {"dedented": "pass", "one_line": "return x", "docstring_only": 'else."""', "decorated": "return x"}


@pytest.fixture(scope="module")
def functions(tmp_path_factory):
    path = tmp_path_factory.mktemp("source") / "programs.py"
    path.write_text(SOURCE)
    spec = importlib.util.spec_from_file_location("programs", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    decorated = vars(module.Holder)["decorated"].__func__.fget
    return {name: getattr(module, name, decorated) for name in LAST_LINES}


@pytest.mark.parametrize("name", LAST_LINES)
def test_definition_ends_where_python_ends_it(functions, name):
    found = syntax_of(functions[name])
    whole = next(n for n in ast.walk(ast.parse(SOURCE)) if isinstance(n, ast.FunctionDef) and n.name == name)
    assert ast.dump(found, include_attributes=True) == ast.dump(whole, include_attributes=True)
    assert SOURCE.splitlines()[found.end_lineno - 1].endswith(LAST_LINES[name])


def test_file_that_has_become_shorter(tmp_path):
    path = tmp_path / "shorter.py"
    namespace = {}
    exec(compile("def f(x):\n    y = x\n    return y\n", str(path), "exec"), namespace)
    path.write_text("def f(x):\n")
    assert syntax_of(namespace["f"]) is None
