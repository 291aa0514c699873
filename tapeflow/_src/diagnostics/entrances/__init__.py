"""Entry points to a doctor from outside: Keras callbacks, notebooks, pytest."""
