"""The public name of a function or class, and the function or class of a name: `tensorflow.python.util.tf_export`.

Also which names a module of a library shows.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from typing import Any, TypeVar

from tapeflow._src.compat.tensorflow.inner_modules.decorators import unwrap
from tapeflow._src.namespace import find_public, installed_namespaces

Symbol = TypeVar("Symbol")
_V1 = "compat.v1."
_symbol_by_name: dict[str, Any] = {}


class _Export:
    """A decorator that records the names of a function or class of a library."""

    api = "tensorflow"

    def __init__(self, *args: str, v1: Sequence[str] | None = None, allow_multiple_exports: bool = True) -> None:
        self._names, self._v1_names = args, args if v1 is None else v1

    def __call__(self, func: Symbol) -> Symbol:
        inner = unwrap(func)[1]
        prefix = "tf" if self.api == "tensorflow" else self.api
        setattr(inner, f"_{prefix}_api_names", self._names)
        setattr(inner, f"_{prefix}_api_names_v1", self._v1_names)
        _symbol_by_name.update(dict.fromkeys(self._names, func))
        _symbol_by_name.update({f"{_V1}{name}": func for name in self._v1_names})
        return func

    def export_constant(self, module_name: str, name: str) -> None:
        """Records the names of a constant; nobody asks for them."""


class tf_export(_Export):  # noqa: N801  TensorFlow's name
    """Records the names of a function or class below `tf`."""


class keras_export(_Export):  # noqa: N801  TensorFlow's name
    """Records the names of a function or class of Keras, as `keras.layers.Dense`."""

    api = "keras"


def get_symbol_from_name(name: str) -> Any:
    """The function or class of a name such as `math.add` or `keras.layers.Dense`, or None."""
    found = _symbol_by_name.get(name)
    if found is None:
        try:
            found = find_public(name)
        except AttributeError:
            return None
    return found


def get_canonical_name_for_symbol(
    symbol: Any, api_name: str = "tensorflow", add_prefix_to_v1_names: bool = False
) -> str | None:
    """The public name of a function or class; None if it has none."""
    inner = unwrap(symbol)[1]
    prefix = "tf" if api_name == "tensorflow" else api_name
    names = getattr(inner, "__dict__", {}).get(f"_{prefix}_api_names")
    if names:
        return str(names[0])
    v1_names = getattr(inner, "__dict__", {}).get(f"_{prefix}_api_names_v1")
    if v1_names:
        return f"{_V1}{v1_names[0]}" if add_prefix_to_v1_names else str(v1_names[0])
    return _public_name(symbol, add_prefix_to_v1_names) if api_name == "tensorflow" and callable(symbol) else None


def _public_name(symbol: Any, add_prefix_to_v1_names: bool) -> str | None:
    """The path of an object of ours: below a namespace (`math.add`) before one directly below `tf` (`add`)."""
    paths = [
        f"{namespace}.{name}" if namespace else name
        for namespace, module in installed_namespaces().items()
        for name, value in vars(module).items()
        if value is symbol
    ]
    if not paths:
        return None
    best = min(paths, key=_rank)
    return best if add_prefix_to_v1_names else best.removeprefix(_V1)


def _rank(path: str) -> tuple[bool, bool, bool, int, str]:
    later = path.startswith(("experimental.numpy", "raw_ops.", "keras."))
    return later, path.startswith(_V1), "." not in path, path.count("."), path


def make_all(module_name: str, doc_string_modules: Sequence[Any] | None = None) -> list[str]:
    """The names of a module that the texts of modules (its own, unless given) mention as `@@name`."""
    module = sys.modules[module_name]
    texts = [other.__doc__ or "" for other in doc_string_modules or [module]]
    mentioned = {name for text in texts for name in re.findall(r"^@@(\w+)$", text, re.MULTILINE)}
    return [name for name in mentioned if hasattr(module, name)]


def remove_undocumented(
    module_name: str, allowed_exception_list: Sequence[str] | None = None, doc_string_modules: Any = None
) -> None:
    """Takes away the names of a module that are neither private nor allowed."""
    module = sys.modules[module_name]
    allowed = set(allowed_exception_list or ())
    for name in [name for name in vars(module) if not name.startswith("_") and name not in allowed]:
        delattr(module, name)
