// Shape arithmetic and printing.
#include "base/shape.h"

#include <algorithm>
#include <ostream>

#include "base/error.h"

namespace tapeflow {

bool Shape::fully_known() const {
  return rank_ >= 0 && std::all_of(begin(), end(), [](int64_t d) { return d >= 0; });
}

void Shape::append(int64_t dim) { insert(rank_, dim); }

void Shape::insert(int at, int64_t dim) {
  if (rank_ == kMaxRank) fail(ErrorKind::unimplemented, "tensors have at most ", kMaxRank, " dimensions");
  for (int i = rank_; i > at; --i) dims_[i] = dims_[i - 1];
  dims_[at] = dim;
  ++rank_;
}

void Shape::remove(int at) {
  for (int i = at; i + 1 < rank_; ++i) dims_[i] = dims_[i + 1];
  --rank_;
}

std::ostream& operator<<(std::ostream& out, const Shape& shape) {
  if (!shape.known_rank()) return out << "<unknown>";
  out << '[';
  for (int i = 0; i < shape.rank(); ++i) {
    if (i) out << ',';
    if (shape[i] < 0)
      out << '?';
    else
      out << shape[i];
  }
  return out << ']';
}

std::ostream& operator<<(std::ostream& out, PythonShape p) {
  if (!p.shape.known_rank()) return out << "<unknown>";
  out << '(';
  for (int i = 0; i < p.shape.rank(); ++i) {
    if (i) out << ", ";
    if (p.shape[i] < 0)
      out << "None";
    else
      out << p.shape[i];
  }
  return out << (p.shape.rank() == 1 ? ",)" : ")");
}

int64_t checked_sum(const char* who, int64_t a, int64_t b) {
  int64_t sum;
  if (__builtin_add_overflow(a, b, &sum))
    fail(ErrorKind::invalid_argument, who, ": sizes must be less than 2**63; got ", a, " + ", b);
  return sum;
}

int64_t checked_product(const char* who, int64_t a, int64_t b) {
  int64_t product;
  if (__builtin_mul_overflow(a, b, &product))
    fail(ErrorKind::invalid_argument, who, ": sizes must be less than 2**63; got ", a, " * ", b);
  return product;
}

bool broadcast(const Shape& a, const Shape& b, Shape* result) {
  if (!a.known_rank() || !b.known_rank()) {
    *result = Shape::unknown();
    return true;
  }
  const Shape& longer = a.rank() >= b.rank() ? a : b;
  const Shape& shorter = a.rank() >= b.rank() ? b : a;
  *result = longer;
  int offset = longer.rank() - shorter.rank();
  for (int i = 0; i < shorter.rank(); ++i) {
    int64_t x = longer[i + offset], y = shorter[i];
    int64_t& z = (*result)[i + offset];
    if (x == y || y == 1) continue;
    if (x == 1)
      z = y;
    else if (x < 0 || y < 0)
      z = std::max(x, y);  // an unknown dimension next to a known one above 1 must be that one
    else
      return false;
  }
  return true;
}

int normalize_axis(const char* who, int64_t axis, int rank) {
  if (axis < -rank || axis >= rank)
    fail(ErrorKind::invalid_argument, who, ": axis ", axis, " is out of the range: axis must be in the range [", -rank,
         ", ", rank, "); got ", axis);
  return int(axis < 0 ? axis + rank : axis);
}

}  // namespace tapeflow
