"""Writes the API reference as Markdown, one page for each namespace, from the registry and the docstrings.

Also the source files that it links to, as pages with a place for each line.
"""

from __future__ import annotations

import html
import inspect
import re
import sys
from collections import defaultdict
from functools import cache
from pathlib import Path
from typing import Any

from tools.stubs import declaration
from tools.surface import public_definitions, signature

ROOT = Path(__file__).parents[1]
_GRADIENT = {
    "rule": "by a rule made of the same operations: to any order, in reverse and forward mode",
    "none": "none: the gradient stops here",
    "missing": "not implemented: asking for it is an error",
}
_SECTIONS = ("Args:", "Returns:", "Raises:", "Gradient:", "Yields:", "Attributes:")
_KINDS = {
    "floating": "bfloat16 float16 float32 float64",
    "complex": "complex64 complex128",
    "integer": "int8 int16 int32 int64 uint8 uint16 uint32 uint64",
    "signed integer": "int8 int16 int32 int64",
    "quantized": "qint8 quint8 qint16 quint16 qint32",
    "float8": "float8_e5m2 float8_e4m3fn float8_e4m3fnuz float8_e4m3b11fnuz float8_e5m2fnuz",
}
_LIBRARIES = {"numpy": "NumPy", "torch": "PyTorch", "jax": "JAX"}
_PAGE = """<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{path}</title>
<meta name="viewport" content="width=device-width"><style>
body {{ font: 13px/1.5 monospace; margin: 1em; overflow-wrap: anywhere }} p {{ white-space: pre-wrap; margin: 0 }}
p:target {{ background: #fe9 }} a {{ color: #888; text-decoration: none }}</style></head><body><h1>{path}</h1>
{lines}
</body></html>
"""


def entries() -> dict[str, list[tuple[str, Any]]]:
    """By namespace: the public names in it, without raw operations, TensorFlow 1 and inner names."""
    found: dict[str, list[tuple[str, Any]]] = defaultdict(list)
    for path, value in public_definitions():
        if not path.startswith(("raw_ops", "compat.v1", "__")) and not inspect.ismodule(value):
            found[path.rpartition(".")[0]].append((path, value))
    return found


def value_at(path: str) -> Any:
    """The object of a public path; None if there is none."""
    import tapeflow as tf

    value: Any = tf
    for name in path.split("."):
        value = getattr(value, name, None)
    return value


@cache
def _facts() -> dict[int, tuple[str, Any]]:
    """By identity of the function: the operation's name and what its entry says."""
    from tapeflow._src import primitives

    return {id(function): (name, facts) for name, function, _, _, facts in primitives._rows}


@cache
def _names_elsewhere() -> dict[int, list[str]]:
    """By identity of the function: its names in other libraries."""
    rows = (line.split(": ") for line in (ROOT / "tools" / "names_elsewhere.txt").read_text().splitlines()[1:])
    return {id(value_at(path)): names.split(", ") for path, names in rows}


@cache
def _differences() -> dict[int, list[str]]:
    """By identity of the function: what docs/differences.md says of it."""
    found: dict[int, list[str]] = defaultdict(list)
    for line in (ROOT / "docs" / "differences.md").read_text(encoding="utf-8").splitlines():
        cells = [cell.strip() for cell in line.strip("|").split(" | ")]
        if len(cells) < 4 or not line.startswith("| "):
            continue
        what, theirs, ours = cells[:3]
        for name in re.findall(r"`([\w.]+)`", what):
            value = value_at(name.removeprefix("tf.")) or value_at(f"math.{name}")
            text = f"{what}. TensorFlow: {theirs}. Tapeflow: {ours}."
            if callable(value) and text not in found[id(value)]:
                found[id(value)].append(text)
    return found


@cache
def _entry_places() -> dict[str, tuple[str, int]]:
    """By name of an operation: the file and line of its entry in the core."""
    found: dict[str, tuple[str, int]] = {}
    for file in sorted((ROOT / "core").rglob("*.cc")):
        for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), 1):
            for name in re.findall(r'(?:\.name = |\(|\{|, |^ +)"([A-Z]\w+)"', line):
                found.setdefault(name, (file.relative_to(ROOT).as_posix(), number))
    return found


def _place(value: Any) -> tuple[str, int] | None:
    """The file and line where a public object is defined."""
    if id(value) in _facts():
        return _entry_places().get(_facts()[id(value)][0])
    try:
        function = inspect.unwrap(getattr(value, "__wrapped__", value))
        file = Path(inspect.getsourcefile(function) or "").resolve()
        return file.relative_to(ROOT).as_posix(), inspect.getsourcelines(function)[1]
    except (TypeError, ValueError, OSError):
        return None


def dtype_words(names: list[str]) -> str:
    """Names of dtypes, short.

    >>> dtype_words(["float16", "float32", "float64", "bfloat16", "bool"])
    'floating, bool'
    """
    left = list(names)
    words = []
    for word, members in _KINDS.items():
        group = members.split()
        if all(name in left for name in group):
            words.append(word)
            left = [name for name in left if name not in group]
    return "all" if len(words) == len(_KINDS) - 1 else ", ".join([*words, *left])


def _dtypes(value: Any, facts: dict[str, Any]) -> str:
    """The dtypes that each tensor argument takes."""
    names = [name for name, kind in zip(inspect.signature(value).parameters, facts["kinds"]) if "tensor" in kind]
    names_by_words: dict[str, list[str]] = defaultdict(list)
    for name, found in zip(names, facts["dtypes"]):
        names_by_words[dtype_words(found)].append(f"`{name}`")
    return "; ".join(f"{', '.join(names)} {words}" for words, names in names_by_words.items())


def _elsewhere(names: list[str]) -> str:
    return ", ".join(f"{_LIBRARIES[name.partition('.')[0]]} `{name}`" for name in names)


def _about(value: Any, doc: str) -> list[tuple[str, str]]:
    """What is said behind the text of an entry."""
    rows = []
    if id(value) in _facts():
        name, facts = _facts()[id(value)]
        if facts.get("gradient") in _GRADIENT:
            rows.append(("Derivatives", _GRADIENT[facts["gradient"]]))
        rows += [("Dtypes", _dtypes(value, facts)), ("Operation", f"`tf.raw_ops.{name}`")]
    elif "Gradient:" in doc:
        rows.append(("Derivatives", "those of the operations it is made of: to any order, in reverse and forward mode"))
    rows += [("Elsewhere", _elsewhere(names)) for names in [_names_elsewhere().get(id(value))] if names]
    rows += [("Differs", text) for text in _differences().get(id(value), [])]
    if place := _place(value):
        file, line = place
        rows.append(("Source", f'<a href="../source/{file}.html#L{line}">{file}, line {line}</a>'))
    return [(name, text) for name, text in rows if text]


def _methods(value: type) -> list[str]:
    """The public methods of a class, each with its parameters and the first sentence of its text."""
    lines = []
    for name in dir(value):
        owner = next((cls for cls in value.__mro__ if name in vars(cls)), value)
        member, function = inspect.getattr_static(value, name), getattr(value, name, None)
        text = inspect.cleandoc(getattr(function, "__doc__", None) or "").partition("\n\n")[0].replace("\n", " ")
        ours = owner.__module__.startswith(("tapeflow", "tensorflow"))
        if name.startswith("_") or not text or not ours or not (callable(function) or isinstance(member, property)):
            continue
        lines.append(f"- `{name}{signature(function) if callable(function) else ''}`: {text}")
    return ["", "**Methods**", "", *lines, ""] if lines else []


def _entry(path: str, value: Any) -> list[str]:
    lines = [f"## tf.{path}", ""]
    if names := _names_elsewhere().get(id(value)):
        lines += [f"```{{index}} {', '.join(names)}", "```", ""]
    if inspect.isclass(value):
        lines += ["```python", f"tf.{path}{signature(value)}", "```", ""]
    elif callable(value):
        lines += ["```python", _in_lines(f"tf.{declaration(path, value)}"), "```", ""]
    doc = inspect.cleandoc(getattr(value, "__doc__", None) or "") if callable(value) else ""
    lines += _markdown(doc)
    if inspect.isclass(value) and not issubclass(value, BaseException):
        lines += _methods(value)
    if rows := _about(value, doc):
        lines += ["**Facts**", "", *(f"- {name}: {text}" for name, text in rows), ""]
    return lines


def _in_lines(text: str) -> str:
    """A declaration, one parameter a line if it is long.

    >>> _in_lines("f(x: int) -> int")
    'f(x: int) -> int'
    """
    if len(text) <= 80 or "(" not in text:
        return text
    head, _, rest = text.partition("(")
    inside, _, result = rest.rpartition(") -> ")
    parts = re.split(r", (?![^\[(]*[\])])", inside)
    return "\n".join([f"{head}(", *(f"    {part}," for part in parts), f") -> {result}"])


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
        if not in_example and line.strip() in _SECTIONS:
            text = f"\n**{line.strip()[:-1]}**\n"
        elif not in_example and re.match(r"(  |    )[*\w]+( \([^)]*\))?: ", line):
            name, _, about = line.strip().partition(": ")
            text = f"- `{name}`: {about}"
        lines.append(text.lstrip() if not in_example else text)
    return [*lines, *(["```"] if in_example else []), ""]


def write(folder: Path) -> None:
    """Writes one page for each namespace and an index into `folder`."""
    folder.mkdir(parents=True, exist_ok=True)
    for old in folder.glob("*.md"):
        old.unlink()
    pages = []
    for namespace, members in sorted(entries().items()):
        page = namespace.replace(".", "_") or "tf"
        title = f"tf.{namespace}" if namespace else "tf"
        lines = [f"# {title}", ""]
        for path, value in members:
            lines += _entry(path, value)
        (folder / f"{page}.md").write_text("\n".join(lines), encoding="utf-8")
        pages.append(page)
    index = ["# API reference", "", "One page for each namespace. Names, signatures and errors are TensorFlow's.", ""]
    index += [
        "The search also knows the names of NumPy, PyTorch and JAX: `torch.cat`, `jax.vmap`, `numpy.linalg.inv`.",
        "",
    ]
    index += ["```{toctree}", ":maxdepth: 1", "", *pages, "```", ""]
    (folder / "index.md").write_text("\n".join(index), encoding="utf-8")


def write_sources(folder: Path) -> None:
    """Writes the source files of all entries as pages, with a place for each line."""
    values = [value for members in entries().values() for _, value in members]
    for path in sorted({place[0] for place in map(_place, values) if place}):
        text = (ROOT / path).read_text(encoding="utf-8").splitlines()
        lines = "\n".join(
            f'<p id="L{i}"><a href="#L{i}">{i:>4}</a>  {html.escape(line)}</p>' for i, line in enumerate(text, 1)
        )
        target = folder / f"{path}.html"
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(_PAGE.format(path=path, lines=lines), encoding="utf-8")


if __name__ == "__main__":
    write(Path(sys.argv[1]))
