"""The documents: code blocks that say they run do run."""

import linecache
import re
import sys
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[1] / "docs"


def test_the_tape_in_100_lines_runs():
    (block,) = re.findall(r"```python\n(.*?)```", (DOCS / "tape_in_100_lines.md").read_text(), re.DOTALL)
    assert len(block.splitlines()) <= 100
    exec(compile(block, "tape_in_100_lines.md", "exec"), {})


def test_the_readmes_first_program_runs(capsys):
    block = re.findall(r"```python\n(.*?)```", (DOCS.parent / "README.md").read_text(), re.DOTALL)[0]
    exec(compile(block, "README.md", "exec"), {})
    assert capsys.readouterr().out.strip() in block


def run_in_order(name, blocks):
    """Runs code blocks as one program. AutoGraph reads their source, as it does in a notebook."""
    scope = {}
    for number, block in enumerate(blocks):
        file = f"{name}, block {number}"
        linecache.cache[file] = (len(block), None, block.splitlines(keepends=True), file)
        exec(compile(block, file, "exec"), scope)


# Not here: fragments (doctor), code that stands in a copy of the package (adding_an_op), names of TensorFlow 1
# (tests/compat/v1/test_programs.py), a package that is not installed (libraries), and the tape above.
ELSEWHERE = {"doctor", "adding_an_op", "from_tensorflow_1", "libraries", "tape_in_100_lines"}
PROGRAM = re.compile(r"```python\n(.*?)```", re.DOTALL)
GUIDES = [
    path.relative_to(DOCS).as_posix()
    for path in sorted([*DOCS.glob("*.md"), *DOCS.glob("start/*.md")])
    if path.stem not in ELSEWHERE and PROGRAM.search(path.read_text())
]


@pytest.mark.filterwarnings("ignore:__array__ implementation doesn't accept a copy keyword:DeprecationWarning")  # Keras
@pytest.mark.parametrize("name", GUIDES)
def test_the_programs_of_a_page_run(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "meta_path", [*sys.meta_path])
    modules = {*sys.modules}
    run_in_order(name, PROGRAM.findall((DOCS / name).read_text()))
    for module in {*sys.modules} - modules:
        if module.partition(".")[0] == "tensorflow":
            del sys.modules[module]


# The others run when the site is built.
@pytest.mark.parametrize("name", ["training_loop", "hmc", "meta_learning", "debugging", "writing_an_operation"])
def test_tutorials_run(name):
    cells = re.findall(r"```\{code-cell\}[^\n]*\n(.*?)```", (DOCS / "tutorials" / f"{name}.md").read_text(), re.DOTALL)
    assert cells
    run_in_order(name, cells)


def test_links_between_documents_exist():
    for document in [*DOCS.rglob("*.md"), DOCS.parent / "README.md"]:
        for target in re.findall(r"\]\(([^)#]+\.md)\)", document.read_text()):
            assert (document.parent / target).exists(), f"{document.name} -> {target}"
