"""Every public function, class and constant-like type says what it is, in one sentence and with examples that run.

An example shows what the interpreter prints; the last digits of numbers may differ between processors. Functions that
are declared in tables show the value as nested lists.
"""

from __future__ import annotations

import contextlib
import doctest
import enum
import inspect
import io
import math
import re
import sys
import traceback
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tapeflow as tf
from tapeflow._src.namespace import find_public
from tools.surface import public_definitions

# Definitions by identity, with the first of their paths; raw operations and NumPy's own types aside.
documented: dict[int, tuple[str, Any]] = {}
for _path, _value in public_definitions():
    if callable(_value) and not _path.startswith("raw_ops.") and getattr(_value, "__module__", "") != "numpy":
        documented.setdefault(id(_value), (_path, _value))
BY_PATH = dict(sorted(documented.values()))

# What need not show an example: it only exists to be caught, or to be told apart.
without_example = {path for path, value in BY_PATH.items() if isinstance(value, type) and issubclass(value, Exception)}

PARSER = doctest.DocTestParser()


def docstring(value: Any) -> str:
    return value.__doc__ or ""


def examples_of(value: Any) -> list[list[doctest.Example]]:
    """The examples in the docstring of a definition and, for a class, of each of its own public methods."""
    texts = [docstring(value)]
    if isinstance(value, type) and not issubclass(value, enum.Enum):
        members = [member for name, member in vars(value).items() if not name.startswith("_")]
        texts += [docstring(member) for member in members if callable(member) or isinstance(member, property)]
    return [found for found in map(PARSER.get_examples, texts) if found]


def test_every_definition_has_a_sentence_and_an_example():
    no_sentence = [p for p, value in BY_PATH.items() if not docstring(value).strip() or not first_sentence(value)]
    no_example = [p for p, value in BY_PATH.items() if p not in without_example and not examples_of(value)]
    missing = {*no_sentence, *no_example}
    assert not missing, (
        f"{len(missing)} public names lack a sentence or a `>>>` example in their docstring:\n"
        + "\n".join(f"tf.{path}{' (no sentence)' if path in no_sentence else ''}" for path in sorted(missing))
    )


def first_sentence(value: Any) -> bool:
    """The first paragraph ends like a sentence."""
    paragraph = docstring(value).strip().partition("\n\n")[0]
    return bool(paragraph) and paragraph.rstrip().endswith((".", ":", "!")) and not paragraph.startswith(">>>")


MOST_USED = (Path(__file__).parent / "api" / "most_used.txt").read_text().split()


@pytest.mark.parametrize("path", MOST_USED)
def test_the_most_used_functions_describe_their_arguments_and_result(path):
    function = find_public(path)
    sections = dict(
        re.findall(r"^(Args|Returns|Gradient):\n((?: +.*\n)+)", f"{inspect.getdoc(function)}\n", re.MULTILINE)
    )
    described = re.findall(r"^ {2,4}(\w+): \S", sections.get("Args", ""), re.MULTILINE)
    assert described == [*inspect.signature(function).parameters]
    assert sections["Returns"].strip().endswith(".")
    assert ">>>" in function.__doc__


# --------------------------------------------------------------------------------------------------- running them

WITH_EXAMPLES = [path for path, value in BY_PATH.items() if examples_of(value)]


@pytest.fixture
def untouched_process(monkeypatch, tmp_path):
    """Examples find default settings and an empty folder, and leave the settings and the imports as they were."""
    config = sys.modules["tapeflow._src.config"]
    monkeypatch.setattr(config, "_settings", config._Settings())
    config.forget_devices_used()
    monkeypatch.setattr(sys, "meta_path", [*sys.meta_path])
    monkeypatch.chdir(tmp_path)
    level = tf.get_logger().level
    yield
    tf.get_logger().setLevel(level)
    for name in [name for name in sys.modules if name.partition(".")[0] == "tensorflow"]:
        del sys.modules[name]


@pytest.mark.parametrize("path", WITH_EXAMPLES)
@pytest.mark.usefixtures("untouched_process")
def test_examples(path):
    for examples in examples_of(BY_PATH[path]):
        scope: dict[str, Any] = {"tf": tf, "np": np}
        for example in examples:
            printed, result, error = run(example, scope)
            if not matches(example, printed, result, error, path.startswith(DECLARED_IN_TABLES)):
                gives = described(error) if error else printed + shown(result)
                pytest.fail(f"tf.{path}: >>> {example.source}gives\n{gives}\nbut says\n{example.want}", pytrace=False)


# Their docs come from tables, which write results as nested lists.
DECLARED_IN_TABLES = ("compat.v1.", "data.experimental.", "experimental.numpy.")


def run(example: doctest.Example, scope: dict[str, Any]) -> tuple[str, Any, Exception | None]:
    """Executes one example, as at a prompt; gives what it printed, the last value that the prompt shows, the error."""
    values: list[Any] = []
    output = io.StringIO()
    hook, sys.displayhook = sys.displayhook, values.append
    error = None
    try:
        with contextlib.redirect_stdout(output):
            exec(compile(example.source, "<example>", "single"), scope)
    except Exception as raised:
        error = raised
    finally:
        sys.displayhook = hook
    return output.getvalue(), values[-1] if values else None, error


def shown(result: Any) -> str:
    return "" if result is None else f"{result!r}\n"


def described(error: Exception) -> str:
    return traceback.format_exception_only(error)[-1]


def matches(example: doctest.Example, printed: str, result: Any, error: Exception | None, in_table: bool) -> bool:
    if error is not None or example.exc_msg is not None:
        if error is None or example.exc_msg is None:
            return False
        expected, got = example.exc_msg, described(error).rpartition("tapeflow.")[2]
        return OUTPUT.check_output(expected, got.rpartition("errors.")[2], SPACES) or OUTPUT.check_output(
            expected, described(error), SPACES
        )
    if same_text(example.want, printed + shown(result)):
        return True
    if not in_table:
        return False
    try:
        expected = eval(example.want.strip(), {"nan": math.nan, "inf": math.inf, "array": np.array, "tf": tf})
    except Exception:
        return False
    return same(nested(result), expected)


OUTPUT = doctest.OutputChecker()
SPACES = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
NUMBER = re.compile(r"(?<![A-Za-z_])[-+]?(?:\d+\.?\d*|\.\d+)(?:e[-+]?\d+)?")


def same_text(want: str, got: str) -> bool:
    """Whether the texts are equal but for spaces, `...` and the last digits of numbers."""
    if OUTPUT.check_output(want, got, SPACES):
        return True
    numbers, expected = NUMBER.findall(got), NUMBER.findall(want)
    skeletons = ["".join(NUMBER.sub("#", text).split()) for text in (want, got)]
    return skeletons[0] == skeletons[1] and np.allclose([*map(float, numbers)], [*map(float, expected)], 1e-5, 1e-6)


def nested(value: Any) -> Any:
    """Tensors as nested lists; containers as lists of such."""
    if isinstance(value, Mapping):
        return {key: nested(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [nested(item) for item in value]
    if isinstance(value, str | bytes | bool | int | float | complex | None):
        return value
    if isinstance(value, tf.IndexedSlices):
        return nested(tf.convert_to_tensor(value))
    for convert in ("to_list", "as_list"):
        if hasattr(value, convert):
            return getattr(value, convert)()
    if hasattr(value, "numpy"):
        value = value.numpy()
    return value.tolist() if isinstance(value, np.ndarray | np.generic) else value


def same(got: Any, expected: Any) -> bool:
    if isinstance(expected, Mapping):
        return isinstance(got, Mapping) and [*got] == [*expected] and all(same(got[k], expected[k]) for k in got)
    if isinstance(expected, list | tuple):
        return isinstance(got, list) and len(got) == len(expected) and all(map(same, got, expected))
    if isinstance(expected, bool | str | bytes) or isinstance(got, bool | str | bytes):
        if isinstance(expected, str) and isinstance(got, bytes):
            got = got.decode()
        return type(got) is type(expected) and got == expected
    if isinstance(expected, int | float | complex) and isinstance(got, int | float | complex):
        return bool(np.isclose(got, expected, rtol=1e-5, atol=1e-5, equal_nan=True))
    return bool(got == expected)
