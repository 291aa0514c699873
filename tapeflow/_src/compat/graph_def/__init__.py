"""TensorFlow's graphs: reading `GraphDef` and `FunctionDef` messages into operations, and writing them."""
