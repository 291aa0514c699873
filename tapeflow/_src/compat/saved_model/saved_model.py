"""`tf.saved_model`: its public functions, options and constants."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from tapeflow._src.compat.saved_model.call_specs import signature_inputs, signature_outputs
from tapeflow._src.compat.saved_model.constants import DEFAULT_SIGNATURE, PUBLIC
from tapeflow._src.compat.saved_model.loading import LoadedObject, Loader, SignatureMap
from tapeflow._src.compat.saved_model.meta_graphs import contains_model, read_meta_graph
from tapeflow._src.compat.saved_model.objects import ObjectList
from tapeflow._src.compat.saved_model.options import LoadOptions, SaveOptions, traces_of
from tapeflow._src.compat.saved_model.saving import SavedModelWriter
from tapeflow._src.compat.saved_model.v1_models import V1Loader
from tapeflow._src.distribute.context import exporting, updating
from tapeflow._src.function.concrete import ConcreteFunction
from tapeflow._src.function.function import Function
from tapeflow._src.io.atomic_folders import read_whole
from tapeflow._src.namespace import public
from tapeflow._src.train.checkpoint.object_graph import is_trackable

for _name, _value in PUBLIC.items():
    public(f"saved_model.{_name}")(_value)


def _default_signatures(objects: ObjectList) -> dict[str, Any]:
    """What the root itself names, as models of Keras do, or its one function that can be a signature."""
    held = {name: objects.things[number] for name, number in objects.children[0].items()}
    own = held.get("_default_save_signature", getattr(objects.things[0], "_default_save_signature", None))
    if own is not None:
        return {DEFAULT_SIGNATURE: own}
    functions = (f for f in held.values() if isinstance(f, ConcreteFunction) or _has_input_signature(f))
    found = [concrete for concrete in (_concrete("", f) for f in functions) if _can_be_signature(concrete)]
    return {DEFAULT_SIGNATURE: found[0]} if len(found) == 1 else {}


def _has_input_signature(function: Any) -> bool:
    return isinstance(function, Function) and function.input_signature is not None


def _can_be_signature(concrete: ConcreteFunction) -> bool:
    try:
        signature_inputs(concrete)
        return bool(signature_outputs("", concrete))
    except ValueError:
        return False


def _concrete(name: str, function: Any) -> ConcreteFunction:
    """The one graph of a signature."""
    if isinstance(function, ConcreteFunction):
        return function
    if isinstance(function, Function):
        if function.input_signature is not None:
            return function.get_concrete_function()
        traced = traces_of(function)
        if len(traced) == 1:
            return traced[0]
        raise ValueError(f"saved_model.save: give the signature {name!r} as a concrete function, or trace it once")
    raise ValueError(f"saved_model.save: the signature {name!r} must be a tf.function; got {function!r}")


def _trace_functions(objects: ObjectList) -> bool:
    """Traces functions for an input signature and for what replicas called them with; whether there were new graphs."""
    functions = [thing for thing in objects.things if isinstance(thing, Function)]
    before = sum(len(function._traces.concrete) for function in functions)
    for function in functions:
        if function.input_signature is not None and not function._traces.concrete:
            function.get_concrete_function()
        with updating():  # the model has one copy of each variable
            function._trace_inline_calls()
    return sum(len(function._traces.concrete) for function in functions) != before


@public("saved_model.save")
def save(obj: Any, export_dir: Any, signatures: Any = None, options: SaveOptions | None = None) -> None:
    """Writes an object, its variables and the graphs of its functions into a folder, as a SavedModel.

    Args:
        obj: A `tf.Module` or another trackable object.
        export_dir: The folder; it is made if it does not exist.
        signatures: A function or a dict of functions to offer by name.
        options: `tf.saved_model.SaveOptions`.

    Returns:
        None.

    >>> module = tf.Module()
    >>> module.v = tf.Variable([1., 2.])
    >>> tf.saved_model.save(module, "model")
    >>> tf.saved_model.load("model").v.numpy()
    array([1., 2.], dtype=float32)
    """
    write_model(obj, export_dir, signatures, options)


def write_model(obj: Any, export_dir: Any, signatures: Any, options: SaveOptions | None) -> ObjectList:
    """Saves a model as `save` does, and gives the objects in the order of the file."""
    if not is_trackable(obj):
        raise ValueError(
            "Expected an object of type `Trackable`, such as `tf.Module` or a subclass of the `Trackable` class, for "
            f"export. Got {obj} with type {type(obj)}."
        )
    shadowing = getattr(obj, "signatures", None)
    if not isinstance(shadowing, SignatureMap) and (isinstance(shadowing, list | dict) or is_trackable(shadowing)):
        raise ValueError(
            f'Exporting an object {obj} which has an attribute named "signatures". This is a reserved attribute used '
            "to store SavedModel signatures in objects which come from `tf.saved_model.load`. Delete this attribute "
            "(e.g. `del obj.signatures`) before saving if this shadowing is acceptable."
        )
    if signatures is not None and not isinstance(signatures, Mapping):
        signatures = {DEFAULT_SIGNATURE: signatures}
    with exporting():
        named = {name: _concrete(name, function) for name, function in (signatures or {}).items()}
        objects = ObjectList(obj)
        if _trace_functions(objects):  # which may have made variables
            objects = ObjectList(obj, objects.cache)
        if signatures is None:
            named = {name: _concrete(name, function) for name, function in _default_signatures(objects).items()}
    SavedModelWriter(objects, named, options or SaveOptions()).write(os.fspath(export_dir))
    return objects


@public("saved_model.load", "compat.v1.saved_model.load_v2")
def load(export_dir: Any, tags: Any = None, options: LoadOptions | None = None) -> Any:
    """The objects of a SavedModel with their variables and functions; `signatures` holds concrete functions by name.

    Args:
        export_dir: The folder.
        tags: Which of several graphs to load; as `tf.saved_model.save` writes one, not needed.
        options: `tf.saved_model.LoadOptions`.

    Returns:
        The object, with its functions and variables.

    >>> module = tf.Module()
    >>> module.v = tf.Variable([1., 2.])
    >>> tf.saved_model.save(module, "model")
    >>> tf.saved_model.load("model").variables[0].numpy()
    array([1., 2.], dtype=float32)
    """
    folder = os.fspath(export_dir)
    if os.path.exists(os.path.join(folder, "saved_model.pickle")) and not contains_model(folder):
        raise ValueError(
            f"saved_model.load: {folder} was written by Tapeflow 0.1 as a pickle, which may run any code and is not "
            "read. Load it with Tapeflow 0.1, write its variables with tf.train.Checkpoint, and save the model anew"
        )
    return read_whole(folder, lambda: _load(folder, tags, options or LoadOptions()))


def _load(folder: str, tags: Any, options: LoadOptions) -> Any:
    meta_graph = read_meta_graph(folder, tags)
    kind = Loader if meta_graph.object_graph_def.nodes else V1Loader
    root = kind(meta_graph, folder, options).load()
    if isinstance(root, LoadedObject):  # the releases that wrote the file
        info = meta_graph.meta_info_def
        root.__dict__.update(
            tensorflow_version=info.tensorflow_version, tensorflow_git_version=info.tensorflow_git_version
        )
    return root


@public(
    "saved_model.contains_saved_model",
    "compat.v1.saved_model.contains_saved_model",
    "compat.v1.saved_model.maybe_saved_model_directory",
    "compat.v1.saved_model.loader.maybe_saved_model_directory",
)
def contains_saved_model(export_dir: Any) -> bool:
    """Whether a folder holds a SavedModel.

    >>> tf.saved_model.contains_saved_model("/no/such/folder")
    False
    """
    return contains_model(os.fspath(export_dir))
