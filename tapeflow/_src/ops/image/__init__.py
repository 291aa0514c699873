"""`tf.image`: geometry, colors, boxes, resampling and augmentation."""
