"""Writes the API reference as Markdown, one page for each namespace, from the registry and the docstrings."""

from __future__ import annotations

import inspect
import sys
from collections import defaultdict
from pathlib import Path
from typing import Any

from tools.surface import public_definitions, signature

ROOT = Path(__file__).parents[1]
_GRADIENT = {
    "rule": "differentiable, to any order",
    "none": "none: the gradient stops here",
    "missing": "not implemented: asking for it is an error",
}


def entries() -> dict[str, list[tuple[str, Any]]]:
    """By namespace: the public names in it, without raw operations, TensorFlow 1 and inner names."""
    found: dict[str, list[tuple[str, Any]]] = defaultdict(list)
    for path, value in public_definitions():
        if not path.startswith(("raw_ops", "compat.v1", "__")) and not inspect.ismodule(value):
            found[path.rpartition(".")[0]].append((path, value))
    return found


def _facts() -> dict[int, tuple[str, Any]]:
    """By identity of the function: the operation's name and what its entry says."""
    from tapeflow._src import primitives

    return {id(function): (name, facts) for name, function, _, _, facts in primitives._rows}


def _source(value: Any) -> str:
    try:
        function = inspect.unwrap(getattr(value, "__wrapped__", value))
        file = Path(inspect.getsourcefile(function) or "").resolve()
        return f"`{file.relative_to(ROOT)}`"
    except (TypeError, ValueError, OSError):
        return ""


def _entry(path: str, value: Any, facts: dict[int, tuple[str, Any]]) -> list[str]:
    lines = [f"## tf.{path}", ""]
    if callable(value):
        lines += ["```python", f"tf.{path}{signature(value)}", "```", ""]
    doc = inspect.cleandoc(getattr(value, "__doc__", None) or "") if callable(value) else ""
    lines += _markdown(doc)
    if id(value) in facts:
        name, about = facts[id(value)]
        gradient = about.get("gradient") if isinstance(about, dict) else None
        lines += [
            f"*Operation* `{name}`." + (f" *Gradient*: {_GRADIENT[gradient]}." if gradient in _GRADIENT else ""),
            "",
        ]
    elif source := _source(value):
        lines += [f"*Defined in* {source}.", ""]
    return lines


def _markdown(doc: str) -> list[str]:
    """A docstring as Markdown: examples become code blocks, sections of arguments lists."""
    lines: list[str] = []
    in_example = False
    for line in doc.splitlines():
        starts = line.lstrip().startswith(">>>")
        if starts and not in_example:
            lines += ["", "```pycon"]
            in_example = True
        elif in_example and not line.strip():
            lines += ["```", ""]
            in_example = False
            continue
        text = line.strip() if in_example else line
        if not in_example and line.strip() in ("Args:", "Returns:", "Raises:", "Gradient:"):
            text = f"\n**{line.strip()[:-1]}**\n"
        elif not in_example and line.startswith("  ") and ":" in line and not line.startswith("    "):
            text = f"- {line.strip()}"
        lines.append(text.lstrip() if not in_example else text)
    return [*lines, *(["```"] if in_example else []), ""]


def write(folder: Path) -> None:
    """Writes one page for each namespace and an index into `folder`."""
    folder.mkdir(parents=True, exist_ok=True)
    for old in folder.glob("*.md"):
        old.unlink()
    facts = _facts()
    pages = []
    for namespace, members in sorted(entries().items()):
        page = namespace.replace(".", "_") or "tf"
        title = f"tf.{namespace}" if namespace else "tf"
        lines = [f"# {title}", ""]
        for path, value in members:
            lines += _entry(path, value, facts)
        (folder / f"{page}.md").write_text("\n".join(lines), encoding="utf-8")
        pages.append(page)
    index = ["# API reference", "", "One page for each namespace. Names, signatures and errors are TensorFlow's.", ""]
    index += ["```{toctree}", ":maxdepth: 1", "", *pages, "```", ""]
    (folder / "index.md").write_text("\n".join(index), encoding="utf-8")


if __name__ == "__main__":
    write(Path(sys.argv[1]))
