"""Walking over the syntax tree of a function to change it."""

from __future__ import annotations

import ast
from typing import Any


class Transformer(ast.NodeTransformer):
    """Replaces nodes by what the methods `visit_If` and the like return; `ctx` says what is known."""

    def __init__(self, ctx: Any) -> None:
        super().__init__()
        self.ctx = ctx
