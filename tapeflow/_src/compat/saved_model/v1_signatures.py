"""`tf.compat.v1.saved_model`: signatures of graphs as messages, and the constants of SavedModels."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tapeflow._src import _core
from tapeflow._src.compat.saved_model.constants import METHOD, VALUE_BY_NAME
from tapeflow._src.compat.v1.graph.graph import get_default_graph
from tapeflow._src.function.spec_messages import decode
from tapeflow._src.io.protos import messages
from tapeflow._src.io.protos.tensor_messages import shape_message
from tapeflow._src.namespace import public
from tapeflow._src.types import nest
from tapeflow._src.types.dtypes import as_dtype
from tapeflow._src.types.sparse_tensor import SparseTensor

for _module, _value_by_name in VALUE_BY_NAME.items():
    for _name, _value in _value_by_name.items():
        public(f"compat.v1.saved_model.{_name}", f"compat.v1.saved_model.{_module}.{_name}")(_value)


@public("compat.v1.saved_model.build_tensor_info", "compat.v1.saved_model.utils.build_tensor_info")
def build_tensor_info(tensor: Any) -> Any:
    """The message that names a tensor of a graph, with its dtype and shape.

    >>> with tf.Graph().as_default():
    ...     x = tf.compat.v1.placeholder(tf.float32, [2], name="x")
    ...     tf.compat.v1.saved_model.build_tensor_info(x).name
    'x:0'
    """
    if isinstance(tensor, _core.Tensor) and not _core.is_symbolic(tensor):
        raise RuntimeError("`build_tensor_info` is not supported in eager mode.")
    info = messages.TensorInfo(dtype=as_dtype(tensor.dtype).as_datatype_enum)
    info.tensor_shape.CopyFrom(shape_message(tensor.shape))
    if hasattr(tensor, "dense_shape"):
        info.coo_sparse.values_tensor_name = tensor.values.name
        info.coo_sparse.indices_tensor_name = tensor.indices.name
        info.coo_sparse.dense_shape_tensor_name = tensor.dense_shape.name
    else:
        info.name = tensor.name
    return info


@public("compat.v1.saved_model.get_tensor_from_tensor_info", "compat.v1.saved_model.utils.get_tensor_from_tensor_info")
def get_tensor_from_tensor_info(tensor_info: Any, graph: Any = None, import_scope: str | None = None) -> Any:
    """The tensor of a graph that a message names.

    >>> with tf.Graph().as_default():
    ...     x = tf.compat.v1.placeholder(tf.float32, [2], name="x")
    ...     info = tf.compat.v1.saved_model.build_tensor_info(x)
    ...     tf.compat.v1.saved_model.get_tensor_from_tensor_info(info) is x
    True
    """
    known = graph or get_default_graph()

    def tensor(name: str) -> Any:
        return known.get_tensor_by_name(f"{import_scope}/{name}" if import_scope else name)

    encoding = tensor_info.WhichOneof("encoding")
    if encoding == "name":
        return tensor(tensor_info.name)
    if encoding == "coo_sparse":
        sparse = tensor_info.coo_sparse
        names = (sparse.indices_tensor_name, sparse.values_tensor_name, sparse.dense_shape_tensor_name)
        return SparseTensor(*map(tensor, names))
    if encoding == "composite_tensor":
        parts = [tensor(part.name) for part in tensor_info.composite_tensor.components]
        spec = decode(messages.StructuredValue(type_spec_value=tensor_info.composite_tensor.type_spec))
        return nest.pack_sequence_as(spec, parts, expand_composites=True)
    raise ValueError(f"Invalid TensorInfo.encoding: {encoding}")


@public("compat.v1.saved_model.build_signature_def", "compat.v1.saved_model.signature_def_utils.build_signature_def")
def build_signature_def(
    inputs: Mapping[str, Any] | None = None,
    outputs: Mapping[str, Any] | None = None,
    method_name: str | None = None,
    defaults: Mapping[str, Any] | None = None,
) -> Any:
    """A signature of these messages of tensors.

    >>> tf.compat.v1.saved_model.build_signature_def(method_name="m").method_name
    'm'
    """
    made = messages.SignatureDef()
    for name, info in (inputs or {}).items():
        made.inputs[name].CopyFrom(info)
    for name, info in (outputs or {}).items():
        made.outputs[name].CopyFrom(info)
    if method_name is not None:
        made.method_name = method_name
    for name, value in (defaults or {}).items():
        made.defaults[name].CopyFrom(value)
    return made


def _signature(inputs: Mapping[str, Any], outputs: Mapping[str, Any], method: str) -> Any:
    taken = {name: build_tensor_info(tensor) for name, tensor in inputs.items()}
    given = {name: build_tensor_info(tensor) for name, tensor in outputs.items()}
    return build_signature_def(taken, given, f"{METHOD}/{method}")


@public(
    "compat.v1.saved_model.predict_signature_def", "compat.v1.saved_model.signature_def_utils.predict_signature_def"
)
def predict_signature_def(inputs: Mapping[str, Any], outputs: Mapping[str, Any]) -> Any:
    """The signature of a prediction from tensors by name to tensors by name.

    >>> with tf.Graph().as_default():
    ...     x = tf.compat.v1.placeholder(tf.float32, [2])
    ...     sorted(tf.compat.v1.saved_model.predict_signature_def({"x": x}, {"y": 2. * x}).outputs)
    ['y']
    """
    if not inputs:
        raise ValueError("Prediction `inputs` cannot be None or empty.")
    if not outputs:
        raise ValueError("Prediction `outputs` cannot be None or empty.")
    return _signature(inputs, outputs, "predict")


@public(
    "compat.v1.saved_model.classification_signature_def",
    "compat.v1.saved_model.signature_def_utils.classification_signature_def",
)
def classification_signature_def(examples: Any, classes: Any, scores: Any) -> Any:
    """The signature of a classification of examples in strings.

    >>> with tf.Graph().as_default():
    ...     x = tf.compat.v1.placeholder(tf.string, [None])
    ...     sorted(tf.compat.v1.saved_model.classification_signature_def(x, x, None).outputs)
    ['classes']
    """
    if examples is None:
        raise ValueError("Classification `examples` cannot be None.")
    if examples.dtype.name != "string":
        raise ValueError(f"Classification input tensors must be of type string. Found tensors of type {examples.dtype}")
    if classes is None and scores is None:
        raise ValueError("Classification `classes` and `scores` cannot both be None.")
    if classes is not None and classes.dtype.name != "string":
        raise ValueError(f"Classification classes must be of type string Tensor. Found tensors of type {classes.dtype}")
    if scores is not None and scores.dtype.name != "float32":
        raise ValueError(f"Classification scores must be a float tensor. Found tensors of type {scores.dtype}")
    outputs = {name: t for name, t in (("classes", classes), ("scores", scores)) if t is not None}
    return _signature({"inputs": examples}, outputs, "classify")


@public(
    "compat.v1.saved_model.regression_signature_def",
    "compat.v1.saved_model.signature_def_utils.regression_signature_def",
)
def regression_signature_def(examples: Any, predictions: Any) -> Any:
    """The signature of a regression on examples in strings.

    >>> with tf.Graph().as_default():
    ...     x = tf.compat.v1.placeholder(tf.string, [None])
    ...     y = tf.compat.v1.placeholder(tf.float32, [None])
    ...     tf.compat.v1.saved_model.regression_signature_def(x, y).method_name
    'tensorflow/serving/regress'
    """
    if examples is None:
        raise ValueError("Regression `examples` cannot be None.")
    if predictions is None:
        raise ValueError("Regression `predictions` cannot be None.")
    if examples.dtype.name != "string":
        raise ValueError(f"Regression input tensors must be of type string. Found tensors with type {examples.dtype}.")
    if predictions.dtype.name != "float32":
        raise ValueError(
            f"Regression output tensors must be of type float. Found tensors with type {predictions.dtype}."
        )
    return _signature({"inputs": examples}, {"outputs": predictions}, "regress")


@public("compat.v1.saved_model.is_valid_signature", "compat.v1.saved_model.signature_def_utils.is_valid_signature")
def is_valid_signature(signature_def: Any) -> bool:
    """Whether a signature is one of a prediction, classification or regression, with the tensors that it needs.

    >>> tf.compat.v1.saved_model.is_valid_signature(tf.compat.v1.saved_model.build_signature_def())
    False
    """
    inputs, outputs = signature_def.inputs, signature_def.outputs
    dtypes = [{key: as_dtype(info.dtype).name for key, info in infos.items()} for infos in (inputs, outputs)]
    kind = signature_def.method_name.removeprefix(f"{METHOD}/")
    if kind == "predict":
        return bool(inputs) and bool(outputs)
    if kind == "regress":
        return dtypes == [{"inputs": "string"}, {"outputs": "float32"}]
    if kind == "classify":
        wanted = {"classes": "string", "scores": "float32"}
        return dtypes[0] == {"inputs": "string"} and bool(outputs) and dtypes[1].items() <= wanted.items()
    return False
