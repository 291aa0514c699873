"""`tf.__internal__.test.combinations`: one test method for all combinations of arguments, under chosen contexts."""

from __future__ import annotations

import functools
import inspect
import re
import types
import unittest
from collections import OrderedDict
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from typing import Any

from absl.testing import parameterized

from tapeflow._src.compat.tensorflow.inner_modules import execution_context
from tapeflow._src.compat.v1.graph.graph import Graph
from tapeflow._src.namespace import public

Combination = OrderedDict[str, Any]


@public("__internal__.test.combinations.TestCombination")
class TestCombination:
    """Says which combinations are run, with which arguments and in which contexts.

    >>> tf.__internal__.test.combinations.TestCombination().should_execute_combination({})
    (True, None)
    """

    __test__ = False

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"

    def should_execute_combination(self, kwargs: dict[str, Any]) -> tuple[bool, str | None]:
        """Whether a combination is run, and why not."""
        return (True, None)

    def parameter_modifiers(self) -> list[ParameterModifier]:
        """What changes the arguments before the test gets them."""
        return []

    def context_managers(self, kwargs: dict[str, Any]) -> list[Any]:
        """The blocks in which the test runs."""
        return []


@public("__internal__.test.combinations.ParameterModifier")
class ParameterModifier:
    """Changes arguments before the test gets them.

    >>> tf.__internal__.test.combinations.ParameterModifier("x").modified_arguments({}, [])
    {}
    """

    DO_NOT_PASS_TO_THE_TEST = object()

    def __init__(self, parameter_name: str | None = None) -> None:
        self._parameter_name = parameter_name

    def modified_arguments(self, kwargs: dict[str, Any], requested_parameters: Sequence[str]) -> dict[str, Any]:
        """The arguments that change."""
        return {}

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and self._parameter_name == getattr(other, "_parameter_name", None)

    def __hash__(self) -> int:
        return hash(self._parameter_name or type(self))


@public("__internal__.test.combinations.OptionalParameter")
class OptionalParameter(ParameterModifier):
    """A parameter that a test may leave out of its signature.

    >>> modifier = tf.__internal__.test.combinations.OptionalParameter("mode")
    >>> list(modifier.modified_arguments({"mode": "eager"}, []))
    ['mode']
    """

    def modified_arguments(self, kwargs: dict[str, Any], requested_parameters: Sequence[str]) -> dict[str, Any]:
        name = str(self._parameter_name)
        return {} if name in requested_parameters else {name: self.DO_NOT_PASS_TO_THE_TEST}


@public("__internal__.test.combinations.NamedObject")
class NamedObject:
    """An object with a name for the tests that get it.

    >>> tf.__internal__.test.combinations.NamedObject("one", 1)
    one
    """

    def __init__(self, name: str, obj: Any) -> None:
        self._name, self._obj = name, obj

    def __getattr__(self, name: str) -> Any:
        return getattr(self._obj, name)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._obj(*args, **kwargs)

    def __iter__(self) -> Any:
        return iter(self._obj)

    def __repr__(self) -> str:
        return self._name


@public("__internal__.test.combinations.combine")
def combine(**kwargs: Any) -> list[Combination]:
    """All combinations of the values that the lists give.

    >>> len(tf.__internal__.test.combinations.combine(a=[1, 2], b=[3, 4], c=5))
    4
    """
    combinations: list[Combination] = [OrderedDict()]
    for name in sorted(kwargs):
        values = kwargs[name] if isinstance(kwargs[name], list) else [kwargs[name]]
        combinations = [OrderedDict([*known.items(), (name, value)]) for known in combinations for value in values]
    return combinations


@public("__internal__.test.combinations.times")
def times(*combined: list[Combination]) -> list[Combination]:
    """All combinations of the combinations in each list.

    >>> combine = tf.__internal__.test.combinations.combine
    >>> len(tf.__internal__.test.combinations.times(combine(a=[1, 2]), combine(b=[3, 4])))
    4
    """
    result: list[Combination] = [OrderedDict()]
    for combinations in combined:
        for known in result:
            if any(known.keys() & more.keys() for more in combinations):
                raise ValueError(f"Keys need to not overlap: {known.keys()} vs {combinations[0].keys()}")
        result = [OrderedDict([*known.items(), *more.items()]) for known in result for more in combinations]
    return result


class EagerGraphCombination(TestCombination):
    """Runs tests with `mode="eager"` or `mode="graph"` in that mode."""

    def context_managers(self, kwargs: dict[str, Any]) -> list[Any]:
        mode = kwargs.pop("mode", None)
        if mode is None:
            return []
        if mode == "eager":
            return [execution_context.eager_mode()]
        if mode == "graph":
            return [Graph().as_default(), execution_context.graph_mode()]
        raise ValueError(f"Argument 'mode' must be either 'eager' or 'graph'. Received: {mode}.")

    def parameter_modifiers(self) -> list[ParameterModifier]:
        return [OptionalParameter("mode")]


class TFVersionCombination(TestCombination):
    """Runs tests with `tf_api_version=2`, and skips those for version 1."""

    def should_execute_combination(self, kwargs: dict[str, Any]) -> tuple[bool, str | None]:
        if kwargs.pop("tf_api_version", None) == 1:
            return (False, "Skipping a TF1.x test when TF2 is enabled.")
        return (True, None)

    def parameter_modifiers(self) -> list[ParameterModifier]:
        return [OptionalParameter("tf_api_version")]


def _text(value: Any, index: int) -> str:
    return "".join(filter(str.isalnum, re.sub("0[xX][0-9a-fA-F]+", str(index), str(value))))


def _named(combination: Combination) -> Combination:
    parts = (f"_{_text(key, i)}_{_text(value, i)}" for i, (key, value) in enumerate(combination.items()))
    return OrderedDict([*combination.items(), ("testcase_name", f"_test{''.join(parts)}")])


def generate_for(combinations: list[Combination], test_combinations: Sequence[TestCombination] = ()) -> Any:
    """A decorator of a test method or class: it runs for all combinations of arguments."""
    named = [_named(combination) for combination in combinations]

    def decorate(tests: Any) -> Any:
        if not isinstance(tests, type):
            cases: Any = parameterized.named_parameters(*named)  # type: ignore[no-untyped-call]
            return cases(_in_contexts(tests, test_combinations))
        methods = {
            name: method
            for name, method in list(vars(tests).items())
            if name.startswith(unittest.TestLoader.testMethodPrefix) and isinstance(method, types.FunctionType)
        }
        for name, method in methods.items():
            delattr(tests, name)
            for combination in named:
                arguments = {key: value for key, value in combination.items() if key != "testcase_name"}
                run = functools.partialmethod(_in_contexts(method, test_combinations), **arguments)
                setattr(tests, f"{name}{combination['testcase_name']}", run)
        return tests

    return decorate


class _Generate(functools.partial[Any]):
    """A decorator of a test method or class: it runs for all combinations of arguments.

    >>> combine = tf.__internal__.test.combinations.combine
    >>> callable(tf.__internal__.test.combinations.generate(combine(mode=["graph", "eager"])))
    True
    """


generate = public("__internal__.test.combinations.generate")(
    _Generate(generate_for, test_combinations=(EagerGraphCombination(), TFVersionCombination()))
)


def _in_contexts(method: Callable[..., Any], test_combinations: Sequence[TestCombination]) -> Callable[..., Any]:
    requested = [name for name in inspect.getfullargspec(method).args if name != "self"]

    @functools.wraps(method)
    def test(self: Any, **kwargs: Any) -> None:
        verdicts = [combination.should_execute_combination(dict(kwargs)) for combination in test_combinations]
        reasons = [f" - {reason}" for executes, reason in verdicts if not executes]
        if reasons:
            self.skipTest("\n".join(reasons))
        arguments = dict(kwargs)
        for modifier in {m for combination in test_combinations for m in combination.parameter_modifiers()}:
            for name, value in modifier.modified_arguments(dict(kwargs), requested).items():
                if value is ParameterModifier.DO_NOT_PASS_TO_THE_TEST:
                    arguments.pop(name, None)
                else:
                    arguments[name] = value
        if arguments.keys() != set(requested):
            raise ValueError(
                f"The test takes the parameters {sorted(requested)}, and got arguments for {sorted(arguments)}."
            )
        with ExitStack() as contexts:
            for combination in test_combinations:
                for context in combination.context_managers(dict(kwargs)):
                    contexts.enter_context(context)
            method(self, **arguments)

    del test.__wrapped__  # a test runner would take its parameters for fixtures
    return test
