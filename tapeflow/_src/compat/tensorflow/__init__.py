"""The alias `import tensorflow`, Keras, and TensorFlow's inner modules."""
