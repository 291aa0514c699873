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


class _Link:
    """A tensor whose value is fed to another one."""

    from_tensor = to_tensor = ""


class _Links(list[_Link]):
    def add(self) -> _Link:
        """A new link at the end."""
        self.append(_Link())
        return self[-1]


class CallableOptions:
    """What a function that runs a graph takes, computes and gives, by names."""

    def __init__(self) -> None:
        self.feed: list[str] = []
        self.fetch: list[str] = []
        self.target: list[str] = []
        self.tensor_connection = _Links()
        self.run_options = find_public("compat.v1.RunOptions")()


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
