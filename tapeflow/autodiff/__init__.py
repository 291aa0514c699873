"""Policy around the tape: what of differentiation is decided in Python."""

from tapeflow.autodiff import (
    black_box,
    composite_gradients,
    custom_gradient,
    forward_accumulator,
    gradient_accumulation,
    gradient_check,
    gradient_registry,
    gradient_tape,
    graph_gradients,
    hessians,
    numerical_gradient,
    raw_gradients,
    recompute,
)
