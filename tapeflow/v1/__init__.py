"""TensorFlow 1's face on the same graph: graphs, sessions, variable scopes, optimizers, savers."""

from tapeflow.v1 import (
    collections,
    eager_switch,
    fetches,
    gradients,
    graph,
    layers,
    learning_rates,
    losses,
    older_arguments,
    older_names,
    optimizer,
    optimizers,
    placeholders,
    program,
    saver,
    session,
    training_step,
    variable_scope,
    variables,
)
