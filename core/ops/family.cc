// The parts of the families that do not depend on an element type.
#include "ops/family.h"

#include "ops/one_dtype.h"

namespace tapeflow::family {

namespace {
// Of the i-th tensor that an operation takes.
const char* argument_name(const Op& op, size_t i) {
  for (const Argument& a : op.arguments)
    if (a.kind == Argument::Kind::tensor && i-- == 0) return a.name;
  return "input";
}
}  // namespace

void fail_broadcast(const Call& call) {
  fail(ErrorKind::invalid_argument, call.name(),
       ": the shapes must broadcast; Incompatible shapes: ", call.in[0].shape(), " vs. ", call.in[1].shape());
}

void fail_unsupported(const Call& call) {
  if (thread_state().stage)
    fail(ErrorKind::type, call.name(), ": Value passed to parameter '", argument_name(call.op, 0), "' has DataType ",
         name_of(call.in[0].dtype()), " not in list of allowed values");
  fail(ErrorKind::invalid_argument, call.name(), ": Value for attr 'T' of ", legacy_name_of(call.in[0].dtype()),
       " is not in the list of allowed values");
}

// Building a graph, TensorFlow raises a TypeError; running one operation, an InvalidArgumentError.
[[noreturn]] static void fail_dtype_of(const Call& call, size_t input) {
  DType first = call.in[0].dtype(), other = call.in[input].dtype();
  if (thread_state().stage)
    fail(ErrorKind::type, call.name(), ": Input '", argument_name(call.op, input), "' of '", call.op.name,
         "' Op has type ", name_of(other), " that does not match type ", name_of(first), " of argument '",
         argument_name(call.op, 0), "'. Use tf.cast to make the dtypes equal.");
  fail(ErrorKind::invalid_argument, call.name(), ": cannot compute ", call.op.name, " as input #", input,
       "(zero-based) was expected to be a ", legacy_name_of(first), " tensor but is a ", legacy_name_of(other),
       " tensor. Use tf.cast to make the dtypes equal.");
}

void fail_dtypes(const Call& call) { fail_dtype_of(call, 1); }

void check_dtype(const Call& call, size_t input) {
  if (call.in[input].dtype() != call.in[0].dtype()) fail_dtype_of(call, input);
}

Tensor broadcast_tangent(const RuleContext& c, const Tensor& x_dot) {
  const Shape& shape = c.y().shape();
  return x_dot.shape() == shape ? x_dot : broadcast_to(x_dot, shape);
}

}  // namespace tapeflow::family
