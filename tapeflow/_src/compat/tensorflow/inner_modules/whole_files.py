"""The functions of `tensorflow.python.lib.io.file_io` that read, write and compare whole files."""

from __future__ import annotations

import secrets
import zlib
from typing import Any

from tapeflow._src.namespace import find_public


def read_file_to_string(filename: str, binary_mode: bool = False) -> Any:
    """What is in a file: text, or with `binary_mode` bytes."""
    with find_public("io.gfile.GFile")(filename, "rb" if binary_mode else "r") as file:
        return file.read()


def write_string_to_file(filename: str, file_content: str | bytes) -> None:
    """Makes this the content of a file."""
    with find_public("io.gfile.GFile")(filename, "w") as file:
        file.write(file_content)


def atomic_write_string_to_file(filename: str, contents: str | bytes, overwrite: bool = True) -> None:
    """Makes this the content of a file, which nobody sees half written: it is renamed from another one."""
    partial = f"{filename}.tmp{secrets.token_hex(16)}"
    write_string_to_file(partial, contents)
    try:
        find_public("io.gfile.rename")(partial, filename, overwrite)
    except find_public("errors.OpError"):
        find_public("io.gfile.remove")(partial)
        raise


def file_crc32(filename: str, block_size: int = 1 << 24) -> str:
    """The CRC-32 checksum of a file as a hexadecimal number; `block_size` bytes are read at a time."""
    crc = 0
    with find_public("io.gfile.GFile")(filename, "rb") as file:
        while block := file.read(block_size):
            crc = zlib.crc32(block, crc)
    return hex(crc)


def filecmp(filename_a: str, filename_b: str) -> bool:
    """Whether two files have the same content."""
    stat = find_public("io.gfile.stat")
    return stat(filename_a).length == stat(filename_b).length and file_crc32(filename_a) == file_crc32(filename_b)


names = {
    "FileIO": find_public("io.gfile.GFile"),
    "file_crc32": file_crc32,
    "filecmp": filecmp,
    "read_file_to_string": read_file_to_string,
    "write_string_to_file": write_string_to_file,
    "atomic_write_string_to_file": atomic_write_string_to_file,
}
