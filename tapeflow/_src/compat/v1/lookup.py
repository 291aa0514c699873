"""`tf.compat.v1.lookup`: tables with the initializers of graphs, and those of vocabularies that libraries import."""

from __future__ import annotations

from collections import namedtuple
from typing import Any

from tapeflow._src.namespace import find_public, public
from tapeflow._src.ops.arrays.conversion import cast, convert_to_tensor
from tapeflow._src.ops.arrays.passing import no_op
from tapeflow._src.ops.lookup import tables
from tapeflow._src.ops.lookup.initializers import KeyValueTensorInitializer, TextFileIndex, TextFileInitializer
from tapeflow._src.ops.ragged.ragged_tensor import RaggedTensor
from tapeflow._src.types.dtypes import as_dtype, int64, string
from tapeflow._src.types.sparse_tensor import SparseTensor


class _Initialized:
    """A table that is full from the beginning. In files, its initializer fills it."""

    _filling: Any

    @property
    def initializer(self) -> Any:
        """An operation that has nothing left to do here; written into a file, it fills the table."""
        return no_op(name="table_init") if self._filling is None else self._filling


@public("compat.v1.lookup.StaticHashTable")
class StaticHashTable(_Initialized, tables.StaticHashTable):
    """A table that does not change. It is full from the beginning: its initializer has nothing left to do.

    >>> with tf.Graph().as_default():
    ...     pairs = tf.lookup.KeyValueTensorInitializer(["a", "b"], [1, 2])
    ...     table = tf.compat.v1.lookup.StaticHashTable(pairs, -1)
    ...     with tf.compat.v1.Session() as session:
    ...         session.run(table.initializer)
    ...         session.run(table.lookup(tf.constant(["b", "c"])))
    array([ 2, -1], dtype=int32)
    """

    def __init__(
        self, initializer: Any, default_value: Any, name: str | None = None, experimental_is_anonymous: bool = False
    ) -> None:
        super().__init__(initializer, default_value, name, experimental_is_anonymous)


@public("compat.v1.lookup.StaticVocabularyTable")
class StaticVocabularyTable(_Initialized, tables.StaticVocabularyTable):
    """Numbers for words; words that are not in the vocabulary share `num_oov_buckets` further numbers by a hash.

    >>> words = tf.lookup.KeyValueTensorInitializer(["a", "b"], tf.constant([0, 1], tf.int64))
    >>> tf.compat.v1.lookup.StaticVocabularyTable(words, 3).lookup(tf.constant(["b", "q"]))
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
        super().__init__(initializer, num_oov_buckets, lookup_key_dtype, name, experimental_is_anonymous)


# ---- not public: tables of a vocabulary in a file or a list


class HasherSpec(namedtuple("HasherSpec", ["hasher", "key"])):
    """How words that are not in a vocabulary are hashed."""

    __slots__ = ()


FastHashSpec = HasherSpec("fasthash", None)


class StrongHashSpec(HasherSpec):
    """A hash with a key of two integers, which nobody foresees who does not know it."""

    __slots__ = ()

    def __new__(cls, key: Any) -> StrongHashSpec:
        if len(key) != 2:
            raise ValueError(f"`key` must have size 2, received {len(key)}.")
        if not all(isinstance(part, int) for part in key):
            raise TypeError(f"Invalid key {key}. Must be unsigned integer values.")
        return super().__new__(cls, "stronghash", key)


class TextFileIdTableInitializer(TextFileInitializer):
    """Numbers of the words in a file: by default of its lines."""

    def __init__(
        self,
        filename: Any,
        key_column_index: int = TextFileIndex.WHOLE_LINE,
        value_column_index: int = TextFileIndex.LINE_NUMBER,
        vocab_size: int | None = None,
        delimiter: str = "\t",
        name: str | None = "text_file_id_table_init",
        key_dtype: Any = string,
    ) -> None:
        super().__init__(filename, key_dtype, key_column_index, int64, value_column_index, vocab_size, delimiter, name)


class TextFileStringTableInitializer(TextFileInitializer):
    """The words in a file by their numbers."""

    def __init__(
        self,
        filename: Any,
        key_column_index: int = TextFileIndex.LINE_NUMBER,
        value_column_index: int = TextFileIndex.WHOLE_LINE,
        vocab_size: int | None = None,
        delimiter: str = "\t",
        name: str | None = "text_file_string_table_init",
    ) -> None:
        super().__init__(filename, int64, key_column_index, string, value_column_index, vocab_size, delimiter, name)


class IdTableWithHashBuckets(_Initialized, tables.LookupInterface):
    """A table of numbers, with further numbers by a hash for what it does not have."""

    def __init__(
        self,
        table: Any,
        num_oov_buckets: int,
        hasher_spec: Any = FastHashSpec,
        name: str | None = None,
        key_dtype: Any = None,
    ) -> None:
        if table is not None:
            key_dtype = table.key_dtype if key_dtype is None else as_dtype(key_dtype)
            if table.key_dtype not in (int64, string):
                raise TypeError(f"Invalid `key_dtype`, expected one of {(int64, string)}, received {key_dtype!r}.")
            if table.key_dtype.is_integer != key_dtype.is_integer:
                kind = "integer" if key_dtype.is_integer else "non-integer"
                raise TypeError(f"Invalid `key dtype`, expected {kind} but got {table.key_dtype!r}.")
            if table.value_dtype != int64:
                raise TypeError(f"Invalid `value_dtype`: expected int64 but got {table.value_dtype!r}.")
        elif num_oov_buckets <= 0:
            raise ValueError("`oov_buckets` must be > 0 if no `table` is supplied.")
        key_dtype = string if key_dtype is None else as_dtype(key_dtype)
        if not key_dtype.is_integer and key_dtype != string:
            raise TypeError(f"Invalid `key_dtype`, expected integer or string, got {key_dtype!r}.")
        if not isinstance(hasher_spec, HasherSpec):
            raise TypeError(f"`hasher_spec` must be of type HasherSpec, got {type(hasher_spec)}.")
        name = name or (table.name if table is not None else "hash_bucket")
        tables.LookupInterface.__init__(self, key_dtype, int64, name)
        self._filling = None if table is None else getattr(table, "_filling", None)
        self._table, self._buckets, self._spec = table, num_oov_buckets, hasher_spec

    init = _Initialized.initializer

    def size(self, name: str | None = None) -> Any:
        """The number of words and further numbers, int64."""
        known = convert_to_tensor(0, int64) if self._table is None else self._table.size()
        return known + self._buckets

    def lookup(self, keys: Any, name: str | None = None) -> Any:
        """The numbers of words, which may be ragged or sparse."""
        keys = self._checked(keys)
        values = keys.values if isinstance(keys, RaggedTensor | SparseTensor) else keys
        if self._table is not None and self._table.key_dtype == int64:
            values = cast(values, int64)
        if self._buckets == 0:
            ids = self._table.lookup(values)
        else:
            ids = self._hashed(values)
            if self._table is not None:
                known = self._table.lookup(values)
                fits = known != self._table.default_value
                ids = find_public("where")(fits, known, ids + self._table.size())
        if isinstance(keys, SparseTensor):
            return SparseTensor(keys.indices, ids, keys.dense_shape)
        return keys.with_values(ids) if isinstance(keys, RaggedTensor) else ids

    def _hashed(self, values: Any) -> Any:
        words = values if values.dtype == string else find_public("strings.as_string")(values)
        if self._spec.hasher == "fasthash":
            return find_public("strings.to_hash_bucket_fast")(words, self._buckets)
        if self._spec.hasher == "legacy":
            return find_public("strings.to_hash_bucket")(words, self._buckets)
        if self._spec.hasher == "stronghash":
            return find_public("strings.to_hash_bucket_strong")(words, self._buckets, key=self._spec.key)
        raise ValueError(f"Found unknown hasher {self._spec.hasher} in `hasher_spec`")


def _check_vocabulary(file: Any, size: int | None) -> None:
    if file is None or (isinstance(file, str) and not file):
        raise ValueError("`vocabulary_file` must be specified and must not be empty.")
    if size is not None and size < 1:
        raise ValueError(f"`vocab_size` must be greater than 0, got {size} for vocabulary_file: {file}.")


def _check_buckets(count: int) -> None:
    if count < 0:
        raise ValueError(f"`num_oov_buckets` must be greater or equal than 0, got {count}.")


def index_table_from_file(
    vocabulary_file: Any = None,
    num_oov_buckets: int = 0,
    vocab_size: int | None = None,
    default_value: int = -1,
    hasher_spec: Any = FastHashSpec,
    key_dtype: Any = string,
    name: str | None = None,
    key_column_index: int = TextFileIndex.WHOLE_LINE,
    value_column_index: int = TextFileIndex.LINE_NUMBER,
    delimiter: str = "\t",
) -> Any:
    """The table of the numbers of the words in a file."""
    _check_vocabulary(vocabulary_file, None)
    _check_buckets(num_oov_buckets)
    _check_vocabulary(vocabulary_file, vocab_size)
    key_dtype = as_dtype(key_dtype)
    if not key_dtype.is_integer and key_dtype != string:
        raise TypeError("Dtype for `keys` should be either integer or string.")
    words = TextFileIdTableInitializer(
        vocabulary_file,
        key_column_index,
        value_column_index,
        vocab_size,
        delimiter,
        "table_init",
        int64 if key_dtype.is_integer else key_dtype,
    )
    table = StaticHashTable(words, default_value, name)
    if not num_oov_buckets:
        return table
    return IdTableWithHashBuckets(table, num_oov_buckets, hasher_spec, name, key_dtype)


def index_table_from_tensor(
    vocabulary_list: Any,
    num_oov_buckets: int = 0,
    default_value: int = -1,
    hasher_spec: Any = FastHashSpec,
    dtype: Any = string,
    name: str | None = None,
) -> Any:
    """The table of the numbers of words in a list."""
    if vocabulary_list is None:
        raise ValueError("`vocabulary_list` must be specified.")
    _check_buckets(num_oov_buckets)
    dtype = as_dtype(dtype)
    if not dtype.is_integer and dtype != string:
        raise TypeError("`dtype` must either be integer or string.")
    words = convert_to_tensor(vocabulary_list)
    if words.dtype.is_integer != dtype.is_integer:
        kind = "integer" if dtype.is_integer else "non-integer"
        raise ValueError(f"Invalid `dtype`: Expected {kind}, got {words.dtype!r}.")
    if not dtype.is_integer and words.dtype != dtype:
        raise ValueError(f"Invalid `dtype`: Expected {dtype!r}, got {words.dtype!r}.")
    keys = cast(words, int64) if words.dtype.is_integer else words
    numbers = find_public("range")(find_public("size")(words, out_type=int64), dtype=int64)
    table = StaticHashTable(KeyValueTensorInitializer(keys, numbers, keys.dtype, int64), default_value, name)
    if not num_oov_buckets:
        return table
    return IdTableWithHashBuckets(table, num_oov_buckets, hasher_spec, name, dtype)


def index_to_string_table_from_file(
    vocabulary_file: Any,
    vocab_size: int | None = None,
    default_value: str = "UNK",
    name: str | None = None,
    key_column_index: int = TextFileIndex.LINE_NUMBER,
    value_column_index: int = TextFileIndex.WHOLE_LINE,
    delimiter: str = "\t",
) -> Any:
    """The table of the words in a file by their numbers."""
    _check_vocabulary(vocabulary_file, vocab_size)
    words = TextFileStringTableInitializer(
        vocabulary_file, key_column_index, value_column_index, vocab_size, delimiter, "table_init"
    )
    return StaticHashTable(words, default_value, name)


def index_to_string_table_from_tensor(vocabulary_list: Any, default_value: str = "UNK", name: str | None = None) -> Any:
    """The table of the words in a list by their numbers."""
    if vocabulary_list is None:
        raise ValueError("`vocabulary_list` argument must be specified.")
    words = convert_to_tensor(vocabulary_list, string)
    numbers = find_public("range")(find_public("size")(words, out_type=int64), dtype=int64)
    return StaticHashTable(KeyValueTensorInitializer(numbers, words, int64, string), default_value, name)


inner_names: dict[str, Any] = {
    f.__name__: f
    for f in (
        *(HasherSpec, IdTableWithHashBuckets, StrongHashSpec),
        *(TextFileIdTableInitializer, TextFileStringTableInitializer),
        *(index_table_from_file, index_table_from_tensor),
        *(index_to_string_table_from_file, index_to_string_table_from_tensor),
    )
}
inner_names |= {"FastHashSpec": FastHashSpec, "StaticHashTableV1": StaticHashTable, "HashTable": StaticHashTable}
inner_names |= {"StaticVocabularyTableV1": StaticVocabularyTable, "LookupInterface": tables.LookupInterface}
