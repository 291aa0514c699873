"""How the functions of a SavedModel are called: their parameters as messages, and what signatures take and give."""

from __future__ import annotations

import inspect
import itertools
from collections import namedtuple
from typing import Any, NamedTuple

from tapeflow._src import _core
from tapeflow._src.function.concrete import ConcreteFunction
from tapeflow._src.function.function import Function
from tapeflow._src.function.spec_messages import encode
from tapeflow._src.io.protos import messages
from tapeflow._src.types import nest
from tapeflow._src.types.tensor_spec import CompositeTensor, TensorSpec

COMPILES = (None, True, False)  # `jit_compile` by its number in messages

FullArgSpec = namedtuple(
    "FullArgSpec", ["args", "varargs", "varkw", "defaults", "kwonlyargs", "kwonlydefaults", "annotations"]
)


def signature_inputs(concrete: ConcreteFunction) -> dict[str, TensorSpec]:
    """The tensors that a signature takes, by name, in the order of the graph."""
    names = concrete._arg_keywords
    if len(set(names)) != len(names):
        raise ValueError(f"saved_model.save: the arguments of a signature must have different names; got {names}")
    return dict(zip(names, concrete.signature.tensor_specs))


def signature_defaults(concrete: ConcreteFunction) -> dict[str, Any]:
    """The tensors that are the defaults of parameters, by the names of the inputs that they stand for."""
    signature, names = concrete._parameters.parameters, iter(concrete._arg_keywords)
    args, _ = concrete.structured_input_signature
    parameters = [] if signature is None else list(signature.parameters.values())
    found: dict[str, Any] = {}
    for arg, parameter in itertools.zip_longest(args, parameters[: len(args)]):
        inputs = [next(names, "") for spec in nest.flatten(arg, expand_composites=True) if isinstance(spec, TensorSpec)]
        leaves = [] if parameter is None else nest.flatten(parameter.default, expand_composites=True)
        if len(leaves) == len(inputs):
            found.update((name, leaf) for name, leaf in zip(inputs, leaves) if isinstance(leaf, _core.Tensor))
    return found


class SignatureOutput(NamedTuple):
    """One result of a signature: the tensors that it consists of, and their places among the outputs of the graph."""

    value: Any
    tensors: list[Any]
    places: list[int]


def signature_outputs(key: str, concrete: ConcreteFunction) -> dict[str, SignatureOutput]:
    """The results of a signature, by name."""
    result = concrete.traced_result
    if isinstance(result, dict):
        named = dict(result)
    elif hasattr(result, "_asdict"):
        named = result._asdict()
    else:
        parts = list(result) if isinstance(result, list | tuple) else [] if result is None else [result]
        named = {f"output_{i}": part for i, part in enumerate(parts)}
    place_by_id = {id(t): i for i, t in enumerate(concrete.graph.outputs)}
    found = {}
    for name, value in named.items():
        if not isinstance(name, str) or not isinstance(value, _core.Tensor | CompositeTensor):
            raise ValueError(
                f"saved_model.save: the signature {key!r} must give a tensor, a list of tensors, or a dictionary of "
                f"tensors by name; got {result!r}"
            )
        tensors = nest.flatten(value, expand_composites=True)
        found[name] = SignatureOutput(value, tensors, [place_by_id[id(t)] for t in tensors])
    return found


def function_spec(function: Function) -> Any:
    """The parameters of a function, and whether it is to be compiled."""
    spec = _spec_of(function._signature, function.input_signature)
    spec.jit_compile = COMPILES.index(function._jit_compile)
    return spec


def concrete_spec(concrete: ConcreteFunction) -> Any:
    """The parameters of a concrete function: its tensors by name, or, if it has values of Python too, all of them."""
    args, kwargs = concrete.structured_input_signature
    names = list(concrete._arg_keywords)
    single = [isinstance(arg, TensorSpec) for arg in args]
    if not kwargs and len(args) == len(names) and all(single):
        return argument_spec(names)
    parameters = concrete._parameters.parameters
    count = (
        sum(p.kind is not inspect.Parameter.KEYWORD_ONLY for p in parameters.parameters.values()) if parameters else 0
    )
    if count >= len(args):
        return _spec_of(concrete._parameters, None)
    if len(names) != sum(single):  # a structure is one argument of several tensors
        names = [f"argument_{i}" for i in range(len(args))]
    return argument_spec([*names[: len(args)], *(f"argument_{i}" for i in range(len(names), len(args)))])


def _spec_of(signature: Any, input_signature: Any) -> Any:
    spec = messages.FunctionSpec()
    parameters = list(signature.parameters.parameters.values()) if signature.parameters else []
    kinds = inspect.Parameter
    positional = [p for p in parameters if p.kind in (kinds.POSITIONAL_ONLY, kinds.POSITIONAL_OR_KEYWORD)]
    named = [p for p in parameters if p.kind is kinds.KEYWORD_ONLY]
    defaults = [_plain(p.default) for p in positional if p.default is not kinds.empty]
    full = FullArgSpec(
        [p.name for p in positional],
        next((p.name for p in parameters if p.kind is kinds.VAR_POSITIONAL), None),
        next((p.name for p in parameters if p.kind is kinds.VAR_KEYWORD), None),
        tuple(defaults) or None,
        [p.name for p in named],
        {p.name: _plain(p.default) for p in named if p.default is not kinds.empty} or None,
        {},
    )
    spec.fullargspec.CopyFrom(encode(full))
    spec.input_signature.CopyFrom(encode(input_signature))
    return spec


def _plain(value: Any) -> Any:
    try:
        encode(value)
    except TypeError:
        return None
    return value


def argument_spec(names: list[str]) -> Any:
    spec = messages.FunctionSpec()
    spec.fullargspec.CopyFrom(encode(FullArgSpec(names, None, None, None, [], None, {})))
    spec.input_signature.CopyFrom(encode(None))
    return spec


def keyword_spec(names: list[str]) -> Any:
    spec = messages.FunctionSpec()
    spec.fullargspec.CopyFrom(encode(FullArgSpec([], None, None, None, names, None, {})))
    spec.input_signature.CopyFrom(encode(None))
    return spec
