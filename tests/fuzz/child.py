"""python -m tests.fuzz.child calls|readers LOG SEED COUNT FIRST LAST: makes mutated calls, and lists what is wrong.

Runs in a process of its own with little memory: a call may end it. Before each call its number goes to the log, so
that the parent knows which one did. Every call is made eagerly, under two tapes, traced, and in forward mode.
"""

from __future__ import annotations

import contextlib
import faulthandler
import os
import random
import resource
import sys
import tempfile
import warnings
from typing import Any

import numpy as np
from google.protobuf.message import DecodeError

import tapeflow as tf
from tests.fuzz.mutations import mutated_call
from tests.fuzz.readers import mutated_bytes, readers
from tests.fuzz.seeds import all_seeds, function_at

MEMORY = 3 * 2**30  # a call that needs more must be refused at once
SECONDS = 60  # for one call, until it counts as one that hangs
REFUSALS = (TypeError, ValueError, NotImplementedError, LookupError, AttributeError, OverflowError, tf.errors.OpError)
REFUSALS += (DecodeError,)  # the error of protobuf
FINDINGS = (SystemError, RecursionError, ZeroDivisionError, MemoryError, UnboundLocalError, FloatingPointError)
IGNORED = (NotImplementedError,)  # a feature of a format that is not read


def _tensors(values: Any) -> list[Any]:
    return [x for x in tf.nest.flatten(values, expand_composites=True) if isinstance(x, tf.Tensor)]


def _floats(values: Any) -> list[Any]:
    return [x for x in _tensors(values) if x.dtype.is_floating]


def _twice(function: Any, args: list[Any], kwargs: dict[str, Any]) -> None:
    sources = [x for x in [*args, *kwargs.values()] if isinstance(x, tf.Tensor) and x.dtype.is_floating]
    with tf.GradientTape() as outer:
        outer.watch(sources)
        with tf.GradientTape() as inner:
            inner.watch(sources)
            ys = _floats(function(*args, **kwargs))
        first = [dx for dx in inner.gradient(ys, sources) if isinstance(dx, tf.Tensor)] if ys else []
    if first:
        outer.gradient(first, sources)


def _forward(function: Any, args: list[Any], kwargs: dict[str, Any]) -> None:
    sources = [x for x in [*args, *kwargs.values()] if isinstance(x, tf.Tensor) and x.dtype.is_floating]
    if sources:
        with tf.autodiff.ForwardAccumulator(sources, [tf.ones_like(x) for x in sources]) as accumulator:
            ys = _floats(function(*args, **kwargs))
        for y in ys:
            accumulator.jvp(y)


def _eager(function: Any, args: list[Any], kwargs: dict[str, Any]) -> Any:
    return function(*args, **kwargs)


def _traced(function: Any, args: list[Any], kwargs: dict[str, Any]) -> Any:
    places = [i for i, x in enumerate(args) if isinstance(x, tf.Tensor | np.ndarray)]

    @tf.function(autograph=False)
    def run(tensors: list[Any]) -> Any:
        given = list(args)
        for place, tensor in zip(places, tensors):
            given[place] = tensor
        return function(*given, **kwargs)

    return run([tf.constant(args[i]) for i in places])


MODES = {"eager": _eager, "traced": _traced, "tapes": _twice, "forward": _forward}


def fuzz(log: str, seed: int, count: int, first: int, last: int) -> None:
    """Makes `count` calls of each seed from `first` to `last`, in all modes."""
    with open(log, "a", buffering=1, encoding="utf8") as lines:
        for number, (path, args, kwargs) in list(enumerate(all_seeds()))[first:last]:
            function = function_at(path)
            for turn in range(count):
                chance = random.Random(f"{seed} {path} {number} {turn}")
                try:
                    given = mutated_call(args, kwargs, chance)
                except (*REFUSALS, *FINDINGS):  # of what makes arguments
                    continue
                mode = chance.choice([*MODES])
                lines.write(f"call {number} {turn} {mode} {path}\n")
                faulthandler.dump_traceback_later(SECONDS, exit=True)
                try:
                    MODES[mode](function, *given)
                except FINDINGS as error:
                    shown = repr(given)[:300].replace("\n", " ")
                    lines.write(f"FOUND {type(error).__name__} {mode} {path} {number} {turn}: {error} {shown}\n")
                except REFUSALS:
                    pass
                except Exception as error:
                    lines.write(f"OTHER {type(error).__name__} {mode} {path} {number} {turn}: {error}\n")
                finally:
                    faulthandler.cancel_dump_traceback_later()
        lines.write("done\n")


def fuzz_readers(log: str, seed: int, count: int, first: int, last: int) -> None:
    """Gives `count` mutated inputs to each reader from `first` to `last`."""
    with open(log, "a", buffering=1, encoding="utf8") as lines:
        for number, (name, (data, read)) in list(enumerate(readers().items()))[first:last]:
            for turn in range(count):
                changed = mutated_bytes(data, random.Random(f"{seed} {name} {turn}"))
                lines.write(f"call {number} {turn} file {name}\n")
                faulthandler.dump_traceback_later(SECONDS, exit=True)
                try:
                    read(changed)
                except (ValueError, TypeError, tf.errors.OpError, DecodeError, *IGNORED):
                    pass
                except Exception as error:
                    lines.write(f"FOUND {type(error).__name__} file {name} {number} {turn}: {error} {changed!r:.300}\n")
                finally:
                    faulthandler.cancel_dump_traceback_later()
        lines.write("done\n")


if __name__ == "__main__":
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    warnings.simplefilter("ignore")
    np.seterr(all="ignore")
    where = os.path.abspath(sys.argv[2])
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):  # some calls write files
        {"calls": fuzz, "readers": fuzz_readers}[sys.argv[1]](where, *map(int, sys.argv[3:7]))
