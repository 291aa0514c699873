"""The logger of the package, under TensorFlow's name for it: programs silence or redirect `"tensorflow"`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tapeflow._src.namespace import public

if TYPE_CHECKING:
    from logging import Logger

_logger: Logger | None = None


@public("get_logger", "compat.v1.get_logger")
def get_logger() -> Logger:
    """The logger that receives the warnings of the package.

    >>> tf.get_logger().name
    'tensorflow'
    """
    global _logger
    if _logger is None:
        import logging  # costs 5 ms of import time, which a program without warnings saves

        logger = logging.getLogger("tensorflow")
        if not logging.getLogger().handlers and not logger.handlers:
            handler = logging.StreamHandler()
            handler.setFormatter(logging.Formatter(logging.BASIC_FORMAT))
            logger.addHandler(handler)
        _logger = logger
    return _logger


def warn(message: str, *values: object) -> None:
    """Writes `message % values` as a warning; logging fills in the values only if someone listens."""
    get_logger().warning(message, *values)
