"""`tf.compat.v1.layers` and recurrent networks."""
