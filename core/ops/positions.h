// The elements of an integer tensor as int64: where they lie, if they are int64 already, or converted, in memory of the thread.
#pragma once
#include <algorithm>

#include "base/scratch.h"
#include "ops/family.h"

namespace tapeflow {

class Positions {
 public:
  explicit Positions(const Tensor& t) : held_(t), converted_(t.dtype() == DType::int64 ? 0 : t.size()), size_(t.size()) {
    if (t.dtype() == DType::int64) {
      data_ = held_.data<int64_t>();
      return;
    }
    visit<integers.bits>(t.dtype(), [&](auto* p) { std::copy_n(t.data<Pointee<decltype(p)>>(), size_, converted_.data()); });
    data_ = converted_.data();
  }
  explicit Positions(Scratch<int64_t>&& made) : converted_(std::move(made)), data_(converted_.data()), size_(int64_t(converted_.size())) {}

  const int64_t* data() const { return data_; }
  int64_t size() const { return size_; }
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
  Scratch<int64_t> converted_;
  const int64_t* data_;
  int64_t size_;
};

}  // namespace tapeflow
