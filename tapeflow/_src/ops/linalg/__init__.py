"""Linear algebra: products, factorisations, solvers."""
