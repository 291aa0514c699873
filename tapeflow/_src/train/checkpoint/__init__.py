"""Checkpoints in TensorFlow's files."""
