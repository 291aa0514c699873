// The values that rules ask for, and results that are added in place.
#include "op/rule_context.h"

#include <algorithm>
#include <cstring>

#include "op/op.h"

namespace tapeflow {

const Tensor& RuleContext::x(int i) const {
  const Tensor& t = kept_inputs[size_t(i)];
  if (!t) fail(ErrorKind::runtime, op.name, ": its rule reads input ", i, " but does not keep it");
  return t;
}
const Tensor& RuleContext::y(int i) const {
  const Tensor& t = kept_outputs[size_t(i)];
  if (!t) fail(ErrorKind::runtime, op.name, ": its rule reads output ", i, " but does not keep it");
  return t;
}
Tensor RuleContext::dy(int i) const {
  if (given[size_t(i)]) return given[size_t(i)];
  Spec spec = output_spec(i);
  Tensor zero = Tensor::allocate(spec.dtype, spec.shape);
  std::memset(zero.mutable_raw(), 0, zero.bytes());
  return zero;
}
Shape RuleContext::shape(int i) const {
  if (kept_inputs[size_t(i)]) return kept_inputs[size_t(i)].shape();
  if (forms[size_t(i)].rank == kLikeOutput) return output_spec(0).shape;
  const int64_t* at = dims;
  for (int k = 0; k < i; ++k) at += std::max<int8_t>(0, forms[size_t(k)].rank);
  return Shape(at, forms[size_t(i)].rank);
}
Spec RuleContext::output_spec(int i) const {
  if (kept_outputs[size_t(i)]) return {kept_outputs[size_t(i)].dtype(), kept_outputs[size_t(i)].shape()};
  const int64_t* at = dims;
  for (int k = 0; k < inputs() + i; ++k) at += std::max<int8_t>(0, forms[size_t(k)].rank);
  Form form = forms[size_t(inputs() + i)];
  return {form.dtype, Shape(at, form.rank)};
}

void RuleContext::set_scatter_add(int i, const Op& scatter, std::span<const Tensor> in, const Params& given) {
  const Tensor* so_far = total(i);
  if (so_far && wide_floating.has(so_far->dtype())) return scatter.scatter_add(Call(scatter, in, given), *so_far);
  set(i, run(scatter, in, given));
}

void RuleContext::set_rows(int i, Tensor values, Tensor indices) {
  if (sparse_indices.size() <= size_t(i)) sparse_indices.resize(size_t(i) + 1);
  sparse_indices[size_t(i)] = std::move(indices);
  set(i, std::move(values));
}

}  // namespace tapeflow
