"""Optimizers, losses, learning rates and savers of TensorFlow 1."""
