"""Control flow over functions of graphs, as `tensorflow.python.ops.functional_ops` has it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tapeflow._src.namespace import find_public
from tapeflow._src.types import nest


def _listed(results: Any) -> list[Any]:
    return [] if results is None else nest.flatten(results)


def while_(
    input_: Sequence[Any],
    cond: Callable[..., Any],
    body: Callable[..., Any],
    name: str | None = None,
    hostmem: Any = None,
) -> list[Any]:
    """The inputs after `body(*inputs)` as often as `cond(*inputs)` holds."""
    start = [find_public("convert_to_tensor")(value) for value in input_]
    found = find_public("while_loop")(cond, lambda *values: _listed(body(*values)), start, name=name)
    return list(found)


def if_(
    cond: Any, inputs: Sequence[Any], then_branch: Callable[..., Any], else_branch: Callable[..., Any],
    name: str | None = None,
) -> list[Any]:  # fmt: skip
    """What one of two functions gives for the inputs; a number counts as true unless it is 0, a text unless empty."""
    given = [find_public("convert_to_tensor")(value) for value in inputs]
    test = find_public("convert_to_tensor")(cond)
    if test.shape.rank:
        test = find_public("size")(test) > 0
    elif test.dtype == find_public("string"):
        test = find_public("strings.length")(test) > 0
    elif test.dtype != find_public("bool"):
        test = find_public("not_equal")(test, find_public("zeros_like")(test))
    branches = [lambda branch=branch: _listed(branch(*given)) for branch in (then_branch, else_branch)]
    return _listed(find_public("cond")(test, *branches, name=name))


def for_(
    start: Any, limit: Any, delta: Any, inputs: Sequence[Any], body: Callable[..., Any], name: str | None = None,
    hostmem: Any = None, rewrite_with_while: Any = None,
) -> list[Any]:  # fmt: skip
    """The inputs after `body(i, *inputs)` for each number from `start` to `limit`."""
    convert = find_public("convert_to_tensor")
    first, end, step = (convert(value, dtype="int32") for value in (start, limit, delta))
    count = find_public("maximum")(0, (end - first + step - find_public("sign")(step)) // step)

    def advance(i: Any, *values: Any) -> list[Any]:
        return [i + 1, *_listed(body(first + i * step, *values))]

    loop = [convert(0), *(convert(value) for value in inputs)]
    return list(find_public("while_loop")(lambda i, *_: i < count, advance, loop, name=name))[1:]


def case(branch_index: Any, input: Sequence[Any], Tout: Any, branches: Sequence[Any], **_: Any) -> list[Any]:
    """What the branch with a number, or the last one, gives for the inputs."""
    given = [find_public("convert_to_tensor")(value) for value in input]
    functions = [lambda branch=branch: _listed(branch(*given)) for branch in branches]
    return _listed(find_public("switch_case")(find_public("convert_to_tensor")(branch_index), functions))


names_by_path: dict[str, dict[str, Any]] = {
    "python.ops.functional_ops": {"For": for_, "If": if_, "While": while_},
    "python.ops.gen_functional_ops": {"case": case, "stateless_case": case},
}
