"""Operations with an effect outside of the graph: printing, assertions, calls of Python."""
