// Cost models for entries: the work of one call from its shapes. call.in may be symbolic; call.specs has the results.
#pragma once
#include "op/op.h"

namespace tapeflow::cost {

Work elements(const Call&);               // the elements of inputs and results
Work elements_in_one_piece(const Call&);  // the same, for a kernel that uses one thread
Work products(const Call&);               // multiply-adds of a matrix product, and the memory it touches
Work convolutions(const Call&);           // of a convolution or one of its gradients, from the sizes of its tensors
Work matrices(const Call&);               // matrices of the first input: their sizes to the third power
Work sorted_rows(const Call&);            // n log n for each row of the last dimension
// Along the axis that a parameter names.
Work scan_along(const Call&, int64_t axis);
template <int Axis> Work scans(const Call& call) { return scan_along(call, call.params.at(Axis).integer); }

}  // namespace tapeflow::cost
