"""The file `saved_model.pb`: reading it and choosing one of its graphs."""

from __future__ import annotations

import os
from typing import Any

from tapeflow._src.io.protos import messages
from tapeflow._src.types import nest
from tapeflow._src.types.errors import DataLossError

_BINARY, _TEXT = "saved_model.pb", "saved_model.pbtxt"


def contains_model(folder: str) -> bool:
    """Whether a folder holds a SavedModel."""
    return any(os.path.isfile(os.path.join(folder, name)) for name in (_BINARY, _TEXT))


def read_saved_model(folder: str) -> Any:
    """The message of a SavedModel; OSError if there is none, DataLossError if it cannot be read."""
    for name, parse in ((_BINARY, _parse_binary), (_TEXT, _parse_text)):
        path = os.path.join(folder, name)
        if os.path.isfile(path):
            with open(path, "rb") as file:
                return parse(file.read(), path)
    raise OSError(
        f"SavedModel file does not exist at: {folder}{os.sep}{{{_TEXT}|{_BINARY}}}; the folder does not exist, or "
        "holds no model."
    )


def _parse_binary(data: bytes, path: str) -> Any:
    try:
        return messages.SavedModel.FromString(data)
    except messages.decode_errors() as error:
        raise DataLossError.of(f"{path}: no SavedModel: {error}") from None


def _parse_text(data: bytes, path: str) -> Any:
    from google.protobuf import text_format  # only models in text need it

    try:
        return text_format.Parse(data.decode(), messages.SavedModel())
    except (text_format.ParseError, UnicodeDecodeError) as error:
        raise DataLossError.of(f"{path}: no SavedModel: {error}") from None


def read_meta_graph(folder: str, tags: Any) -> Any:
    """The graph of a SavedModel with these tags; the only one, if none are given."""
    model = read_saved_model(folder)
    found = list(model.meta_graphs)
    wanted = None if tags is None else sorted(set(nest.flatten(tags)))
    if wanted is not None:
        found = [graph for graph in found if sorted(graph.meta_info_def.tags) == wanted]
        if not found:
            known = [sorted(graph.meta_info_def.tags) for graph in model.meta_graphs]
            raise RuntimeError(
                f"MetaGraphDef associated with tags {str(wanted)[1:-1]} could not be found in SavedModel at {folder}. "
                f"Its graphs have the tags {known}."
            )
    if not found:
        raise DataLossError.of(f"{os.path.join(folder, _BINARY)}: the SavedModel holds no graph")
    if len(found) > 1:
        known = [sorted(graph.meta_info_def.tags) for graph in found]
        raise ValueError(
            f"saved_model.load: there are {len(found)} MetaGraphs in the SavedModel at {folder}; give the `tags` of "
            f"one of them: {known}"
        )
    return found[0]
