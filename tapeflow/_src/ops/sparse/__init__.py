"""`tf.sparse`: operations on sparse tensors."""
