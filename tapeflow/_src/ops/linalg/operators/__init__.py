"""`tf.linalg.LinearOperator` and its subclasses."""
