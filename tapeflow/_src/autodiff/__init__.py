"""Policy around the tape: what of differentiation is decided in Python."""

import tapeflow._src.autodiff.black_box
import tapeflow._src.autodiff.composite_gradients
import tapeflow._src.autodiff.custom_gradient
import tapeflow._src.autodiff.forward_accumulator
import tapeflow._src.autodiff.functional
import tapeflow._src.autodiff.gradient_accumulation
import tapeflow._src.autodiff.gradient_check
import tapeflow._src.autodiff.gradient_registry
import tapeflow._src.autodiff.gradient_tape
import tapeflow._src.autodiff.graph_gradients
import tapeflow._src.autodiff.hessians
import tapeflow._src.autodiff.numerical_gradient
import tapeflow._src.autodiff.recompute
