// The elements of an integer tensor as numbers: int32 and int64 where they lie, others converted, in memory of the
// thread.
#pragma once
#include <algorithm>
#include <limits>

#include "base/scratch.h"
#include "ops/family.h"

namespace tapeflow {

// Where the element `flat` of a tensor is, as messages write it: "[1,2]", or nothing in a scalar.
inline std::string place_text(const Shape& shape, int64_t flat) {
  std::string text;
  for (int d = shape.rank() - 1; d >= 0; flat /= shape[d], --d)
    text = std::to_string(flat % shape[d]) + (text.empty() ? "" : ",") + text;
  return shape.rank() ? "[" + text + "]" : "";
}

class Positions {
 public:
  explicit Positions(const Tensor& t)
      : held_(t), converted_(t.dtype() == DType::int32 || t.dtype() == DType::int64 ? 0 : t.size()), size_(t.size()) {
    if (t.dtype() == DType::int32) {
      narrow_ = held_.data<int32_t>();
    } else if (t.dtype() == DType::int64) {
      wide_ = held_.data<int64_t>();
    } else {
      visit<integers.bits>(t.dtype(),
                           [&](auto* p) { std::copy_n(t.data<Pointee<decltype(p)>>(), size_, converted_.data()); });
      wide_ = converted_.data();
    }
  }
  explicit Positions(Scratch<int64_t>&& made)
      : converted_(std::move(made)), size_(int64_t(converted_.size())), wide_(converted_.data()) {}

  int64_t size() const { return size_; }
  int64_t operator[](int64_t i) const { return narrow_ ? narrow_[i] : wide_[i]; }
  // Calls f with the numbers, from `first` on.
  template <class F> void with_numbers(int64_t first, F f) const {
    if (narrow_)
      f(narrow_ + first);
    else
      f(wide_ + first);
  }

  // The first one that is not in [low, limit); -1 if all are.
  int64_t first_outside(int64_t low, int64_t limit) const {
    constexpr int64_t kBlock = 1024;
    if (low == 0 && limit > 0 && none_outside(limit)) return -1;
    for (int64_t begin = 0; begin < size_; begin += kBlock) {
      const int64_t end = std::min(size_, begin + kBlock);
      int64_t least = 0, most = 0;
      with_numbers(0, [&](const auto* numbers) {
        auto [a, b] = std::pair(numbers[begin], numbers[begin]);
        for (int64_t i = begin; i < end; ++i) a = std::min(a, numbers[i]), b = std::max(b, numbers[i]);
        least = a, most = b;
      });
      for (int64_t i = begin; (least < low || most >= limit) && i < end; ++i)
        if ((*this)[i] < low || (*this)[i] >= limit) return i;
    }
    return -1;
  }

 private:
  // Whether all are in [0, limit): no sign bit in a number, nor in its distance from the last one.
  bool none_outside(int64_t limit) const {
    bool none = false;
    with_numbers(0, [&](const auto* numbers) {
      using Number = std::remove_cvref_t<decltype(*numbers)>;
      if (limit - 1 > std::numeric_limits<Number>::max()) return;
      const Number last = Number(limit - 1);
      Number signs = 0;
      for (int64_t i = 0; i < size_; ++i) signs |= numbers[i] | Number(last - numbers[i]);
      none = signs >= 0;
    });
    return none;
  }

  Tensor held_;
  Scratch<int64_t> converted_;
  int64_t size_;
  const int32_t* narrow_ = nullptr;
  const int64_t* wide_ = nullptr;
};

}  // namespace tapeflow
