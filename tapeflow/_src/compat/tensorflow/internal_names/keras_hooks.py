"""Functions that a Keras outside of TensorFlow hands over, and those who ask for them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tapeflow._src.namespace import public_as

_function_by_kind: dict[str, Callable[..., Any]] = {}


def _registration(kind: str) -> tuple[Callable[..., None], Callable[[], Any]]:
    @public_as(
        f"Hands over Keras's function `{kind}`.\n\n>>> tf.__internal__.register_{kind}_function(lambda: None)",
        f"__internal__.register_{kind}_function",
    )
    def register(func: Callable[..., Any]) -> None:
        _function_by_kind[kind] = func

    def get() -> Any:
        return _function_by_kind.get(kind)

    get.__name__ = get.__qualname__ = f"get_{kind}_function"
    return register, get


_PAIRS = [_registration(kind) for kind in ("call_context", "clear_session", "get_session", "load_model")]
names: dict[str, Any] = {function.__name__: function for pair in _PAIRS for function in pair}
