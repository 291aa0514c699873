"""Assertions about Python values that TensorFlow's test case has beside those of `unittest`."""

from __future__ import annotations

import atexit
import contextlib
import dataclasses
import json
import os
import re
import shutil
import subprocess
import tempfile
import unittest
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any
from urllib.parse import parse_qsl, urlsplit


class Assertions(unittest.TestCase):
    """A test case with more assertions; it knows no tensors."""

    # ---- sizes and bounds

    def assertEmpty(self, container: Any, msg: str | None = None) -> None:  # noqa: N802
        """Fails unless `container` has no elements."""
        if len(container):
            self.fail(self._formatMessage(msg, f"{container!r} is not empty"))

    def assertNotEmpty(self, container: Any, msg: str | None = None) -> None:  # noqa: N802
        """Fails unless `container` has elements."""
        if not len(container):
            self.fail(self._formatMessage(msg, f"{container!r} is empty"))

    def assertLen(self, container: Any, expected_len: int, msg: str | None = None) -> None:  # noqa: N802
        """Fails unless `container` has so many elements."""
        if len(container) != expected_len:
            self.fail(
                self._formatMessage(msg, f"{container!r} has length of {len(container)}, expected {expected_len}.")
            )

    def assertBetween(self, value: Any, minv: Any, maxv: Any, msg: str | None = None) -> None:  # noqa: N802
        """Fails unless minv <= value <= maxv."""
        if not minv <= value <= maxv:
            self.fail(self._formatMessage(msg, f'"{value!r}" unexpectedly not between "{minv!r}" and "{maxv!r}"'))

    # ---- order and membership

    def assertSequenceStartsWith(self, prefix: Any, whole: Any, msg: str | None = None) -> None:  # noqa: N802
        """Fails unless `whole` begins with the elements of `prefix`."""
        prefix = list(prefix)
        self.assertNotEmpty(prefix, "Prefix length must be at least 1.")
        self.assertSequenceEqual(prefix, list(whole)[: len(prefix)], msg)

    def assertStartsWith(self, actual: Any, expected_start: Any, msg: str | None = None) -> None:  # noqa: N802
        """Fails unless a string begins with another."""
        if not actual.startswith(expected_start):
            self.fail(self._formatMessage(msg, f"{actual!r} does not start with {expected_start!r}"))

    def assertNotStartsWith(self, actual: Any, unexpected_start: Any, msg: str | None = None) -> None:  # noqa: N802
        """Fails if a string begins with another."""
        if actual.startswith(unexpected_start):
            self.fail(self._formatMessage(msg, f"{actual!r} does start with {unexpected_start!r}"))

    def assertEndsWith(self, actual: Any, expected_end: Any, msg: str | None = None) -> None:  # noqa: N802
        """Fails unless a string ends with another."""
        if not actual.endswith(expected_end):
            self.fail(self._formatMessage(msg, f"{actual!r} does not end with {expected_end!r}"))

    def assertNotEndsWith(self, actual: Any, unexpected_end: Any, msg: str | None = None) -> None:  # noqa: N802
        """Fails if a string ends with another."""
        if actual.endswith(unexpected_end):
            self.fail(self._formatMessage(msg, f"{actual!r} does end with {unexpected_end!r}"))

    def assertItemsEqual(self, first: Any, second: Any, msg: str | None = None) -> None:  # noqa: N802
        """Fails unless both have the same elements, in any order."""
        self.assertCountEqual(first, second, msg)

    def assertSameElements(self, expected_seq: Any, actual_seq: Any, msg: str | None = None) -> None:  # noqa: N802
        """Fails unless both have the same elements, in any order and number."""
        if isinstance(expected_seq, str | bytes) or isinstance(actual_seq, str | bytes):
            self.fail("assertSameElements takes lists or sets of elements, not strings")
        self.assertCountEqual(list(dict.fromkeys(expected_seq)), list(dict.fromkeys(actual_seq)), msg)

    def assertContainsSubset(self, expected_subset: Any, actual_set: Any, msg: str | None = None) -> None:  # noqa: N802
        """Fails unless all expected elements are there."""
        missing = set(expected_subset) - set(actual_set)
        if missing:
            what = f"Missing elements {missing}\nExpected: {expected_subset}\nActual: {actual_set}"
            self.fail(self._formatMessage(msg, what))

    def assertNoCommonElements(self, expected_seq: Any, actual_seq: Any, msg: str | None = None) -> None:  # noqa: N802
        """Fails if both have an element in common."""
        common = set(expected_seq) & set(actual_seq)
        if common:
            self.fail(self._formatMessage(msg, f"Common elements {common}"))

    def assertContainsSubsequence(self, container: Any, subsequence: Any, msg: str | None = None) -> None:  # noqa: N802
        """Fails unless the elements appear in this order, with others between."""
        rest = iter(container)
        if not all(any(x == wanted for x in rest) for wanted in subsequence):
            self.fail(self._formatMessage(msg, f"{subsequence} not a subsequence of {container}."))

    def assertContainsExactSubsequence(  # noqa: N802
        self, container: Any, subsequence: Any, msg: str | None = None
    ) -> None:
        """Fails unless the elements appear one directly after the other."""
        whole, part = list(container), list(subsequence)
        if not any(whole[i : i + len(part)] == part for i in range(len(whole) - len(part) + 1)):
            self.fail(self._formatMessage(msg, f"{part} not a subsequence of {whole}."))

    def assertContainsInOrder(self, strings: Any, target: str, msg: str | None = None) -> None:  # noqa: N802
        """Fails unless the strings appear in `target` one after the other."""
        at = 0
        for string in [strings] if isinstance(strings, str) else strings:
            found = target.find(string, at)
            if found < 0:
                self.fail(self._formatMessage(msg, f"Did not find {string!r} after position {at} in {target!r}"))
            at = found + len(string)

    def assertTotallyOrdered(self, *groups: Any, **kwargs: Any) -> None:  # noqa: N802
        """Fails unless elements of a group are equal, and greater than those of the groups before."""
        msg = kwargs.get("msg")
        for i, group in enumerate(groups):
            for x in group:
                for j, other in enumerate(groups):
                    for y in other:
                        facts = (x < y, x <= y, x == y, x != y, x > y, x >= y)
                        a, b = i, j
                        if facts != (a < b, a <= b, a == b, a != b, a > b, a >= b):
                            self.fail(self._formatMessage(msg, f"{x!r} and {y!r} are not ordered as expected"))

    # ---- numbers

    def assertSequenceAlmostEqual(  # noqa: N802
        self, expected_seq: Any, actual_seq: Any, places: int | None = None, msg: str | None = None, delta: Any = None
    ) -> None:
        """Fails unless the numbers of both are almost equal."""
        self.assertLen(list(actual_seq), len(list(expected_seq)), msg)
        for x, y in zip(expected_seq, actual_seq):
            self.assertAlmostEqual(x, y, places, msg, delta)

    def assertDictAlmostEqual(  # noqa: N802
        self, a: Any, b: Any, places: int | None = None, msg: str | None = None, delta: Any = None
    ) -> None:
        """Fails unless both have the same keys, and numbers that are almost equal."""
        self.assertSameElements(a, b, msg)
        for key in a:
            self.assertAlmostEqual(a[key], b[key], places, msg, delta)

    # ---- structures

    def assertSameStructure(  # noqa: N802
        self, a: Any, b: Any, aname: str = "a", bname: str = "b", msg: str | None = None
    ) -> None:
        """Fails unless nested dictionaries and lists are equal; says where they differ."""
        self._same_structure(a, b, aname, bname, msg)

    def _same_structure(self, a: Any, b: Any, aname: str, bname: str, msg: str | None) -> None:
        if isinstance(a, Mapping) and isinstance(b, Mapping):
            self.assertSameElements(a, b, msg)
            for key in a:
                self._same_structure(a[key], b[key], f"{aname}[{key!r}]", f"{bname}[{key!r}]", msg)
        elif isinstance(a, Sequence) and isinstance(b, Sequence) and not isinstance(a, str | bytes):
            if len(a) != len(b):
                self.fail(self._formatMessage(msg, f"{aname} has length {len(a)} but {bname} has length {len(b)}"))
            for i, (x, y) in enumerate(zip(a, b)):
                self._same_structure(x, y, f"{aname}[{i}]", f"{bname}[{i}]", msg)
        elif a != b:
            self.fail(self._formatMessage(msg, f"{aname} is {a!r} but {bname} is {b!r}"))

    def assertMappingEqual(  # noqa: N802
        self,
        a: Any,
        b: Any,
        msg: str | None = None,
        mapping_type: Any = Mapping,
        check_values_equality: Callable[[Any, Any], bool] = lambda x, y: x == y,
    ) -> None:
        """Fails unless two mappings have the same keys and equal values."""
        self.assertIsInstance(a, mapping_type, msg)
        self.assertIsInstance(b, mapping_type, msg)
        self.assertSameElements(a, b, msg)
        for key in a:
            if not check_values_equality(a[key], b[key]):
                self.fail(self._formatMessage(msg, f"the values of {key!r} differ: {a[key]!r} and {b[key]!r}"))

    def assertDataclassEqual(self, first: Any, second: Any, msg: str | None = None) -> None:  # noqa: N802
        """Fails unless two dataclasses of one type have equal fields."""
        self.assertTrue(dataclasses.is_dataclass(first), "First argument is not a dataclass instance.")
        self.assertIs(type(first), type(second), msg)
        for field in dataclasses.fields(first):
            self.assertEqual(getattr(first, field.name), getattr(second, field.name), msg)

    def assertJsonEqual(self, first: str, second: str, msg: str | None = None) -> None:  # noqa: N802
        """Fails unless two JSON texts mean the same."""
        self.assertSameStructure(json.loads(first), json.loads(second), msg=msg)

    def assertUrlEqual(self, a: str, b: str, msg: str | None = None) -> None:  # noqa: N802
        """Fails unless two addresses mean the same, whatever the order of their queries."""
        one, other = urlsplit(a), urlsplit(b)
        queries = [sorted(parse_qsl(url.query, True)) for url in (one, other)]
        self.assertEqual((*one[:3], queries[0], one.fragment), (*other[:3], queries[1], other.fragment), msg)

    def assertIsSubclass(self, cls: type, superclass: type, msg: str | None = None) -> None:  # noqa: N802
        """Fails unless a class derives from another."""
        if not issubclass(cls, superclass):
            self.fail(self._formatMessage(msg, f"{cls} not subclass of {superclass}"))

    def assertNotIsSubclass(self, cls: type, superclass: type, msg: str | None = None) -> None:  # noqa: N802
        """Fails if a class derives from another."""
        if issubclass(cls, superclass):
            self.fail(self._formatMessage(msg, f"{cls} is subclass of {superclass}"))

    # ---- texts, errors, programs

    def assertRegexMatch(self, actual_str: Any, regexes: Any, message: str | None = None) -> None:  # noqa: N802
        """Fails unless one of the patterns is found."""
        if isinstance(regexes, str | bytes):
            self.fail("regexes is string or bytes; use assertRegex instead.")
        if not any(re.search(pattern, actual_str, re.M) for pattern in regexes):
            self.fail(self._formatMessage(message, f"{actual_str!r} matches none of {list(regexes)}"))

    def assertRaisesWithLiteralMatch(  # noqa: N802
        self,
        expected_exception: Any,
        expected_exception_message: str,
        callable_obj: Callable[..., Any] | None = None,
        *args: Any,
        **kwargs: Any,
    ) -> Any:
        """Fails unless an error with exactly this text is raised."""
        context = self.assertRaisesRegex(expected_exception, f"^{re.escape(expected_exception_message)}$")
        if callable_obj is None:
            return context
        with context:
            callable_obj(*args, **kwargs)
        return None

    def assertCommandSucceeds(  # noqa: N802
        self, command: Any, regexes: Any = (b"",), env: Any = None, close_fds: bool = True, msg: str | None = None
    ) -> None:
        """Fails unless a command ends with 0 and prints what one of the patterns finds."""
        self._check_command(command, regexes, env, msg, succeeds=True)

    def assertCommandFails(  # noqa: N802
        self, command: Any, regexes: Any, env: Any = None, close_fds: bool = True, msg: str | None = None
    ) -> None:
        """Fails unless a command ends with an error and prints what one of the patterns finds."""
        self._check_command(command, regexes, env, msg, succeeds=False)

    def _check_command(self, command: Any, regexes: Any, env: Any, msg: str | None, succeeds: bool) -> None:
        done = subprocess.run(
            command, shell=isinstance(command, str), env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
        )
        if (done.returncode == 0) != succeeds:
            self.fail(self._formatMessage(msg, f"{command} ended with {done.returncode}: {done.stdout!r}"))
        self.assertRegexMatch(done.stdout, [r.encode() if isinstance(r, str) else r for r in regexes], msg)

    # ---- files

    def get_temp_dir(self) -> str:
        """A folder of this test's own. It stays until the process ends, as clean-ups of tests may read it."""
        if not getattr(self, "_folder", None):
            self._folder = tempfile.mkdtemp(prefix=f"{type(self).__name__}_", dir=os.environ.get("TEST_TMPDIR"))
            atexit.register(shutil.rmtree, self._folder, ignore_errors=True)
        return self._folder

    def create_tempdir(self, name: str | None = None, cleanup: Any = None) -> Any:
        """A folder below the test's own, with `full_path`."""
        path = os.path.join(self.get_temp_dir(), name) if name else tempfile.mkdtemp(dir=self.get_temp_dir())
        os.makedirs(path, exist_ok=True)
        return _Path(path)

    def create_tempfile(
        self,
        file_path: str | None = None,
        content: Any = None,
        mode: str = "w",
        encoding: str = "utf8",
        errors: str = "strict",
        cleanup: Any = None,
    ) -> Any:
        """A file below the test's own folder, with `full_path`, `read_text` and `write_text`."""
        path = (
            os.path.join(self.get_temp_dir(), file_path) if file_path else tempfile.mkstemp(dir=self.get_temp_dir())[1]
        )
        os.makedirs(os.path.dirname(path), exist_ok=True)
        data = b"" if content is None else content if isinstance(content, bytes) else content.encode(encoding, errors)
        with open(path, "wb") as file:
            file.write(data)
        return _Path(path)

    def enter_context(self, manager: Any) -> Any:
        """Enters a context that is left at the end of the test."""
        return self.enterContext(manager)

    @contextlib.contextmanager
    def captureWritesToStream(self, stream: Any) -> Iterator[Any]:  # noqa: N802
        """A context that catches what is written to a stream such as `sys.stdout`; `contents()` gives it."""
        number = stream.fileno()
        stream.flush()
        kept = os.dup(number)
        with tempfile.TemporaryFile() as file:
            os.dup2(file.fileno(), number)
            captured = _Captured(file, stream)
            try:
                yield captured
            finally:
                captured.contents()
                os.dup2(kept, number)
                os.close(kept)


class _Captured:
    """What was written to a stream."""

    def __init__(self, file: Any, stream: Any) -> None:
        self._file, self._stream, self._seen = file, stream, b""

    def contents(self) -> str:
        """All that was written so far."""
        if not self._file.closed:
            self._stream.flush()
            self._file.seek(0)
            self._seen = self._file.read()
        return self._seen.decode()


class _Path(os.PathLike):  # type: ignore[type-arg]
    """A file or folder of a test."""

    def __init__(self, path: str) -> None:
        self.full_path = path

    def __fspath__(self) -> str:
        return self.full_path

    def read_text(self, encoding: str = "utf8", errors: str = "strict") -> str:
        """What the file holds, as text."""
        with open(self.full_path, encoding=encoding, errors=errors) as file:
            return file.read()

    def read_bytes(self) -> bytes:
        """What the file holds."""
        with open(self.full_path, "rb") as file:
            return file.read()

    def write_text(self, text: str, mode: str = "w", encoding: str = "utf8", errors: str = "strict") -> None:
        """Writes text to the file."""
        with open(self.full_path, mode, encoding=encoding, errors=errors) as file:
            file.write(text)

    def write_bytes(self, data: bytes, mode: str = "wb") -> None:
        """Writes bytes to the file."""
        with open(self.full_path, mode) as file:
            file.write(data)
