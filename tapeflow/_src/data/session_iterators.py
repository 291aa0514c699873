"""Iterators of TensorFlow 1's graphs: each session has a place of its own in the dataset."""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Callable
from typing import Any
from weakref import WeakKeyDictionary, WeakValueDictionary

from tapeflow._src import _core
from tapeflow._src.data.dataset import Dataset
from tapeflow._src.data.iterator import Cursor, Iterator
from tapeflow._src.data.options import ExternalStatePolicy
from tapeflow._src.data.pipes.external_state import check_external_state
from tapeflow._src.data.pipes.pipe import Iteration, Pipe
from tapeflow._src.data.pipes.sources import spec_of_types
from tapeflow._src.data.pipes.structure import map_leaves
from tapeflow._src.function.trace import running_at_once
from tapeflow._src.namespace import public
from tapeflow._src.ops.arrays.conversion import convert_to_tensor
from tapeflow._src.ops.arrays.passing import group
from tapeflow._src.types import nest
from tapeflow._src.types.dtypes import bool_
from tapeflow._src.types.errors import FailedPreconditionError, NotFoundError
from tapeflow._src.types.tensor_shape import TensorShape

_MANY_CALLS = 32
_CALLED_OFTEN = (
    "An unusually high number of `Iterator.get_next()` calls was detected. This often indicates that "
    "`Iterator.get_next()` is being called inside a training loop, which will cause gradual slowdown and eventual "
    "resource exhaustion. If this is the case, restructure your code to call `next_element = iterator.get_next()` once "
    "outside the loop, and use `next_element` as the input to some computation that is invoked inside the loop."
)
_numbers = itertools.count()
_iterator_by_handle: WeakValueDictionary[bytes, SessionIterator] = WeakValueDictionary()


class SessionIterator(Iterator):
    """An iterator in a graph that sessions run.

    >>> with tf.Graph().as_default(), tf.compat.v1.Session() as session:
    ...     iterator = tf.compat.v1.data.Iterator.from_structure(tf.int64, [])
    ...     begin = iterator.make_initializer(tf.data.Dataset.range(7, 9))
    ...     element = iterator.get_next()
    ...     session.run(begin)
    ...     print(session.run(element))
    7
    """

    def __init__(self, pipe: Pipe | None, element_spec: Any, one_shot: bool) -> None:
        super().__init__(None, element_spec)
        self._graph = _core.current_graph()
        self._pipe, self._one_shot = pipe, one_shot
        self._cursor_by_session: WeakKeyDictionary[Any, Cursor] = WeakKeyDictionary()
        self._initializer: Any = None
        self._handle_string: Any = None
        self._calls = 0  # of `get_next`
        self._handle = f"iterator_{next(_numbers)}".encode()
        _iterator_by_handle[self._handle] = self

    @property
    def output_types(self) -> Any:
        """The dtypes of the elements."""
        return get_legacy_output_types(self)

    @property
    def output_shapes(self) -> Any:
        """The shapes of the elements."""
        return get_legacy_output_shapes(self)

    @property
    def output_classes(self) -> Any:
        """The classes of the elements."""
        return get_legacy_output_classes(self)

    @property
    def initializer(self) -> Any:
        """The operation that puts the iterator at the beginning of its dataset."""
        if self._one_shot or self._pipe is None:
            raise ValueError(
                "The iterator does not have an initializer. This means it was likely created using "
                "`tf.data.Dataset.make_one_shot_iterator()`. For an initializable iterator, use "
                "`tf.data.Dataset.make_initializable_iterator()` instead."
            )
        if self._initializer is None:
            self._initializer = self._beginning(self._pipe)
        return self._initializer

    def make_initializer(self, dataset: Dataset, name: str | None = None) -> Any:
        """The operation that puts the iterator at the beginning of a dataset."""
        self._check_elements(dataset)
        return self._beginning(dataset._pipe)

    def _check_elements(self, dataset: Dataset) -> None:
        """Raises unless the iterator may give the elements of a dataset."""
        nest.assert_same_structure(self._element_spec, dataset.element_spec)
        types, shapes, classes = self.output_types, self.output_shapes, self.output_classes
        if nest.flatten(classes) != nest.flatten(get_legacy_output_classes(dataset)):
            raise TypeError(
                f"Expected output classes {classes!r} but got dataset with output classes "
                f"{get_legacy_output_classes(dataset)!r}."
            )
        if nest.flatten(types) != nest.flatten(get_legacy_output_types(dataset)):
            raise TypeError(
                f"Expected output types {types!r} but got dataset with output types "
                f"{get_legacy_output_types(dataset)!r}."
            )
        pairs = zip(nest.flatten(self._element_spec), nest.flatten(dataset.element_spec))
        if not all(wanted.shape.is_compatible_with(given.shape) for wanted, given in pairs):
            raise TypeError(
                f"Expected output shapes compatible with {shapes!r} but got dataset with output shapes "
                f"{get_legacy_output_shapes(dataset)!r}."
            )

    def _beginning(self, pipe: Pipe) -> Any:
        symbols = pipe.all_symbols()

        def begin(values: list[Any]) -> list[Any]:
            iteration = Iteration({id(symbol): value for symbol, value in zip(symbols, values)})
            self._cursor_by_session[self._graph.held_by] = Cursor(pipe, iteration)
            return [convert_to_tensor(True)]

        return group(_core.call_python(begin, symbols, [bool_], [TensorShape([])], None, True)[0])

    def _place(self, symbols: list[Any], values: list[Any]) -> Cursor:
        session = self._graph.held_by
        cursor = self._cursor_by_session.get(session)
        if cursor is None and self._one_shot and self._pipe is not None:
            iteration = Iteration({id(symbol): value for symbol, value in zip(symbols, values)})
            cursor = self._cursor_by_session[session] = Cursor(self._pipe, iteration)
        if cursor is None:
            raise FailedPreconditionError.of(
                "GetNext() failed because the iterator has not been initialized. Ensure that you have run the "
                "initializer operation for this iterator before getting the next element.",
            )
        return cursor

    def _in_graph(self, dtypes: list[Any], shapes: list[Any], take: Callable[[Cursor], list[Any]]) -> list[Any]:
        symbols = self._pipe.all_symbols() if self._one_shot and self._pipe is not None else []
        return _core.call_python(lambda values: take(self._place(symbols, values)), symbols, dtypes, shapes, None, True)

    def string_handle(self, name: str | None = None) -> Any:
        """A string that stands for the iterator: fed to one of `from_string_handle`, it says whose elements to give."""
        if self._handle_string is None:
            self._handle_string = convert_to_tensor(self._handle)
        return self._handle_string

    def get_next(self, name: str | None = None) -> Any:
        """The next element, as tensors of the graph; one call serves all runs of a session."""
        self._calls += 1
        if self._calls > _MANY_CALLS:
            warnings.warn(_CALLED_OFTEN, stacklevel=2)
        return super().get_next(name)

    @staticmethod
    def from_string_handle(
        string_handle: Any, output_types: Any, output_shapes: Any = None, output_classes: Any = None
    ) -> SessionIterator:
        """An iterator that gives the elements of the iterator whose handle the tensor is."""
        return _HandledIterator(convert_to_tensor(string_handle, "string"), spec_of_types(output_types, output_shapes))

    @staticmethod
    def from_structure(
        output_types: Any, output_shapes: Any = None, shared_name: str | None = None, output_classes: Any = None
    ) -> SessionIterator:
        """An iterator over elements of this kind, for any dataset that `make_initializer` is given."""
        return SessionIterator(None, spec_of_types(output_types, output_shapes), one_shot=False)


class _HandledIterator(SessionIterator):
    """An iterator that gives the elements of another one, which a handle names in each iteration."""

    def __init__(self, handle: Any, element_spec: Any) -> None:
        super().__init__(None, element_spec, one_shot=False)
        self._given = handle

    def _in_graph(self, dtypes: list[Any], shapes: list[Any], take: Callable[[Cursor], list[Any]]) -> list[Any]:
        def evaluate(values: list[Any]) -> list[Any]:
            name = values[0].numpy()
            iterator = _iterator_by_handle.get(name)
            if iterator is None:
                raise NotFoundError.of(f"get_next: there is no iterator of the handle {name!r}")
            return take(iterator._place([], []))

        return _core.call_python(evaluate, [self._given], dtypes, shapes, None, True)


public("compat.v1.data.Iterator")(SessionIterator)


@public("compat.v1.data.make_one_shot_iterator")
def make_one_shot_iterator(dataset: Dataset) -> Iterator:
    """An iterator that begins by itself; in a graph, once in each session.

    >>> with tf.Graph().as_default(), tf.compat.v1.Session() as session:
    ...     iterator = tf.compat.v1.data.make_one_shot_iterator(tf.data.Dataset.range(2))
    ...     element = iterator.get_next()
    ...     print(session.run(element), session.run(element))
    0 1
    """
    if _core.current_graph() is None:
        return iter(dataset)
    return SessionIterator(dataset._pipe, dataset.element_spec, one_shot=True)


@public("compat.v1.data.make_initializable_iterator")
def make_initializable_iterator(dataset: Dataset, shared_name: str | None = None) -> SessionIterator:
    """An iterator of a graph that begins when its `initializer` runs.

    >>> with tf.Graph().as_default(), tf.compat.v1.Session() as session:
    ...     stop = tf.compat.v1.placeholder(tf.int64, [])
    ...     iterator = tf.compat.v1.data.make_initializable_iterator(tf.data.Dataset.range(5, stop))
    ...     element = iterator.get_next()
    ...     session.run(iterator.initializer, {stop: 9})
    ...     print(session.run(element), session.run(element))
    5 6
    """
    if _core.current_graph() is None:
        raise RuntimeError(
            "`tf.compat.v1.data.make_initializable_iterator()` is not supported in eager mode. Use Python-style "
            "iteration instead."
        )
    return SessionIterator(dataset._pipe, dataset.element_spec, one_shot=False)


class IteratorSaveable:
    """The state of an iterator of a graph, as `tf.compat.v1.train.Saver` saves it."""

    def __init__(self, iterator: SessionIterator, policy: ExternalStatePolicy) -> None:
        self._iterator, self._policy = iterator, policy
        self.name: str = iterator._graph.unique_name("IteratorV2")

    def value_in_session(self, session: Any) -> Any:
        """Where the iterator of a session is."""
        cursor = self._iterator._cursor_by_session.get(session)
        if cursor is None:
            raise FailedPreconditionError.of(f"Saver.save: the iterator {self.name!r} has not been initialized")
        check_external_state(cursor.root, self._policy)
        return cursor.state()

    def restore_in_session(self, session: Any, value: Any) -> None:
        """Lets the iterator of a session go on from where it was saved."""
        iterator = self._iterator
        cursor, pipe = iterator._cursor_by_session.get(session), iterator._pipe
        if cursor is None and pipe is not None and not pipe.all_symbols():
            cursor = Cursor(pipe, Iteration())
        if cursor is None:
            raise FailedPreconditionError.of(
                f"Saver.restore: the iterator {self.name!r} has no dataset yet: run its initializer before"
            )
        with running_at_once():
            iterator._cursor_by_session[session] = cursor.begun_at(value)


@public("data.experimental.make_saveable_from_iterator", "compat.v1.data.experimental.make_saveable_from_iterator")
def make_saveable_from_iterator(
    iterator: Any, external_state_policy: ExternalStatePolicy | str | None = None
) -> IteratorSaveable:
    """What lets `tf.compat.v1.train.Saver` save where an iterator of a graph is; eagerly use `tf.train.Checkpoint`.

    Args:
        iterator: An iterator of a TensorFlow 1 graph.
        external_state_policy: "warn", "ignore" or "fail" if the dataset has state outside of it; "fail" if not given.

    Returns:
        An object for the collection `tf.compat.v1.GraphKeys.SAVEABLE_OBJECTS`, or for the list of a saver.

    >>> with tf.Graph().as_default():
    ...     iterator = tf.compat.v1.data.make_one_shot_iterator(tf.data.Dataset.range(3))
    ...     tf.data.experimental.make_saveable_from_iterator(iterator).name
    'IteratorV2'
    """
    policy = external_state_policy
    if policy is None or isinstance(policy, str):
        policy = _POLICY_BY_NAME.get("fail" if policy is None else policy)
    if not isinstance(policy, ExternalStatePolicy):
        raise ValueError(
            "Invalid `ExternalStatePolicy.` Supported values include 'warn', 'ignore', and 'fail.' Received "
            f"{external_state_policy}."
        )
    if not isinstance(iterator, SessionIterator) or isinstance(iterator, _HandledIterator):
        raise ValueError("make_saveable_from_iterator: an iterator of a graph must be given; use tf.train.Checkpoint")
    return IteratorSaveable(iterator, policy)


_POLICY_BY_NAME = {policy.name.lower(): policy for policy in ExternalStatePolicy}


@public("compat.v1.data.get_output_types")
def get_legacy_output_types(dataset_or_iterator: Any) -> Any:
    """The dtypes of the elements, in their structure.

    >>> tf.compat.v1.data.get_output_types(tf.data.Dataset.range(3))
    tf.int64
    """
    return map_leaves(lambda spec: spec.dtype, dataset_or_iterator.element_spec)


@public("compat.v1.data.get_output_shapes")
def get_legacy_output_shapes(dataset_or_iterator: Any) -> Any:
    """The shapes of the elements, in their structure.

    >>> tf.compat.v1.data.get_output_shapes(tf.data.Dataset.range(3).batch(2))
    TensorShape([None])
    """
    return map_leaves(lambda spec: spec.shape, dataset_or_iterator.element_spec)


@public("compat.v1.data.get_output_classes")
def get_legacy_output_classes(dataset_or_iterator: Any) -> Any:
    """The classes of the elements, in their structure.

    >>> tf.compat.v1.data.get_output_classes(tf.data.Dataset.range(3)) is tf.Tensor
    True
    """
    return map_leaves(lambda spec: spec.value_type, dataset_or_iterator.element_spec)


@public("compat.v1.data.Dataset")
class DatasetV1(Dataset):
    """A dataset with the methods that only TensorFlow 1 has; what is made of it is one, too.

    >>> tf.compat.v1.data.Dataset.range(3).batch(2).output_types
    tf.int64
    """

    _preserves_count = False

    output_types = property(get_legacy_output_types, doc="The dtypes of the elements.")
    output_shapes = property(get_legacy_output_shapes, doc="The shapes of the elements.")
    output_classes = property(get_legacy_output_classes, doc="The classes of the elements.")

    def make_one_shot_iterator(self) -> Iterator:
        """An iterator that begins by itself."""
        return make_one_shot_iterator(self)

    def make_initializable_iterator(self, shared_name: str | None = None) -> SessionIterator:
        """An iterator that begins when its `initializer` runs."""
        return make_initializable_iterator(self)

    def map_with_legacy_function(self, map_func: Any, num_parallel_calls: Any = None, deterministic: Any = None) -> Any:
        """`map` under its v1 name."""
        return self.map(map_func, num_parallel_calls)

    def filter_with_legacy_function(self, predicate: Any) -> Any:
        """`filter` under its v1 name."""
        return self.filter(predicate)
