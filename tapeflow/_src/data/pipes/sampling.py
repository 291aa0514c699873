"""Random choices among datasets and classes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from tapeflow._src.data.pipes.pipe import INFINITE, Iteration, Pipe
from tapeflow._src.data.pipes.seeds import SeededPipe, SeedSource, random_words
from tapeflow._src.data.pipes.structure import Leaves
from tapeflow._src.data.pipes.traced import Traced
from tapeflow._src.ops.arrays.conversion import convert_to_tensor
from tapeflow._src.ops.random.stateless import stateless_categorical
from tapeflow._src.types import nest
from tapeflow._src.types.dtypes import int64
from tapeflow._src.types.tensor_spec import TensorSpec


class RandomChoices(SeededPipe):
    """Numbers below `count` without end, with probabilities like the weights."""

    name = "_RandomDataset"

    def __init__(self, count: int, weights: Any, seed: Any, rerandomize: bool | None) -> None:
        super().__init__(TensorSpec([], int64))
        self._weights: Pipe | None = None
        pipe = getattr(weights, "_pipe", None)
        if isinstance(pipe, Pipe):
            self.inputs, self._weights, weights = (pipe,), pipe, None
        array = np.ones(count, np.float32) if weights is None else np.asarray(weights)
        if array.dtype not in (np.float32, np.float64):
            raise TypeError(
                "Invalid `weights`. `weights` type must be either `tf.float32` or `tf.float64` but got "
                f"`tf.{array.dtype.name}`."
            )
        if array.shape != (count,):
            raise ValueError(
                "Invalid `weights`. `weights` should have the same length as `datasets` but got "
                f"`len(weights)={len(array)}` vs. `len(datasets)={count}`."
            )
        with np.errstate(divide="ignore"):
            self._logits = convert_to_tensor(np.log(array)[None].astype(np.float32))
        self._source = SeedSource(seed, bool(rerandomize))
        self.symbols += self._source.symbols

    def begin(self, iteration: Iteration) -> Iterator[Leaves]:
        words = random_words(iteration.seeds(self))
        rows = None if self._weights is None else self._weights.begin(iteration)
        while True:
            logits = self._logits
            if rows is not None:
                element = next(rows, None)
                if element is None:
                    return
                with np.errstate(divide="ignore"):
                    logits = convert_to_tensor(np.log(element[0].numpy())[None])
            seed = convert_to_tensor([next(words), next(words)], int64)
            yield (stateless_categorical(logits, 1, seed)[0, 0],)

    def count(self) -> int:
        return INFINITE


class Resampled(SeededPipe):
    """Elements with their classes; each is kept with a probability that brings the classes to the target."""

    name = "_FlatMapDataset"

    def __init__(self, before: Pipe, class_func: Callable[..., Any], target: Any, initial: Any, seed: Any) -> None:
        self._class = Traced(class_func, before.spec, "rejection_resample")
        self._target = np.asarray(target, np.float64)
        self._initial = None if initial is None else np.asarray(initial, np.float64)
        self._source = SeedSource(seed, True)
        if nest.is_nested(self._class.spec):
            raise TypeError("The `class_func` must return a single tensor.")
        symbols = [*self._class.symbols, *self._source.symbols]
        super().__init__((self._class.spec, before.spec), before, symbols=symbols)

    def begin(self, iteration: Iteration) -> Iterator[Leaves]:
        words = random_words(iteration.seeds(self))
        seen = np.ones(len(self._target))
        for element in self.inputs[0].begin(iteration):
            (tensor,) = self._class(iteration, element)
            number = int(tensor)
            seen[number] += 1
            initial = seen / seen.sum() if self._initial is None else self._initial
            ratio = self._target / np.maximum(initial, np.finfo(np.float32).tiny)
            if next(words) / 2**32 * ratio.max() < ratio[number]:
                yield (tensor, *element)
