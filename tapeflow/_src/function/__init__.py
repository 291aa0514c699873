"""`tf.function`: tracing Python functions into graphs, and AutoGraph, which makes graphs of Python's control flow."""

import tapeflow._src.function.annotations
import tapeflow._src.function.autograph.api
import tapeflow._src.function.composition
import tapeflow._src.function.escape
import tapeflow._src.function.func_graph
import tapeflow._src.function.function
import tapeflow._src.function.trace
import tapeflow._src.function.xla
