"""Where datasets and operations are placed: on the one device of this process."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tapeflow._src.namespace import find_public


def auto_shard_dataset(dataset: Any, num_shards: int, index: int, num_replicas_in_sync: int | None = None) -> Any:
    """One of several parts of a dataset."""
    return dataset if num_shards == 1 else dataset.shard(num_shards, index)


def get_config() -> Any:
    """The settings of a session."""
    return find_public("compat.v1.ConfigProto")()


def no_devices() -> list[Any]:
    """Devices that were added to the library: none."""
    return []


def assert_splits_match(nested_splits_lists: Sequence[Sequence[Any]]) -> list[Any]:
    """Operations that fail unless ragged tensors have the same row splits in all dimensions."""
    assert_equal = find_public("debugging.assert_equal")
    if any(len(splits) != len(nested_splits_lists[0]) for splits in nested_splits_lists):
        raise ValueError("Inputs must have identical ragged splits")
    return [
        assert_equal(one, other, "Inputs must have identical ragged splits")
        for splits in nested_splits_lists[1:]
        for one, other in zip(nested_splits_lists[0], splits)
    ]
