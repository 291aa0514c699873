// Tensors made from numbers, and numbers read from tensors.
#include <algorithm>
#include <cstring>

#include "base/parallel.h"
#include "ops/ops.h"

namespace tapeflow {

// Elements can only be made of a shape that is known.
static void require_known(const Shape& shape) {
  if (!shape.fully_known())
    fail(ErrorKind::needs_value, "a tensor of shape ", shape, " cannot be made while tracing: its shape is unknown");
}
Tensor zeros(DType dtype, const Shape& shape) {
  require_known(shape);
  Tensor t = Tensor::allocate(dtype, shape);
  if (dtype == DType::string) return t;
  constexpr int64_t kGrain = 1 << 18;  // bytes
  char* bytes = static_cast<char*>(t.mutable_raw());
  parallel_for(int64_t(t.bytes()), kGrain,
               [&](int64_t begin, int64_t end) { std::memset(bytes + begin, 0, size_t(end - begin)); });
  return t;
}
Tensor filled(DType dtype, const Shape& shape, double value) {
  Tensor one = Tensor::number(dtype, value);
  if (shape.rank() == 0) return one;
  require_known(shape);
  PauseRecording paused;
  return broadcast_to(one, shape);
}
Tensor filled_like(const Tensor& x, double value) {
  if (x.size() >= 0) return filled(x.dtype(), x.shape(), value);
  PauseRecording paused;
  return broadcast_to(Tensor::number(x.dtype(), value), shape_tensor(x, DType::int64));
}
Tensor int_tensor(std::span<const int64_t> values, DType dtype) {
  Tensor t = Tensor::allocate(dtype, {int64_t(values.size())});
  for (size_t i = 0; i < values.size(); ++i) {
    if (dtype == DType::int32)
      t.mutable_data<int32_t>()[i] = int32_t(values[i]);
    else
      t.mutable_data<int64_t>()[i] = values[i];
  }
  return t;
}
Scratch<int64_t> integers_in(const Tensor& t) {
  Scratch<int64_t> result(t.size());
  visit<integers.bits>(t.dtype(), [&](auto* p) {
    const auto* from = t.data<Pointee<decltype(p)>>();
    std::transform(from, from + t.size(), result.begin(), [](auto i) { return int64_t(i); });
  });
  return result;
}
Ints read_ints(const Tensor& t) {
  Ints result;
  for (int64_t i : integers_in(t)) result.push_back(i);
  return result;
}

}  // namespace tapeflow
