"""Control flow as functions: branches, loops, maps, and the arrays they fill."""

from tapeflow._src.control_flow import (
    branches,
    critical_section,
    loops,
    maps,
    per_example,
    smart_cond,
    tensor_array,
    vectorized_map,
)
