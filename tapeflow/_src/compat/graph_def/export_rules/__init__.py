"""How operations are written as those of TensorFlow: rules by family, which register themselves."""

from tapeflow._src.compat.graph_def.export_rules import (
    arrays,
    codecs,
    compositions,
    control_flow,
    control_gradients,
    dataset_groups,
    datasets,
    deferred,
    effects,
    features,
    gradients,
    images,
    math,
    matrix_gradients,
    nn,
    python,
    second_order,
    sequences,
    sparse,
)
