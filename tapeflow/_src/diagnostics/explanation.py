"""The answer to "why is it None?", and the exception that carries it."""

from __future__ import annotations

from typing import NamedTuple

from tapeflow._src.namespace import public


class Explanation(NamedTuple):
    """The answer of `GradientTape.explain`: prints as a sentence, and can be taken apart."""

    cause: str
    text: str
    advice: str
    operation: str | None = None
    file: str | None = None
    line: int | None = None

    def __str__(self) -> str:
        place = f" ({self.file}:{self.line})" if self.file else ""
        return f"{self.text}{place}. {self.advice}"


@public("autodiff.NoGradientError")
class NoGradientError(ValueError):
    """Raised by `GradientTape(strict=True)` instead of giving None; `explanation` says why.

    >>> x = tf.Variable(7.)
    >>> with tf.GradientTape(strict=True) as tape:
    ...     y = tf.floor(x)
    >>> try:
    ...     tape.gradient(y, x)
    ... except tf.autodiff.NoGradientError as error:
    ...     print(error.explanation.operation)
    floor
    """

    def __init__(self, explanation: Explanation) -> None:
        super().__init__(f"GradientTape.gradient: the gradient is None. {explanation}")
        self.explanation = explanation
