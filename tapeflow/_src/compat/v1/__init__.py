"""The API of TensorFlow 1 over the same graph: graphs, sessions, variable scopes, optimizers, savers."""
