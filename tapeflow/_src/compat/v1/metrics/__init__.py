"""`tf.compat.v1.metrics`: values gathered over the runs of a session."""
