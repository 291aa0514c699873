"""`tf.random`: seeds, streams and stateless numbers."""
