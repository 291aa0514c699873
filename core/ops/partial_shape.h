// Shapes and numbers as far as they are known while tracing: what shape rules for unknown dimensions are written with.
#pragma once
#include <algorithm>
#include <optional>

#include "op/op.h"

namespace tapeflow {

// What stands for elements of an integer argument that are not known while tracing, and for an unknown number of them.
constexpr int64_t kUnknownInt = INT64_MIN;
constexpr int64_t kUnknownCount = INT64_MIN + 1;

inline bool count_known(const Param& p) { return !(p.ints.size() == 1 && p.ints[0] == kUnknownCount); }
inline bool all_known(const Param& p) {
  return std::all_of(p.ints.begin(), p.ints.end(), [](int64_t n) { return n > kUnknownCount; });
}
// The value of an integer argument, or kUnknownInt.
inline int64_t known_integer(const Param& p) {
  if (p.kind != Param::Kind::ints) return p.integer;
  return p.ints.size() == 1 && p.ints[0] > kUnknownCount ? p.ints[0] : kUnknownInt;
}
// The value of a flag: 1 or 0, or kUnknownInt.
inline int64_t known_flag(const Param& p) { return p.kind == Param::Kind::flag ? int64_t(p.flag) : known_integer(p); }

inline Shape unknown_dims(int64_t rank) {
  Shape shape;
  for (int64_t i = 0; i < rank; ++i) shape.append(-1);
  return shape;
}
// The shape that an argument gives; -1 where it is not known.
inline Shape known_shape(const Param& p) {
  if (!count_known(p) || p.ints.size() > size_t(kMaxRank)) return Shape::unknown();
  Shape shape;
  for (int64_t n : p.ints) shape.append(std::max<int64_t>(n, -1));
  return shape;
}
// What two shapes that must be equal say together; none if they contradict each other.
inline std::optional<Shape> merged(Shape a, const Shape& b) {
  if (!a.known_rank()) return b;
  if (!b.known_rank()) return a;
  if (a.rank() != b.rank()) return std::nullopt;
  for (int i = 0; i < a.rank(); ++i) {
    if (a[i] >= 0 && b[i] >= 0 && a[i] != b[i]) return std::nullopt;
    if (a[i] < 0) a[i] = b[i];
  }
  return a;
}
// Unknown too if int64 does not hold the result: the run refuses it.
inline int64_t known_sum(int64_t a, int64_t b) {
  int64_t sum;
  return a < 0 || b < 0 || __builtin_add_overflow(a, b, &sum) ? -1 : sum;
}
inline int64_t known_product(int64_t a, int64_t b) {
  int64_t product;
  if (a == 0 || b == 0) return 0;
  return a < 0 || b < 0 || __builtin_mul_overflow(a, b, &product) ? -1 : product;
}
inline int64_t known_elements_in(const Shape& shape, int from, int to) {
  int64_t n = 1;
  for (int i = from; i < to; ++i) n = known_product(n, shape[i]);
  return n;
}

// The shape rule `rule`, which wants to know everything, on what is known while tracing: dimensions, ranks and
// arguments that are not known are tried out with several numbers. What no trial changes is known.
void try_out(Call&, InferFunction rule);

inline void same_as_input(Call& call) { call.returns(call.in[0].dtype(), call.in[0].shape()); }

}  // namespace tapeflow
