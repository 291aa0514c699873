"""`tf.train`: checkpoints, in TensorFlow's files."""

from tapeflow.train import checkpoint, checkpoint_manager, checkpoint_reader, checkpoint_state, moving_average
