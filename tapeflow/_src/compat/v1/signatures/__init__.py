"""Functions of TensorFlow 1 whose names or arguments differ from today's."""
