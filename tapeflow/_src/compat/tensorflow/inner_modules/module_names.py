"""What a module of a library shows."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any


def remove_undocumented(
    module_name: str, allowed_exception_list: Sequence[str] | None = None, doc_string_modules: Any = None
) -> None:
    """Takes away the names of a module that are neither private nor allowed."""
    module = sys.modules[module_name]
    allowed = set(allowed_exception_list or ())
    for name in [name for name in vars(module) if not name.startswith("_") and name not in allowed]:
        delattr(module, name)
