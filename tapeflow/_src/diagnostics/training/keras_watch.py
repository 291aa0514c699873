"""What Keras does while a doctor watches: which gradients go to which variables, losses on logits, unused layers."""

from __future__ import annotations

import functools
import re
import sys
from collections.abc import Callable
from typing import Any

from tapeflow._src import _core
from tapeflow._src.diagnostics.finding import Finding, source_text
from tapeflow._src.diagnostics.frames import user_frames
from tapeflow._src.diagnostics.program import loss_line
from tapeflow._src.diagnostics.source_line import source_line
from tapeflow._src.diagnostics.training.assignments import Assignments
from tapeflow._src.diagnostics.variable_names import variable_behind

_LOSSES = ("categorical_crossentropy", "sparse_categorical_crossentropy", "binary_crossentropy")


class KerasWatch:
    """Stands before a few functions of Keras until it is taken away again. `report` is given findings."""

    def __init__(
        self, applied: Callable[..., None], report: Callable[[Finding], None], assignments: Assignments
    ) -> None:
        self._applied, self._report, self._assignments = applied, report, assignments
        self._replaced: list[tuple[Any, str, Any]] = []

    def install(self) -> None:
        """Does nothing until Keras is there, and nothing the second time."""
        if self._replaced or "keras" not in sys.modules:
            return
        base = getattr(sys.modules.get("keras.src.optimizers.base_optimizer"), "BaseOptimizer", None)
        if base is not None:
            self._replace(base, "apply", self._watched_apply(base.apply))
        nn = sys.modules.get("keras.src.backend.tensorflow.nn")
        for holder in (nn, getattr(sys.modules.get("keras.src.backend"), "nn", None)):
            for name in _LOSSES:
                if holder is not None and not any(r[0] is holder and r[1] == name for r in self._replaced):
                    self._replace(holder, name, self._watched_loss(name, getattr(holder, name)))
        layers = sys.modules.get("keras.layers")
        for name in ("Dropout", "BatchNormalization"):
            layer = getattr(layers, name, None)
            if layer is not None:
                self._replace(layer, "call", self._watched_call(name, layer.call))

    def remove(self) -> None:
        for holder, name, original in reversed(self._replaced):
            setattr(holder, name, original)
        self._replaced = []

    def _replace(self, holder: Any, name: str, replacement: Any) -> None:
        original = getattr(holder, name)
        self._replaced.append((holder, name, original))
        functools.update_wrapper(replacement, original)
        setattr(holder, name, replacement)

    def _watched_apply(self, original: Any) -> Any:
        def apply(optimizer: Any, grads: Any, trainable_variables: Any = None) -> Any:
            grads = list(grads)
            variables = trainable_variables
            if variables is None:
                variables = getattr(optimizer, "_trainable_variables", None) or []
            self._applied(optimizer, list(zip(grads, variables)))
            self._assignments.inside_optimizer = True
            try:
                return original(optimizer, grads, trainable_variables)
            finally:
                self._assignments.inside_optimizer = False

        return apply

    def _watched_loss(self, name: str, original: Any) -> Any:
        def loss(target: Any, output: Any, from_logits: bool = False, **kwargs: Any) -> Any:
            with _core.StopRecording(True):
                self._look_at_loss(name, output, from_logits)
            return original(target, output, from_logits=from_logits, **kwargs)

        return loss

    def _look_at_loss(self, name: str, output: Any, from_logits: bool) -> None:
        place = source_line(*_core.current_line())
        place = (place[0], loss_line(*place))
        if from_logits and hasattr(output, "_keras_logits"):
            self._report(
                Finding(
                    "double-softmax",
                    "warning",
                    f"{name} has from_logits=True, but the predictions are those of a softmax or sigmoid layer",
                    *place,
                    evidence={"second": name},
                    remedy="Leave the activation of the last layer out, or pass from_logits=False.",
                    confidence=0.95,
                )
            )
        if not _core.is_tensor(output) or _core.is_symbolic(output) or from_logits:
            return
        values = output.numpy()
        if name.endswith("categorical_crossentropy") and values.ndim == 2 and values.shape[-1] > 1 and values.size:
            self._look_at_sums(name, values, place)
        if values.size and (values.min() < -1e-6 or values.max() > 1.0 + 1e-3):
            self._report(
                Finding(
                    "logits-mismatch",
                    "severe",
                    f"{name} expects probabilities (from_logits=False), but the predictions reach from "
                    f"{values.min():.3g} to {values.max():.3g}",
                    *place,
                    evidence={"minimum": float(values.min()), "maximum": float(values.max())},
                    remedy="Pass from_logits=True, or end the model with a softmax or sigmoid.",
                    confidence=0.95,
                )
            )

    def _look_at_sums(self, name: str, values: Any, place: tuple[str, int]) -> None:
        """Probabilities of classes that exclude one another add up to one; those of a sigmoid do not."""
        sums = values.sum(-1)
        if values.min() >= 0 and values.max() <= 1 and abs(sums - 1).max() > 0.05:
            self._report(
                Finding(
                    "activation-mismatch",
                    "warning",
                    f"{name} expects probabilities that add up to 1, as of a softmax; these add up to {sums.min():.3g} "
                    f"to {sums.max():.3g}",
                    *place,
                    evidence={"smallest_sum": float(sums.min()), "largest_sum": float(sums.max())},
                    remedy="End the model with a softmax, or use binary_crossentropy for labels that do not exclude "
                    "one another.",
                    confidence=0.9,
                )
            )

    def _watched_call(self, name: str, original: Any) -> Any:
        def call(layer: Any, inputs: Any, training: Any = None, **kwargs: Any) -> Any:
            if not training and getattr(layer, "rate", True) and layer.trainable and _core.is_recording():
                place = _forgotten_at()
                if place is not None:
                    self._open.setdefault(place[0], (name, place[1]))
            if name == "Dropout":
                return original(layer, inputs, training=training)
            return original(layer, inputs, training=training, **kwargs)

        return call

    _idle: dict[tuple[str, int], tuple[str, bool]] = {}  # noqa: RUF012  (replaced by each doctor)
    _open: dict[tuple[str, int], tuple[str, bool]] = {}  # noqa: RUF012  (calls that no gradient was asked for yet)

    def begin(self) -> None:
        self._idle, self._open = {}, {}

    def see_gradient(self, sources: list[Any], inner: bool) -> None:
        """A call of gradient. One by inputs alone, as for a saliency map, is no training step."""
        if not self._open:
            return
        if any(isinstance(v := variable_behind(s), _core.Variable) and v.trainable for s in sources):
            self._idle |= self._open
        if not inner:
            self._open = {}

    def idle_layers(self) -> list[Finding]:
        """Layers that ran without training=True while gradients were recorded, and the line of the call."""
        return [
            Finding(
                "training-flag",
                "hint" if said else "warning",
                f"{name} ran as in inference while gradients were recorded: the call "
                + ("says training=False" if said else "does not say training=True"),
                *place,
                evidence={"layer": name},
                remedy="Call the model with training=True in the training step.",
                confidence=0.85,
            )
            for place, (name, said) in self._idle.items()
        ]


def _forgotten_at() -> tuple[tuple[str, int], bool] | None:
    """The line that calls a model without `training`, or (and then True) with training=False; None if a line hands on
    what it was given.
    """
    frames = user_frames()
    for number, frame in enumerate(frames):
        code = frame.f_code
        text = source_text(code.co_filename, frame.f_lineno)
        if "fit(" in text or "train_on_batch(" in text:
            return None
        if "training" not in text and code.co_name == "call" and number + 1 < len(frames):
            continue  # Keras hands the flag of the outer call on
        if "training" not in text:
            return (code.co_filename, frame.f_lineno), False
        if re.search(r"training\s*=\s*False", text):
            return (code.co_filename, frame.f_lineno), True
        if "training" not in code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]:
            return None
    return None
