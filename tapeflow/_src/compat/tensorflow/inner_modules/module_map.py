"""Where TensorFlow's files keep the public functions and classes, so that an inner path leads to the public object.

`module_map.txt` has one line for each file: its module below `tensorflow.python`, then the names in it that are public,
under the same name (`matmul`) or under another path (`reduce_sum_v1=compat.v1.reduce_sum`). Operations that are only
below `tf.raw_ops` take positional arguments there.
"""

from __future__ import annotations

import functools
from importlib.resources import files
from typing import Any

from tapeflow._src.compat.raw_ops.operation import operation_by_name
from tapeflow._src.namespace import find_public

_RAW = "raw_ops."


@functools.cache
def paths_by_module() -> dict[str, dict[str, str]]:
    """The public path of each name, by the module that keeps it."""
    paths: dict[str, dict[str, str]] = {}
    for line in files(__package__).joinpath("module_map.txt").read_text(encoding="utf8").splitlines():
        module, *entries = line.split()
        pairs = (entry.partition("=") for entry in entries)
        paths[f"python.{module}"] = {name: path or name for name, _, path in pairs}
    return paths


def find_object(path: str) -> Any:
    """The public object at `path`; a raw operation as a function that also takes positional arguments."""
    found = find_public(path)
    return _with_positions(found) if path.startswith(_RAW) else found


@functools.cache
def raw_path_by_function() -> dict[str, str]:
    """The path of each raw operation by the name of the function that TensorFlow generates for it: `mat_mul`."""
    return {_function_name(name): f"{_RAW}{name}" for name in operation_by_name}


def _function_name(operation: str) -> str:
    """`MatMul` as `mat_mul`, `FFT2D` as `fft2d`: a word begins where capitals begin, or before the last of several."""
    letters = []
    for i, letter in enumerate(operation):
        begins = i > 0 and letter.isupper()
        if begins and (operation[i - 1].islower() or operation[i + 1 : i + 2].islower()):
            letters.append("_")
        letters.append(letter.lower())
    return "".join(letters)


def _with_positions(operation: Any) -> Any:
    names = [*operation.__signature__.parameters]

    @functools.wraps(operation, assigned=("__name__", "__qualname__", "__doc__"), updated=())
    def call(*values: Any, **given: Any) -> Any:
        if len(values) > len(names):
            raise TypeError(
                f"{operation.__name__}() takes {len(names)} positional arguments but {len(values)} were given"
            )
        return operation(**dict(zip(names, values)), **given)

    return call
