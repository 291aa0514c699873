"""`tf.train.TrackableView`: the objects that an object holds, as checkpoints and saved models see them."""

from __future__ import annotations

from typing import Any

from tapeflow._src.namespace import public
from tapeflow._src.train.checkpoint.object_graph import children_of


@public("train.TrackableView")
class TrackableView:
    """The objects below a root, by the names under which they are held.

    >>> module = tf.Module()
    >>> module.v = tf.Variable(1.)
    >>> len(tf.train.TrackableView(module).descendants())
    2
    """

    def __init__(self, root: Any) -> None:
        self._root = root

    @property
    def root(self) -> Any:
        """The object at which the view begins."""
        return self._root

    @classmethod
    def children(cls, obj: Any, save_type: str = "checkpoint", **kwargs: Any) -> dict[str, Any]:
        """The objects that an object holds, by name.

        Args:
            obj: The object.
            save_type: "checkpoint" or "savedmodel"; objects of libraries hold other things for each.
            **kwargs: What such objects also take, such as the `cache` of one save.

        >>> module = tf.Module()
        >>> module.v = tf.Variable(1.)
        >>> list(tf.train.TrackableView.children(module))
        ['v']
        """
        return children_of(obj, save_type, **kwargs)

    def descendants(self) -> list[Any]:
        """The root and all objects below it, nearest first, each once.

        >>> len(tf.train.TrackableView(tf.Module()).descendants())
        1
        """
        found, seen = [self._root], {id(self._root)}
        for thing in found:
            for child in self.children(thing).values():
                if id(child) not in seen:
                    seen.add(id(child))
                    found.append(child)
        return found
