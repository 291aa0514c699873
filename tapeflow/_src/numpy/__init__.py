"""`tf.experimental.numpy`: the operations under NumPy's names, with NumPy's dtype promotion."""

import tapeflow._src.numpy.api
import tapeflow._src.numpy.arrays
import tapeflow._src.numpy.behavior
import tapeflow._src.numpy.random
