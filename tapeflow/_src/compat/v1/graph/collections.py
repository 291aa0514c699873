"""Collections: lists that a graph keeps by name, and the names that TensorFlow gives them."""

from __future__ import annotations

from typing import Any

from tapeflow._src.namespace import public


@public("compat.v1.GraphKeys")
class GraphKeys:
    """The names of the collections that the library itself fills.

    >>> tf.compat.v1.GraphKeys.TRAINABLE_VARIABLES
    'trainable_variables'
    """

    GLOBAL_VARIABLES = "variables"
    VARIABLES = "variables"
    LOCAL_VARIABLES = "local_variables"
    METRIC_VARIABLES = "metric_variables"
    MODEL_VARIABLES = "model_variables"
    TRAINABLE_VARIABLES = "trainable_variables"
    MOVING_AVERAGE_VARIABLES = "moving_average_variables"
    REGULARIZATION_LOSSES = "regularization_losses"
    LOSSES = "losses"
    SUMMARIES = "summaries"
    SUMMARY_OP = "summary_op"
    UPDATE_OPS = "update_ops"
    GLOBAL_STEP = "global_step"
    TRAIN_OP = "train_op"
    INIT_OP = "init_op"
    LOCAL_INIT_OP = "local_init_op"
    READY_OP = "ready_op"
    READY_FOR_LOCAL_INIT_OP = "ready_for_local_init_op"
    RESOURCES = "resources"
    LOCAL_RESOURCES = "local_resources"
    TRAINABLE_RESOURCE_VARIABLES = "trainable_resource_variables"
    SAVEABLE_OBJECTS = "saveable_objects"
    SAVERS = "savers"
    ACTIVATIONS = "activations"
    WEIGHTS = "weights"
    BIASES = "biases"
    ASSET_FILEPATHS = "asset_filepaths"
    QUEUE_RUNNERS = "queue_runners"
    TABLE_INITIALIZERS = "table_initializer"
    COND_CONTEXT = "cond_context"
    WHILE_CONTEXT = "while_context"
    CONCATENATED_VARIABLES = "concatenated_variables"
    EVAL_STEP = "eval_step"


def no_regularizer(_: Any) -> None:
    """Regularizes nothing, whatever the scope says.

    >>> tf.compat.v1.no_regularizer(tf.constant(1.))
    """


public("compat.v1.no_regularizer")(no_regularizer)
