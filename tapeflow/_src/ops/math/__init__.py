"""Arithmetic, reductions, segments and special functions that are made of other operations."""
