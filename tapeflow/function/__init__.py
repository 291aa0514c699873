"""`tf.function`: tracing Python functions into graphs."""

from tapeflow.function import composition, function, trace
