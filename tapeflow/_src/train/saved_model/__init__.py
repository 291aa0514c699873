"""`tf.saved_model`: objects with their variables and functions in a folder."""
