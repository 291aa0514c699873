"""`tf.train.CheckpointView`: the objects that a checkpoint knows, and which of a program's objects they are."""

from __future__ import annotations

import os
from typing import Any

from tapeflow._src.namespace import public
from tapeflow._src.train.checkpoint.object_graph import GRAPH_KEY, children_of, decode_graph, is_trackable
from tapeflow._src.train.checkpoint.tensor_bundle import Bundle
from tapeflow._src.train.checkpoint.trackable_view import TrackableView
from tapeflow._src.types.errors import NotFoundError


@public("train.CheckpointView")
class CheckpointView:
    """The objects of a checkpoint, by number: 0 is the root.

    >>> path = tf.train.Checkpoint(v=tf.Variable(1.)).write("model")
    >>> tf.train.CheckpointView(path).children(0)
    {'v': 1}
    """

    def __init__(self, save_path: Any, options: Any = None) -> None:
        bundle = Bundle(os.fspath(save_path))
        if GRAPH_KEY not in bundle:
            raise NotFoundError.of(
                f"The specified checkpoint {save_path!r} does not appear to be object-based: it knows names alone."
            )
        self._nodes = decode_graph(bundle.value(GRAPH_KEY))

    def children(self, node_id: int) -> dict[str, int]:
        """The numbers of the objects that an object holds, by name."""
        return dict(self._nodes[node_id].children)

    def descendants(self) -> list[int]:
        """The numbers of the root and all objects below it, nearest first."""
        found = [0]
        for number in found:
            found += [child for child in self._nodes[number].children.values() if child not in found]
        return found

    def match(self, obj: Any) -> dict[int, Any]:
        """Which objects below `obj` the objects of the checkpoint are: those that the same names lead to."""
        if not is_trackable(obj):
            raise ValueError(f"Expected a Trackable, got {obj} of type {type(obj)}.")
        found, waiting = {0: obj}, [0]
        while waiting:
            number = waiting.pop(0)
            below = children_of(found[number])
            for name, child in self._nodes[number].children.items():
                if name in below and child not in found:
                    found[child] = below[name]
                    waiting.append(child)
        return found

    def diff(self, obj: Any) -> tuple[dict[int, Any], list[int], list[Any]]:
        """What `match` gives, the numbers that it does not name, and the objects that are not in the checkpoint."""
        found = self.match(obj)
        known = {id(thing) for thing in found.values()}
        only_here = [thing for thing in TrackableView(obj).descendants() if id(thing) not in known]
        return found, [number for number in self.descendants() if number not in found], only_here
