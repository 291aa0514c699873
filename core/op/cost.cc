// The work of operations, as far as shapes determine it.
#include "op/cost.h"

#include <algorithm>
#include <cmath>

namespace tapeflow::cost {
namespace {

constexpr int64_t kAnyNumber = 1 << 20;
const Shape& shape_in(const Call& call, size_t k = 0) { return call.in[k].shape(); }

}  // namespace

Work elements(const Call& call) {
  double amount = 0;
  for (const Tensor& t : call.in) amount += double(t.size());
  for (const Spec& s : call.specs) amount += double(s.shape.elements());
  return {amount, amount < (1 << 16) ? 1 : kAnyNumber};
}
Work elements_in_one_piece(const Call& call) { return {elements(call).amount, 1}; }

// Small products are one piece.
Work products(const Call& call) {
  const Shape &x = shape_in(call), &w = shape_in(call, 1), &y = call.specs[0].shape;
  const int64_t inner = x.rank() >= 2 && y.rank() >= 2 ? x.back(1) * x.back(2) / std::max<int64_t>(1, y.back(2)) : 1;
  const double amount = double(y.elements()) * double(inner) + 4 * double(x.elements() + w.elements() + y.elements());
  return {amount, amount < (1 << 21) ? 1 : kAnyNumber};
}

// Filters are taken to be about 3 by 3.
Work convolutions(const Call& call) {
  double product = double(call.specs[0].shape.elements());
  for (const Tensor& t : call.in) product *= double(std::max<int64_t>(1, t.size()));
  return {3 * std::sqrt(product), kAnyNumber};
}

// Each matrix is one piece.
Work matrices(const Call& call) {
  const Shape& x = shape_in(call);
  const int64_t batch = x.elements(0, x.rank() - 2), rows = x.back(2), columns = x.back(1);
  return {double(x.elements()) * double(std::min(rows, columns)), batch};
}

Work sorted_rows(const Call& call) {
  const Shape& x = shape_in(call);
  const int64_t length = std::max<int64_t>(1, x.back());
  return {double(x.elements()) * std::log2(double(length) + 1), x.elements() / length};
}

Work scan_along(const Call& call, int64_t axis) {
  const Shape& x = shape_in(call);
  return {double(x.elements()), x.elements(0, int(axis < 0 ? axis + x.rank() : axis))};
}

}  // namespace tapeflow::cost
