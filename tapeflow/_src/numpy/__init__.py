"""`tf.experimental.numpy`: the operations under NumPy's names, with NumPy's dtype promotion."""

import tapeflow._src.numpy.arithmetic
import tapeflow._src.numpy.arrays
import tapeflow._src.numpy.behavior
import tapeflow._src.numpy.binary
import tapeflow._src.numpy.constants
import tapeflow._src.numpy.construction
import tapeflow._src.numpy.products
import tapeflow._src.numpy.promotion
import tapeflow._src.numpy.random
import tapeflow._src.numpy.reductions
import tapeflow._src.numpy.selection
import tapeflow._src.numpy.shaping
import tapeflow._src.numpy.unary
