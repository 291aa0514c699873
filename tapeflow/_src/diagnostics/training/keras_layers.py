"""Where Keras layers were made and frozen: the lines of the program, and which of them trained while gradients ran."""

from __future__ import annotations

import functools
import inspect
import weakref
from collections.abc import Iterator
from types import FrameType, ModuleType
from typing import Any

from tapeflow._src import _core
from tapeflow._src.diagnostics.finding import Finding
from tapeflow._src.diagnostics.flow import known
from tapeflow._src.diagnostics.frames import user_frames
from tapeflow._src.diagnostics.training.activations import LayerLines
from tapeflow._src.diagnostics.training.after_import import AfterImport

_LAYER_MODULE = "keras.src.layers.layer"
_MOST_RESULTS = 1000


class KerasLayers:
    """Stands before the constructor and the `trainable` property of Keras layers until it is removed."""

    def __init__(self) -> None:
        self._made: dict[str, tuple[str, int]] = {}  # by the name of the layer
        self._frozen_at: dict[int, tuple[str, int]] = {}
        self._called: dict[int, tuple[Any, tuple[str, int]]] = {}  # layers with weights that ran under a tape
        self._results: list[tuple[Any, str]] = []  # of the step: what layers gave, and their names
        self._patched: list[tuple[type, str, Any]] = []
        self._import = AfterImport(_LAYER_MODULE, self._install)

    def begin(self) -> None:
        """Takes its place now, or when Keras is imported."""
        self._import.begin()

    def remove(self) -> None:
        for holder, name, original in reversed(self._patched):
            setattr(holder, name, original)
        self._patched = []
        self._import.remove()

    def _install(self, module: ModuleType) -> None:
        watch, layer = self, module.Layer
        made, call, trainable = layer.__init__, layer.__call__, layer.trainable

        def init(self: Any, *args: Any, **kwargs: Any) -> None:
            made(self, *args, **kwargs)
            place = _construction(self)
            if place is not None:
                watch._made[self.name] = place
                if kwargs.get("trainable") is False:
                    watch._frozen_at[id(self)] = place

        def watched_call(self: Any, *args: Any, **kwargs: Any) -> Any:
            result = call(self, *args, **kwargs)
            if _core.is_tensor(result) and len(watch._results) < _MOST_RESULTS and _core.is_recording():
                watch._results.append((result, self.name))
            if id(self) not in watch._called and _core.is_recording() and getattr(self, "_trainable_variables", None):
                frames = user_frames()
                if frames:
                    place = frames[0].f_code.co_filename, frames[0].f_lineno
                    watch._called[id(self)] = (weakref.ref(self), place)
            return result

        def set_trainable(self: Any, value: Any) -> None:
            trainable.fset(self, value)
            watch._frozen_at.pop(id(self), None)
            frames = user_frames()
            if not value and frames:
                watch._frozen_at[id(self)] = frames[0].f_code.co_filename, frames[0].f_lineno

        self._patch(layer, "__init__", init, made)
        self._patch(layer, "__call__", watched_call, call)
        self._patch(layer, "trainable", property(trainable.fget, set_trainable), trainable)

    def _patch(self, holder: type, name: str, replacement: Any, original: Any) -> None:
        self._patched.append((holder, name, original))
        if callable(replacement):
            functools.update_wrapper(replacement, original)
            replacement.__signature__ = inspect.signature(original)  # Keras reads the names of arguments
        setattr(holder, name, replacement)

    def line_of(self, path: str) -> tuple[str, int] | None:
        """The line that made the layer of a variable, by the path of the variable: "sequential/dense/kernel"."""
        parts = path.split("/")
        return next((self._made[p] for p in reversed(parts[:-1]) if p in self._made), None)

    def _alive(self) -> list[Any]:
        return [layer for ref, _ in self._called.values() if (layer := ref()) is not None]

    def variables(self) -> set[int]:
        """The variables, by id, of all layers that ran under a tape."""
        return {id(getattr(v, "handle", v)) for layer in self._alive() for v in layer.variables}

    def frozen_variables(self) -> set[int]:
        """Those of layers that are not trainable."""
        frozen = [layer for layer in self._alive() if not layer.trainable]
        return {id(getattr(v, "handle", v)) for layer in frozen for v in layer.variables}

    def begin_step(self) -> None:
        """Forgets what the layers of the last step gave."""
        self._results.clear()

    def lines_by_index(self, tape: Any) -> LayerLines:
        """The lines that made the layers of the variables that a tape watches, and of the results that it holds."""
        lines = LayerLines({}, {})
        for variable in tape.watched_variables():
            line = self.line_of(variable.name.partition(":")[0])
            if line is not None:
                lines.variables[known(tape._index_of(variable))] = line
        for result, name in self._results:  # inner layers come first
            index = tape._index_of(result)
            if index is not None and name in self._made:
                lines.results.setdefault(known(index), self._made[name])
        return lines

    def findings(self, changed: set[int], trained: set[int]) -> Iterator[Finding]:
        """Layers that are frozen though nothing ever gave them weights.

        `changed` has the ids of changed variables, `trained` those of variables that moved from step to step.
        """
        alive = [(layer, place) for ref, place in self._called.values() if (layer := ref()) is not None]
        frozen = [(layer, place) for layer, place in alive if not layer.trainable]
        if not frozen:
            return
        learning = any(layer.trainable and layer.trainable_variables for layer, _ in alive)
        everything = not learning and not trained
        rows: dict[tuple[str, int], list[Any]] = {}
        with_weights: set[tuple[str, int]] = set()  # lines that freeze layers which something gave weights
        for layer, place in frozen:
            own = [getattr(v, "handle", v) for v in layer._trainable_variables]
            at = self._frozen_at.get(id(layer)) or self._made.get(layer.name) or place
            if everything or not any(id(v) in changed for v in own):
                rows.setdefault(at, []).append(layer)
            else:
                with_weights.add(at)
        if everything:
            last = max(rows)
            yield _frozen(last, [layer for layers in rows.values() for layer in layers], True, False)
            return
        for at, layers in rows.items():
            # Several layers that one line freezes: the usual way to keep a part of a model as it is. A new layer among
            # trained ones is there by mistake.
            together = len(layers) > 1 or self._of_model(layers[0])
            yield _frozen(at, layers, False, together and at not in with_weights)

    def _of_model(self, layer: Any) -> bool:
        """Whether the line that froze a layer froze a model with it."""
        place = self._frozen_at.get(id(layer))
        return place is not None and any(at == place for key, at in self._frozen_at.items() if key != id(layer))


def _frozen(place: tuple[str, int], layers: list[Any], everything: bool, backbone: bool) -> Finding:
    names = [layer.name for layer in layers]
    text = f"{', '.join(names[:3])}{' and others' if len(names) > 3 else ''}"
    verb = "are" if len(names) > 1 else "is"
    message = (
        f"nothing is trained: all layers are frozen ({text})"
        if everything
        else f"{text} {verb} frozen with initial weights, which nothing ever changed"
    )
    path = getattr(layers[0]._trainable_variables[0], "path", names[0])
    return Finding(
        "frozen-layers",
        "severe" if everything else "hint" if backbone else "warning",
        message,
        *place,
        variable=path,
        evidence={"layers": names[:20], "everything": everything},
        remedy="Set trainable = True for the layers that are to learn, and compile again; freeze only layers that have "
        "trained weights.",
        confidence=0.95 if everything else 0.75,
    )


def _construction(layer: Any) -> tuple[str, int] | None:
    """The line of the program that made a layer: outside of the layer's own constructors."""
    for frame in user_frames():
        if not _is_constructor_of(frame, layer):
            return frame.f_code.co_filename, frame.f_lineno
    return None


def _is_constructor_of(frame: FrameType, layer: Any) -> bool:
    code = frame.f_code
    return code.co_name == "__init__" and code.co_argcount > 0 and frame.f_locals.get(code.co_varnames[0]) is layer
