"""`tf.data`: datasets, iterators over them, and the files they read."""

import tapeflow._src.data.csv_files
import tapeflow._src.data.dataset
import tapeflow._src.data.example_files
import tapeflow._src.data.experimental
import tapeflow._src.data.iterator
import tapeflow._src.data.optional
import tapeflow._src.data.options
import tapeflow._src.data.readers
import tapeflow._src.data.session_iterators
import tapeflow._src.data.sql
import tapeflow._src.data.tables
