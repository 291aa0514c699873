"""Raw operations of connectionist temporal classification: the loss with its gradient, and the decoders."""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Callable
from typing import Any

from tapeflow._src import primitives
from tapeflow._src.compat.raw_ops import table
from tapeflow._src.compat.raw_ops.gradients import gradient
from tapeflow._src.ops.arrays.conversion import cast, convert_to_tensor
from tapeflow._src.ops.nn import ctc

CTCLoss = namedtuple("CTCLoss", ["loss", "gradient"])
CTCGreedyDecoder = namedtuple(
    "CTCGreedyDecoder", ["decoded_indices", "decoded_values", "decoded_shape", "log_probability"]
)
CTCBeamSearchDecoder = namedtuple(
    "CTCBeamSearchDecoder", ["decoded_indices", "decoded_values", "decoded_shape", "log_probability"]
)


def _loss(last_is_blank: bool) -> Callable[..., CTCLoss]:
    def run(
        inputs: Any, indices: Any, values: Any, lengths: Any, collapse: bool, merge: bool, ignore_longer: bool
    ) -> CTCLoss:
        inputs, indices, values = convert_to_tensor(inputs), cast(indices, "int64"), convert_to_tensor(values)
        lengths = convert_to_tensor(lengths)
        batch = primitives.Shape(inputs, "int64")[1]
        width = primitives.Max(primitives.ConcatV2([indices[:, 1] + 1, convert_to_tensor([1], "int64")], 0), [0], False)
        labels = primitives.ScatterNd(indices, values, primitives.Pack([batch, width], 0))
        ones = primitives.BroadcastTo(convert_to_tensor(1, values.dtype), primitives.Shape(values))
        counts = primitives.UnsortedSegmentSum(ones, indices[:, 0], batch)
        if collapse:
            labels, counts = ctc.collapse_repeated(labels, counts)
        blank = inputs.shape[-1] - 1 if last_is_blank else 0

        def loss(logits: Any) -> Any:
            found = primitives.CTCLossDense(logits, labels, counts, lengths, blank, bool(merge))
            if ignore_longer:
                found = primitives.SelectV2(primitives.IsFinite(found), found, cast(0, found.dtype))
            return found

        found = loss(inputs)
        return CTCLoss(
            found, gradient(loss, [inputs], primitives.BroadcastTo(cast(1, found.dtype), primitives.Shape(found)))[0]
        )

    return run


def _greedy(inputs: Any, lengths: Any, merge: bool, blank: int) -> CTCGreedyDecoder:
    (path,), scores = ctc.ctc_greedy_decoder(inputs, lengths, merge, blank)
    return CTCGreedyDecoder([path.indices], [path.values], [path.dense_shape], scores)


def _beam(inputs: Any, lengths: Any, width: int, paths: int, merge: bool) -> CTCBeamSearchDecoder:
    found, scores = ctc.beam_search_paths(inputs, lengths, width, paths, merge)
    indices, values, shapes = ([getattr(p, name) for p in found] for name in ("indices", "values", "dense_shape"))
    return CTCBeamSearchDecoder(indices, values, shapes, scores)


_OPTIONS = "preprocess_collapse_repeated=False, ctc_merge_repeated=True, ignore_longer_outputs_than_inputs=False"
ROWS: list[tuple[str, str, Any]] = [
    ("CTCLoss", f"inputs, labels_indices, labels_values, sequence_length, {_OPTIONS}", _loss(True)),
    ("CTCLossV2", f"inputs, labels_indices, labels_values, sequence_length, {_OPTIONS}", _loss(False)),
    ("CTCGreedyDecoder", "inputs, sequence_length, merge_repeated=False, blank_index=-1", _greedy),
    ("CTCBeamSearchDecoder", "inputs, sequence_length, beam_width, top_paths, merge_repeated=True", _beam),
]
table.add_rows(ROWS)
