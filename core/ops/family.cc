// The parts of the families that do not depend on an element type.
#include "ops/family.h"

namespace tapeflow::family {

void fail_broadcast(const Call& call) {
  fail(ErrorKind::invalid_argument, call.name(), ": the shapes must broadcast; Incompatible shapes: ",
       call.in[0].shape(), " vs. ", call.in[1].shape());
}

void fail_unsupported(const Call& call) {
  fail(ErrorKind::invalid_argument, call.name(), ": Value for attr 'T' of ", legacy_name_of(call.in[0].dtype()),
       " is not in the list of allowed values");
}

void fail_dtypes(const Call& call) {
  fail(ErrorKind::invalid_argument, call.name(), ": cannot compute ", call.op.name,
       " as input #1(zero-based) was expected to be a ", legacy_name_of(call.in[0].dtype()), " tensor but is a ",
       legacy_name_of(call.in[1].dtype()), " tensor. Use tf.cast to make the dtypes equal.");
}

Tensor spread(const RuleContext& c, const Tensor& x_dot) {
  const Shape& shape = c.y().shape();
  return x_dot.shape() == shape ? x_dot : broadcast_to(x_dot, shape);
}

}  // namespace tapeflow::family
