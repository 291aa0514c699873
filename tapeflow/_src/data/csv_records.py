"""The records of comma-separated files (RFC 4180), strictly: a faulty record is an error, and the next one follows."""

from __future__ import annotations

import io
from collections.abc import Iterator
from typing import IO, NamedTuple

from tapeflow._src.data.files import opened_file
from tapeflow._src.types.errors import InvalidArgumentError


class Dialect(NamedTuple):
    """What separates the fields, and whether fields may be quoted."""

    delimiter: str
    quotes: bool


class CsvRecords:
    """The records of files, as lists of texts. After an error it goes on behind the line in which it was."""

    def __init__(self, names: list[str], compression: str | None, dialect: Dialect, header: bool) -> None:
        self._names = iter(names)
        self._compression, self._dialect, self._header = compression, dialect, header
        self._lines: Iterator[str] = iter(())
        self._is_new = False

    def __iter__(self) -> CsvRecords:
        return self

    def __next__(self) -> list[str]:
        while True:
            if self._is_new and self._header:
                self._is_new = False
                if next(self._lines, None) is None:
                    raise InvalidArgumentError.of("CsvDataset: Can't read header of file")
            self._is_new = False
            line = next(self._lines, None)
            if line is not None:
                return self._fields(line)
            self._lines = _lines(next(self._names), self._compression)
            self._is_new = True

    def _fields(self, line: str) -> list[str]:
        delimiter, quotes = self._dialect
        text = _without_end(line)
        if not quotes or '"' not in text:
            return text.split(delimiter)
        fields: list[str] = []
        place = 0
        while True:
            if line.startswith('"', place):
                field, line, place = self._quoted(line, place + 1)
            else:
                end = line.find(delimiter, place)
                end = len(_without_end(line)) if end < 0 else end
                field, place = line[place:end], end
                if '"' in field:
                    raise InvalidArgumentError.of("CsvDataset: Unquoted fields cannot have quotes inside")
            fields.append(field)
            if place >= len(_without_end(line)):
                return fields
            if not line.startswith(delimiter, place):
                raise InvalidArgumentError.of("CsvDataset: Quote inside a string has to be escaped by another quote")
            place += len(delimiter)

    def _quoted(self, line: str, place: int) -> tuple[str, str, int]:
        """A field from behind its first quote on, the line in which it ends, and the place behind its last quote."""
        parts: list[str] = []
        while True:
            end = line.find('"', place)
            if end < 0:
                parts.append(line[place:])
                more = next(self._lines, None)
                if more is None:
                    raise InvalidArgumentError.of(
                        "CsvDataset: Reached end of file without closing quoted field in record"
                    )
                line, place = more, 0
                continue
            parts.append(line[place:end])
            if not line.startswith('""', end):
                return "".join(parts), line, end + 1
            parts.append('"')
            place = end + 2


def _lines(name: str, compression: str | None) -> Iterator[str]:
    with opened_file(name, compression) as file, _decoded(file) as lines:
        yield from lines


def _decoded(file: IO[bytes]) -> io.TextIOWrapper:
    """The text of a file; bytes that are no UTF-8 come out of `surrogateescape` as they are."""
    return io.TextIOWrapper(file, encoding="utf-8", errors="surrogateescape", newline="")


def _without_end(line: str) -> str:
    return line[:-2] if line.endswith("\r\n") else line[:-1] if line.endswith(("\n", "\r")) else line
