"""`tf.__internal__.saved_model`: what Keras 2 needs to write and read its objects."""

from __future__ import annotations

import os
from typing import Any

from tapeflow._src.compat.saved_model import revived_types  # noqa: F401  defines `saved_model.load`
from tapeflow._src.compat.saved_model.loading import Loader
from tapeflow._src.compat.saved_model.meta_graphs import read_meta_graph, read_saved_model
from tapeflow._src.compat.saved_model.options import LoadOptions, SaveOptions
from tapeflow._src.compat.saved_model.saved_model import write_model
from tapeflow._src.compat.tensorflow.internal_names.tracking import TrackableReference
from tapeflow._src.function import spec_messages
from tapeflow._src.namespace import public
from tapeflow._src.types.identity import ObjectIdentityDictionary


@public("__internal__.saved_model.encode_structure")
def encode_structure(nested_structure: Any) -> Any:
    """A structure of specs, shapes, dtypes and Python values as a message, which `decode_proto` reads.

    >>> message = tf.__internal__.saved_model.encode_structure({"x": tf.TensorSpec([2])})
    >>> tf.__internal__.saved_model.decode_proto(message)
    {'x': TensorSpec(shape=(2,), dtype=tf.float32, name=None)}
    """
    return spec_messages.encode(nested_structure)


@public("__internal__.saved_model.decode_proto")
def decode_proto(proto: Any) -> Any:
    """The structure that `encode_structure` wrote.

    >>> tf.__internal__.saved_model.decode_proto(tf.__internal__.saved_model.encode_structure((1, "a")))
    (1, 'a')
    """
    return spec_messages.decode(proto)


@public("__internal__.saved_model.parse_saved_model")
def parse_saved_model(export_dir: Any) -> Any:
    """The message in the file `saved_model.pb` of a folder.

    >>> tf.saved_model.save(tf.Module(), "model")
    >>> len(tf.__internal__.saved_model.parse_saved_model("model").meta_graphs)
    1
    """
    return read_saved_model(os.fspath(export_dir))


@public("__internal__.saved_model.load_partial")
def load_partial(export_dir: Any, filters: Any, tags: Any = None, options: LoadOptions | None = None) -> dict[str, Any]:
    """Some objects of a SavedModel, by their paths from `root`.

    Args:
        export_dir: The folder.
        filters: A list of paths, or a dictionary that gives to a path None, or an object that stands for the saved
            one and the function that sets its attributes.
        tags: Which of several graphs to load.
        options: `tf.saved_model.LoadOptions`.

    Returns:
        The objects by path.

    >>> module = tf.Module()
    >>> module.v = tf.Variable([1., 2.])
    >>> tf.saved_model.save(module, "model")
    >>> tf.__internal__.saved_model.load_partial("model", ["root.v"])["root.v"].numpy()
    array([1., 2.], dtype=float32)
    """
    wanted = dict(filters) if isinstance(filters, dict) else dict.fromkeys(filters)
    meta_graph = read_meta_graph(os.fspath(export_dir), tags)
    nodes = meta_graph.object_graph_def.nodes
    number_by_path = {path: _number_of(path, nodes) for path in wanted}
    given = {number_by_path[path]: found for path, found in wanted.items() if found is not None}
    loader = Loader(meta_graph, os.fspath(export_dir), options or LoadOptions(), given)
    loader.load()
    return {path: loader.object(number) for path, number in number_by_path.items()}


def _number_of(path: str, nodes: Any) -> int:
    """The number of the object to which a path leads; names in it may have dots."""
    first, *names = path.split(".")
    if first != "root":
        raise ValueError(f'When specifying filters, paths must start with "root"; got {path!r}.')
    number = 0
    while names:
        by_name = {child.local_name: child.node_id for child in nodes[number].children}
        length = next((n for n in range(len(names), 0, -1) if ".".join(names[:n]) in by_name), None)
        if length is None:
            raise ValueError(f"load_partial: there is no object {path!r} in the model, but one has {sorted(by_name)}")
        number = by_name[".".join(names[:length])]
        names = names[length:]
    return number


def save_and_return_nodes(
    obj: Any, export_dir: Any, signatures: Any = None, options: SaveOptions | None = None
) -> tuple[list[Any], ObjectIdentityDictionary]:
    """Saves a model as `tf.saved_model.save` does; gives the objects in the order of the file, and the path to each."""
    objects = write_model(obj, export_dir, signatures, options)
    path_by_object = ObjectIdentityDictionary()
    for thing, path in zip(objects.things, objects.paths):
        path_by_object[thing] = tuple(TrackableReference(name, objects.things[number]) for name, number in path)
    return objects.things, path_by_object
