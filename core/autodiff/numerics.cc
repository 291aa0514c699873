// Counts elements that are not finite, and looks for them in every result.
#include "autodiff/numerics.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <string_view>

#include "kernels/simd/vector.h"

namespace tapeflow {
namespace {

template <class Bits> bool all_finite(const void* data, int64_t n, Bits exponent) {
  const char* at = static_cast<const char*>(data);
  bool finite = true;
  for (int64_t i = 0; i < n; ++i) {
    Bits bits;
    std::memcpy(&bits, at + i * int64_t(sizeof(Bits)), sizeof(Bits));
    finite &= (bits & exponent) != exponent;
  }
  return finite;
}

// A finite sum has finite terms alone. A sum that is not finite may have overflowed.
template <class T> bool has_finite_sum(const Tensor& t) {
  return std::isfinite(vector_kernels<T>().sum(t.data<T>(), t.size()));
}

bool all_finite(const Tensor& t) {
  switch (t.dtype()) {
    case DType::float32: return has_finite_sum<float>(t) || all_finite<uint32_t>(t.raw(), t.size(), 0x7f800000u);
    case DType::float64:
      return has_finite_sum<double>(t) || all_finite<uint64_t>(t.raw(), t.size(), 0x7ff0000000000000u);
    case DType::bfloat16: return all_finite<uint16_t>(t.raw(), t.size(), 0x7f80u);
    case DType::float16: return all_finite<uint16_t>(t.raw(), t.size(), 0x7c00u);
    default: return true;
  }
}

}  // namespace

NonFinite count_non_finite(const Tensor& t) {
  NonFinite count;
  if (!floating.has(t.dtype()) || t.symbolic() || all_finite(t)) return count;
  visit<floating.bits>(t.dtype(), [&](auto* type) {
    using T = Pointee<decltype(type)>;
    const T* x = t.data<T>();
    for (int64_t i = 0; i < t.size(); ++i) {
      auto value = Compute<T>(x[i]);
      if (std::isnan(value))
        ++count.nans;
      else if (std::isinf(value))
        ++(value < 0 ? count.negative_infinities : count.positive_infinities);
    }
  });
  return count;
}

NumericsCheck* NumericsCheck::current() { return thread_locals.numerics; }

void NumericsCheck::attach_again() {
  if (!thread_locals.numerics) return;
  auto& recorders = thread_state().recorders;
  for (const Recorder* r : recorders)
    if (r == thread_locals.numerics) return;
  recorders.push_back(thread_locals.numerics);
  for (size_t i = recorders.size() - 1; i > 0; --i) std::swap(recorders[i], recorders[i - 1]);
}

void NumericsCheck::start() {
  if (attached_) return;
  outer_ = thread_locals.numerics;
  if (outer_) stop_recorder(outer_);
  thread_locals.numerics = this;
  attached_ = true;
  thread_ = std::this_thread::get_id();
  attach_again();
}

bool NumericsCheck::stop() {
  if (!attached_) return true;
  if (thread_ != std::this_thread::get_id()) {
    found_ = nullptr;
    return false;
  }
  stop_recorder(this);
  attached_ = false;
  if (thread_locals.numerics == this) {
    thread_locals.numerics = outer_;
    attach_again();
    return true;
  }
  for (NumericsCheck* inner = thread_locals.numerics; inner;
       inner = inner->outer_)  // it ends before one that began later
    if (inner->outer_ == this) inner->outer_ = outer_;
  return true;
}

void NumericsCheck::measure(bool on) {
  measuring_ = on;
  if (on && !times_) times_ = std::make_unique<OpTimes>();
  if (on) times_->mark();
}

void NumericsCheck::record(const Call& call) {
  if (measuring_) times_->add(call);
  if (found_) check(call);
  if (measuring_) times_->mark();
}

void NumericsCheck::check(const Call& call) {
  // Where a relu is closed its gradient is 0, whatever comes in; TensorFlow multiplies by 0 and gets NaN.
  bool gates = seen_ && also_handed_on_ && call.op.planning.arithmetic == Arithmetic::relu_grad;
  for (size_t i = 0; i < call.out.size(); ++i) {
    const Tensor& y = call.out[i];
    NonFinite count = count_non_finite(y);
    bool gated = gates && !count.any() && count_non_finite(call.in[0]).any();
    if (!gated && (!count.any() || (call.op.copies_elements && !also_handed_on_))) continue;
    seen_ = true;
    const Origin* origin = thread_locals.origin;
    Finding finding{&call.op,
                    origin && origin->backward ? origin->op : nullptr,
                    origin && !origin->backward,
                    i,
                    call.out.size(),
                    {y.dtype(), y.shape()},
                    count,
                    {},
                    here(true),
                    call.in,
                    y};
    struct Release {
      void* code;
      ~Release() {
        if (code) location_source.release(code);
      }
    } release{finding.location.code};
    for (const Tensor& x : call.in) finding.inputs.push_back({{x.dtype(), x.shape()}, count_non_finite(x)});
    PauseRecording unrecorded;
    found_(finding);
  }
}

}  // namespace tapeflow
