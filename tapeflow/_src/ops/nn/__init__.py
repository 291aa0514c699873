"""`tf.nn`: activations, convolutions, pools, normalisation, losses, embeddings."""
