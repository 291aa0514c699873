"""The inner modules that stand behind `tf.function`: `tensorflow.python.eager.polymorphic_function`."""
