// Adding up the times of operations.
#include "autodiff/op_times.h"

#include <algorithm>
#include <cmath>

#include "op/op.h"

namespace tapeflow {
namespace {

double largest_element(const Tensor& t) {
  double largest = 0;
  visit<(floating).bits>(t.dtype(), [&](auto* type) {
    using T = Pointee<decltype(type)>;
    const T* x = t.data<T>();
    for (int64_t i = 0; i < t.size(); ++i) largest = std::max(largest, std::abs(double(Compute<T>(x[i]))));
  });
  return largest;
}

}  // namespace

OpTimes::~OpTimes() {
  for (const auto& [key, sum] : sums_)
    if (key.code) location_source.release(key.code);
}

void OpTimes::add(const Call& call) {
  const auto now = std::chrono::steady_clock::now();
  const Origin* origin = thread_locals.origin;
  const bool backward = origin && origin->backward;
  const Location at = here(true);
  auto [place, fresh] = sums_.try_emplace(Key{backward ? origin->op : &call.op, at.code, at.instruction, backward});
  if (!fresh && at.code) location_source.release(at.code);
  Sum& sum = place->second;
  sum.nanoseconds += std::chrono::duration_cast<std::chrono::nanoseconds>(now - last_).count();
  ++sum.calls;
  for (const Tensor& y : call.out) {
    if (y.symbolic()) continue;
    sum.bytes += int64_t(y.bytes());
    if (backward && floating.has(y.dtype())) sum.largest = std::max(sum.largest, largest_element(y));
  }
}

}  // namespace tapeflow
