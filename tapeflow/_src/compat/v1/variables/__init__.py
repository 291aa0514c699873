"""Variables of TensorFlow 1: scopes, initializers, partitions, moving averages."""
