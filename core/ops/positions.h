// The elements of an integer tensor as int64: where they lie, if they are int64 already, or converted, in cached memory.
#pragma once
#include <algorithm>

#include "ops/family.h"

namespace tapeflow {

class Positions {
 public:
  explicit Positions(const Tensor& integers_tensor) : held_(integers_tensor) {
    if (held_.dtype() == DType::int64) {
      data_ = held_.data<int64_t>();
      return;
    }
    Tensor wide = Tensor::allocate(DType::int64, {held_.size()});
    int64_t* to = wide.mutable_data<int64_t>();
    visit<integers.bits>(held_.dtype(), [&](auto* p) {
      const auto* from = held_.data<Pointee<decltype(p)>>();
      for (int64_t i = 0; i < held_.size(); ++i) to[i] = int64_t(from[i]);
    });
    held_ = std::move(wide);
    data_ = to;
  }

  const int64_t* data() const { return data_; }
  int64_t size() const { return held_.size(); }
  int64_t operator[](int64_t i) const { return data_[i]; }

  // The first one that is not in [low, limit); -1 if all are.
  int64_t first_outside(int64_t low, int64_t limit) const {
    constexpr int64_t kBlock = 1024;
    const uint64_t range = uint64_t(limit) - uint64_t(low);
    for (int64_t begin = 0; begin < size(); begin += kBlock) {
      const int64_t end = std::min(size(), begin + kBlock);
      bool outside = false;
      for (int64_t i = begin; i < end; ++i) outside |= uint64_t(data_[i]) - uint64_t(low) >= range;
      for (int64_t i = begin; outside && i < end; ++i)
        if (data_[i] < low || data_[i] >= limit) return i;
    }
    return -1;
  }

 private:
  Tensor held_;
  const int64_t* data_;
};

}  // namespace tapeflow
