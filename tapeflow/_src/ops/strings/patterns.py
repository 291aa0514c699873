"""Regular expressions in RE2's syntax, which match in linear time: `tf.strings.regex_replace`, `regex_full_match`."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable
from importlib import import_module
from typing import Any

from tapeflow._src.namespace import public
from tapeflow._src.ops.strings.elements import bytes_of, errors_when_run, map_bytes
from tapeflow._src.types.dtypes import bool_, string
from tapeflow._src.types.errors import InvalidArgumentError

_REFERENCE = re.compile(rb"\\(.?)", re.DOTALL)


@functools.lru_cache(maxsize=256)
def _compiled(text: bytes) -> Any:
    re2 = import_module("re2")
    options = re2.Options()
    options.log_errors = False
    try:
        return re2.compile(text, options)
    except re2.error as error:
        reason = error.args[0]
        shown = reason.decode("utf-8", "replace") if isinstance(reason, bytes) else reason
        raise InvalidArgumentError.of(f"Invalid pattern: {text.decode('utf-8', 'replace')}, error: {shown}") from error


def _rewriter(pattern: Any, rewrite: bytes) -> Callable[[Any], bytes]:
    r"""From a match to what replaces it: `\0` to `\9` stand for groups, two backslashes for one."""
    parts: list[bytes | int] = []
    for place, text in enumerate(_REFERENCE.split(rewrite)):
        if place % 2 == 0:
            parts.append(text)
        elif text.isdigit() and int(text) <= pattern.groups:
            parts.append(int(text))
        elif text == b"\\":
            parts.append(text)
        else:
            raise InvalidArgumentError.of(
                f"regex_replace: rewrite may refer to the groups 0 to {pattern.groups} of the pattern; got "
                f"{rewrite.decode('utf-8', 'replace')!r}"
            )
    return lambda match: b"".join((match[part] or b"") if isinstance(part, int) else part for part in parts)


def _replaced(text: bytes, rewrite: bytes, count: int, value: bytes) -> bytes:
    pattern = _compiled(text)
    rewritten = _rewriter(pattern, rewrite)
    parts: list[bytes] = []
    end = 0
    for match in pattern.finditer(value):
        if parts and match.start() == match.end() == end:  # RE2 takes no empty match right after another match
            continue
        parts += [value[end : match.start()], rewritten(match)]
        end = match.end()
        if count and len(parts) == 2 * count:
            break
    return b"".join([*parts, value[end:]])


def _matches(text: bytes, value: bytes) -> bool:
    return _compiled(text).fullmatch(value) is not None


@public("strings.regex_replace")
def regex_replace(input: Any, pattern: Any, rewrite: Any, replace_global: bool = True, name: str | None = None) -> Any:
    r"""Each match of a regular expression (or the first) replaced; `\1` stands for the first group.

    >>> tf.strings.regex_replace(["a1b22"], "[0-9]+", "#")
    <tf.Tensor: shape=(1,), dtype=string, numpy=array([b'a#b#'], dtype=object)>
    """
    text, new = bytes_of(pattern, "pattern"), bytes_of(rewrite, "rewrite")
    _rewriter(_compiled(text), new)
    return map_bytes(input, functools.partial(_replaced, text, new, 0 if replace_global else 1))


@public("strings.regex_full_match")
def regex_full_match(input: Any, pattern: Any, name: str | None = None) -> Any:
    """Whether a regular expression matches the whole string.

    >>> tf.strings.regex_full_match(["a1", "b"], "[a-z][0-9]")
    <tf.Tensor: shape=(2,), dtype=bool, numpy=array([ True, False])>
    """
    text = bytes_of(pattern, "pattern")
    _compiled(text)
    return map_bytes(input, functools.partial(_matches, text), "bool")


errors_when_run(regex_replace, string)
errors_when_run(regex_full_match, bool_)
