"""Registers the handlers of nodes that are more than calls of raw operations; who reads graphs imports it."""

from tapeflow._src.compat.graph_def import (  # noqa: F401
    control_flow,
    effects,
    reference_updates,
    resources,
    tensor_arrays,
    tensor_lists,
    variants,
)
