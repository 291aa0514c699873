"""Graphs of TensorFlow 1, their elements, and their messages."""
