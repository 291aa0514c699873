"""Shapes, indices, constants, order: operations that move or make elements."""
