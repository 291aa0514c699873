"""`tf.train`: checkpoints, in TensorFlow's files."""

import tapeflow._src.train.checkpoint.checkpoint
import tapeflow._src.train.checkpoint.checkpoint_v1
import tapeflow._src.train.checkpoint.checkpoint_view
import tapeflow._src.train.checkpoint.manager
import tapeflow._src.train.checkpoint.python_state
import tapeflow._src.train.checkpoint.reader
import tapeflow._src.train.checkpoint.state
import tapeflow._src.train.checkpoint.trackable_view
