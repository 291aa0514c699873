"""The documents: code blocks that say they run do run."""

import re
from pathlib import Path

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


def test_links_between_documents_exist():
    for document in [*DOCS.glob("*.md"), DOCS.parent / "README.md"]:
        for target in re.findall(r"\]\(([^)#]+\.md)\)", document.read_text()):
            assert (document.parent / target).exists(), f"{document.name} -> {target}"
