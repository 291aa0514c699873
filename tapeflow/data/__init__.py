"""`tf.data`: datasets, iterators over them, and the files they read."""

from tapeflow.data import (
    csv_files,
    dataset,
    experimental,
    iterator,
    optional,
    options,
    readers,
    session_iterators,
    tables,
)
