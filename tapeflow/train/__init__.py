"""`tf.train`: checkpoints, in TensorFlow's files; `tf.saved_model`."""

from tapeflow.train import (
    checkpoint,
    checkpoint_manager,
    checkpoint_reader,
    checkpoint_state,
    saved_model,
    trackable_view,
)
