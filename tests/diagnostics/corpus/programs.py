"""Reads the corpus: text files of programs, and what a doctor must say about each.

A program begins with a line `#: name kind cause`; a healthy one with `#: name healthy`. `var=w` in place of the cause
says which variable the finding must name. The line that must be named has
the comment `# <- here` (several lines may have it: any of them). `#@ OP: a || b` makes one program per alternative,
which takes the place of `{OP}`. Before each program stands a line that imports numpy as np and tensorflow as tf.
"""

from __future__ import annotations

import itertools
import re
from pathlib import Path
from typing import NamedTuple

FOLDER = Path(__file__).parent
PRELUDE = "import numpy as np, tensorflow as tf"


class Program(NamedTuple):
    family: str
    name: str
    kinds: tuple[str, ...]
    cause: str
    text: str
    lines: tuple[int, ...]

    @property
    def variable(self) -> str | None:
        """A part of the name of the variable that must be named, if one is said."""
        return self.cause.removeprefix("var=") if self.cause.startswith("var=") else None

    @property
    def file(self) -> str:
        return f"/corpus/{self.family}/{self.name}.py"


def read_family(path: Path) -> list[Program]:
    """All programs of a file, with their alternatives."""
    programs = []
    for part in re.split(r"^#: ", path.read_text(), flags=re.MULTILINE)[1:]:
        header, _, body = part.partition("\n")
        name, kinds, *cause = header.split()
        choices = re.findall(r"^#@ (\w+): (.*)\n", body, flags=re.MULTILINE)
        body = re.sub(r"^#@ .*\n", "", body, flags=re.MULTILINE)
        names = [key for key, _ in choices]
        for number, chosen in enumerate(itertools.product(*(text.split(" || ") for _, text in choices))):
            text = body
            for key, value in zip(names, chosen):
                text = text.replace("{" + key + "}", value)
            text = f"{PRELUDE}\n{text}"
            marked = tuple(i for i, line in enumerate(text.splitlines(), 1) if "# <- here" in line)
            suffix = f"_{number}" if choices else ""
            programs.append(Program(path.stem, name + suffix, tuple(kinds.split("|")), " ".join(cause), text, marked))
    return programs


def families() -> list[Path]:
    return sorted(FOLDER.glob("*.txt"))
