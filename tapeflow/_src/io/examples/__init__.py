"""`tf.io.parse_example` and the description of its features."""
