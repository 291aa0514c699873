"""`tf.data`: datasets, iterators over them, and the files they read."""

from tapeflow.data import dataset, experimental, iterator, optional, options, readers, session_iterators
