"""TensorFlow 1's face on the same graph: graphs, sessions, variable scopes, optimizers, savers."""
