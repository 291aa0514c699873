"""Inner transformations and sources of `tf.data` that stand on the public ones: smaller batches, files, records."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tapeflow._src.compat.tensorflow.inner_modules.ops.arrays import deserialize_sparse
from tapeflow._src.data.dataset import Dataset
from tapeflow._src.namespace import find_public
from tapeflow._src.ops.arrays.conversion import cast, convert_to_tensor
from tapeflow._src.ops.effects.host_call import host_call
from tapeflow._src.ops.ragged.ragged_tensor import RaggedTensor
from tapeflow._src.types import nest
from tapeflow._src.types.dtypes import int64, string
from tapeflow._src.types.errors import NotFoundError
from tapeflow._src.types.sparse_tensor import SparseTensor


def _static_size(spec: Any, num_replicas: int) -> int | None:
    """How many rows each part of a batch has, if all have the same number."""
    shape = getattr(spec, "shape", None)
    if shape is None or shape.rank is None:
        return None
    if shape.rank < 1:
        raise ValueError(
            "Invalid `input_dataset`. Expected a dataset whose elements have rank >= 1 but found a dataset whose "
            "elements are scalars. Add the `batch` transformation to the dataset."
        )
    rows = shape[0]
    return None if rows is None or rows % num_replicas else int(rows) // num_replicas


def _row_count(leaf: Any) -> Any:
    if isinstance(leaf, RaggedTensor):
        return cast(leaf.nrows(), int64)
    if isinstance(leaf, SparseTensor):
        return cast(leaf.dense_shape[0], int64)
    return find_public("shape")(leaf, out_type=int64)[0]


def _rows(leaf: Any, start: Any, stop: Any, spec: Any, size: int | None) -> Any:
    if isinstance(leaf, SparseTensor):
        sizes = leaf.dense_shape
        concat, zeros = find_public("concat"), find_public("zeros_like")
        first = concat([[start], zeros(sizes[1:])], 0)
        return find_public("sparse.slice")(leaf, first, concat([[stop - start], sizes[1:]], 0))
    part = leaf[start:stop]
    if isinstance(leaf, RaggedTensor) or spec.shape.rank is None:
        return part
    return find_public("ensure_shape")(part, [size, *spec.shape[1:]])


def legacy_rebatch_dataset(input_dataset: Dataset, num_replicas: int) -> Dataset:
    """Each batch in `num_replicas` parts of the size of the first, of which the last may have fewer rows or none."""
    count = int(find_public("get_static_value")(num_replicas))
    specs = [spec for spec in nest.flatten(input_dataset.element_spec) if hasattr(spec, "shape")]
    sizes = [_static_size(spec, count) for spec in specs]

    def parts(*element: Any) -> Dataset:
        leaves = nest.flatten(element)
        shaped = [leaf for leaf in leaves if leaf is not None]
        whole = _row_count(shaped[0])
        size = (whole + count - 1) // count

        def part(number: Any) -> Any:
            start = find_public("minimum")(number * size, whole)
            stop = find_public("minimum")(start + size, whole)
            rows = iter([_rows(leaf, start, stop, spec, n) for leaf, spec, n in zip(shaped, specs, sizes)])
            found = nest.pack_sequence_as(element, [None if leaf is None else next(rows) for leaf in leaves])
            return found[0] if len(found) == 1 else found

        made: Dataset = Dataset.range(count).map(part)
        return made

    rebatched: Dataset = input_dataset.flat_map(parts)
    return rebatched


def batch_sizes_for_worker(
    global_batch_size: Any, num_workers: int, num_replicas_per_worker: int, worker_index: int
) -> Any:
    """The sizes of the batches that one worker makes of a global batch, for `rebatch`.

    Sizes differ by one at most. The list of the first worker begins with the larger ones; those of the others are
    turned by as many places as the replicas before them, so that each step of all workers takes one global batch.
    """
    parts = num_workers * num_replicas_per_worker
    known = find_public("get_static_value")(global_batch_size)
    total = convert_to_tensor(global_batch_size if known is None else known, int64)
    places = (find_public("range")(parts, dtype=int64) + worker_index * num_replicas_per_worker) % parts
    return total // parts + cast(places < total % parts, int64)


def _matches(patterns: Any) -> Any:
    def look_up(wanted: Any) -> list[Any]:
        found = find_public("io.matching_files")(wanted)
        if not found.shape[0]:
            raise NotFoundError.of(f"No files matched: {[text.decode() for text in wanted.numpy()]}")
        return [found]

    return host_call(look_up, [patterns], [(string, [None])], reads=True)[0]


def matching_files_dataset(patterns: Any) -> Dataset:
    """The names of the files that match patterns, looked up when iteration begins."""
    patterns = find_public("reshape")(convert_to_tensor(patterns, string), [-1])
    found: Dataset = Dataset.from_tensors(patterns).flat_map(lambda p: Dataset.from_tensor_slices(_matches(p)))
    return found


def make_tf_record_dataset(
    file_pattern: Any,
    batch_size: int,
    parser_fn: Callable[[Any], Any] | None = None,
    num_epochs: int | None = None,
    shuffle: bool = True,
    shuffle_buffer_size: int | None = None,
    shuffle_seed: int | None = None,
    prefetch_buffer_size: int | None = None,
    num_parallel_reads: int | None = None,
    num_parallel_parser_calls: int | None = None,
    drop_final_batch: bool = False,
) -> Dataset:
    """Batches of parsed records of files: endless unless `num_epochs` is given, and then always of full size."""
    files = Dataset.list_files(file_pattern, shuffle=shuffle, seed=shuffle_seed)
    read = find_public("data.TFRecordDataset")
    dataset = read(files, num_parallel_reads=24 if num_parallel_reads is None else num_parallel_reads)
    if shuffle:
        dataset = dataset.shuffle(10000 if shuffle_buffer_size is None else shuffle_buffer_size, shuffle_seed)
    if num_epochs != 1:
        dataset = dataset.repeat(num_epochs)
    if parser_fn is not None:
        calls = batch_size if num_parallel_parser_calls is None else num_parallel_parser_calls
        dataset = dataset.map(parser_fn, num_parallel_calls=calls)
    dataset = dataset.batch(batch_size, drop_remainder=drop_final_batch or num_epochs is None)
    if prefetch_buffer_size == 0:
        return dataset  # type: ignore[no-any-return]
    return dataset.prefetch(find_public("data.AUTOTUNE") if prefetch_buffer_size is None else prefetch_buffer_size)  # type: ignore[no-any-return]


def optional_param_to_tensor(
    argument_name: str, argument_value: Any, argument_default: Any = 0, argument_dtype: Any = int64
) -> Any:
    """An optional argument of a dataset as a tensor; the default in place of None."""
    value = argument_default if argument_value is None else argument_value
    return convert_to_tensor(value, argument_dtype, name=argument_name)


def partial_shape_to_tensor(shape_like: Any) -> Any:
    """A shape as a vector of int64, with -1 for sizes that are not known."""
    if not find_public("is_tensor")(shape_like):
        sizes = find_public("TensorShape")(
            [None if size == -1 else size for size in shape_like]
            if isinstance(shape_like, list | tuple)
            else shape_like
        )
        return find_public("constant")([-1 if size is None else size for size in sizes.as_list()], int64, [len(sizes)])
    if shape_like.shape.rank not in (None, 1):
        raise ValueError(
            f"The given shape {shape_like} must be a 1-D tensor of `tf.int64` values, but the shape was "
            f"{shape_like.shape}."
        )
    if shape_like.dtype != int64:
        raise TypeError(
            f"The given shape {shape_like} must be a 1-D tensor of `tf.int64` values, but the element type was "
            f"{shape_like.dtype.name}."
        )
    return shape_like


def any_sparse(classes: Any) -> bool:
    """Whether one of the classes of an element is that of sparse tensors."""
    return any(kind is SparseTensor for kind in nest.flatten(classes))


def get_classes(tensors: Any) -> Any:
    """The class of each part of an element: SparseTensor or Tensor."""
    tensor = find_public("Tensor")
    return nest.map_structure(lambda part: SparseTensor if isinstance(part, SparseTensor) else tensor, tensors)


def _where_sparse(classes: Any, values: Any, instead: Any) -> Any:
    leaves = [instead if kind is SparseTensor else v for v, kind in zip(nest.flatten(values), nest.flatten(classes))]
    return nest.pack_sequence_as(values, leaves)


def as_dense_types(types: Any, classes: Any) -> Any:
    """The dtypes of an element whose sparse tensors are kept as variants."""
    return _where_sparse(classes, types, find_public("variant"))


def as_dense_shapes(shapes: Any, classes: Any) -> Any:
    """The shapes of an element whose sparse tensors are kept as variants."""
    return _where_sparse(classes, shapes, find_public("TensorShape")(None))


def _of_sparse(convert: Callable[[Any], Any], tensors: Any) -> Any:
    return nest.map_structure(lambda part: convert(part) if isinstance(part, SparseTensor) else part, tensors)


def serialize_sparse_tensors(tensors: Any) -> Any:
    """An element whose sparse tensors are vectors of three strings."""
    return _of_sparse(find_public("io.serialize_sparse"), tensors)


def serialize_many_sparse_tensors(tensors: Any) -> Any:
    """A batch whose sparse tensors are matrices with three strings for each row."""
    return _of_sparse(find_public("io.serialize_many_sparse"), tensors)


def deserialize_sparse_tensors(tensors: Any, types: Any, shapes: Any, classes: Any) -> Any:
    """The element of which `serialize_sparse_tensors` or `serialize_many_sparse_tensors` made strings."""

    def restored(part: Any, dtype: Any, shape: Any, kind: Any) -> Any:
        return deserialize_sparse(part, dtype, shape.rank) if kind is SparseTensor else part

    leaves = [restored(*parts) for parts in zip(*map(nest.flatten, (tensors, types, shapes, classes)))]
    return nest.pack_sequence_as(tensors, leaves)


def get_seed(seed: Any) -> tuple[Any, Any]:
    """The global and the operation's seed as two numbers of int64 that are not both zero, unless neither is set."""
    of_graph, of_operation = find_public("compat.v1.get_seed")(seed)
    first = convert_to_tensor(0 if of_graph is None else of_graph, int64, name="seed")
    second = convert_to_tensor(0 if of_operation is None else of_operation, int64, name="seed2")
    if of_graph is None and of_operation is None:
        return first, second
    both_zero = find_public("logical_and")(first == 0, second == 0)
    return first, find_public("where")(both_zero, convert_to_tensor(2**31 - 1, int64), second)


names_by_path: dict[str, dict[str, Any]] = {
    "python.data.experimental.ops.distribute": {
        "_LegacyRebatchDataset": legacy_rebatch_dataset,
        "batch_sizes_for_worker": batch_sizes_for_worker,
    },
    "python.data.experimental.ops.matching_files": {"MatchingFilesDataset": matching_files_dataset},
    "python.data.experimental.ops.readers": {"make_tf_record_dataset": make_tf_record_dataset},
    "python.data.util.convert": {
        "optional_param_to_tensor": optional_param_to_tensor,
        "partial_shape_to_tensor": partial_shape_to_tensor,
    },
    "python.data.util.random_seed": {"get_seed": get_seed},
    "python.data.util.sparse": {
        "any_sparse": any_sparse,
        "as_dense_shapes": as_dense_shapes,
        "as_dense_types": as_dense_types,
        "deserialize_sparse_tensors": deserialize_sparse_tensors,
        "get_classes": get_classes,
        "serialize_many_sparse_tensors": serialize_many_sparse_tensors,
        "serialize_sparse_tensors": serialize_sparse_tensors,
    },
}
