"""`tf.compat.v1.saved_model.Builder`: writes graphs of TensorFlow 1, with the values of a session, as a SavedModel."""

from __future__ import annotations

import filecmp
import itertools
import os
import shutil
from collections.abc import Mapping, Sequence
from typing import Any

from tapeflow._src.compat.saved_model.constants import INITIALIZER, LEGACY_INITIALIZER, MAIN_OPERATION, TRAIN_OPERATION
from tapeflow._src.compat.saved_model.v1_signatures import predict_signature_def
from tapeflow._src.compat.v1.graph.graph import get_default_graph
from tapeflow._src.compat.v1.train.meta_graph_export import meta_graph_of, write_meta_graph
from tapeflow._src.compat.v1.train.saver import Saver
from tapeflow._src.compat.v1.variables.variables import tables_initializer
from tapeflow._src.io.protos import messages
from tapeflow._src.namespace import find_public, public


@public("compat.v1.saved_model.Builder", "compat.v1.saved_model.builder.SavedModelBuilder")
class Builder:
    """Collects graphs with their signatures; `save` writes them. The first graph brings the values of the variables.

    >>> with tf.Graph().as_default(), tf.compat.v1.Session() as session:
    ...     x = tf.compat.v1.placeholder(tf.float32, [2])
    ...     builder = tf.compat.v1.saved_model.Builder("doubling")
    ...     signature = tf.compat.v1.saved_model.predict_signature_def({"x": x}, {"y": 2. * x})
    ...     builder.add_meta_graph_and_variables(session, ["serve"], {"serving_default": signature})
    ...     path = builder.save()
    """

    def __init__(self, export_dir: Any) -> None:
        self._folder = os.fspath(export_dir)
        if os.path.isdir(self._folder) and os.listdir(self._folder):
            raise AssertionError(
                f"Export directory {self._folder} already exists, and isn't empty. Please choose a different export "
                f"directory, or delete all the contents of the specified directory: {os.listdir(self._folder)}"
            )
        os.makedirs(self._folder, exist_ok=True)
        self._model = messages.SavedModel(saved_model_schema_version=1)
        self._has_values = False

    def add_meta_graph_and_variables(
        self,
        sess: Any,
        tags: Sequence[str],
        signature_def_map: Mapping[str, Any] | None = None,
        assets_collection: Any = None,
        legacy_init_op: Any = None,
        clear_devices: bool = False,
        main_op: Any = None,
        strip_default_attrs: bool = False,
        saver: Any = None,
    ) -> None:
        """Adds the graph of a session, and the values that its variables have there."""
        if self._has_values:
            raise AssertionError(
                "Graph state including variables and assets has already been saved. Please invoke `add_meta_graph()` "
                "instead."
            )
        _check_signatures(signature_def_map)
        saver = _saver_of(sess.graph) if saver is None else saver
        folder = os.path.join(self._folder, "variables")
        os.makedirs(folder, exist_ok=True)
        if saver._variable_by_name:
            saver.save(sess, os.path.join(folder, "variables"), write_meta_graph=False, write_state=False)
        self._add(sess.graph, tags, signature_def_map, assets_collection, legacy_init_op, clear_devices, main_op, saver)
        self._has_values = True

    def add_meta_graph(
        self,
        tags: Sequence[str],
        signature_def_map: Mapping[str, Any] | None = None,
        assets_collection: Any = None,
        legacy_init_op: Any = None,
        clear_devices: bool = False,
        main_op: Any = None,
        strip_default_attrs: bool = False,
        saver: Any = None,
    ) -> None:
        """Adds the default graph, for other tags; it uses the values that are there."""
        if not self._has_values:
            raise AssertionError(
                "Graph state including variables and assets has not been saved yet. Please invoke "
                "`add_meta_graph_and_variables()` first."
            )
        _check_signatures(signature_def_map)
        graph = get_default_graph()
        saver = _saver_of(graph) if saver is None else saver
        self._add(graph, tags, signature_def_map, assets_collection, legacy_init_op, clear_devices, main_op, saver)

    def _add(
        self, graph: Any, tags: Any, signatures: Any, assets: Any, legacy: Any, clear: bool, main: Any, saver: Any
    ) -> None:
        if main is not None and legacy is not None:
            raise ValueError("main_op and legacy_init_op cannot both be given")
        variables, places = saver._saved_variables()
        meta = meta_graph_of(graph, variables, places, clear_devices=clear)
        meta.meta_info_def.tags.extend(tags)
        for key, signature in (signatures or {}).items():
            meta.signature_def[key].CopyFrom(signature)
        self._add_assets(meta, assets)
        for key, operation in ((MAIN_OPERATION, main), (LEGACY_INITIALIZER, legacy)):
            if operation is not None:
                meta.collection_def[key].node_list.value.append(operation.name)
        self._model.meta_graphs.append(meta)

    def _add_assets(self, meta: Any, assets: Any) -> None:
        folder = os.path.join(self._folder, "assets")
        for tensor in assets or ():
            value = find_public("get_static_value")(tensor)
            if value is None:
                raise ValueError(f"Invalid asset filepath tensor {tensor}: its value is not known.")
            path = value.item().decode() if hasattr(value, "item") else value.decode()
            os.makedirs(folder, exist_ok=True)
            name = _place_of_asset(path, folder)
            if not os.path.exists(os.path.join(folder, name)):
                shutil.copyfile(path, os.path.join(folder, name))
            meta.asset_file_def.add(tensor_info=messages.TensorInfo(name=tensor.name), filename=name)

    def save(
        self,
        as_text: bool = False,
        experimental_image_format: bool = False,
        experimental_image_writer_options: Any = None,
    ) -> bytes:
        """Writes `saved_model.pb`, or the same as text; gives its path."""
        if experimental_image_format:
            raise NotImplementedError("Builder.save: images of SavedModels are not written")
        path = os.path.join(self._folder, "saved_model.pbtxt" if as_text else "saved_model.pb")
        write_meta_graph(self._model, path, as_text)
        return path.encode()


def _saver_of(graph: Any) -> Saver:
    with graph.as_default():
        return Saver(allow_empty=True)


def _place_of_asset(path: str, folder: str) -> str:
    """The name of a file among the assets: its own, or one with a number if another file has that name."""
    own = os.path.basename(path)
    for number in itertools.count():
        name = f"{own}_{number}" if number else own
        kept = os.path.join(folder, name)
        if not os.path.exists(kept) or filecmp.cmp(path, kept, shallow=False):
            return name
    raise AssertionError("unreachable")


def _check_signatures(signatures: Mapping[str, Any] | None) -> None:
    for key, signature in (signatures or {}).items():
        if key in (INITIALIZER, TRAIN_OPERATION):
            raise KeyError(f"SignatureDef map key {key!r} is reserved for internal use.")
        for info in (*signature.inputs.values(), *signature.outputs.values()):
            if info.WhichOneof("encoding") is None:
                raise AssertionError(
                    f"Invalid `tensor_info` encoding in signature {key!r}: a name, coo_sparse or composite_tensor is "
                    "needed"
                )
            if info.dtype == 0:
                raise AssertionError(f"Invalid `tensor_info` dtype in signature {key!r}: a dtype is needed")


@public("compat.v1.saved_model.simple_save")
def simple_save(
    session: Any,
    export_dir: Any,
    inputs: Mapping[str, Any],
    outputs: Mapping[str, Any],
    legacy_init_op: Any = None,
) -> None:
    """Writes the graph of a session as a SavedModel with one signature for predictions.

    >>> with tf.Graph().as_default(), tf.compat.v1.Session() as session:
    ...     x = tf.compat.v1.placeholder(tf.float32, [2])
    ...     tf.compat.v1.saved_model.simple_save(session, "simple", {"x": x}, {"y": 2. * x})
    >>> tf.saved_model.load("simple").signatures["serving_default"](x=tf.constant([1., 2.]))["y"].numpy()
    array([2., 4.], dtype=float32)
    """
    builder = Builder(export_dir)
    signature = predict_signature_def(inputs, outputs)
    with session.graph.as_default():
        main_op = tables_initializer() if legacy_init_op is None else legacy_init_op
    builder.add_meta_graph_and_variables(
        session,
        ["serve"],
        {"serving_default": signature},
        assets_collection=session.graph.get_collection("asset_filepaths"),
        main_op=main_op,
        clear_devices=True,
    )
    builder.save()
