"""`tf.feature_column`: descriptions of how features become tensors."""
