"""Ways to a doctor from outside: Keras callbacks, notebooks, pytest."""
