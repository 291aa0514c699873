"""`tf.saved_model`: models in TensorFlow's SavedModel format, read and written."""
