"""Compositions while tracing: traced like user code, or, if one has to see values, run whole when the graph runs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import product
from random import Random
from typing import Any, NamedTuple

import numpy as np

from tapeflow._src import _core, primitives
from tapeflow._src.autodiff.black_box import differentiable_call
from tapeflow._src.function.trace import running_at_once
from tapeflow._src.namespace import node_of
from tapeflow._src.ops.arrays.conversion import convert_to_tensor
from tapeflow._src.ops.effects.host_call import CompositionCall, call_with_places, frames
from tapeflow._src.ops.random.seeds import replayed, snapshot
from tapeflow._src.types import nest
from tapeflow._src.types.errors import InvalidArgumentError, OpError, RefusedDtypeError
from tapeflow._src.types.sparse_tensor import SparseTensor
from tapeflow._src.types.symbolic import Refusals
from tapeflow._src.types.tensor_shape import TensorShape

# How a composition may fail that asks for elements or sizes which are not known; others are errors in any case.
_WITHOUT_VALUES = (TypeError, ValueError, IndexError, AttributeError, NotImplementedError, OpError)


def _stage(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Calls a composition while tracing. If it asks for values it cannot have, it becomes one node."""
    graph = _core.current_graph()
    graph_mode = graph is not None and graph.graph_mode  # None: a graph that the core makes for itself
    if graph_mode and graph.names_nodes:
        return _stage_named(graph, function, args, kwargs)
    refusals, count = Refusals.count, 0 if graph is None else graph.node_count
    frames.stack.append((function, args, kwargs))
    try:
        return function(*args, **kwargs)
    except _WITHOUT_VALUES as error:
        leaves = nest.flatten([args, kwargs], expand_composites=True)
        symbolic = [leaf for leaf in leaves if _core.is_symbolic(leaf)]
        if graph is not None and isinstance(error, OpError) and _refuses_values(function, args, kwargs):
            graph.cut_back(count)
            return _run_whole(function, args, kwargs, leaves)
        unknown = Refusals.count > refusals or any(not x.shape.is_fully_defined() for x in symbolic)
        if not unknown or not (symbolic or graph_mode):
            raise
        if graph is not None:
            graph.cut_back(count)
        try:
            if (known := _with_known_values(leaves)) is None:
                return _run_whole(function, args, kwargs, leaves)
            positional, named = nest.pack_sequence_as([args, kwargs], known, expand_composites=True)
            try:
                return _stage(function, tuple(positional), named)
            except OpError:  # these values are refused, not the shapes: it is an error of the run
                return _run_whole(function, args, kwargs, leaves)
        except Exception:
            if isinstance(error, ValueError | OpError | RefusedDtypeError):
                raise error from None
            raise
    finally:
        frames.stack.pop()


def _refuses_values(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    """Whether what a composition refuses are values, which is an error of the run, and its results are known."""
    if not getattr(function, "refuses_values", False):
        return False
    return function.result_specs(*args, **kwargs) is not None  # type: ignore[attr-defined]


def _with_known_values(leaves: list[Any]) -> list[Any] | None:
    """The arguments with integer tensors of the graph replaced by their values, where these follow from constants and
    shapes; None if there is no such tensor."""
    values = [
        _core.known_value(leaf) if _core.is_symbolic(leaf) and not _is_differentiable(leaf) else None for leaf in leaves
    ]
    if all(value is None for value in values):
        return None
    return [leaf if value is None else value for leaf, value in zip(leaves, values)]


_UNNAMED = {"group", "no_op", "tuple", "executing_eagerly"}


def _node_name(function: str) -> str:
    """What TensorFlow calls the nodes of a public function."""
    node = node_of(function)
    if isinstance(node, _core.OpFunction):
        return primitives.operation_name(node)
    facts = primitives.facts_by_function.get(function)
    return node or (facts["node_name"] if facts else function)


def _stage_named(graph: Any, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """The same in a graph of TensorFlow 1, where results are nodes whatever they come from, and nodes have names."""
    if function.__name__ in _UNNAMED:
        return function(*args, **kwargs)
    first, name = graph.node_count, kwargs.get("name")
    default = _node_name(function.__name__)
    graph.names_nodes = False
    try:
        result = _stage(function, args, kwargs)
        if isinstance(result, _core.Tensor) and not _core.is_symbolic(result):
            result = graph.add_constant(result, default)
    finally:
        graph.names_nodes = True
    graph.name_nodes(first, name, default, result)
    return result


class _Whole:
    """A composition with its arguments, of which the tensors at some places are given later."""

    def __init__(self, function: Callable[..., Any], structure: Any, leaves: list[Any], places: list[int]) -> None:
        self._function, self._structure, self._leaves, self._places = function, structure, leaves, places

    def arguments(self, tensors: list[Any]) -> Any:
        """The arguments with these tensors: a list and a dictionary."""
        given = list(self._leaves)
        for place, tensor in zip(self._places, tensors):
            given[place] = tensor
        return nest.pack_sequence_as(self._structure, given, expand_composites=True)

    def __call__(self, tensors: list[Any]) -> list[Any]:
        positional, named = self.arguments(tensors)
        return _flat(self._function(*positional, **named))

    @property
    def raw_call(self) -> CompositionCall:
        """What is written into files for the node."""
        return call_with_places(self._function, self._structure, self._leaves, self._places, effect=False, whole=True)


def _run_whole(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], leaves: list[Any]) -> Any:
    if any(isinstance(argument, SparseTensor) for argument in nest.flatten([args, kwargs])):
        args, kwargs = nest.map_structure(_with_ranks, [args, kwargs])
        leaves = nest.flatten([args, kwargs], expand_composites=True)
    leaves = [leaf.read_value() if isinstance(leaf, _core.Variable) else leaf for leaf in leaves]
    places = [i for i, leaf in enumerate(leaves) if _core.is_symbolic(leaf)]
    symbolic = [leaves[i] for i in places]
    whole = _Whole(function, [args, kwargs], leaves, places)
    structure = function.result_specs(*args, **kwargs) if hasattr(function, "result_specs") else None
    if structure is not None:
        specs = [(spec.dtype, spec.shape) for spec in nest.flatten(structure)]
        found = differentiable_call(whole, symbolic, specs, effect=False, traceable=True)
        return nest.pack_sequence_as(structure, found)

    def try_out(tensors: list[Any]) -> Any:
        positional, named = nest.map_structure(_sparse_sample, [args, kwargs], whole.arguments(tensors))
        return function(*positional, **named)

    try:
        with running_at_once(), replayed(snapshot()):
            found = _probes(try_out, symbolic)
    except InvalidArgumentError as error:  # of values for trial, which were not part of a trace
        raise InvalidArgumentError.of(error.message) from None
    first, structure = found[0]
    specs = [(x.dtype, _common_shape([outputs[i].shape for outputs, _ in found])) for i, x in enumerate(first)]
    outputs = iter(differentiable_call(whole, symbolic, specs, effect=False, traceable=True))
    results = nest.flatten(structure, expand_composites=True)
    results = [next(outputs) if _is_value(leaf) else leaf for leaf in results]
    packed = nest.pack_sequence_as(structure, results, expand_composites=True)
    return _with_common_shapes(packed, [other for _, other in found])


def _with_common_shapes(result: Any, probes: list[Any]) -> Any:
    """The result with sparse tensors whose shapes are what those of all probes agree on, not the first one's."""
    leaves = nest.flatten(result)
    if not any(isinstance(leaf, SparseTensor) for leaf in leaves):
        return result
    samples = list(zip(*(nest.flatten(probe) for probe in probes if probe is not None)))
    for place, leaf in enumerate(leaves):
        if isinstance(leaf, SparseTensor):
            leaves[place] = SparseTensor(leaf.indices, leaf.values, leaf.dense_shape)
            if None not in probes:
                leaves[place].set_shape(_common_shape([sample.shape for sample in samples[place]]))
    return nest.pack_sequence_as(result, leaves)


def _with_ranks(argument: Any) -> Any:
    """A sparse tensor whose parts have the ranks that they must have, though nobody said so; others as they are."""
    if not isinstance(argument, SparseTensor) or argument.indices.shape.rank is not None:
        return argument
    parts = [primitives.Identity(part) for part in (argument.indices, argument.values, argument.dense_shape)]
    for part, rank in zip(parts, (2, 1, 1)):
        if part.shape.rank is None:
            part.set_shape([None] * rank)
    found = SparseTensor(*parts)
    found.set_shape(argument.shape)
    return found


def _sparse_sample(argument: Any, sample: Any) -> Any:
    """A sparse tensor whose positions lie in its shape, in order; any other sample as it is."""
    if not isinstance(argument, SparseTensor) or not _core.is_symbolic(argument.indices):
        return sample
    count, rank = sample.values.shape[0], sample.dense_shape.shape[0]
    known = argument.shape.as_list() if argument.shape.rank is not None else [None] * rank
    size = count + 1 + int(sample.dense_shape.numpy().sum())  # differs from probe to probe
    dims = [size if d is None else max(d, 1) for d in known]
    flat = np.arange(count) % max(1, int(np.prod(dims)))
    places = np.stack(np.unravel_index(flat, dims), 1) if rank else np.zeros([count, 0])
    return SparseTensor(places.astype(np.int64), sample.values, np.array(dims, np.int64))


def _is_differentiable(leaf: Any) -> bool:
    return bool(leaf.dtype.is_floating or leaf.dtype.is_complex)


def _is_value(leaf: Any) -> bool:
    """Whether a leaf of a result becomes a tensor; others, None or a dtype, are what they are."""
    return _core.is_tensor(leaf) or isinstance(leaf, np.ndarray | np.generic | int | float | complex | str | bytes)


def _flat(structure: Any) -> list[Any]:
    return [convert_to_tensor(x) for x in nest.flatten(structure, expand_composites=True) if _is_value(x)]


def _ascending(dims: list[int], dtype: Any) -> Any:
    return np.arange(int(np.prod(dims))).reshape(dims).astype(dtype)


def _texts(dims: list[int], fill: Callable[..., Any]) -> np.ndarray:
    """Texts that differ as numbers do: empty, "1", or of several words and numbers."""
    if fill is not _ascending:
        return np.full(dims, b"" if fill is np.zeros else b"1", object)
    words = [f"{i} a,b;c|d/e:f.g-h_{i}\tx\ny".encode() for i in range(int(np.prod(dims)))]
    return np.array(words, object).reshape(dims)


# Numbers for dimensions that are not known, ranks for tensors of which not even that is known, and what fills them.
_SIZES, _RANKS, _FILLS = (2, 11, 1, 3, 4, 8), (1, 2, 4, 3, 0, 5), (np.zeros, _ascending, np.ones)
_PROBES = 3
_MIXTURES = 300  # so many times dimensions get numbers by chance, if none fits all


def _probes(run: Callable[[list[Any]], Any], symbolic: list[Any]) -> list[tuple[list[Any], Any]]:
    """The outputs of a composition for samples of its inputs. From three that differ in elements and all open sizes,
    shapes are learnt; from others that it takes, ranks; from one alone, nothing."""
    found: list[Any] = []
    error: Exception | None = None
    for size, fill, samples in _samples(symbolic):
        if size is not None and any(size == other_size or fill is other_fill for *_, other_size, other_fill in found):
            continue
        try:
            structure = run(samples)
            found.append((_flat(structure), structure, size, fill))
        except Exception as refused:
            error = error or refused
        if len(found) == _PROBES:
            break
    if not found:
        structure = _try_real_values(run, symbolic, error or ValueError("there is nothing to try"))
        found.append((_flat(structure), structure, None, None))
    outputs = found[0][0]
    if any(len(outputs) != len(others) for others, *_ in found):
        raise ValueError("the number of results depends on values that are unknown while tracing")
    probes = [probe[:2] for probe in found]
    if len(found) == _PROBES and found[-1][2] is not None:
        probes += _one_at_a_time(run, symbolic, found)
    open_rank = len(found) == 1 or any(x.shape.rank is None for x in symbolic)
    if open_rank or len(found) < _PROBES or found[-1][2] is None:
        shapes = [TensorShape(None if open_rank else [None] * y.shape.rank) for y in outputs]
        probes.append(([_Opened(shape) for shape in shapes], None))
    return probes


def _one_at_a_time(
    run: Callable[[list[Any]], Any], symbolic: list[Any], found: list[Any]
) -> list[tuple[list[Any], Any]]:
    """The outputs with one open dimension unlike the others. Equal dimensions hide what depends on a difference or a
    ratio: windows as large as the image give one row whatever the size."""
    open_dims = [(i, d) for i, x in enumerate(symbolic) if x.shape.rank for d, n in enumerate(x.shape) if n is None]
    shapes = [[outputs[k].shape for outputs, *_ in found] for k in range(len(found[0][0]))]
    probes: list[tuple[list[Any], Any]] = []
    for place in open_dims if len(open_dims) > 1 else ():
        if all(d is None for known in map(_common_shape, shapes) for d in (known.rank and known) or ()):
            break  # nothing is left to be refuted
        dims = ((_SIZES[1] if (i, d) == place else _SIZES[0]) for i, d in open_dims)
        try:
            outputs = _flat(run([_sample(x, lambda: next(dims), 0, found[0][3]) for x in symbolic]))  # noqa: B023
        except Exception:
            continue  # the dimension goes with another one
        if len(outputs) == len(shapes):
            probes.append((outputs, None))
            for known, y in zip(shapes, outputs):
                known.append(y.shape)
    return probes


def _try_real_values(run: Callable[[list[Any]], Any], symbolic: list[Any], error: Exception) -> Any:
    """What the composition gives for the arguments of the call that is traced, if they can be known without effects."""
    place = _core.place_of(symbolic[0]) if symbolic else None
    graph: Any = None if place is None else place[0]
    arguments = getattr(graph, "first_arguments", [])
    if not arguments or graph.needs_effects(symbolic):
        raise error
    try:
        return run(graph.evaluate(symbolic, graph.inputs, arguments, []))
    except Exception:
        raise error from None


def _samples(symbolic: list[Any]) -> Iterator[tuple[Any, Any, list[Any]]]:
    """Tensors like the symbolic ones: the number that stands for all unknown dimensions, or None, what they are filled
    with, and they themselves."""
    ranks = _RANKS if any(x.shape.rank is None for x in symbolic) else (0,)
    open_dims = [[None] if x.shape.rank is None else [i for i, d in enumerate(x.shape) if d is None] for x in symbolic]
    sizes = _SIZES if any(open_dims) else range(_PROBES)
    for fill in _FILLS:
        for rank, size in product(ranks, sizes):
            yield size, fill, [_sample(x, lambda: size, rank, fill) for x in symbolic]  # noqa: B023
    # An integer vector may be the shape of what the others hold: the last one is also tried with large elements.
    vectors = [i for i, x in enumerate(symbolic) if x.dtype.is_integer and x.shape.rank == 1]
    for number, size in product((4, 5, 13) if vectors else (), (2, 1)):
        samples = [_sample(x, lambda: size, 1, np.zeros) for x in symbolic]  # noqa: B023
        samples[vectors[-1]] = convert_to_tensor(
            np.full(samples[vectors[-1]].shape, number), symbolic[vectors[-1]].dtype
        )
        yield None, np.zeros, samples
    chance = Random(0)
    for _ in range(_MIXTURES if sum(map(len, open_dims)) > 1 else 0):
        fill = chance.choice(_FILLS)
        yield None, fill, [_sample(x, lambda: chance.choice(_SIZES), chance.choice(ranks), fill) for x in symbolic]


class _Opened(NamedTuple):
    """In place of an output of which only the rank is known."""

    shape: TensorShape


def _sample(x: Any, size: Callable[[], int], rank: int, fill: Callable[..., Any]) -> Any:
    """A tensor like `x`, with a number for every dimension that is not known."""
    dims = [size() if d is None else d for d in ([None] * rank if x.shape.rank is None else x.shape)]
    if x.dtype.name == "string":
        return convert_to_tensor(_texts(dims, fill))
    return convert_to_tensor(fill(dims, x.dtype.as_numpy_dtype), dtype=x.dtype)


def _common_shape(shapes: list[TensorShape]) -> TensorShape:
    """What all shapes agree on. That a dimension is 0 is not believed: the samples may be too small."""
    first = shapes[0]
    if any(shape.rank != first.rank for shape in shapes):
        return TensorShape(None)
    return TensorShape([dims[0] if len(set(dims)) == 1 and dims[0] != 0 else None for dims in zip(*shapes)])


_core.register_objects({"stage_composition": _stage})
