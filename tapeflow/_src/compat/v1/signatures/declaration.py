"""The one way to declare the TensorFlow 1 signature of a function that exists today; the tables beside it use it.

A row names the signature as TensorFlow 1 documents it, the public path of today's function, and what lies between them:

    v1_signature(
        "nn.softmax(logits, axis=None, name=None, dim=None)",
        "nn.softmax",
        also=["math.softmax"],
        renamed={"dim": "axis"},
        example="tf.compat.v1.nn.softmax([0., 0.], dim=0) => [0.5, 0.5]",
    )

The call binds the arguments to the signature, passes them by keyword to today's function and applies, in this order:

* `renamed`: a deprecated name of an argument gives its value to today's name. Both at once raise TensorFlow's
  ValueError. An order of arguments that differs needs nothing but the signature.
* `ignored`: arguments without meaning here, such as `use_cudnn_on_gpu`, are dropped.
* `fixed`: arguments of today's function that TensorFlow 1 does not offer get these values.
* `adapt`: a function changes the dictionary of arguments in place, where renaming is not enough. It may raise.
* `function`: what runs instead of today's function, where TensorFlow 1 has an argument with a meaning that is gone,
  such as `partition_strategy`. `target` still gives the docstring.
* an argument that is None is left out if today's function has another default: `keepdims=None` means `keepdims=False`.

Defaults in a signature are Python literals or names of dtypes (`dtype=int32`). The docstring is the first sentence of
today's function, the deprecated names and the example. The result is a plain function with the signature, which
pickles by its public path. To replace a hand-written `*_v1` function, delete it and add a row to the table of its kind
(`arrays`, `math`, `nn`, `sparse`, `strings`, `assertions`, `image`, `io`); what computes something that no function of
today computes is written out in `functions`.
"""

from __future__ import annotations

import ast
import inspect
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

from tapeflow._src.namespace import find_public, public
from tapeflow._src.types.dtypes import as_dtype

Arguments = dict[str, Any]


class Declaration(NamedTuple):
    """One row: the v1 signature, today's function, what runs and receives, and whether `adapt` changes it."""

    signature: inspect.Signature
    target: str
    received: frozenset[str]
    adapted: bool
    function: Callable[..., Any]


declarations: dict[str, Declaration] = {}


def v1_signature(
    signature: str,
    target: str,
    *,
    example: str,
    also: Iterable[str] = (),
    renamed: Mapping[str, str] | None = None,
    ignored: Iterable[str] = (),
    fixed: Mapping[str, Any] | None = None,
    adapt: Callable[[Arguments], None] | None = None,
    function: Callable[..., Any] | None = None,
) -> None:
    """Defines `tf.compat.v1.<path>` with the given signature, through the function at the public path `target`."""
    path, _, parameters = signature.partition("(")
    name = path.rpartition(".")[2]
    v1 = parse_signature(parameters.removesuffix(")"))
    renamed, ignored, fixed = renamed or {}, tuple(ignored), fixed or {}
    today = find_public(target)
    run = today if function is None else function
    received = inspect.signature(run).parameters.values()
    without_none = {p.name for p in received if p.default is not None and p.default is not p.empty}

    def call(*args: Any, **kwargs: Any) -> Any:
        arguments = bind(name, v1, args, kwargs)
        for old, new in renamed.items():
            _rename(arguments, old, new, v1)
        for argument in ignored:
            arguments.pop(argument, None)
        arguments.update(fixed)
        if adapt:
            adapt(arguments)
        return run(**{n: x for n, x in arguments.items() if x is not None or n not in without_none})

    namespace = path.rpartition(".")[0]
    call.__name__ = call.__qualname__ = name
    call.__module__ = ".".join(filter(None, ("tapeflow.compat.v1", namespace)))
    call.__signature__ = v1  # type: ignore[attr-defined]
    call.__doc__ = _docstring(today, target, renamed, example)
    declarations[path] = Declaration(
        v1, target, frozenset(_received(v1, renamed, ignored, fixed)), adapt is not None, run
    )
    public(*(f"compat.v1.{p}" for p in (path, *also)))(call)


def parse_signature(parameters: str) -> inspect.Signature:
    """The signature that a text such as `x, axis=None, dtype=int32` describes."""
    (definition,) = ast.parse(f"def f({parameters}): ...").body
    assert isinstance(definition, ast.FunctionDef)
    names, defaults = definition.args.args, definition.args.defaults
    required = len(names) - len(defaults)
    empty = inspect.Parameter.empty
    values = [empty] * required + [_default(node) for node in defaults]
    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    return inspect.Signature([inspect.Parameter(n.arg, kind, default=v) for n, v in zip(names, values)])


def _default(node: ast.expr) -> Any:
    return as_dtype(node.id) if isinstance(node, ast.Name) else ast.literal_eval(node)


def bind(name: str, signature: inspect.Signature, args: tuple[Any, ...], kwargs: Arguments) -> Arguments:
    """The arguments of a call by name, defaults included."""
    try:
        bound = signature.bind(*args, **kwargs)
    except TypeError as error:
        raise TypeError(f"{name}() {error}") from None
    bound.apply_defaults()
    return bound.arguments


def _rename(arguments: Arguments, old: str, new: str, signature: inspect.Signature) -> None:
    """Moves the value of a deprecated argument to its name of today; a default of the deprecated one gives way."""
    value = arguments.pop(old)
    if arguments.get(new) is None:
        arguments[new] = value
    elif value is not None and value is not signature.parameters[old].default:
        raise ValueError(f"Cannot specify both '{old}' and '{new}'.")


def _received(
    signature: inspect.Signature, renamed: Mapping[str, str], ignored: tuple[str, ...], fixed: Mapping[str, Any]
) -> set[str]:
    names = (renamed.get(name, name) for name in signature.parameters if name not in ignored)
    return {*names, *fixed}


def _docstring(function: Any, target: str, renamed: Mapping[str, str], example: str) -> str:
    sentence = inspect.cleandoc(function.__doc__).partition("\n\n")[0]
    names = "".join(f" `{old}` is a deprecated name of `{new}`." for old, new in renamed.items())
    call, _, value = example.replace("\n", "\n>>> ").partition(" => ")
    return f"{sentence}\n\n`tf.{target}` with the signature of TensorFlow 1.{names}\n\n>>> {call}\n{value}\n"
