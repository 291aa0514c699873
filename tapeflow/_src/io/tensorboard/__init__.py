"""`tf.summary` and event files, which TensorBoard reads."""
