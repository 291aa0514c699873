// Adding up cotangents.
#include "autodiff/cotangent.h"

#include "base/parallel.h"
#include "kernels/elementwise.h"
#include "kernels/simd/vector.h"
#include "ops/ops.h"

namespace tapeflow {
namespace {

template <class T> void add_in_place(const Tensor& total, const Tensor& more) {
  T* y = total.mutable_data<T>();
  const T* x = more.data<T>();
  auto kernel = vector_kernels<T>().accumulate;
  if (total.size() <= kCheapGrain) return kernel(x, y, total.size());
  parallel_for(total.size(), kCheapGrain,
               [&](int64_t begin, int64_t end) { kernel(x + begin, y + begin, end - begin); });
}

}  // namespace

Tensor densified(const Cotangent& c, const Shape& shape) {
  if (!c.indices) return c.values;
  Tensor rows = c.indices.rank() == 1 ? c.indices : reshape(c.indices, {c.indices.size()});
  return unsorted_segment_sum(c.values, rows, shape[0]);
}

void accumulate(Cotangent& total, Cotangent more, const Shape& shape) {
  if (!total) {
    total = std::move(more);
    return;
  }
  if (total.indices && more.indices) {
    Tensor values[] = {total.values, more.values}, indices[] = {total.indices, more.indices};
    if (indices[0].dtype() != indices[1].dtype())
      for (Tensor& t : indices) t = cast(t, DType::int64);
    total = {concat(values, 0), concat(indices, 0)};
    return;
  }
  if (total.indices) total = {densified(total, shape), Tensor()};
  add_dense(total.values, densified(more, shape));
}

void add_dense(Tensor& total, const Tensor& more) {
  if (thread_state().recorders.empty() && !more.symbolic() && total.unique() && total.shape() == more.shape() &&
      total.dtype() == more.dtype()) {
    if (total.dtype() == DType::float32) return add_in_place<float>(total, more);
    if (total.dtype() == DType::float64) return add_in_place<double>(total, more);
  }
  total = add(total, more);
}

}  // namespace tapeflow
