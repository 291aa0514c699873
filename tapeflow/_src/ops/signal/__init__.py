"""`tf.signal`: frames, windows and Fourier transforms."""
