"""`tf.strings`: operations on byte strings."""
