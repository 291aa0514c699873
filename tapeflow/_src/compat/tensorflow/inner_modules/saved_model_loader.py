"""The inner reader and writer of SavedModels of TensorFlow 1: in steps what `load` and `Builder` do at once."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

from tapeflow._src.compat.saved_model.constants import INITIALIZER, MAIN_OPERATION, TRAIN_OPERATION
from tapeflow._src.compat.saved_model.loading import asset_path
from tapeflow._src.compat.saved_model.meta_graphs import read_saved_model
from tapeflow._src.compat.saved_model.v1_builder import Builder
from tapeflow._src.compat.saved_model.v1_models import load_into_session
from tapeflow._src.compat.v1.graph.graph import get_default_graph
from tapeflow._src.compat.v1.train.saver import Saver
from tapeflow._src.namespace import find_public
from tapeflow._src.types.errors import NotFoundError


class ScopedBuilder(Builder):
    """A builder that writes what runs first, and the step of training, as signatures alone."""

    def add_meta_graph_and_variables(  # type: ignore[override]
        self,
        sess: Any,
        tags: Sequence[str],
        signature_def_map: Mapping[str, Any] | None = None,
        assets_list: Any = None,
        clear_devices: bool = False,
        init_op: Any = None,
        train_op: Any = None,
        strip_default_attrs: bool = False,
        saver: Any = None,
    ) -> None:
        """Adds the graph of a session, and the values that its variables have there."""
        super().add_meta_graph_and_variables(
            sess, tags, signature_def_map, assets_list, clear_devices=clear_devices, saver=saver
        )
        self._name_operations(init_op, train_op)

    def add_meta_graph(  # type: ignore[override]
        self,
        tags: Sequence[str],
        signature_def_map: Mapping[str, Any] | None = None,
        assets_list: Any = None,
        clear_devices: bool = False,
        init_op: Any = None,
        train_op: Any = None,
        saver: Any = None,
    ) -> None:
        """Adds the default graph, for other tags; it uses the values that are there."""
        super().add_meta_graph(tags, signature_def_map, assets_list, clear_devices=clear_devices, saver=saver)
        self._name_operations(init_op, train_op)

    def _name_operations(self, init_op: Any, train_op: Any) -> None:
        signatures = self._model.meta_graphs[-1].signature_def
        for key, operation in ((INITIALIZER, init_op), (TRAIN_OPERATION, train_op)):
            if operation is not None:
                signatures[key].outputs[key].name = operation.name


def _named(meta_graph: Any, key: str, import_scope: str | None) -> Any:
    """The operation or tensor of the default graph that a signature names, or None."""
    if key not in meta_graph.signature_def:
        return None
    name = meta_graph.signature_def[key].outputs[key].name
    name = f"{import_scope}/{name}" if import_scope else name
    try:
        return get_default_graph().as_graph_element(name)
    except KeyError:
        raise NotFoundError.of(
            f'The operation "{name}" of the signature "{key}" is not in the graph. Was it imported under a name scope?'
        ) from None


def get_init_op(meta_graph_def: Any, import_scope: str | None = None) -> Any:
    """The operation of the default graph that a SavedModel runs first, or None."""
    collected = get_default_graph().get_collection(MAIN_OPERATION)
    if collected and MAIN_OPERATION in meta_graph_def.collection_def:
        return collected[0]
    return _named(meta_graph_def, INITIALIZER, import_scope)


def get_train_op(meta_graph_def: Any, import_scope: str | None = None) -> Any:
    """The operation or tensor of the default graph that is a step of training, or None."""
    return _named(meta_graph_def, TRAIN_OPERATION, import_scope)


def get_asset_tensors(export_dir: str, meta_graph_def_to_load: Any, import_scope: str | None = None) -> dict[str, str]:
    """The paths of the files of a SavedModel by the names of the tensors that stand for them."""
    prefix = f"{import_scope}/" if import_scope else ""
    entries = meta_graph_def_to_load.asset_file_def
    return {prefix + entry.tensor_info.name: asset_path(export_dir, entry.filename) for entry in entries}


class SavedModelLoader:
    """Loads the graphs of a SavedModel and the values of their variables."""

    def __init__(self, export_dir: Any) -> None:
        self._export_dir = os.fspath(export_dir)
        self._saved_model = read_saved_model(self._export_dir)

    export_dir = property(lambda self: self._export_dir)
    variables_path = property(lambda self: os.path.join(self._export_dir, "variables", "variables"))
    saved_model = property(lambda self: self._saved_model)

    def get_meta_graph_def_from_tags(self, tags: Any) -> Any:
        """The graph with exactly these tags."""
        available = [set(meta.meta_info_def.tags) for meta in self._saved_model.meta_graphs]
        for meta, found in zip(self._saved_model.meta_graphs, available):
            if found == set(tags):
                return meta
        raise RuntimeError(
            f"MetaGraphDef associated with tags {str(tags).strip('[]')} could not be found in SavedModel, with "
            f"available tags '{available}'."
        )

    def load_graph(self, graph: Any, tags: Any, import_scope: str | None = None, **saver_kwargs: Any) -> Any:
        """Adds the operations to a graph; gives a saver of its variables, and None."""
        meta = self.get_meta_graph_def_from_tags(tags)
        with graph.as_default():
            import_graph = find_public("compat.v1.train.import_meta_graph")
            return import_graph(meta, import_scope=import_scope, **saver_kwargs), None

    def restore_variables(self, sess: Any, saver: Any, import_scope: str | None = None) -> None:
        """Gives the variables of a session the values of the file; without variables there need be no saver."""
        if isinstance(saver, Saver):
            with sess.graph.as_default():
                saver.restore(sess, self.variables_path)
        elif saver is not None or sess.graph.get_collection("variables", scope=import_scope):
            raise ValueError(
                "No tf.train.Saver object was passed to the function `SavedModelLoader.restore_variables`. Since there "
                "are variables in the graph, a saver is required."
            )

    def run_init_ops(self, sess: Any, tags: Any, import_scope: str | None = None) -> None:
        """Runs what the graph names as its initialisation, with the paths of its files."""
        meta = self.get_meta_graph_def_from_tags(tags)
        with sess.graph.as_default():
            operation = get_init_op(meta, import_scope)
            if operation is not None:
                sess.run(operation, get_asset_tensors(self._export_dir, meta, import_scope))

    def load(self, sess: Any, tags: Any, import_scope: str | None = None, **saver_kwargs: Any) -> Any:
        """All of it: the graph, the values and the initialisation; gives the message of the graph."""
        self.get_meta_graph_def_from_tags(tags)
        load_into_session(sess, tags, self._export_dir, import_scope, **saver_kwargs)
        return self.get_meta_graph_def_from_tags(tags)


names_by_path: dict[str, dict[str, Any]] = {
    **{f"python.saved_model.{name}": {"_SavedModelBuilder": ScopedBuilder} for name in ("builder", "builder_impl")},
    "python.saved_model.loader_impl": {
        "SavedModelLoader": SavedModelLoader,
        "get_asset_tensors": get_asset_tensors,
        "get_init_op": get_init_op,
        "get_train_op": get_train_op,
    },
}
