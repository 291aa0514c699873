"""Extension types, and public functions that accept them."""
