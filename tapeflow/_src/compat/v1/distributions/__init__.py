"""`tf.compat.v1.distributions`."""
