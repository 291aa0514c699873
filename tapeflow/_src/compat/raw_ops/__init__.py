"""`tf.raw_ops`: operations under TensorFlow's own names, called by keyword."""
