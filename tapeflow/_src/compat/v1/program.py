"""What TensorFlow 1's programs begin with: `app.run`, `flags`, and `logging`."""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable, Iterator
from functools import cached_property
from types import SimpleNamespace
from typing import Any

from tapeflow._src.namespace import public
from tapeflow._src.types.logging import get_logger


class _Flags:
    """The flags that were defined, with their values from the command line; parsed when one is first asked for.

    >>> tf.compat.v1.flags.DEFINE_integer("a_number", 7, "an example")
    >>> tf.compat.v1.flags.FLAGS(["program", "--a_number=8", "file"])
    ['program', 'file']
    >>> tf.compat.v1.flags.FLAGS.a_number
    8
    """

    def __init__(self) -> None:
        self.__dict__["_value_by_name"] = None
        self.__dict__["_needed"] = set()

    @cached_property
    def _parser(self) -> Any:
        import argparse  # takes long to import, for the few programs that have flags

        return argparse.ArgumentParser(allow_abbrev=False)

    def _define(self, name: str, default: Any, help_text: str | None, kind: Callable[[str], Any], **more: Any) -> None:
        self._parser.add_argument(f"--{name}", default=default, type=kind, help=help_text, **more)
        self.__dict__["_value_by_name"] = None

    def _parse(self, arguments: list[str] | None = None) -> list[str]:
        found, rest = self._parser.parse_known_args(sys.argv[1:] if arguments is None else arguments)
        missing = sorted(name for name in self._needed if getattr(found, name, None) is None)
        if missing:
            self._parser.error(f"Flag --{missing[0]} must have a value other than None.")
        self.__dict__["_value_by_name"] = vars(found)
        result: list[str] = rest
        return result

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        if name not in self._values():
            raise AttributeError(f"no flag is defined with the name {name!r}")
        return self._values()[name]

    def __setattr__(self, name: str, value: Any) -> None:
        self._values()[name] = value

    def __call__(self, argv: Any, known_only: bool = False) -> list[str]:
        """Takes the flags out of a command line; gives what is left of it."""
        return [argv[0], *self._parse(list(argv)[1:])]

    def _values(self) -> dict[str, Any]:
        if self._value_by_name is None:
            self._parse()
        result: dict[str, Any] = self._value_by_name
        return result

    def _parse_flags(self) -> None:
        self._values()

    mark_as_parsed = _parse_flags

    def is_parsed(self) -> bool:
        """Whether the command line has been looked at."""
        return self._value_by_name is not None

    def flag_values_dict(self) -> dict[str, Any]:
        """All values by name."""
        return dict(self._values())

    def __iter__(self) -> Iterator[str]:
        return iter(self._values())

    def __contains__(self, name: object) -> bool:
        return name in self._values()

    def __getitem__(self, name: str) -> Any:
        """The flag of this name, with its `value`."""
        return SimpleNamespace(name=name, value=self._values()[name], default=self._parser.get_default(name))

    def __repr__(self) -> str:
        return "<the flags of the program>"


FLAGS = _Flags()
public("compat.v1.flags.FLAGS", "compat.v1.app.flags.FLAGS")(FLAGS)


def boolean(text: str) -> bool:
    if text.lower() in ("true", "t", "1", "yes", "y"):
        return True
    if text.lower() in ("false", "f", "0", "no", "n"):
        return False
    raise ValueError(f"a boolean is expected; got {text!r}")


def _definer(kind_name: str, kind: Callable[[str], Any], example: str, **more: Any) -> None:
    def define(name: str, default: Any, help: str | None, **options: Any) -> None:
        FLAGS._define(name, default, help, kind, **more)

    define.__name__ = define.__qualname__ = f"DEFINE_{kind_name}"
    define.__doc__ = f"""A flag of the command line, `--name=value`, found at `tf.flags.FLAGS.name`.

    >>> tf.compat.v1.flags.DEFINE_{kind_name}("a_{kind_name}", {example}, "an example")
    >>> tf.compat.v1.flags.FLAGS.a_{kind_name}
    {example}
    """
    public(f"compat.v1.flags.DEFINE_{kind_name}", f"compat.v1.app.flags.DEFINE_{kind_name}")(define)


def _items(text: str) -> list[str]:
    return [item.strip() for item in text.split(",")] if text else []


_definer("string", str, "'text'")
_definer("list", _items, "['a', 'b']")
for _name, _kind, _example in (("string", str, "['a']"), ("integer", int, "[1, 2]"), ("float", float, "[0.5]")):
    _definer(f"multi_{_name}", _kind, _example, action="append")
_definer("integer", int, "7")
_definer("float", float, "0.5")
for _name in ("boolean", "bool"):
    _definer(_name, boolean, "True", nargs="?", const=True)


@public("compat.v1.flags.DEFINE_enum", "compat.v1.app.flags.DEFINE_enum")
def define_enum(name: str, default: str | None, enum_values: Any, help: str | None, **options: Any) -> None:
    """A flag of the command line that has one of the given values.

    >>> tf.compat.v1.flags.DEFINE_enum("a_mode", "train", ["train", "test"], "an example")
    >>> tf.compat.v1.flags.FLAGS.a_mode
    'train'
    """
    FLAGS._define(name, default, help, str, choices=list(enum_values))


@public("compat.v1.flags.mark_flag_as_required", "compat.v1.app.flags.mark_flag_as_required")
def mark_flag_as_required(flag_name: str, flag_values: Any = None) -> None:
    """From now on the program needs a value for the flag.

    >>> tf.compat.v1.flags.DEFINE_string("a_needed_flag", "given", "an example")
    >>> tf.compat.v1.flags.mark_flag_as_required("a_needed_flag")
    """
    FLAGS._needed.add(flag_name)


@public("compat.v1.flags.mark_flags_as_required", "compat.v1.app.flags.mark_flags_as_required")
def mark_flags_as_required(flag_names: Any, flag_values: Any = None) -> None:
    """The same for several flags.

    >>> tf.compat.v1.flags.mark_flags_as_required([])
    """
    for name in flag_names:
        mark_flag_as_required(name)


@public("compat.v1.app.run")
def run(main: Callable[[list[str]], Any] | None = None, argv: list[str] | None = None) -> None:
    """Calls `main(argv)`, the flags taken out, and ends the program with its result.

    >>> try:
    ...     tf.compat.v1.app.run(lambda argv: 3, argv=["program"])
    ... except SystemExit as end:
    ...     print(end.code)
    3
    """
    main = main or sys.modules["__main__"].main
    rest = FLAGS._parse() if argv is None else argv[1:]
    sys.exit(main([(argv or sys.argv)[0], *rest]))


_LEVELS = {
    "DEBUG": logging.DEBUG,
    "INFO": logging.INFO,
    "WARN": logging.WARNING,
    "ERROR": logging.ERROR,
    "FATAL": logging.FATAL,
}
for _name, _level in _LEVELS.items():
    public(f"compat.v1.logging.{_name}")(_level)


@public("compat.v1.logging.log")
def log_at(level: int, msg: str, *args: Any, **kwargs: Any) -> None:
    """Logs a message at a level.

    >>> tf.compat.v1.logging.log(tf.compat.v1.logging.DEBUG, "%d steps", 10)
    """
    get_logger().log(level, msg, *args, **kwargs)


@public("compat.v1.logging.log_if")
def log_if(level: int, msg: str, condition: Any, *args: Any) -> None:
    """Logs a message at a level if a condition holds.

    >>> tf.compat.v1.logging.log_if(tf.compat.v1.logging.INFO, "%d steps", False, 10)
    """
    if condition:
        get_logger().log(level, msg, *args)


_calls_by_place: dict[tuple[str, int], int] = {}


def _count_calls() -> int:
    """How often the line of the program that calls has called before."""
    frame = sys._getframe(2)
    place = (frame.f_code.co_filename, frame.f_lineno)
    _calls_by_place[place] = count = _calls_by_place.get(place, -1) + 1
    return count


@public("compat.v1.logging.log_every_n")
def log_every_n(level: int, msg: str, n: int, *args: Any) -> None:
    """Logs a message at every `n`-th call from the same line.

    >>> tf.compat.v1.logging.log_every_n(tf.compat.v1.logging.DEBUG, "%d steps", 5, 10)
    """
    log_if(level, msg, _count_calls() % n == 0, *args)


@public("compat.v1.logging.log_first_n")
def log_first_n(level: int, msg: str, n: int, *args: Any) -> None:
    """Logs a message at the first `n` calls from the same line.

    >>> tf.compat.v1.logging.log_first_n(tf.compat.v1.logging.DEBUG, "%d steps", 5, 10)
    """
    log_if(level, msg, _count_calls() < n, *args)


@public("compat.v1.logging.vlog")
def vlog(level: int, msg: str, *args: Any, **kwargs: Any) -> None:
    """Logs a message at a level.

    >>> tf.compat.v1.logging.vlog(tf.compat.v1.logging.DEBUG, "%d steps", 10)
    """
    get_logger().log(level, msg, *args, **kwargs)


@public("compat.v1.logging.TaskLevelStatusMessage")
def task_level_status_message(msg: str) -> None:
    """Logs a message as an error.

    >>> tf.compat.v1.logging.TaskLevelStatusMessage.__name__
    'TaskLevelStatusMessage'
    """
    get_logger().error(msg)


@public("compat.v1.logging.flush")
def flush() -> None:
    """Writes what was logged.

    >>> tf.compat.v1.logging.flush()
    """
    for handler in get_logger().handlers:
        handler.flush()


def _log(name: str, level: int) -> None:
    def log(msg: str, *args: Any, **kwargs: Any) -> None:
        get_logger().log(level, msg, *args, **kwargs)

    log.__name__ = log.__qualname__ = name
    log.__doc__ = f"""Logs a message as {name}.

    >>> tf.compat.v1.logging.{name}("%d steps", 10) if "{name}" == "debug" else None
    """
    public(f"compat.v1.logging.{name}")(log)


for _name, _key in (("debug", "DEBUG"), ("info", "INFO"), ("warn", "WARN"), ("warning", "WARN"),
                    ("error", "ERROR"), ("fatal", "FATAL")):  # fmt: skip
    _log(_name, _LEVELS[_key])


@public("compat.v1.logging.set_verbosity")
def set_verbosity(v: int) -> None:
    """Messages below this level are not shown.

    >>> tf.compat.v1.logging.set_verbosity(tf.compat.v1.logging.ERROR)
    """
    get_logger().setLevel(v)


@public("compat.v1.logging.get_verbosity")
def get_verbosity() -> int:
    """The level below which messages are not shown.

    >>> tf.compat.v1.logging.set_verbosity(tf.compat.v1.logging.WARN)
    >>> tf.compat.v1.logging.get_verbosity()
    30
    """
    return get_logger().getEffectiveLevel()
