// Adding up the times of operations.
#include "autodiff/op_times.h"

#include "op/op.h"

namespace tapeflow {

OpTimes::~OpTimes() {
  for (const auto& [key, sum] : sums_)
    if (key.code) location_source.release(key.code);
}

void OpTimes::add(const Call& call) {
  const auto now = std::chrono::steady_clock::now();
  const Origin* origin = current_origin;
  const bool backward = origin && origin->backward;
  const Location at = here(true);
  auto [place, fresh] = sums_.try_emplace(Key{backward ? origin->op : &call.op, at.code, at.instruction, backward});
  if (!fresh && at.code) location_source.release(at.code);
  Sum& sum = place->second;
  sum.nanoseconds += std::chrono::duration_cast<std::chrono::nanoseconds>(now - last_).count();
  ++sum.calls;
  for (const Tensor& y : call.out)
    if (!y.symbolic()) sum.bytes += int64_t(y.bytes());
}

}  // namespace tapeflow
