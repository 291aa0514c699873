"""The types of Tapeflow's values and of what is known about them; none of them computes."""

import tapeflow._src.types.containers
import tapeflow._src.types.dtypes
import tapeflow._src.types.enums
import tapeflow._src.types.errors
import tapeflow._src.types.indexed_slices
import tapeflow._src.types.logging
import tapeflow._src.types.nest
import tapeflow._src.types.nest_paths
import tapeflow._src.types.sparse_tensor
import tapeflow._src.types.tensor_kinds
import tapeflow._src.types.tensor_shape
import tapeflow._src.types.tensor_spec
import tapeflow._src.types.text
import tapeflow._src.types.trackable
import tapeflow._src.types.version
