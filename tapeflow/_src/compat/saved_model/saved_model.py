"""`tf.saved_model`: an object with its variables and functions in a folder.

The variables are a checkpoint in TensorFlow's files. The object itself is pickled: to load it, its classes must be
importable, and their functions are traced anew. An object that cannot be pickled, or that holds parts of Keras, is
written as a table of what it holds, with the graphs of its functions. TensorFlow's own saved models are not read.
"""

from __future__ import annotations

import io
import os
import pickle
from typing import Any

from tapeflow._src import _core
from tapeflow._src.compat.saved_model.loading import Loader
from tapeflow._src.compat.saved_model.meta_graphs import contains_model, read_meta_graph
from tapeflow._src.compat.saved_model.saved_graphs import SavedFunction, restored_function, saved_function
from tapeflow._src.compat.saved_model.saved_objects import ObjectTable, SavedObjects, functions_of, objects_of
from tapeflow._src.function.concrete import ConcreteFunction
from tapeflow._src.function.function import Function
from tapeflow._src.namespace import public
from tapeflow._src.train.checkpoint.checkpoint import Checkpoint
from tapeflow._src.train.checkpoint.object_graph import ObjectGraph, is_trackable, variable_of
from tapeflow._src.train.checkpoint.tensor_bundle import Bundle
from tapeflow._src.types.tensor_spec import TensorSpec
from tapeflow._src.types.trackable import Trackable
from tapeflow._src.variables import Variable

_OBJECT, _VALUES = "saved_model.pickle", os.path.join("variables", "variables")
DEFAULT_SERVING_SIGNATURE_DEF_KEY = "serving_default"
for _name, _value in (
    ("ASSETS_DIRECTORY", "assets"),
    ("ASSETS_KEY", "saved_model_assets"),
    ("CLASSIFY_INPUTS", "inputs"),
    ("CLASSIFY_METHOD_NAME", "tensorflow/serving/classify"),
    ("CLASSIFY_OUTPUT_CLASSES", "classes"),
    ("CLASSIFY_OUTPUT_SCORES", "scores"),
    ("DEBUG_DIRECTORY", "debug"),
    ("DEBUG_INFO_FILENAME_PB", "saved_model_debug_info.pb"),
    ("DEFAULT_SERVING_SIGNATURE_DEF_KEY", DEFAULT_SERVING_SIGNATURE_DEF_KEY),
    ("GPU", "gpu"),
    ("PREDICT_INPUTS", "inputs"),
    ("PREDICT_METHOD_NAME", "tensorflow/serving/predict"),
    ("PREDICT_OUTPUTS", "outputs"),
    ("REGRESS_INPUTS", "inputs"),
    ("REGRESS_METHOD_NAME", "tensorflow/serving/regress"),
    ("REGRESS_OUTPUTS", "outputs"),
    ("SAVED_MODEL_FILENAME_PB", "saved_model.pb"),
    ("SAVED_MODEL_FILENAME_PBTXT", "saved_model.pbtxt"),
    ("SAVED_MODEL_SCHEMA_VERSION", 1),
    ("SERVING", "serve"),
    ("TPU", "tpu"),
    ("TRAINING", "train"),
    ("VARIABLES_DIRECTORY", "variables"),
    ("VARIABLES_FILENAME", "variables"),
):
    public(f"saved_model.{_name}")(_value)


class _Pickler(pickle.Pickler):
    """Writes variables as the keys of their values."""

    def __init__(self, file: Any, key_by_id: dict[int, str]) -> None:
        super().__init__(file)
        self._key_by_id = key_by_id

    def persistent_id(self, thing: Any) -> Any:
        """What is written in place of a variable."""
        if not isinstance(thing, _core.Variable):
            if _is_of_keras(thing):  # it would be written with variables of its own
                raise pickle.PicklingError("parts of Keras are written as graphs")
            return None
        key = self._key_by_id.get(id(thing))
        if key is None:
            raise ValueError(f"saved_model.save: {thing.name} is used, but no attribute of the object leads to it")
        return key, thing.name.removesuffix(":0"), thing.trainable


def _is_of_keras(thing: Any) -> bool:
    return any(kind.__module__.startswith("keras.src.layers.") for kind in type(thing).__mro__)


class _Unpickler(pickle.Unpickler):
    """Makes variables with the values of a checkpoint, each once."""

    def __init__(self, file: Any, bundle: Bundle) -> None:
        super().__init__(file)
        self._bundle = bundle
        self._variable_by_key: dict[str, Variable] = {}

    def persistent_load(self, pid: Any) -> Any:
        """The variable of which this was written."""
        key, name, trainable = pid
        if key not in self._variable_by_key:
            variable = Variable(self._bundle.value(key), trainable=trainable, name=name)
            self._variable_by_key[key] = variable
        return self._variable_by_key[key]


def _default_signatures(thing: Any) -> dict[str, Any]:
    """What the object itself names, as models of Keras do, or the one function that has an `input_signature`."""
    own = getattr(thing, "_default_save_signature", None)
    if own is not None:
        return {DEFAULT_SERVING_SIGNATURE_DEF_KEY: own}
    found = [f for f in functions_of(thing).values() if f.input_signature is not None]
    return {DEFAULT_SERVING_SIGNATURE_DEF_KEY: found[0]} if len(found) == 1 else {}


class _NotAnAttributeError(ValueError):
    """A signature that is no attribute of the object."""


def _concrete(name: str, function: Any) -> ConcreteFunction:
    """The one graph of a signature."""
    if isinstance(function, SignatureFunction):
        return function.concrete
    if isinstance(function, Function):
        if function.input_signature:
            return function.get_concrete_function()
        if len(function._traces.concrete) == 1:
            return function._traces.concrete[0]
        raise ValueError(f"saved_model.save: give the signature {name!r} as a concrete function, or trace it once")
    if isinstance(function, ConcreteFunction):
        return function
    raise ValueError(f"saved_model.save: the signature {name!r} must be a tf.function; got {function!r}")


def _signature(thing: Any, name: str, function: Any) -> tuple[str, Any]:
    """Which attribute of the object a signature is, and the specifications of its arguments."""
    concrete = _concrete(name, function)
    for attribute, own in functions_of(thing).items():
        if function is own or getattr(function, "_traces", None) is own._traces or concrete in own._traces.concrete:
            return attribute, concrete.signature.described()
    raise _NotAnAttributeError(
        f"saved_model.save: the signature {name!r} must be a tf.function that is an attribute of the object"
    )


def _by_name(result: Any) -> dict[str, Any]:
    if isinstance(result, dict):
        return result
    results = result if isinstance(result, list | tuple) else [result]
    return {f"output_{number}": value for number, value in enumerate(results)}


class SignatureFunction:
    """A concrete function that gives its results in a dictionary: by their keys, or as `output_0` and so on."""

    def __init__(self, concrete: ConcreteFunction) -> None:
        self._concrete = self.concrete = concrete

    def __call__(self, *args: Any, **kwargs: Any) -> dict[str, Any]:
        return _by_name(self._concrete(*args, **kwargs))

    @property
    def structured_input_signature(self) -> tuple[Any, dict[str, Any]]:
        """The tensors that it takes, all by name."""
        specs = [TensorSpec(t.shape, t.dtype, t.name.removesuffix(":0")) for t in self._concrete.inputs]
        return (), {str(spec.name): spec for spec in specs}

    @property
    def structured_outputs(self) -> dict[str, TensorSpec]:
        """The tensors that it gives, by name."""
        tensors = _by_name(self._concrete.structured_outputs)
        return {name: TensorSpec(t.shape, t.dtype, name) for name, t in tensors.items()}

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(self._concrete, name)


@public("saved_model.SaveOptions")
class SaveOptions:
    """Settings for saving: accepted, and without effect.

    >>> options = tf.saved_model.SaveOptions(save_debug_info=False)
    """

    def __init__(self, **kwargs: Any) -> None:
        self.__dict__.update(kwargs)


@public("saved_model.LoadOptions")
class LoadOptions(SaveOptions):
    """Settings for loading: accepted, and without effect.

    >>> options = tf.saved_model.LoadOptions()
    """


@public("saved_model.experimental.TrackableResource")
class TrackableResource(Trackable):
    """A base for objects that hold something which is neither variable nor function: none of ours do.

    >>> isinstance(tf.Variable(1.), tf.saved_model.experimental.TrackableResource)
    False
    """


@public("saved_model.save")
def save(obj: Any, export_dir: Any, signatures: Any = None, options: SaveOptions | None = None) -> None:
    """Writes an object into a folder; its classes must be importable where it is loaded.

    >>> module = tf.Module()
    >>> module.v = tf.Variable([1., 2.])
    >>> tf.saved_model.save(module, "model")
    >>> tf.saved_model.load("model").v.numpy()
    array([1., 2.], dtype=float32)
    """
    if not is_trackable(obj):
        raise ValueError(
            "Expected an object of type `Trackable`, such as `tf.Module` or a subclass of the `Trackable` class, for "
            f"export. Got {obj} with type {type(obj)}."
        )
    if signatures is not None and not isinstance(signatures, dict):
        signatures = {DEFAULT_SERVING_SIGNATURE_DEF_KEY: signatures}
    if signatures is None:
        signatures = _default_signatures(obj)
    leaves = ObjectGraph(Checkpoint(root=obj)).leaf_by_key
    key_by_id = {id(variable_of(leaf)): key for key, leaf in leaves.items() if variable_of(leaf) is not None}
    content = _content(obj, signatures, key_by_id)
    folder = os.fspath(export_dir)
    Checkpoint(root=obj).write(os.path.join(folder, _VALUES))
    beside = os.path.join(folder, f"{_OBJECT}.tmp{os.getpid()}")
    with open(beside, "wb") as file:
        file.write(content)
    os.replace(beside, os.path.join(folder, _OBJECT))


def _content(obj: Any, signatures: dict[str, Any], key_by_id: dict[int, str]) -> bytes:
    """The object and its signatures: as they are, or as graphs."""
    try:
        named: Any = {name: _signature(obj, name, function) for name, function in signatures.items()}
        return _pickled((obj, named), key_by_id)
    except (pickle.PicklingError, AttributeError, TypeError, _NotAnAttributeError) as error:
        try:
            named = {name: saved_function(_concrete(name, function)) for name, function in signatures.items()}
            return _pickled((SavedObjects(ObjectTable(obj).rows), named), key_by_id)
        except (pickle.PicklingError, AttributeError, TypeError, ValueError) as second:
            raise ValueError(
                f"saved_model.save: the object cannot be written: {error}. Classes and functions must be importable: "
                f"define them at the top level of a module. Nor can it be written as graphs: {second}"
            ) from second


def _pickled(thing: Any, key_by_id: dict[int, str]) -> bytes:
    content = io.BytesIO()
    _Pickler(content, key_by_id).dump(thing)
    return content.getvalue()


@public("saved_model.load")
def load(export_dir: Any, tags: Any = None, options: LoadOptions | None = None) -> Any:
    """The objects of a SavedModel with their variables and functions; `signatures` holds concrete functions by name.

    >>> module = tf.Module()
    >>> module.v = tf.Variable([1., 2.])
    >>> tf.saved_model.save(module, "model")
    >>> tf.saved_model.load("model").variables[0].numpy()
    array([1., 2.], dtype=float32)
    """
    folder = os.fspath(export_dir)
    path = os.path.join(folder, _OBJECT)
    if os.path.exists(path) and not contains_model(folder):
        return _load_pickled(folder, path)
    return Loader(read_meta_graph(folder, tags), folder).load()


def _load_pickled(folder: str, path: str) -> Any:
    with open(path, "rb") as file:
        obj, named = _Unpickler(file, Bundle(os.path.join(folder, _VALUES))).load()
    if isinstance(obj, SavedObjects):
        obj = objects_of(obj)
    obj.signatures = {name: SignatureFunction(_traced(obj, signature)) for name, signature in named.items()}
    return obj


def _traced(obj: Any, signature: Any) -> ConcreteFunction:
    """The concrete function that a signature names or holds."""
    if isinstance(signature, SavedFunction):
        (trace,) = signature.traces
        concrete = restored_function(signature).get_concrete_function(*trace.args, **trace.kwargs)
        concrete.graph.input_names = trace.input_names
        return concrete
    attribute, (args, kwargs) = signature
    result: ConcreteFunction = getattr(obj, attribute).get_concrete_function(*args, **kwargs)
    return result


@public("saved_model.contains_saved_model")
def contains_saved_model(export_dir: Any) -> bool:
    """Whether a folder holds a SavedModel.

    >>> tf.saved_model.contains_saved_model("/no/such/folder")
    False
    """
    folder = os.fspath(export_dir)
    return contains_model(folder) or os.path.exists(os.path.join(folder, _OBJECT))
