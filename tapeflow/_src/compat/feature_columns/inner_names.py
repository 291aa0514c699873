"""Which names of feature columns TensorFlow keeps in which of its files."""

from __future__ import annotations

from typing import Any

from tapeflow._src.compat.feature_columns import (
    categorical,
    column,
    combined,
    embeddings,
    models,
    numeric,
    sequences,
    transformation,
)
from tapeflow._src.namespace import find_public

_V2 = (categorical, combined, embeddings, numeric)


def _defined(module: Any) -> dict[str, Any]:
    """The public functions and classes that a module defines."""
    return {
        name: value
        for name, value in vars(module).items()
        if name[0] != "_" and getattr(value, "__module__", None) == module.__name__
    }


names_by_file: dict[str, dict[str, Any]] = {
    "python.feature_column.feature_column_v2": {
        **{name: value for module in _V2 for name, value in _defined(module).items()},
        **_defined(column),
        "FeatureTransformationCache": transformation.FeatureTransformationCache,
        "SequenceCategoricalColumn": sequences.SequenceCategoricalColumn,
        "_StateManagerImpl": transformation.StateManager,
        "_normalize_feature_columns": models.normalize_feature_columns,
        "categorical_column_with_vocabulary_file_v2": categorical.categorical_column_with_vocabulary_file,
        "categorical_column_with_vocabulary_file": find_public(
            "compat.v1.feature_column.categorical_column_with_vocabulary_file"
        ),
        "make_parse_example_spec_v2": models.make_parse_example_spec,
        "shared_embedding_columns": embeddings.shared_embedding_columns,
        "shared_embedding_columns_v2": embeddings.shared_embeddings,
    },
    "python.feature_column.feature_column_v2_types": {"FeatureColumn": column.FeatureColumn},
    "python.feature_column.sequence_feature_column": _defined(sequences),
    "python.feature_column.serialization": {
        name: value for name, value in _defined(column).items() if "serialize" in name
    },
    "python.feature_column.utils": {
        "sequence_length_from_sparse_tensor": transformation.sequence_length_from_sparse_tensor
    },
}
