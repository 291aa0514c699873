"""Functions of a SavedModel: each has the graphs that were saved, and no Python."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

import numpy as np

from tapeflow._src import _core
from tapeflow._src.compat.graph_def.library import FunctionLibrary
from tapeflow._src.function.concrete import ConcreteFunction
from tapeflow._src.function.function import Function
from tapeflow._src.function.signature import CallSignature, spec_text
from tapeflow._src.function.spec_messages import decode
from tapeflow._src.function.trace import running_at_once
from tapeflow._src.io.protos.tensor_messages import shape_of
from tapeflow._src.ops.arrays.conversion import convert_to_tensor
from tapeflow._src.types import nest
from tapeflow._src.types.dtypes import as_dtype
from tapeflow._src.types.errors import DataLossError
from tapeflow._src.types.nest_paths import flatten_up_to
from tapeflow._src.types.tensor_spec import CompositeTensor, TensorSpec, TypeSpec, type_spec_from_value


class RestoredTrace:
    """One saved graph: what it takes, what it gives, and what it captured. It is traced when it is first needed."""

    def __init__(
        self,
        library: FunctionLibrary,
        name: str,
        saved: Any,
        captures: Callable[[], list[Any]],
        resources: dict[str, Any],
    ) -> None:
        self.library, self.name = library, name
        self._captures, self._resources = captures, resources
        self.args: tuple[Any, ...]
        self.kwargs: dict[str, Any]
        described = decode(saved.canonicalized_input_signature)
        self.is_flat = described is None  # takes tensors only, as a function whose variables became constants
        self.args, self.kwargs = (self._flat_args(len(saved.bound_inputs)), {}) if described is None else described
        self.output = decode(saved.output_signature)
        self.input_names: list[str] = []
        self.parameters: inspect.Signature | None = None
        self.positional_limit: int | None = None
        self._first_tensors: list[Any] = []

    def _flat_args(self, captured: int) -> tuple[TensorSpec, ...]:
        function = self.library.find(self.name)
        taken = function.signature.input_arg[: len(function.signature.input_arg) - captured]
        found = []
        for place, arg in enumerate(taken):
            attributes = function.arg_attr[place].attr if place in function.arg_attr else {}
            shapes = attributes["_output_shapes"].list.shape if "_output_shapes" in attributes else ()
            found.append(TensorSpec(shape_of(shapes[0]) if shapes else None, as_dtype(arg.type), arg.name))
        return tuple(found)

    def concrete_for(self, tensors: list[Any]) -> ConcreteFunction:
        """The graph. While it is made, what depends on values may look at those of the first call."""
        if "concrete" not in self.__dict__:
            self._first_tensors = [] if any(map(_core.is_symbolic, tensors)) else tensors
        return self.concrete

    @functools.cached_property
    def concrete(self) -> ConcreteFunction:
        """The graph."""
        function = Function(self._named_run(), self.name.removeprefix("__inference_"), autograph=False)
        call = CallSignature(tuple(self.args), self.kwargs)
        if self._first_tensors:
            call.tensors, self._first_tensors = list(self._first_tensors), []
        with running_at_once():
            found = function._trace_once(call, None, False)
        names = [arg.name for arg in self.library.find(self.name).signature.input_arg]
        count = len(found.signature.tensor_specs)
        found.graph.input_names = (self.input_names or names)[:count]
        found.name = self.name.encode()
        found.output_specs, found.positional_limit = self.output, self.positional_limit
        return found

    def _named_run(self) -> Callable[..., Any]:
        """`run` with the parameters of the function that was saved, if they are known."""

        def run(*args: Any, **kwargs: Any) -> Any:
            return self.run(*args, **kwargs)

        if self.parameters is not None:
            try:
                self.parameters.bind(*self.args, **self.kwargs)
            except TypeError:
                return run
            run.__signature__ = self.parameters  # type: ignore[attr-defined]
        return run

    def run(self, *args: Any, **kwargs: Any) -> Any:
        """What the graph gives: at once, or in the graph that is being traced."""
        leaves = nest.flatten([list(args), kwargs], expand_composites=True)
        return self.run_flat([leaf for leaf in leaves if isinstance(leaf, _core.Tensor)])

    def run_flat(self, tensors: list[Any]) -> Any:
        """What the graph gives for tensors."""
        return self.packed(self.library.call(self.name, [*tensors, *self._captures()], self._resources))

    def packed(self, tensors: list[Any]) -> Any:
        """The flat list of outputs in the structure of the result."""
        rest = iter(tensors)
        wanted = [leaf for leaf in nest.flatten(self.output, expand_composites=True) if isinstance(leaf, TensorSpec)]
        if len(wanted) != len(tensors):
            raise DataLossError.of(f"{self.name} gives {len(tensors)} tensors, and its signature says {len(wanted)}")

        def value(leaf: Any) -> Any:
            if isinstance(leaf, TensorSpec):
                return next(rest)
            if isinstance(leaf, TypeSpec):
                parts = nest.flatten(leaf, expand_composites=True)
                return nest.pack_sequence_as(leaf, [next(rest) for _ in parts], expand_composites=True)
            return leaf

        return nest.map_structure(value, self.output)

    def tensors_of(self, args: tuple[Any, ...], kwargs: dict[str, Any], converts: bool) -> list[Any] | None:
        """The tensors of a call, if it is like the one that was saved; with `converts`, also of what can become one."""
        known, given = [list(self.args), self.kwargs], [list(args), kwargs]
        try:
            values = flatten_up_to(known, given, check_types=False)
        except (TypeError, ValueError):
            return None
        tensors: list[Any] = []
        for spec, value in zip(nest.flatten(known), values):
            found = _fitting(spec, value, converts)
            if found is None:
                return None
            tensors += found
        return tensors


def _fitting(spec: Any, value: Any, converts: bool) -> list[Any] | None:
    """The tensors of a value that fits a specification or equals a Python value; None if it does not."""
    if isinstance(value, TypeSpec):
        fits = isinstance(spec, TypeSpec) and spec.is_compatible_with(value)
        return nest.flatten(value, expand_composites=True) if fits else None
    if isinstance(spec, TensorSpec):
        if not isinstance(value, _core.Tensor):
            plain = isinstance(value, np.ndarray | np.generic | _core.Variable) or _core.is_tensor(value)
            if isinstance(value, CompositeTensor) or value is None or not (converts or plain):
                return None
            try:
                value = convert_to_tensor(value, dtype_hint=spec.dtype)
            except (TypeError, ValueError):
                return None
        fits = value.dtype == spec.dtype and spec.shape.is_compatible_with(value.shape)
        return [value] if fits else None
    if isinstance(spec, TypeSpec):
        try:
            fits = spec.is_compatible_with(type_spec_from_value(value))
        except TypeError:
            return None
        return nest.flatten(value, expand_composites=True) if fits else None
    if spec is value:
        return []
    if _core.is_tensor(value):  # a value of Python was fixed when the graph was traced
        return None
    try:
        return [] if bool(spec == value) else None
    except (TypeError, ValueError):
        return None


class RestoredFunction(Function):
    """A function of a SavedModel: calls run the saved graph that takes such arguments; others are refused."""

    def __init__(
        self,
        name: str,
        traces: list[RestoredTrace],
        parameters: inspect.Signature | None,
        input_signature: Any = None,
        jit_compile: bool | None = None,
    ) -> None:
        self._saved = traces

        def run(*args: Any, **kwargs: Any) -> Any:
            trace, _, _ = self._match(self._signature.bind(args, kwargs))
            return trace.run(*args, **kwargs)

        run.__name__ = run.__qualname__ = name
        if parameters is not None:
            run.__signature__ = parameters  # type: ignore[attr-defined]
        # A signature does not cast the arguments: `_match` finds the graph that takes them.
        self._specified = tuple(input_signature) if input_signature is not None and len(traces) == 1 else None
        super().__init__(run, name, None, False, jit_compile)
        self._trace_by_key: dict[Any, RestoredTrace] = {}

    input_signature = property(lambda self: self._specified)

    @property
    def concrete_functions(self) -> list[ConcreteFunction]:
        """The graphs that were saved."""
        return [trace.concrete for trace in self._saved]

    def _call(self, *args: Any, **kwargs: Any) -> Any:
        if _core.get_run_eagerly():
            return self.python_function(*args, **kwargs)
        call = self._signature.bind(args, kwargs)
        if _core.current_place()[2]:  # a replica of a strategy: it reads its own copies of variables
            trace, tensors, _ = self._match(call)
            return trace.run_flat(tensors)
        known = self._trace_by_key.get(call.key)
        if known is not None:
            return known.concrete_for(call.tensors).call_flat(call.tensors)
        trace, tensors, exact = self._match(call)
        if exact:
            self._trace_by_key[call.key] = trace
        return trace.concrete_for(tensors).call_flat(tensors)

    def _match(self, call: CallSignature) -> tuple[RestoredTrace, list[Any], bool]:
        """The graph for a call, its tensors, and whether they are those of the call as they are."""
        for converts in (False, True):
            for trace in self._saved:
                tensors = trace.tensors_of(call.args, call.kwargs, converts)
                if tensors is not None:
                    return trace, tensors, len(tensors) == len(call.tensors) and not converts
        if not self._saved:
            raise ValueError("Found zero restored functions for caller function.")
        options = [f"Option {i}:\n  {_arguments_text(t.args, t.kwargs)}" for i, t in enumerate(self._saved, 1)]
        if self._specified is not None:
            raise TypeError(
                f"Binding inputs to tf.function failed due to `Can not cast {spec_text(call.args)} to "
                f"{spec_text(self._specified)}`. Received args: {call.args} and kwargs: {call.kwargs} for signature: "
                f"{self._signature}."
            )
        raise ValueError(
            "Could not find matching concrete function to call loaded from the SavedModel. Got:\n"
            f"  {_arguments_text(call.args, call.kwargs)}\n\n Expected these arguments to match one of the following "
            f"{len(self._saved)} option(s):\n\n" + "\n\n".join(options)
        )

    def get_concrete_function(self, *args: Any, **kwargs: Any) -> ConcreteFunction:
        """The graph for arguments of this kind; without arguments, the only one."""
        if not args and not kwargs and len(self._saved) == 1:
            return self._saved[0].concrete
        return self._match(self._signature.bind(args, kwargs))[0].concrete

    def _list_all_concrete_functions(self) -> list[ConcreteFunction]:
        return self.concrete_functions

    _list_all_concrete_functions_for_serialization = _list_all_concrete_functions

    def experimental_get_tracing_count(self) -> int:
        """How often the Python function has been traced: never."""
        return 0


def _arguments_text(args: Any, kwargs: Any) -> str:
    shown = "\n    * ".join(["", *map(repr, args)]) if args else ""
    return f"Positional arguments ({len(args)} total):{shown}\n  Keyword arguments: {kwargs}"


def parameters_of(spec: Any) -> inspect.Signature | None:
    """The parameters of a Python function, as a SavedModel describes them."""
    described = decode(spec.fullargspec)
    if described is None:
        return None
    try:
        return inspect.Signature(_described_parameters(described))
    except ValueError:  # such names or such an order as Python cannot have
        return None


def _described_parameters(described: Any) -> list[inspect.Parameter]:
    kinds = inspect.Parameter
    names = list(described.args)
    if names[:1] == ["self"]:
        names = names[1:]
    defaults = list(described.defaults or ())[-len(names) :] if names else []
    filled = [kinds.empty] * (len(names) - len(defaults)) + defaults
    parameters = [kinds(n, kinds.POSITIONAL_OR_KEYWORD, default=d) for n, d in zip(names, filled)]
    if described.varargs:
        parameters.append(kinds(described.varargs, kinds.VAR_POSITIONAL))
    named = described.kwonlydefaults or {}
    parameters += [kinds(n, kinds.KEYWORD_ONLY, default=named.get(n, kinds.empty)) for n in described.kwonlyargs or ()]
    if described.varkw:
        parameters.append(kinds(described.varkw, kinds.VAR_KEYWORD))
    return parameters


def named_parameters(names: list[str]) -> inspect.Signature | None:
    """Parameters with these names, if Python can have them."""
    if not all(name.isidentifier() for name in names) or len(set(names)) != len(names):
        return None
    return inspect.Signature([inspect.Parameter(name, inspect.Parameter.POSITIONAL_OR_KEYWORD) for name in names])
