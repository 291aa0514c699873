// What convolutions and pools share: how windows move over an image, and how the rows of a vmap become images.
#pragma once
#include "base/subnormals.h"
#include "ops/family.h"

namespace tapeflow {

struct Window {
  int64_t out, pad_before;
};
// How a window of `size` cells (`dilation` apart) moves over `in` cells.
inline Window place_window(const char* who, int64_t in, int64_t size, int64_t stride, int64_t dilation,
                           const std::string& padding, const Ints& explicit_pads, int d) {
  if (stride < 1) fail(ErrorKind::invalid_argument, who, ": strides must be positive; got ", stride);
  if (dilation < 1) fail(ErrorKind::invalid_argument, who, ": dilations must be positive; got ", dilation);
  constexpr int64_t kLargest = int64_t{1} << 40;  // cells; products of two such numbers are not computed
  if (size > kLargest / dilation || stride > kLargest)
    fail(ErrorKind::invalid_argument, who, ": the window is too large: size ", size, ", dilation ", dilation,
         ", stride ", stride);
  int64_t reach = (size - 1) * dilation + 1;
  if (padding == "SAME") {
    int64_t out = (in + stride - 1) / stride, pad = std::max<int64_t>(0, (out - 1) * stride + reach - in);
    return {out, pad / 2};
  }
  int64_t before = 0, after = 0;
  if (padding == "EXPLICIT") before = explicit_pads[size_t(2 * d)], after = explicit_pads[size_t(2 * d) + 1];
  if (before > kLargest || after > kLargest || before < 0 || after < 0)
    fail(ErrorKind::invalid_argument, who, ": explicit paddings must be in [0, 2**40]; got ", before, " and ", after);
  int64_t room = in + before + after - reach;
  int64_t out = (room + stride) / stride;
  if (out < 0)
    fail(ErrorKind::invalid_argument, who, ": Computed output size would be negative: ", out,
         " [input_size: ", in + before + after, ", effective_filter_size: ", reach, ", stride: ", stride, "]");
  return {room < 0 ? 0 : out, before};
}

inline void check_padding(const char* who, const std::string& padding) {
  if (padding != "SAME" && padding != "VALID" && padding != "EXPLICIT")
    fail(ErrorKind::value, who, ": padding must be 'SAME', 'VALID' or a list; got '", padding, "'");
}

// One number per spatial dimension, and a pair of explicit paddings.
inline void check_lengths(const char* who, int rank, std::initializer_list<const Ints*> lists,
                          const std::string& padding, const Ints& pads) {
  for (const Ints* list : lists)
    if (int(list->size()) != rank)
      fail(ErrorKind::invalid_argument, who, ": ", rank, " numbers are needed, one per spatial dimension; got ",
           list->size());
  if (padding == "EXPLICIT" && int(pads.size()) != 2 * rank)
    fail(ErrorKind::invalid_argument, who, ": ", rank, " pairs of explicit paddings are needed; got ", pads.size(),
         " numbers");
}

// Runs a kernel that makes output 0 of a and b on float or double; the small float types are widened and narrowed
// again.
template <class Kernel> void in_wide_floats(Call& call, const Tensor& a, const Tensor& b, Kernel kernel) {
  Tensor& y = call.out[0];
  if (a.dtype() == DType::float64) return kernel(a.data<double>(), b.data<double>(), y.mutable_data<double>());
  FlushSubnormals flush;
  if (a.dtype() == DType::float32) return kernel(a.data<float>(), b.data<float>(), y.mutable_data<float>());
  PauseRecording paused;
  Tensor wide_a = cast(a, DType::float32), wide_b = cast(b, DType::float32),
         wide_y = Tensor::allocate(DType::float32, y.shape());
  kernel(wide_a.data<float>(), wide_b.data<float>(), wide_y.mutable_data<float>());
  y = cast(wide_y, a.dtype());
}

// ---- vmap: the first dimension of an image tensor is a batch, in which the rows can stand

inline Tensor folded(const Tensor& x) {
  Shape shape = x.shape().slice(1, x.rank());
  shape[0] *= x.dim(0);
  return reshape(x, shape);
}
inline Tensor unfolded(const Tensor& x, int64_t rows) {
  Shape shape = x.shape();
  shape[0] /= rows;
  return reshape(x, with_batch_dimension(rows, shape));
}
inline bool fold_and_run(BatchCall& c, std::initializer_list<Tensor> in, const Params& params) {
  c.run_same(in, params);
  for (Tensor& y : c.out) y = unfolded(y, c.rows);
  return true;
}
inline Params with_larger_batch(const BatchCall& c, Key<Ints> sizes) {
  Ints larger = c.params[sizes];
  larger[0] *= c.rows;
  return c.params.with(sizes, Param(larger));
}

}  // namespace tapeflow
