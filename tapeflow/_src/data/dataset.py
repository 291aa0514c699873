"""`tf.data.Dataset`, the public class over pipes. What each stage does is in the file of its kind."""

from __future__ import annotations

import functools
import itertools
import os
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from tapeflow._src import _core, primitives
from tapeflow._src.control_flow.branches import control_dependencies
from tapeflow._src.data.dataset_spec import DatasetSpec, NamedDataset
from tapeflow._src.data.files import matching_files
from tapeflow._src.data.graph_calls import DatasetCall, with_call
from tapeflow._src.data.handles import HandleSpec, Recent, handle_of, hold_for_graph, tensor_specs, tensors_of
from tapeflow._src.data.iterator import Cursor, Iterator, begin_in_graph, rows_of_cursor
from tapeflow._src.data.options import Options
from tapeflow._src.data.pipes import choosing, mapping, ordering, sources, windows
from tapeflow._src.data.pipes.pipe import INFINITE, UNKNOWN, Iteration, Pipe, chain_too_long, count_in
from tapeflow._src.data.pipes.sampling import RandomChoices
from tapeflow._src.data.pipes.structure import as_element, common_spec, packer
from tapeflow._src.data.pipes.traced import Bound
from tapeflow._src.data.snapshots import Kept, has_elements, in_turn, saved_shards, write_elements
from tapeflow._src.data.stages import graph_of_stages
from tapeflow._src.data.transformations import Transformations
from tapeflow._src.diagnostics.observers import observers
from tapeflow._src.function.autograph.operators import Rows
from tapeflow._src.namespace import public
from tapeflow._src.ops.arrays.conversion import constant, convert_to_tensor
from tapeflow._src.ops.arrays.passing import group
from tapeflow._src.ops.effects.assertions import Assert
from tapeflow._src.types import nest
from tapeflow._src.types.dtypes import bool_, int64
from tapeflow._src.types.errors import InvalidArgumentError, OutOfRangeError
from tapeflow._src.types.tensor_shape import TensorShape
from tapeflow._src.types.tensor_spec import CompositeTensor, TensorSpec

_recent = Recent(512)

public("data.INFINITE_CARDINALITY", "data.experimental.INFINITE_CARDINALITY")(INFINITE)
public("data.UNKNOWN_CARDINALITY", "data.experimental.UNKNOWN_CARDINALITY")(UNKNOWN)


def _merged_options(datasets: list[Dataset]) -> Options | None:
    """The options of several datasets together; None if none has any."""
    given = [dataset._options for dataset in datasets if dataset._options is not None]
    return functools.reduce(Options.merge, given) if given else None


def _compute(call: DatasetCall, compute: Callable[[Iteration], list[Any]]) -> list[Any]:
    """The tensors that `compute` gives for an iteration: now, or in the graph that is built."""
    if not _core.is_tracing():
        return compute(Iteration())

    def evaluate(values: list[Any]) -> list[Any]:
        return compute(Iteration({id(symbol): value for symbol, value in zip(call.symbols, values)}))

    return _core.call_python(with_call(evaluate, call), call.symbols, *tensor_specs(call.specs), None, True)


@public("data.Dataset")
class Dataset(Transformations, CompositeTensor):
    """A sequence of elements, made anew each time it is iterated; an element is a tensor or a structure of tensors.

    >>> dataset = tf.data.Dataset.from_tensor_slices([1, 2, 3, 4, 5])
    >>> dataset = dataset.map(lambda x: x * x).batch(2)
    >>> [batch.numpy().tolist() for batch in dataset]
    [[1, 4], [9, 16], [25]]
    """

    def __init__(self, pipe: Pipe, options: Options | None = None) -> None:
        self._pipe, self._options = pipe, options
        self._handle: Any = None
        self._access_seeds: dict[int, list[Any]] = {}  # with which elements are found by number
        self._made_of: list[Dataset] = []

    def _then(self, pipe: Pipe, *others: Any) -> Any:
        made = type(self)(pipe, _merged_options([self, *others]))
        made._made_of = [self, *others]
        return made

    def _inputs(self) -> list[Dataset]:
        """The datasets of which this one is made."""
        return self._made_of

    def _as_serialized_graph(
        self,
        allow_stateful: bool | None = None,
        strip_device_assignment: bool | None = None,
        external_state_policy: Any = None,
    ) -> Any:
        """The stages as a serialized `GraphDef`; see `data/stages.py`."""
        return constant(graph_of_stages(self).SerializeToString())

    # ---- what it is

    is_tensor_like = False
    element_spec = property(lambda self: self._pipe.spec, doc="The specification of the elements.")
    _type_spec = property(lambda self: DatasetSpec(self._pipe.spec))
    _trace_key = property(lambda self: repr(self._pipe.spec))

    def cardinality(self) -> Any:
        """The number of elements, or `tf.data.INFINITE_CARDINALITY` or `tf.data.UNKNOWN_CARDINALITY`.

        >>> tf.data.Dataset.range(42).batch(10).cardinality()
        <tf.Tensor: shape=(), dtype=int64, numpy=5>
        """
        symbols = self._pipe.all_symbols() if _core.is_tracing() else []
        if not symbols:
            return convert_to_tensor(self._counted("cardinality"), int64)
        call = DatasetCall("count", self._pipe, symbols, [TensorSpec([], int64)])
        return _compute(call, lambda iteration: [convert_to_tensor(count_in(self._pipe, iteration), int64)])[0]

    def _counted(self, who: str) -> int:
        try:
            return self._pipe.count()
        except RecursionError as error:
            raise chain_too_long(f"Dataset.{who}") from error

    def __len__(self) -> int:
        if _core.is_tracing():
            raise TypeError(
                "`tf.data.Dataset` only supports `len` in eager mode. Use `tf.data.Dataset.cardinality()` instead."
            )
        count = self._counted("__len__")
        if count == INFINITE:
            raise TypeError("The dataset is infinite.")
        if count == UNKNOWN:
            raise TypeError("The dataset length is unknown.")
        return count

    def __bool__(self) -> bool:
        return True

    def __repr__(self) -> str:
        return f"<{self._pipe.name} element_spec={self._pipe.spec}>"

    def options(self) -> Options:
        """The settings of the dataset."""
        found = Options().merge(self._options or Options())
        found._freeze()
        return found

    def with_options(self, options: Options, name: str | None = None) -> Any:
        """The dataset with settings; `deterministic` says whether parallel stages keep the order of elements."""
        merged = options if self._options is None else self._options.merge(options)
        made = self._then(
            ordering.Configured(self._pipe, options.deterministic, options.experimental_external_state_policy)
        )
        made._options = merged
        return made

    # ---- iterating

    def __iter__(self) -> Iterator:
        graph = _core.current_graph()
        if graph is None:
            cursor = Cursor(self._pipe, Iteration())
            if observers.iterator is not None:
                observers.iterator(self, cursor)
            return Iterator(cursor, self._pipe.spec)
        if graph.graph_mode:
            raise RuntimeError(
                "`tf.data.Dataset` only supports Python-style iteration in eager mode or within tf.function."
            )
        return begin_in_graph(self._pipe)

    def as_numpy_iterator(self) -> Any:
        """The elements as NumPy arrays.

        >>> list(tf.data.Dataset.range(3).as_numpy_iterator())
        [np.int64(0), np.int64(1), np.int64(2)]
        """
        if _core.is_tracing():
            raise RuntimeError("`tf.data.Dataset.as_numpy_iterator()` is only supported in eager mode.")
        for spec in self._pipe.specs:
            if isinstance(spec, HandleSpec):
                raise TypeError(
                    "`tf.data.Dataset.as_numpy_iterator()` is not supported for datasets that produce values of type "
                    f"{spec.value_type}"
                )
        return NumpyIterator(self)

    def get_single_element(self, name: str | None = None) -> Any:
        """The one element of a dataset that has one."""

        def compute(iteration: Iteration) -> list[Any]:
            elements = iter(self._pipe.begin(iteration))
            first = next(elements, None)
            if first is None:
                raise InvalidArgumentError.of("Dataset was empty.")
            if next(elements, None) is not None:
                raise InvalidArgumentError.of("Dataset had more than one element.")
            return tensors_of(first)

        found = _compute(DatasetCall("single", self._pipe, self._pipe.all_symbols(), self._pipe.specs), compute)
        return nest.pack_sequence_as(self._pipe.spec, found, expand_composites=True)

    def element_at(self, index: Any) -> Any:
        """The element with a number, which takes the elements before it."""
        symbols = [*self._pipe.all_symbols(), *([index] if _core.is_symbolic(index) else [])]

        def compute(fresh: Iteration) -> list[Any]:
            place = int(fresh.leaf(index))
            iteration = Iteration(fresh.values, self._access_seeds)  # one order for all numbers
            elements = iter(self._pipe.begin(iteration)) if place >= 0 else iter(())
            found = next(itertools.islice(elements, max(place, 0), None), None)
            if found is None:
                raise OutOfRangeError.of(f"Index out of range [0, {self._counted('at')}): {place}")
            self._access_seeds = iteration.drawn
            return tensors_of(found)

        found = _compute(DatasetCall("at", self._pipe, symbols, self._pipe.specs, state=index), compute)
        return nest.pack_sequence_as(self._pipe.spec, found, expand_composites=True)

    def reduce(self, initial_state: Any, reduce_func: Callable[..., Any], name: str | None = None) -> Any:
        """`state = reduce_func(state, element)` for each element; gives the last state.

        >>> tf.data.Dataset.range(5).reduce(tf.constant(0, tf.int64), lambda total, x: total + x)
        <tf.Tensor: shape=(), dtype=int64, numpy=10>
        """
        state = as_element(initial_state)
        function, _ = mapping.trace_with_state(reduce_func, state, self._pipe.spec, "reduce", lambda spec: spec)

        def compute(iteration: Iteration) -> list[Any]:
            leaves = tuple([iteration.leaf(leaf) for leaf in nest.flatten(state)])
            for element in self._pipe.begin(iteration):
                leaves = function(iteration, (*leaves, *element))
            return tensors_of(leaves)

        held = [t for t in nest.flatten(state, expand_composites=True) if _core.is_symbolic(t)]
        symbols = [*self._pipe.all_symbols(), *function.symbols, *held]
        call = DatasetCall("reduce", self._pipe, symbols, function.specs, function, nest.flatten(state))
        found = _compute(call, compute)
        return nest.pack_sequence_as(function.spec, found, expand_composites=True)

    # ---- in graphs

    def _handle_tensor(self) -> Any:
        """The number of the dataset; if it holds symbolic tensors, a node that makes one with their values."""
        if isinstance(self._pipe, NamedDataset):
            return self._pipe.handle
        symbols = self._pipe.all_symbols()
        graph = _core.current_graph() if symbols else None
        if graph is None:
            if self._handle is None:
                self._handle = handle_of(self)
            hold_for_graph(self)
            return self._handle

        def bind(values: list[Any]) -> list[Any]:
            iteration = Iteration({id(symbol): value for symbol, value in zip(symbols, values)})
            return [_recent.hold(Dataset(Bound(self._pipe, iteration)))._handle_tensor()]

        call = DatasetCall("bind", self._pipe, symbols, [])
        return _core.call_python(with_call(bind, call), symbols, [int64], [TensorShape([])], None, True)[0]

    def __autograph_rows__(self) -> Rows:
        """The elements as the rows of a loop in a graph."""
        return rows_of_cursor(iter(self), ends=True)

    def __autograph_call__(self, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """A builtin function of Python on datasets in converted code; NotImplemented for those without a meaning."""
        if function is abs:
            return self.map(lambda *parts: nest.map_structure(abs, parts[0] if len(parts) == 1 else parts))
        if function is enumerate:
            return self.enumerate(*args[1:], **kwargs)
        if function is zip and all(isinstance(arg, Dataset) for arg in args):
            return Dataset.zip(args)
        if function is map and len(args) > 1 and all(isinstance(arg, Dataset) for arg in args[1:]):
            return args[1].map(args[0]) if len(args) == 2 else Dataset.zip(args[1:]).map(args[0])
        if function is filter and isinstance(args[1], Dataset):
            return args[1].filter(args[0])
        if function is len:
            count = self.cardinality()
            check = Assert(count >= 0, ["The dataset is infinite, or its length is unknown."])
            with control_dependencies([] if check is None else [check]):
                return primitives.Identity(count)
        if function is any or function is all:
            specs = nest.flatten(self.element_spec)
            if len(specs) != 1 or getattr(specs[0], "dtype", None) != bool_:
                raise ValueError(
                    f"in graph mode, {function.__name__} takes datasets of single booleans; got {self.element_spec}"
                )
            start, pair = (False, primitives.LogicalOr) if function is any else (True, primitives.LogicalAnd)
            return self.reduce(start, pair)
        return NotImplemented

    # ---- sources

    @classmethod
    def from_tensors(cls, tensors: Any, name: str | None = None) -> Any:
        """One element.

        >>> list(tf.data.Dataset.from_tensors([1, 2]).as_numpy_iterator())
        [array([1, 2], dtype=int32)]
        """
        return cls(sources.Tensors(tensors))

    @classmethod
    def from_tensor_slices(cls, tensors: Any, name: str | None = None) -> Any:
        """The rows of tensors, which all have the same number of rows.

        >>> list(tf.data.Dataset.from_tensor_slices(([1, 2], ["a", "b"])).as_numpy_iterator())
        [(1, b'a'), (2, b'b')]
        """
        return cls(sources.Slices(tensors))

    @classmethod
    def from_generator(
        cls,
        generator: Callable[..., Any],
        output_types: Any = None,
        output_shapes: Any = None,
        args: Any = None,
        output_signature: Any = None,
        name: str | None = None,
    ) -> Any:
        """What `generator(*args)` yields, which must be as `output_signature` says.

        >>> def powers():
        ...     yield 1
        ...     yield 2
        >>> dataset = tf.data.Dataset.from_generator(powers, output_signature=tf.TensorSpec([], tf.int32))
        >>> list(dataset.as_numpy_iterator())
        [1, 2]
        """
        signature = sources.generator_signature(output_types, output_shapes, output_signature)
        return cls(sources.Generated(generator, signature, args))

    @classmethod
    def range(cls, *args: Any, **kwargs: Any) -> Any:
        """The numbers of a range: `stop`, or `start, stop`, or `start, stop, step`, and `output_type`.

        >>> list(tf.data.Dataset.range(1, 6, 2).as_numpy_iterator())
        [1, 3, 5]
        """
        if not 1 <= len(args) <= 3:
            raise ValueError(f"Invalid `args`. The length of `args` should be between 1 and 3 but was {len(args)}.")
        start, stop, step = (0, args[0], 1) if len(args) == 1 else (*args, 1)[:3]
        return cls(sources.Numbers(start, stop, step, kwargs.get("output_type", int64)))

    @classmethod
    def counter(cls, start: Any = 0, step: Any = 1, dtype: Any = int64, name: str | None = None) -> Any:
        """The numbers `start`, `start + step`, ... without end."""
        return cls(sources.Numbers(start, None, step, dtype))

    @classmethod
    def random(cls, seed: Any = None, rerandomize_each_iteration: bool | None = None, name: str | None = None) -> Any:
        """Random integers without end."""
        return cls(sources.RandomNumbers(seed, rerandomize_each_iteration))

    @classmethod
    def list_files(
        cls, file_pattern: Any, shuffle: bool | None = None, seed: Any = None, name: str | None = None
    ) -> Any:
        """The names of the files that match patterns, shuffled unless `shuffle` is False."""
        names = matching_files(file_pattern)
        dataset = cls.from_tensor_slices(convert_to_tensor(names, "string"))
        return dataset if shuffle is False else dataset.shuffle(max(len(names), 1), seed=seed)

    @classmethod
    def zip(cls, *args: Any, datasets: Any = None, name: str | None = None) -> Any:
        """Elements of several datasets side by side.

        >>> a, b = tf.data.Dataset.range(3), tf.data.Dataset.range(10, 13)
        >>> list(tf.data.Dataset.zip(a, b).as_numpy_iterator())
        [(0, 10), (1, 11), (2, 12)]
        """
        if not args and datasets is None:
            raise TypeError("Must pass at least one dataset to `zip`.")
        if args and datasets is not None:
            raise TypeError("Both `*args` and `datasets` cannot be set.")
        given = datasets if datasets is not None else args[0] if len(args) == 1 else args
        for part in nest.flatten(given):
            if not isinstance(part, Dataset):
                raise TypeError(
                    "Invalid input to `zip`. Inputs are expected to be (nested) structures of `tf.data.Dataset` "
                    f"objects but encountered object of type {type(part)}."
                )
        if isinstance(given, list):
            raise TypeError(
                "Invalid input to `zip`. Inputs are expected to be (nested) structures of `tf.data.Dataset` objects. "
                "Python `list` is not supported and you should use `tuple` instead."
            )
        pipe = ordering.Zipped(nest.map_structure(lambda dataset: dataset._pipe, given))
        made = cls(pipe, _merged_options(nest.flatten(given)))
        made._made_of = nest.flatten(given)
        return made

    @classmethod
    def choose_from_datasets(cls, datasets: Any, choice_dataset: Any, stop_on_empty_dataset: bool = True) -> Any:
        """Elements of the datasets that `choice_dataset`, int64 numbers, names one after the other.

        >>> zeros, ones = tf.data.Dataset.from_tensors(0).repeat(), tf.data.Dataset.from_tensors(1).repeat()
        >>> choices = tf.data.Dataset.from_tensor_slices(tf.constant([0, 1, 1], tf.int64))
        >>> list(tf.data.Dataset.choose_from_datasets([zeros, ones], choices).as_numpy_iterator())
        [0, 1, 1]
        """
        if not datasets:
            raise ValueError("Invalid `datasets`. `datasets` should not be empty.")
        if not isinstance(choice_dataset, Dataset):
            raise TypeError(
                "Invalid `choice_dataset`. "
                f"`choice_dataset` should be a `tf.data.Dataset` but is {type(choice_dataset)}."
            )
        spec = choice_dataset.element_spec
        if not isinstance(spec, TensorSpec) or spec.dtype is not int64 or spec.shape.rank != 0:
            raise TypeError(
                "Invalid `choice_dataset`. Elements of `choice_dataset` must be scalar `tf.int64` tensors but are "
                f"{spec}."
            )
        pipes = [dataset._pipe for dataset in datasets]
        return cls(choosing.Directed(choice_dataset._pipe, pipes, stop_on_empty_dataset))

    @classmethod
    def sample_from_datasets(
        cls,
        datasets: Any,
        weights: Any = None,
        seed: Any = None,
        stop_on_empty_dataset: bool = False,
        rerandomize_each_iteration: bool | None = None,
    ) -> Any:
        """Elements of datasets that are chosen at random, with probabilities like `weights`."""
        if not datasets:
            raise ValueError("Invalid `datasets`. `datasets` should not be empty.")
        given = np.asarray(weights) if isinstance(weights, list | tuple | np.ndarray) else None
        if given is not None and given.dtype.kind == "f" and given.shape == (len(datasets),) and (given == 0).any():
            # Those of weight 0 are never chosen, and not waited for.
            kept = np.flatnonzero(given)
            if not kept.size:
                return datasets[0].take(0)
            datasets, weights = [datasets[i] for i in kept], given[kept]
        choices = RandomChoices(len(datasets), weights, seed, rerandomize_each_iteration)
        return cls(choosing.Directed(choices, [dataset._pipe for dataset in datasets], stop_on_empty_dataset))

    # ---- windows and functions of datasets

    def window(
        self, size: Any, shift: Any = None, stride: Any = 1, drop_remainder: bool = False, name: str | None = None
    ) -> Any:
        """Windows of `size` elements, each a dataset.

        >>> windows = tf.data.Dataset.range(4).window(3, shift=1, drop_remainder=True)
        >>> [list(window.as_numpy_iterator()) for window in windows]
        [[np.int64(0), np.int64(1), np.int64(2)], [np.int64(1), np.int64(2), np.int64(3)]]
        """
        return self._then(windows.Windows(self._pipe, size, shift, stride, drop_remainder, Dataset))

    def group_by_window(
        self,
        key_func: Callable[..., Any],
        reduce_func: Callable[..., Any],
        window_size: Any = None,
        window_size_func: Callable[..., Any] | None = None,
        name: str | None = None,
    ) -> Any:
        """`reduce_func(key, dataset)` of up to `window_size` elements with equal keys."""
        if (window_size is None) == (window_size_func is None):
            raise ValueError(
                "Either the `window_size` argument or the `window_size_func` argument must be specified."
                if window_size is None
                else "The `window_size` argument and the `window_size_func` argument can not both be specified."
            )
        size = window_size_func or (lambda key: convert_to_tensor(window_size, int64))
        pipe = mapping.GroupedByWindow(self._pipe, key_func, reduce_func, size, Dataset, windows.Window)
        return self._then(pipe)

    def apply(self, transformation_func: Callable[[Any], Any]) -> Any:
        """`transformation_func` of the dataset."""
        result = transformation_func(self)
        if not isinstance(result, Dataset):
            raise TypeError(f"`transformation_func` must return a `tf.data.Dataset` object. Got {type(result)}.")
        return result

    # ---- files

    def save(
        self,
        path: str,
        compression: str | None = None,
        shard_func: Callable[..., Any] | None = None,
        checkpoint_args: Any = None,
    ) -> Any:
        """Writes all elements into a folder, from which `load` makes the dataset again; in a graph, an operation does.

        `shard_func` gives the number of the file for an element.
        """
        if checkpoint_args is not None:
            raise NotImplementedError("Dataset.save: checkpoint_args is not supported; a save begins anew")
        symbols = self._pipe.all_symbols()

        def write(values: list[Any]) -> list[Any]:
            iteration = Iteration({id(symbol): value for symbol, value in zip(symbols, values)})
            shard_of = None if shard_func is None else mapping.numbering(shard_func, self._pipe.spec, "save", iteration)
            write_elements(path, self._pipe.spec, self._pipe.begin(iteration), compression, shard_of)
            return [convert_to_tensor(True)]

        if _core.current_graph() is None:
            write([])
            return None
        return group(_core.call_python(write, symbols, [bool_], [TensorShape([])], None, True)[0])

    @classmethod
    def load(
        cls,
        path: str,
        element_spec: Any = None,
        compression: str | None = None,
        reader_func: Callable[..., Any] | None = None,
        wait: bool = False,
    ) -> Any:
        """The dataset that `save` wrote, or what `reader_func` makes of a dataset of its files, which are datasets.

        Without one, the files give an element in turn. `wait` is for a dataset that another process is writing.
        """
        while wait and not has_elements(path):
            time.sleep(0.1)
        spec, shards = saved_shards(path, compression)
        if element_spec is not None:
            common_spec(element_spec, spec, "load")
        parts = [(cls(windows.Window(spec, shard)),) for shard in shards]
        if reader_func is None:
            return cls(windows.Window(spec, in_turn(shards)))
        result = reader_func(cls(windows.Window(DatasetSpec(spec), parts)))
        if not isinstance(result, Dataset):
            raise TypeError(f"`reader_func` must return a `tf.data.Dataset` object. Got {type(result)}.")
        return result

    def snapshot(
        self,
        path: str,
        compression: str = "AUTO",
        reader_func: Callable[..., Any] | None = None,
        shard_func: Callable[..., Any] | None = None,
        name: str | None = None,
    ) -> Any:
        """Elements that are computed once and kept in files of a folder; see `save` and `load` for the functions."""
        if reader_func is None and shard_func is None and compression in ("AUTO", "SNAPPY", "NONE", None):
            return self.cache(os.path.join(path, "snapshot"))
        packed = compression if compression in ("GZIP", "ZLIB") else None
        save, load = functools.partial(self.save, path, packed, shard_func), functools.partial(Dataset.load, path)
        return self._then(Kept(self._pipe, path, save, lambda: load(None, packed, reader_func)._pipe))


@public("data.NumpyIterator")
class NumpyIterator:
    """The elements of a dataset as NumPy arrays.

    >>> next(tf.data.Dataset.range(3).as_numpy_iterator())
    np.int64(0)
    """

    def __init__(self, dataset: Dataset) -> None:
        self._cursor = Cursor(dataset._pipe, Iteration())
        self._pack = packer(dataset.element_spec)

    def __iter__(self) -> NumpyIterator:
        return self

    def __next__(self) -> Any:
        return self._pack(tuple(map(_as_numpy, self._cursor.next())))

    next = __next__

    def save(self) -> bytes:
        """Where the iterator is: how many elements were taken, and with which seeds."""
        return self._cursor.state().astype("<i8").tobytes()

    def restore(self, state: Any) -> None:
        """Goes to where the iterator was when `save` gave this state."""
        given = state.numpy() if _core.is_tensor(state) else state
        self._cursor = self._cursor.begun_at(np.frombuffer(given, "<i8"))

    # ---- in checkpoints

    _checkpoint_attribute = "ITERATOR_STATE"

    def _checkpoint_value(self) -> np.ndarray:
        return self._cursor.state()

    def _restore_checkpoint_value(self, value: np.ndarray) -> None:
        if value.dtype.kind == "i" and value.size:
            self._cursor = self._cursor.begun_at(value)


def _as_numpy(leaf: Any) -> Any:
    if leaf is None:
        return None
    found = leaf._numpy() if hasattr(leaf, "_numpy") and not isinstance(leaf, _core.Tensor) else leaf.numpy()
    if isinstance(found, np.ndarray):
        found.setflags(write=False)  # the tensor may be read again, as of a cache
    return found
