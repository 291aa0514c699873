"""The documents: code blocks that say they run do run."""

import linecache
import re
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[1] / "docs"


def test_the_tape_in_100_lines_runs():
    (block,) = re.findall(r"```python\n(.*?)```", (DOCS / "tape_in_100_lines.md").read_text(), re.DOTALL)
    assert len(block.splitlines()) <= 100
    exec(compile(block, "tape_in_100_lines.md", "exec"), {})


def test_the_program_about_vectorised_maps_runs():
    (block,) = re.findall(r"```python\n(.*?)```", (DOCS / "vectorised_maps.md").read_text(), re.DOTALL)
    exec(compile(block, "vectorised_maps.md", "exec"), {})


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


@pytest.mark.parametrize("name", ["first_gradient"])
def test_the_first_pages_run(name):
    for block in re.findall(r"```python\n(.*?)```", (DOCS / "start" / f"{name}.md").read_text(), re.DOTALL):
        run_in_order(name, [block])


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
