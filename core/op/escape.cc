// The error for a symbolic tensor that is used outside of its graph.
#include "op/escape.h"

namespace tapeflow {

std::string (*describe_escaped)(const Tensor&) = nullptr;

void fail_escaped(const char* operation, const Tensor& t) {
  std::string what = describe_escaped ? describe_escaped(t) : "a symbolic tf.Tensor";
  size_t end = what.find('\n');
  fail(ErrorKind::type, operation, ": ", what.substr(0, end),
       " is out of scope and cannot be used here. Use return values, explicit "
       "Python locals or TensorFlow collections to access it.\nPlease see "
       "https://www.tensorflow.org/guide/function#all_outputs_of_a_tffunction_must_be_return_values for more "
       "information.",
       end == std::string::npos ? std::string() : what.substr(end));
}

}  // namespace tapeflow
