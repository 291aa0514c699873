"""Concrete functions: one traced graph, what it takes and what it gives."""

from __future__ import annotations

import functools
import inspect
import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from tapeflow._src import _core
from tapeflow._src.control_flow.tracing import FuncGraph, awaiting
from tapeflow._src.function import drawing
from tapeflow._src.function.atomic import AtomicFunction
from tapeflow._src.function.casting import cast_to_spec
from tapeflow._src.function.function_type import FunctionType, Parameter
from tapeflow._src.function.signature import CallSignature, Signature, spec_text
from tapeflow._src.namespace import lazy_members
from tapeflow._src.ops.arrays.conversion import convert_to_tensor
from tapeflow._src.primitives import Identity
from tapeflow._src.types import nest
from tapeflow._src.types.errors import InvalidArgumentError
from tapeflow._src.types.tensor_shape import TensorShape
from tapeflow._src.types.tensor_spec import TensorSpec, TypeSpec, VariableSpec

_numbers = itertools.count()


@lazy_members("tapeflow._src.compat.v1.graph.graph_def.ConcreteDefinition", "function_def")
class ConcreteFunction(_core.FunctionBase):
    """One traced graph of a function: what it takes, and what it gives."""

    def __init__(
        self, graph: FuncGraph, call: CallSignature, structure: Any, leaves: list[Any], signature: Signature
    ) -> None:
        self.graph, self.signature = graph, call
        self.name = f"__inference_{graph.name}_{next(_numbers)}".encode()
        self._structure, self._leaves, self._parameters = structure, leaves, signature
        graph.describe_inputs = functools.partial(_described_inputs, call, signature)
        graph.describe_outputs = functools.partial(_structured, structure, leaves)
        self._call_cache = _core.CallCache()
        self._share(self._call_cache, _core.CallCounter())

    def add_to_graph(self, g: Any = None, overwrite: bool = False) -> None:
        """Makes the function known to a graph: graphs find the functions that they call without it."""

    def add_gradient_functions_to_graph(self, g: Any = None) -> None:
        """Makes the gradient known to a graph: it is found where it is needed."""

    def call_flat(self, tensors: list[Any]) -> Any:
        """The result for the flat list of tensors that the signature names."""
        if not self.graph.outputs:
            around = _core.current_graph()
            if around is not None and around.graph_mode:  # the caller may run it, or let others wait for it
                with awaiting(around, [self.graph]):
                    return around.operation_of_call(lambda: self.graph.call([*tensors, *self.graph.captures]))
        if self.graph.awaited and (around := _core.current_graph()) is not None:
            with awaiting(around, [self.graph]):
                return self.pack([Identity(x) for x in self.graph.call([*tensors, *self.graph.captures])])
        return self.pack(self.graph.call([*tensors, *self.graph.captures]))

    @functools.cached_property
    def inference_fn(self) -> AtomicFunction:
        """The graph as a plain function of tensors, without gradients."""
        return AtomicFunction(self)

    def pack(self, tensors: Iterable[Any]) -> Any:
        """The result, from the flat list of what the graph gives."""
        found = iter(tensors)
        if self._all_tensors:
            return self._packer(found)
        return self._packer(next(found) if leaf is True else leaf for leaf in self._leaves)

    @functools.cached_property
    def _all_tensors(self) -> bool:
        """Whether the graph gives all leaves of the result."""
        return all(leaf is True for leaf in self._leaves)

    @functools.cached_property
    def _packer(self) -> Callable[[Iterator[Any]], Any]:
        return nest.packer(self._structure)

    def _call(self, *args: Any, **kwargs: Any) -> Any:
        try:
            tensors = self._by_structure(args, kwargs)
        except TypeError as error:
            try:
                tensors = self._by_name(args, kwargs)
            except TypeError as second:
                raise TypeError(f"{error}\nFallback to flat signature also failed due to: {second}") from None
        for number, (tensor, spec) in enumerate(zip(tensors, self.signature.tensor_specs)):
            if tensor.dtype != spec.dtype:
                raise InvalidArgumentError.of(
                    f"cannot compute {self.name.decode()} as input #{number}(zero-based) was expected to be a "
                    f"{spec.dtype.name} tensor but is a {tensor.dtype.name} tensor",
                )
        unfit = [
            (t, s) for t, s in zip(tensors, self.signature.tensor_specs) if not t.shape.is_compatible_with(s.shape)
        ]
        if not unfit:
            leaves = nest.flatten([args, kwargs])
            self._call_cache.add(args, kwargs, leaves, list(tensors), self.graph, self.traced_result, self.pack, True)
        elif _core.is_tracing():  # the graph itself may take other shapes, but what is traced relies on this one
            own, wanted = TensorSpec(unfit[0][0].shape, unfit[0][0].dtype), unfit[0][1]
            raise TypeError(self._failure(f"Can not cast {own!r} to {wanted!r}", args, kwargs))
        return self.call_flat(tensors)

    def _by_structure(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[Any]:
        """The tensors of a call with arguments like those the graph was traced with."""
        known_args, known_kwargs = self.signature.described()
        names = self._parameters.argument_names(known_args, {})
        given = dict(kwargs)
        values = [*args, *(given.pop(n) for n in names[len(args) :] if n in given)]
        # Arguments that are no tensors were fixed by the trace, and may be left out.
        for known in known_args[len(values) :]:
            if _holds_tensors(known):
                raise TypeError(self._failure(f"missing a required argument: '{names[len(values)]}'", args, kwargs))
            values.append(known)
        if len(values) > len(known_args):
            raise TypeError(self._failure("too many positional arguments", args, kwargs))
        for name, known in known_kwargs.items():
            if name not in given and _holds_tensors(known):
                raise TypeError(self._failure(f"missing a required argument: '{name}'", args, kwargs))
        order = sorted(known_kwargs)  # that of the inputs of the graph
        named = [given.pop(name, known_kwargs[name]) for name in order]
        if given:
            raise TypeError(self._failure(f"got an unexpected keyword argument '{next(iter(given))}'", args, kwargs))
        tensors: list[Any] = []
        for known, value in zip([*known_args, *(known_kwargs[name] for name in order)], [*values, *named]):
            tensors += self._tensors_of(known, value, args, kwargs)
        return tensors

    def _tensors_of(self, known: Any, value: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[Any]:
        if not _holds_tensors(known):
            traced = _core.is_tracing() and _core.is_tensor(value)
            if traced or (value is not known and value != known):
                raise TypeError(self._failure(f"Can not cast {value!r} to {spec_text(known)}", args, kwargs))
            return []
        specs = nest.flatten(known, expand_composites=True)
        found = nest.flatten(value, expand_composites=True) if nest.is_nested(known) or len(specs) > 1 else [value]
        if len(found) != len(specs) or any(isinstance(x, TensorSpec) for x in found):
            raise TypeError(self._failure(_mismatch(known, value), args, kwargs))
        for x, spec in zip(found, specs):
            if not isinstance(spec, TensorSpec) and x is not spec and (_core.is_tensor(x) or x != spec):
                raise TypeError(self._failure(f"Can not cast {x!r} to {spec_text(spec)}", args, kwargs))
        try:
            return [_as_tensor(x, spec) for x, spec in zip(found, specs) if isinstance(spec, TensorSpec)]
        except (TypeError, ValueError) as error:
            raise TypeError(self._failure(str(error), args, kwargs)) from None

    def _by_name(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[Any]:
        """The tensors of a call that gives them one by one, by position or by the names of the inputs."""
        names = self._argument_names()
        head = f"{self.graph.name}({', '.join(names)})"
        limit = len(names) if self.positional_limit is None else min(self.positional_limit, len(names))
        if len(args) > limit:
            raise TypeError(f"{head} takes {limit} positional arguments, got {len(args)}.")
        for name in kwargs:
            if name in names[: len(args)]:
                raise TypeError(f"{head} got two values for {name!r}.")
        extra = [n for n in kwargs if n not in names[len(args) :]]
        if extra:
            raise TypeError(f"{head} got unexpected keyword arguments: {', '.join(extra)}.")
        missing = [n for n in names[len(args) :] if n not in kwargs]
        if missing:
            raise TypeError(f"{head} missing required arguments: {', '.join(missing)}.")
        tensors = [*args, *(kwargs[n] for n in names[len(args) :])]
        for number, tensor in enumerate(tensors):
            if not _core.is_tensor(tensor):
                raise TypeError(
                    f"{head}: expected argument #{number}(zero-based) to be a Tensor; got {type(tensor).__name__} "
                    f"({tensor})."
                )
        return [convert_to_tensor(t) for t in tensors]

    def _call_with_flat_signature(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        return self.call_flat(self._by_name(args, kwargs))

    def _argument_names(self) -> list[str]:
        return self.graph.input_names[: len(self.signature.tensor_specs)]

    def _failure(self, problem: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> str:
        return (
            f"Binding inputs to tf.function failed due to `{problem}`. Received args: {args} and kwargs: {kwargs} for "
            f"signature: {self._signature_text()}."
        )

    # ---- what it is

    _arg_keywords = property(_argument_names)
    inputs = property(lambda self: self.graph.inputs)
    outputs = property(lambda self: self.graph.outputs)
    variables = property(lambda self: self.graph.variables)
    trainable_variables = property(lambda self: self.graph.trainable_variables)
    captured_inputs = property(lambda self: [*self.graph.captures, *self.graph.variables])
    output_dtypes = property(lambda self: self._structured([t.dtype for t in self.graph.outputs]))
    output_shapes = property(lambda self: self._structured([t.shape for t in self.graph.outputs], TensorShape(None)))

    def _structured(self, values: list[Any], for_none: Any = None) -> Any:
        return _structured(self._structure, self._leaves, values, for_none)

    positional_limit: int | None = None  # so many tensors may be given without names, if it is a saved function
    output_specs: Any = None  # of the result of a saved function, as the file names them

    @property
    def structured_outputs(self) -> Any:
        """The result with the graph's tensors in it; of a loaded function, with specifications."""
        return self.traced_result if self.output_specs is None else self.output_specs

    @property
    def traced_result(self) -> Any:
        """The result with the graph's tensors in it."""
        return self._structured(self.graph.outputs)

    @property
    def structured_input_signature(self) -> tuple[Any, Any]:
        """The arguments with a `tf.TensorSpec` for each tensor."""
        return _described_inputs(self.signature, self._parameters)

    @property
    def function_type(self) -> FunctionType:
        """The arguments, the captured tensors and the result, each with its specification."""
        args, kwargs = self.signature.described()
        names = self._parameters.argument_names(args, kwargs)
        kinds = _kinds(self._parameters, len(args), len(kwargs))
        parameters = map(Parameter, names, kinds, [*args, *kwargs.values()])
        captures = {id(t): TensorSpec(t.shape, t.dtype) for t in self.captured_inputs}
        output = self._structured([TensorSpec(t.shape, t.dtype) for t in self.graph.outputs])
        return FunctionType(parameters, captures, output)

    def pretty_printed_signature(self, verbose: bool = True) -> str:
        """The arguments, the result and the captures, one per line; unless `verbose`, all but the captures in one."""
        if not verbose:
            return self._signature_text()
        args, kwargs = self.signature.described()
        names = self._parameters.argument_names(args, kwargs)
        kinds = _kinds(self._parameters, len(args), len(kwargs))
        lines = [f"  {n} ({k}): {spec_text(v)}" for n, k, v in zip(names, kinds, [*args, *kwargs.values()])]
        captures = [f"  {id(t)}: {spec_text(t)}" for t in self.captured_inputs]
        return "\n".join(
            ["Input Parameters:", *(lines or ["  None"]), "Output Type:", f"  {spec_text(self.structured_outputs)}"]
            + ["Captures:", *(captures or ["  None"])]
        )

    def _signature_text(self) -> str:
        args, kwargs = self.signature.described()
        names = self._parameters.argument_names(args, kwargs)
        parts = [f"{n}: {spec_text(v)}" for n, v in zip(names, [*args, *kwargs.values()])]
        return f"({', '.join(parts)}) -> {spec_text(self.structured_outputs)}"

    def text(self) -> str:
        """The nodes of the graph, one per line."""
        return drawing.text(self.graph)

    def compiler_ir(self, stage: str, shapes: list[Any]) -> str:
        """The text of the graph, or of the planner's IR after a pass; the first inputs have these shapes."""
        passes = _core.pass_names()
        if stage in ("hlo", "hlo_no_metadata"):
            return self.text()
        name = passes[-1] if stage == "optimized_hlo" else stage.removeprefix("after-")
        if name not in passes or stage == name:
            stages = ["hlo", "hlo_no_metadata", "optimized_hlo", *(f"after-{name}" for name in passes)]
            raise ValueError(f"experimental_get_compiler_ir: stage must be one of {stages}; got {stage!r}.")
        return self.graph.compiler_ir(name, shapes)  # type: ignore[no-any-return]

    def graph_svg(self) -> str:
        """The graph as a drawing."""
        return drawing.svg(self.graph)

    def __repr__(self) -> str:
        return f"<ConcreteFunction {self._signature_text()} at 0x{id(self):X}>"

    def __str__(self) -> str:
        return f"ConcreteFunction {self.pretty_printed_signature()}"


def _structured(structure: Any, leaves: list[Any], values: list[Any], for_none: Any = None) -> Any:
    """The values in the structure of a result, of which `leaves` says which parts are tensors."""
    found = iter(values)
    filled = [next(found) if leaf is True else for_none for leaf in leaves]
    return nest.pack_sequence_as(structure, filled, expand_composites=True)


def _described_inputs(call: CallSignature, parameters: Signature) -> tuple[Any, Any]:
    """The arguments of a trace with a specification for each tensor and variable."""
    names = parameters.argument_names(call.args, call.kwargs)
    numbers: dict[int, int] = {}

    def specified(leaf: Any) -> Any:
        if not isinstance(leaf, _core.Variable):
            return leaf
        return VariableSpec(leaf.shape, leaf.dtype, leaf.trainable, numbers.setdefault(id(leaf), len(numbers)))

    args, kwargs = call.described(names)
    return tuple(nest.map_structure(specified, args)), nest.map_structure(specified, kwargs)


def _as_tensor(value: Any, spec: TensorSpec) -> Any:
    """A tensor as it is, whatever its shape: the graph may take it. Python values are made to fit."""
    return convert_to_tensor(value) if _core.is_tensor(value) else cast_to_spec(value, spec)


def _mismatch(known: Any, value: Any) -> str:
    """Why a value is no argument like the one that the graph was traced with."""
    if isinstance(known, Mapping) and not isinstance(value, Mapping):
        return f"Can not cast {value!r} to a Dict type."
    kind = next((kind for kind in (tuple, list) if isinstance(known, kind)), None)
    if kind is not None and not isinstance(value, kind):
        return f"Can not cast {value!r} to {kind.__name__} type."
    if isinstance(known, TypeSpec) and not isinstance(known, TensorSpec):
        return f"The two structures don't have the same nested structure: {spec_text(known)} and {value!r}"
    return f"Can not cast {value!r} to {spec_text(known)}"


def _holds_tensors(described: Any) -> bool:
    return any(isinstance(leaf, TensorSpec) for leaf in nest.flatten(described, expand_composites=True))


def _kinds(signature: Signature, positional: int, named: int) -> list[str]:
    """The kind of each parameter, as `inspect` names it; positional only where any number of them may be given."""
    parameters = [] if signature.parameters is None else list(signature.parameters.parameters.values())
    kinds = [p.kind.name for p in parameters if p.kind is not inspect.Parameter.KEYWORD_ONLY][:positional]
    if any(p.kind is inspect.Parameter.VAR_POSITIONAL for p in parameters):
        kinds = []
    kinds += ["POSITIONAL_ONLY"] * (positional - len(kinds))
    return kinds + ["KEYWORD_ONLY"] * named
