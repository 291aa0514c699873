"""Which operation, at which line, made the first infinity or NaN: as an answer, or as an error when it happens."""

from __future__ import annotations

import linecache
import threading
from types import CodeType
from typing import Any, NamedTuple

from tapeflow._src import _core
from tapeflow._src.diagnostics.nan_origin import NanOrigins, Origin
from tapeflow._src.diagnostics.source_line import place_text, source_line
from tapeflow._src.namespace import public
from tapeflow._src.types.errors import InvalidArgumentError


class Elements(NamedTuple):
    """The form of a tensor and how many of its elements are not finite."""

    dtype: Any
    shape: Any
    non_finite: tuple[int, int, int]  # -inf, +inf, NaN

    def counts(self) -> list[str]:
        """As TensorFlow writes them, one per line."""
        names = ("-Inf", "+Inf", "+NaN")
        return [f"# of {name} elements: {count}" for name, count in zip(names, self.non_finite) if count]

    def kinds(self) -> str:
        """The kinds in one phrase: "-Inf and NaN"."""
        found = [name for name, count in zip(("-Inf", "+Inf", "NaN"), self.non_finite) if count]
        return " and ".join(found) if len(found) < 3 else f"{found[0]}, {found[1]}, and {found[2]}"


class Finding(NamedTuple):
    """One operation that made infinities or NaNs."""

    operation: str  # "Log"
    function: str  # "math.log"
    gradient_of: str | None  # the operation whose gradient it was run for
    in_graph: bool
    output: int
    outputs: int
    result: Elements
    inputs: list[Elements]
    code: CodeType | None
    instruction: int

    @property
    def line(self) -> tuple[str, int]:
        """The file and the line of the program."""
        return source_line(self.code, self.instruction)

    @property
    def made_here(self) -> bool:
        """Whether all inputs were finite, so that this operation made the first one."""
        return not any(any(x.non_finite) for x in self.inputs)

    def __str__(self) -> str:
        file, line = self.line
        work = f"the gradient of {self.gradient_of} ({self.operation})" if self.gradient_of else f"tf.{self.function}"
        whence = "from finite inputs" if self.made_here else "its inputs were not finite already"
        source = linecache.getline(file, line).strip()
        shown = f"\n    {source}" if source else ""
        return f"{work} made {self.result.kinds()} at {place_text(file, line)}; {whence}{shown}"


def _finding(*facts: Any) -> Finding:
    *first, result, inputs, code, instruction = facts
    about: list[Any] = [*first, Elements(*result), [Elements(*x) for x in inputs], code, instruction]
    return Finding(*about)


@public("experimental.FirstNan")
class FirstNan:
    """Looks at every result inside the context and records the first that is not finite; nothing is raised.

    `found` is that result, or None. `findings` lists all operations that began a chain of NaNs or infinities, each with
    the position of the first such element, the operands there and a remedy. Infinities that the program brought in on
    purpose, such as a mask of -inf, are neither.

    >>> with tf.experimental.FirstNan() as search:
    ...     y = tf.sqrt(tf.math.log([0.5, 1.])) * 2.
    >>> search.found.operation, search.found.result.non_finite
    ('Sqrt', (0, 0, 1))
    """

    def __init__(self) -> None:
        self.found: Finding | None = None
        self._origins = NanOrigins(self._keep_first)

    @property
    def findings(self) -> list[Origin]:
        """Where NaNs and infinities began, in order."""
        return [origin for origin in self._origins.origins if not origin.on_purpose]

    def _keep_first(self, origin: Origin, *facts: Any) -> None:
        *described, _, _, copies_elements = facts
        if self.found is None and not copies_elements and not origin.on_purpose:
            self.found = _finding(*described)

    def __enter__(self) -> FirstNan:
        self._origins.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._origins.stop()

    def __repr__(self) -> str:
        return f"<FirstNan: {'all results were finite' if self.found is None else self.found}>"


# ------------------------------------------------------------------------------------------- the error, as TensorFlow's


def _shortened(path: str, limit: int | None) -> str:
    return path if limit is None or len(path) <= limit else f"...{path[len(path) - limit :]}"


def _inputs_text(inputs: list[Elements]) -> str:
    shown = []
    for x in inputs:
        counts = "".join(f"; {count}" for count in x.counts())
        shown.append(f"tf.Tensor(shape={x.shape}, dtype={x.dtype.name}){counts}")
    if not shown:
        return ""
    if len(shown) == 1:
        return f"  Input tensor: {shown[0]}\n\n"
    rows = "".join(f"         {place}: {text}\n" for place, text in enumerate(shown))
    return f"  Input tensors ({len(shown)}):\n{rows}\n"


def _place_text(finding: Finding, height: int, length: int | None) -> str:
    file, line = finding.line
    if height < 1 or finding.code is None:
        return ""
    title = "Stack trace of op's creation" if finding.in_graph else "The op's line"
    source = linecache.getline(file, line).strip()
    where = f"    + {_shortened(file, length)} (L{line}) {finding.code.co_name}\n -> |   {source}\n"
    return f'  {title} ("->": inferred user code):\n{where}\n'


class _Refusal:
    """Raises for the operation that made infinities or NaNs."""

    def __init__(self, height: int, length: int | None) -> None:
        self.height, self.length = height, length

    def __call__(self, *facts: Any) -> None:
        finding = _finding(*facts)
        kind = "graph op" if finding.in_graph else "eagerly-executing op"
        message = (
            f'\n\n!!! Detected Infinity or NaN in output {finding.output} of {kind} "{finding.operation}" '
            f"(# of outputs: {finding.outputs}) !!!\n"
            f"  dtype: <dtype: '{finding.result.dtype.name}'>\n  shape: {finding.result.shape}\n"
            + "".join(f"  {count}\n" for count in finding.result.counts())
            + "\n"
            + _inputs_text(finding.inputs)
        )
        if finding.gradient_of:
            message += f'  Run for the gradient of op "{finding.gradient_of}".\n\n'
        if not finding.made_here:
            message += "  Its inputs were not finite already: an earlier op, or the data, made them so.\n\n"
        message += _place_text(finding, self.height, self.length)
        raise InvalidArgumentError.of(f"{message} : Tensor had {finding.result.kinds()} values")


class _Checks(threading.local):
    check: Any = None


_checks = _Checks()


@public("debugging.enable_check_numerics", "compat.v1.debugging.enable_check_numerics")
def enable_check_numerics(stack_height_limit: int = 30, path_length_limit: int | None = 50) -> None:
    """From now on, on this thread, an operation that makes an infinity or a NaN raises InvalidArgumentError.

    The error names the operation, its line, and what it was given; so it does inside of functions and in gradients.
    Operations that only hand elements on (reshape, concat, ...) are not refused.

    >>> tf.debugging.enable_check_numerics()
    >>> try:
    ...     tf.math.log([-1., 1.])
    ... except tf.errors.InvalidArgumentError as error:
    ...     print("Detected Infinity or NaN" in str(error))
    True
    >>> tf.debugging.disable_check_numerics()
    """
    disable_check_numerics()
    _checks.check = _core.NumericsCheck(_Refusal(stack_height_limit, path_length_limit))
    _checks.check.start()


@public("debugging.disable_check_numerics", "compat.v1.debugging.disable_check_numerics")
def disable_check_numerics() -> None:
    """Ends `tf.debugging.enable_check_numerics` on this thread.

    >>> tf.debugging.disable_check_numerics()
    >>> tf.math.log([-1.])
    <tf.Tensor: shape=(1,), dtype=float32, numpy=array([nan], dtype=float32)>
    """
    if _checks.check is not None:
        _checks.check.stop()
        _checks.check = None
