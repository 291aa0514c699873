"""`tf.lookup`: tables from keys to values, looked up element by element, in graphs too."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import numpy as np

from tapeflow._src import _core
from tapeflow._src.namespace import public
from tapeflow._src.ops.arrays.conversion import convert_to_tensor
from tapeflow._src.ops.effects.host_call import host_call, host_effect
from tapeflow._src.ops.lookup.buckets import in_buckets
from tapeflow._src.ops.lookup.initializers import KeyedDtypes, elements
from tapeflow._src.ops.ragged.ragged_tensor import RaggedTensor
from tapeflow._src.ops.strings.hashing import fingerprint64
from tapeflow._src.types.dtypes import as_dtype, int64, string
from tapeflow._src.types.errors import FailedPreconditionError, InvalidArgumentError
from tapeflow._src.types.sparse_tensor import SparseTensor
from tapeflow._src.types.trackable import TrackableResource


def _with_values(like: Any, values: Any) -> Any:
    """`values` in the structure of ragged or sparse keys."""
    if isinstance(like, RaggedTensor):
        return like.with_flat_values(values)
    return SparseTensor(like.indices, values, like.dense_shape) if isinstance(like, SparseTensor) else values


def _inner(keys: Any, dtype: Any) -> Any:
    """The keys as a dense tensor."""
    if isinstance(keys, RaggedTensor):
        return keys.flat_values
    return keys.values if isinstance(keys, SparseTensor) else _keys(keys, dtype)


def _keys(keys: Any, dtype: Any) -> Any:
    return convert_to_tensor(keys) if _core.is_tensor(keys) else convert_to_tensor(keys, dtype_hint=dtype)


# ------------------------------------------------------------------------------------------------------------- tables


class LookupInterface(KeyedDtypes, TrackableResource):
    """A table: what all kinds have in common."""

    def __init__(self, key_dtype: Any, value_dtype: Any, name: str | None) -> None:
        self._key_dtype, self._value_dtype, self._name = as_dtype(key_dtype), as_dtype(value_dtype), name

    @property
    def name(self) -> str | None:
        """The name that was given."""
        return self._name

    @property
    def resource_handle(self) -> Any:
        """What stands for the table: the table itself."""
        return self

    def lookup(self, keys: Any, name: str | None = None) -> Any:
        """The values of keys."""
        raise NotImplementedError

    def size(self, name: str | None = None) -> Any:
        """The number of keys."""
        raise NotImplementedError

    def __getitem__(self, keys: Any) -> Any:
        return self.lookup(keys)

    def _checked(self, keys: Any) -> Any:
        found = keys if isinstance(keys, RaggedTensor | SparseTensor) else _keys(keys, self._key_dtype)
        if found.dtype != self._key_dtype:
            raise TypeError(f"Dtype of argument `keys` must be {self._key_dtype!r}, received: {found.dtype!r}")
        return found


class TableCall(NamedTuple):
    """A node that uses a table: `resource`, and for words without a number the first and the count of further ones."""

    resource: Any
    method: str
    default: Any = None
    first: int = 0
    buckets: int = 0
    effect: bool = False


class _Finding:
    """Finds the values of keys."""

    def __init__(self, value_by_key: dict[Any, Any], default: Any, dtype: Any, raw_call: TableCall) -> None:
        self._value_by_key, self._default, self._dtype, self.raw_call = value_by_key, default, dtype, raw_call

    def __call__(self, keys: Any) -> list[Any]:
        found = [self._value_by_key.get(key, self._default) for key in elements(keys)]
        return [_filled(found, self._dtype, keys.shape.as_list())]


@public("lookup.StaticHashTable")
class StaticHashTable(LookupInterface):
    """A table that does not change; keys that it does not have give `default_value`.

    >>> table = tf.lookup.StaticHashTable(tf.lookup.KeyValueTensorInitializer(["a", "b"], [1, 2]), default_value=-1)
    >>> table.lookup(tf.constant(["b", "c"]))
    <tf.Tensor: shape=(2,), dtype=int32, numpy=array([ 2, -1], dtype=int32)>
    """

    _has_own_initializer = True

    def __init__(
        self,
        initializer: Any,
        default_value: Any,
        name: str | None = None,
        experimental_is_anonymous: bool = False,
    ) -> None:
        super().__init__(initializer.key_dtype, initializer.value_dtype, name)
        self._default = convert_to_tensor(default_value, self._value_dtype)
        if self._default.shape.rank != 0:
            raise ValueError(f"`default_value` must be a scalar; got shape {self._default.shape}")
        self._initializer = initializer
        self._value_by_key: dict[Any, Any] = {}
        initializer.initialize(self)
        self._filling = filling_operation(self) if self._has_own_initializer else None

    def begin_with(self, pairs: Iterable[tuple[Any, Any]]) -> None:
        """Takes keys with their values; for initializers."""
        for key, value in pairs:
            if self._value_by_key.setdefault(key, value) != value:
                raise FailedPreconditionError.of(
                    f"HashTable has different value for same key. Key {_text(key)} has "
                    f"{_text(self._value_by_key[key])} and trying to add value {_text(value)}",
                )

    @property
    def default_value(self) -> Any:
        """What keys that are not there give."""
        return self._default

    @property
    def initializer(self) -> Any:
        """What the table began with; in a graph of TensorFlow 1 there is nothing left to run."""
        return self._initializer

    def lookup(self, keys: Any, name: str | None = None) -> Any:
        """The values of keys, which may be ragged or sparse."""
        keys = self._checked(keys)
        dense = _inner(keys, self._key_dtype)
        call = TableCall(self, "lookup", self._default)
        run = _Finding(self._value_by_key, elements(self._default)[0], self._value_dtype, call)
        return _with_values(keys, host_call(run, [dense], [(self._value_dtype, dense.shape)])[0])

    def size(self, name: str | None = None) -> Any:
        """The number of keys, int64."""
        return convert_to_tensor(len(self._value_by_key), int64)

    def export(self, name: str | None = None) -> tuple[Any, Any]:
        """All keys and all values."""
        keys = _filled(list(self._value_by_key), self._key_dtype, [-1])
        return keys, _filled(list(self._value_by_key.values()), self._value_dtype, [-1])


def _text(value: Any) -> str:
    return value.decode(errors="replace") if isinstance(value, bytes) else str(value)


def _dims(shape: Any) -> str:
    return f"[{','.join(map(str, shape))}]"


def _filled(values: list[Any], dtype: Any, shape: Any) -> Any:
    array = np.empty(len(values), dtype=object)
    if dtype == string:
        array[:] = values
    else:
        array = np.asarray(values, dtype.as_numpy_dtype)
    return convert_to_tensor(array.reshape(shape), dtype)


class _Numbering:
    """Finds the numbers of words, those of others by their fingerprint."""

    def __init__(self, number_by_word: dict[Any, Any], first: int, buckets: int, raw_call: TableCall) -> None:
        self._number_by_word, self._first, self._buckets, self.raw_call = number_by_word, first, buckets, raw_call

    def __call__(self, words: Any) -> list[Any]:
        return [_filled([self._number(word) for word in elements(words)], int64, words.shape.as_list())]

    def _number(self, word: Any) -> int:
        found = self._number_by_word.get(word)
        text = word if isinstance(word, bytes) else str(word).encode()
        return self._first + fingerprint64(text) % self._buckets if found is None else found


class _Vocabulary(StaticHashTable):
    """The words of a `StaticVocabularyTable`, which has the operation that fills them."""

    _has_own_initializer = False


@public("lookup.StaticVocabularyTable")
class StaticVocabularyTable(LookupInterface):
    """Numbers for words; words that are not in the vocabulary share `num_oov_buckets` further numbers by a hash.

    >>> words = tf.lookup.KeyValueTensorInitializer(["a", "b"], tf.constant([0, 1], tf.int64))
    >>> tf.lookup.StaticVocabularyTable(words, num_oov_buckets=3).lookup(tf.constant(["b", "q"]))
    <tf.Tensor: shape=(2,), dtype=int64, numpy=array([1, 4])>
    """

    def __init__(
        self,
        initializer: Any,
        num_oov_buckets: int,
        lookup_key_dtype: Any = None,
        name: str | None = None,
        experimental_is_anonymous: bool = False,
    ) -> None:
        if num_oov_buckets <= 0:
            raise ValueError(f"`num_oov_buckets` must be > 0; use StaticHashTable instead; got {num_oov_buckets}")
        own = string if initializer is None else initializer.key_dtype
        wanted = own if lookup_key_dtype is None else as_dtype(lookup_key_dtype)
        if initializer is not None and initializer.value_dtype != int64:
            raise TypeError(f"Invalid `value_dtype`, expected {int64!r} but got {initializer.value_dtype!r}.")
        if not (wanted.is_integer or wanted == string):
            raise TypeError(f"Invalid `key_dtype`, expected integer or string, but got {wanted!r}.")
        super().__init__(wanted, int64, name)
        self._buckets = num_oov_buckets
        self._table = _Vocabulary(initializer, -1) if initializer is not None else None
        if self._table is not None and wanted.is_integer != self._table.key_dtype.is_integer:
            raise TypeError(f"Invalid `key_dtype`, expected {self._table.key_dtype!r}, but got {wanted!r}.")
        self._filling = None if self._table is None else filling_operation(self)

    @property
    def resource_handle(self) -> Any:
        """The table of the vocabulary; None if there is none."""
        return self._table

    def _known(self) -> int:
        return 0 if self._table is None else len(self._table._value_by_key)

    def size(self, name: str | None = None) -> Any:
        """The number of words and further numbers, int64."""
        return convert_to_tensor(self._known() + self._buckets, int64)

    def lookup(self, keys: Any, name: str | None = None) -> Any:
        """The numbers of words, which may be ragged or sparse."""
        keys = self._checked(keys)
        dense = _inner(keys, self._key_dtype)
        call = TableCall(self, "number", -1, self._known(), self._buckets)
        run = _Numbering({} if self._table is None else self._table._value_by_key, self._known(), self._buckets, call)
        return _with_values(keys, host_call(run, [dense], [(int64, dense.shape)])[0])


class WithTableCall:
    """A function of tensors, and what is written into files for it."""

    def __init__(self, run: Callable[..., Any], raw_call: TableCall) -> None:
        self._run, self.raw_call = run, raw_call

    def __call__(self, *tensors: Any) -> Any:
        return self._run(*tensors)


def _fill_nothing() -> None:
    """The table is full already."""


def filling_operation(table: Any) -> Any:
    """In a graph of TensorFlow 1 the operation that fills a table, and None elsewhere.

    A table of a program is full from the beginning: the operation has something to do only in files.
    """
    graph = _core.current_graph()
    if graph is None or not graph.graph_mode:
        return None
    call = WithTableCall(_fill_nothing, TableCall(table, "initialize", effect=True))
    first, graph.names_nodes = graph.node_count, False
    made = host_effect(call, [])
    graph.names_nodes = True
    graph.name_nodes(first, "table_init", "init", made.outputs[0])
    graph.add_to_collection("table_initializer", made)
    return made


class _ChangingTable(LookupInterface):
    """A table whose keys and values change; a value may be a tensor."""

    _checkpoint_attribute = "table"
    _checkpoint_parts = ("-keys", "-values")

    def __init__(
        self, key_dtype: Any, value_dtype: Any, default_value: Any, name: str | None, checkpoint: bool
    ) -> None:
        super().__init__(key_dtype, value_dtype, name)
        self._is_checkpointed = checkpoint
        self._default = convert_to_tensor(default_value, self._value_dtype)
        self._key_shape: list[int] = []
        self._reserved: dict[Any, str] = {}  # keys that may not be used, and what they are for
        self._value_by_key: dict[Any, Any] = {}
        self._lock = threading.Lock()

    def _kept(self, value: Any) -> np.ndarray:
        """A copy of one value; strings as objects, since an array of bytes would cut zeros at their ends."""
        return np.array(value, object if self._value_dtype == string else None)

    def _names(self, keys: Any) -> tuple[list[Any], list[int]]:
        """The keys as Python values, tuples if they have a shape, and the dimensions that they are in."""
        dims, rank = keys.shape.as_list(), len(self._key_shape)
        if not rank:
            return elements(keys), dims
        if dims[len(dims) - rank :] != self._key_shape or len(dims) < rank:
            raise InvalidArgumentError.of(f"Expected key shape {self._key_shape} at the end; got {dims}")
        outer = dims[: len(dims) - rank]
        rows = np.asarray(keys.numpy()).reshape([int(np.prod(outer)), -1]).tolist()
        return [tuple(row) for row in rows], outer

    def _forbid(self, keys: list[Any], what: str) -> None:
        """Raises for keys that may not be used."""

    def insert(self, keys: Any, values: Any, name: str | None = None) -> Any:
        """Sets the values of keys."""
        keys = self._checked(keys)
        values = convert_to_tensor(values, self._value_dtype)
        inner = self._default.shape.as_list()

        def insert(keys: Any, values: Any) -> None:
            names, outer = self._names(keys)
            self._forbid(names, "insert")
            if values.shape.as_list() != [*outer, *inner]:
                raise InvalidArgumentError.of(
                    f"insert: Expected shape {[*outer, *inner]} for value, got {values.shape.as_list()}",
                )
            rows = np.asarray(values.numpy()).reshape([len(names), *inner])
            with self._lock:
                self._value_by_key.update((key, self._kept(row)) for key, row in zip(names, rows))

        run = WithTableCall(insert, TableCall(self, "insert", effect=True))
        return host_effect(run, [keys, values])

    def begin_with(self, pairs: Iterable[tuple[Any, Any]]) -> None:
        """Takes keys with their values; for initializers."""
        with self._lock:
            self._value_by_key.update((key, self._kept(value)) for key, value in pairs)

    def _arrays(self) -> tuple[np.ndarray, np.ndarray]:
        """All keys and all values."""
        with self._lock:
            pairs = list(self._value_by_key.items())
        key_type, value_type = (
            object if dtype == string else dtype.as_numpy_dtype for dtype in (self._key_dtype, self._value_dtype)
        )
        keys = np.empty([len(pairs), *self._key_shape], key_type)
        values = np.empty([len(pairs), *self._default.shape.as_list()], value_type)
        for place, (key, value) in enumerate(pairs):
            keys[place], values[place] = key, value[()]
        return keys, values

    def _checkpoint_value(self) -> dict[str, np.ndarray]:
        return dict(zip(self._checkpoint_parts, self._arrays()))

    def _restore_checkpoint_value(self, value: dict[str, np.ndarray]) -> None:
        self._hold(*(value[end] for end in self._checkpoint_parts))

    def _hold(self, keys: Any, values: Any) -> None:
        """Holds these keys and nothing else; in buckets of TensorFlow's tables reserved keys mark those without one."""
        tensor = convert_to_tensor(np.reshape(keys, [len(keys), *self._key_shape]), self._key_dtype)
        names, _ = self._names(tensor)
        rows = np.reshape(values, [len(keys), *self._default.shape.as_list()])
        with self._lock:
            self._value_by_key.clear()
            self._value_by_key.update(
                (key, self._kept(row)) for key, row in zip(names, rows) if key not in self._reserved
            )

    def replace(self, keys: Any, values: Any) -> Any:
        """Forgets all keys and sets the values of others."""
        given = self._checked(keys), convert_to_tensor(values, self._value_dtype)
        return host_effect(lambda keys, values: self._hold(np.asarray(keys), np.asarray(values)), list(given))

    def insert_or_assign(self, keys: Any, values: Any, name: str | None = None) -> Any:
        """Sets the values of keys."""
        return self.insert(keys, values, name)

    def remove(self, keys: Any, name: str | None = None) -> Any:
        """Forgets keys; those that are not there are passed over."""
        keys = self._checked(keys)

        def remove(keys: Any) -> None:
            names, _ = self._names(keys)
            self._forbid(names, "remove")
            with self._lock:
                for key in names:
                    self._value_by_key.pop(key, None)

        return host_effect(WithTableCall(remove, TableCall(self, "remove", effect=True)), [keys])

    def erase(self, keys: Any, name: str | None = None) -> Any:
        """Forgets keys."""
        return self.remove(keys, name)

    def _look_up(self, keys: Any, defaults: Any) -> Any:
        """The values of keys; others give `defaults`, or the default of the table if these are None."""
        keys = self._checked(keys)
        dense, inner = _inner(keys, self._key_dtype), self._default.shape.as_list()
        defaults = self._default if defaults is None else convert_to_tensor(defaults, self._value_dtype)

        def find(dense: Any, defaults: Any) -> list[Any]:
            names, outer = self._names(dense)
            self._forbid(names, "lookup")
            given = np.asarray(defaults.numpy())
            shape = [*outer, *inner]
            if list(given.shape) not in (inner, shape):
                raise InvalidArgumentError.of(
                    f"Expected shape {_dims(inner)} or {_dims(shape)} for default value, got {_dims(given.shape)}"
                )
            rows = np.broadcast_to(given, shape).reshape([len(names), *inner])
            with self._lock:
                found = [self._value_by_key.get(key, row) for key, row in zip(names, rows)]
            dtype = object if self._value_dtype == string else self._value_dtype.as_numpy_dtype
            array = np.empty([len(names), *inner], dtype)
            for place, value in enumerate(found):
                array[place] = value
            return [convert_to_tensor(array.reshape(shape), self._value_dtype)]

        run = WithTableCall(find, TableCall(self, "lookup"))
        known = None if dense.shape.rank is None else dense.shape.as_list()
        outer = None if known is None else [*known[: len(known) - len(self._key_shape)], *inner]
        specs = [(self._value_dtype, outer)]
        return _with_values(keys, host_call(run, [dense, defaults], specs, reads=True)[0])

    def size(self, name: str | None = None) -> Any:
        """The number of keys, int64."""

        def count() -> list[Any]:
            return [convert_to_tensor(len(self._value_by_key), int64)]

        return host_call(WithTableCall(count, TableCall(self, "size")), [], [(int64, [])], reads=True)[0]

    def export(self, name: str | None = None) -> tuple[Any, Any]:
        """All keys and all values."""
        inner = self._default.shape.as_list()

        def run() -> list[Any]:
            with self._lock:
                pairs = list(self._value_by_key.items())
            values = [x for _, value in pairs for x in np.reshape(value, [-1]).tolist()]
            names = [key for key, _ in pairs]
            flat = [x for key in names for x in key] if self._key_shape else names
            keys = _filled(flat, self._key_dtype, [len(pairs), *self._key_shape])
            return [keys, _filled(values, self._value_dtype, [len(pairs), *inner])]

        specs = [(self._key_dtype, [None, *self._key_shape]), (self._value_dtype, [None, *inner])]
        keys, values = host_call(WithTableCall(run, TableCall(self, "export")), [], specs, reads=True)
        return keys, values


@public("lookup.experimental.MutableHashTable", "compat.v1.lookup.experimental.MutableHashTable")
class MutableHashTable(_ChangingTable):
    """A table that can be changed; values have the shape of `default_value`.

    >>> table = tf.lookup.experimental.MutableHashTable(tf.string, tf.int64, default_value=-1)
    >>> table.insert(tf.constant(["a"]), tf.constant([7], tf.int64))
    >>> table.lookup(tf.constant(["a", "b"]))
    <tf.Tensor: shape=(2,), dtype=int64, numpy=array([ 7, -1])>
    """

    def __init__(
        self,
        key_dtype: Any,
        value_dtype: Any,
        default_value: Any,
        name: str = "MutableHashTable",
        checkpoint: bool = True,
        experimental_is_anonymous: bool = False,
    ) -> None:
        super().__init__(key_dtype, value_dtype, default_value, name, checkpoint)
        if self._default.shape.rank not in (0, 1):
            raise InvalidArgumentError.of(f"Default value must be a vector, not shape {self._default.shape}")

    def lookup(  # type: ignore[override]  # as TensorFlow has it
        self, keys: Any, dynamic_default_values: Any = None, name: str | None = None
    ) -> Any:
        """The values of keys; others give the default, or their own of `dynamic_default_values`."""
        return self._look_up(keys, dynamic_default_values)


@public("lookup.experimental.DenseHashTable", "compat.v1.lookup.experimental.DenseHashTable")
class DenseHashTable(_ChangingTable):
    """A table that can be changed and in which two keys, `empty_key` and `deleted_key`, may not be used.

    >>> table = tf.lookup.experimental.DenseHashTable(tf.int64, tf.int64, default_value=-1, empty_key=0, deleted_key=-1)
    >>> table.insert(tf.constant([5], tf.int64), tf.constant([7], tf.int64))
    >>> table.lookup(tf.constant([5, 6], tf.int64))
    <tf.Tensor: shape=(2,), dtype=int64, numpy=array([ 7, -1])>
    """

    def __init__(
        self,
        key_dtype: Any,
        value_dtype: Any,
        default_value: Any,
        empty_key: Any,
        deleted_key: Any,
        initial_num_buckets: int | None = None,
        name: str = "MutableDenseHashTable",
        checkpoint: bool = True,
        experimental_is_anonymous: bool = False,
    ) -> None:
        super().__init__(key_dtype, value_dtype, default_value, name, checkpoint)
        empty, deleted = (convert_to_tensor(key, self._key_dtype) for key in (empty_key, deleted_key))
        if empty.shape != deleted.shape:
            raise InvalidArgumentError.of(
                f"DenseHashTable: Empty and deleted keys must have same shape; got {empty.shape} and {deleted.shape}"
            )
        if initial_num_buckets is not None and (initial_num_buckets < 1 or initial_num_buckets.bit_count() != 1):
            raise InvalidArgumentError.of(
                f"DenseHashTable: Number of buckets must be at least 1 and a power of 2; got {initial_num_buckets}"
            )
        self._key_shape, self.reserved_keys = empty.shape.as_list(), (empty, deleted)
        names = [self._names(key)[0][0] for key in (empty, deleted)]
        if names[0] == names[1]:
            raise InvalidArgumentError.of("DenseHashTable: Empty and deleted keys cannot be equal")
        self._reserved = dict(zip(names, ("empty_key", "deleted_key")))
        self._empty = names[0]

    def _checkpoint_value(self) -> dict[str, np.ndarray]:
        buckets = in_buckets(*self._arrays(), self._empty, np.asarray(self._default.numpy()))
        return dict(zip(self._checkpoint_parts, buckets))

    def _forbid(self, keys: list[Any], what: str) -> None:
        for key in keys:
            if (reserved := self._reserved.get(key)) is not None:
                raise InvalidArgumentError.of(
                    f"DenseHashTable: Using the {reserved} as a table key is not allowed ({what})"
                )

    def lookup(self, keys: Any, name: str | None = None) -> Any:
        """The values of keys; others give the default."""
        return self._look_up(keys, None)
