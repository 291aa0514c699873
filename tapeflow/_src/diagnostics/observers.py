"""Where the layers above tell a doctor what happens; an entry is None while nobody watches."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


class Observers:
    """The functions that are called. Who calls one checks first that it is there."""

    def __init__(self) -> None:
        # (name, function, flat inputs, flat results, flat rule): a call of a function with a custom gradient
        self.custom_gradient: Callable[..., None] | None = None
        # (tape, target, sources, jacobians): a Jacobian is None
        self.jacobians: Callable[..., None] | None = None
        # (act): calls it with tapes that the doctor does not watch
        self.unseen: Callable[..., Any] | None = None
        # (targets, sources, gradients): a call of tf.gradients
        self.graph_gradients: Callable[..., None] | None = None
        # the same arguments, when a gradient is None; always there
        self.graph_none: Callable[..., None] | None = None
        # (optimizer, pairs of gradient and variable): an optimizer of TensorFlow 1 is about to apply gradients
        self.apply_gradients: Callable[..., None] | None = None
        # (dataset, cursor): an iteration over a dataset is about to begin
        self.iterator: Callable[..., None] | None = None
        # (session, fetches, compute): a session is about to run; gives what `compute` gives for the fetches
        self.session_run: Callable[..., Any] | None = None
        # (traces, call, explain): a function runs eagerly that would be called, or traced, for this signature
        self.function_call: Callable[..., None] | None = None


observers = Observers()
