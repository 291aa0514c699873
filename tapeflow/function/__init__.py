"""`tf.function`: tracing Python functions into graphs, and AutoGraph, which makes graphs of Python's control flow."""

from tapeflow.function import annotations, autograph_api, composition, escape, func_graph, function, trace
