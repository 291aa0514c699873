// What a derivative rule sees and sets.
#pragma once
#include <span>

#include "op/params.h"

namespace tapeflow {

struct Op;

// The dtype and rank of a recorded tensor; its dimensions lie apart. kLikeOutput in place of the rank: as output 0.
struct Form {
  DType dtype;
  int8_t rank;
};
constexpr int8_t kLikeOutput = -1;

// What a rule sees while it runs: the kept tensors, the shapes of the inputs, the cotangents (VJP) or tangents (JVP),
// and the place for the results.
struct RuleContext {
  const Op& op;
  const Params& params;
  std::span<const Tensor> kept_inputs;  // empty handles where the tensor was not kept
  std::span<const Tensor> kept_outputs;
  std::span<const Form> forms;                // of the inputs, then of the outputs; empty if all tensors are kept
  const int64_t* dims;                        // the dimensions of all forms that have a rank, one after the other
  std::span<const Tensor> given;              // VJP: dy per output; JVP: x_dot per input; empty handle = zero
  std::span<const bool> wanted;               // VJP: which inputs' gradients are asked for
  SmallVector<Tensor, 4> result;              // VJP: dx per input; JVP: y_dot per output
  SmallVector<Tensor, 1> sparse_indices;      // VJP: with result[i], an IndexedSlices gradient for input i
  SmallVector<const Tensor*, 4> totals = {};  // VJP: see total()

  const Tensor& x(int i) const;
  const Tensor& y(int i = 0) const;
  Tensor dy(int i = 0) const;  // zeros where nothing flows
  bool has_dy(int i) const { return bool(given[size_t(i)]); }
  const Tensor& x_dot(int i) const { return given[size_t(i)]; }
  Shape shape(int i) const;  // of input i
  DType dtype(int i) const { return forms.empty() ? kept_inputs[size_t(i)].dtype() : forms[size_t(i)].dtype; }
  bool like_output(int i) const { return !forms.empty() && forms[size_t(i)].rank == kLikeOutput; }
  Spec output_spec(int i) const;
  bool wants(int i) const { return wanted[size_t(i)]; }
  // The gradient of input i so far, if nobody else sees it: a rule may add to it in place instead of giving a result.
  const Tensor* total(int i) const { return totals.empty() ? nullptr : totals[size_t(i)]; }
  int inputs() const { return int(kept_inputs.size()); }
  int outputs() const { return int(kept_outputs.size()); }
  void set(int i, Tensor t) { result[size_t(i)] = std::move(t); }
  // The gradient of input i is what an op with `scatter_add` makes of `in`; it is added to the total so far if there is
  // one.
  void set_scatter_add(int i, const Op&, std::span<const Tensor> in, const Params&);
  // The gradient of input i is zero but for the rows `indices`, which get `values` (repeated rows add up).
  void set_rows(int i, Tensor values, Tensor indices);
};

}  // namespace tapeflow
