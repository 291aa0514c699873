// Shapes: dimensions held inline. A dimension of -1 and a rank of -1 mean "unknown" (only while tracing).
#pragma once
#include <cstdint>
#include <initializer_list>
#include <iosfwd>
#include <span>

namespace tapeflow {

constexpr int kMaxRank = 16;

class Shape {
 public:
  Shape() : rank_(0) {}
  Shape(std::initializer_list<int64_t> dims) : Shape(dims.begin(), int(dims.size())) {}
  Shape(const int64_t* dims, int rank) : rank_(rank) {
    for (int i = 0; i < rank; ++i) dims_[i] = dims[i];
  }
  Shape(const Shape& other) { *this = other; }
  Shape& operator=(const Shape& other) {
    rank_ = other.rank_;
    for (int i = 0; i < rank_; ++i) dims_[i] = other.dims_[i];
    return *this;
  }
  static Shape unknown() {
    Shape s;
    s.rank_ = -1;
    return s;
  }

  int rank() const { return rank_; }
  bool known_rank() const { return rank_ >= 0; }
  int64_t operator[](int i) const { return dims_[i]; }
  int64_t& operator[](int i) { return dims_[i]; }
  const int64_t* data() const { return dims_; }
  const int64_t* begin() const { return dims_; }
  const int64_t* end() const { return dims_ + (rank_ > 0 ? rank_ : 0); }
  std::span<const int64_t> dims() const { return {begin(), end()}; }
  int64_t back(int i = 1) const { return dims_[rank_ - i]; }

  bool fully_known() const;
  int64_t elements() const {  // product of the dimensions
    int64_t n = 1;
    for (int i = 0; i < rank_; ++i) n *= dims_[i];
    return n;
  }
  int64_t elements(int from, int to) const {
    int64_t n = 1;
    for (int i = from; i < to; ++i) n *= dims_[i];
    return n;
  }
  void append(int64_t dim);
  void insert(int at, int64_t dim);
  void remove(int at);
  Shape slice(int from, int to) const { return Shape(dims_ + from, to - from); }

  friend bool operator==(const Shape& a, const Shape& b) {
    if (a.rank_ != b.rank_) return false;
    for (int i = 0; i < a.rank_; ++i)
      if (a.dims_[i] != b.dims_[i]) return false;
    return true;
  }

 private:
  int rank_;
  int64_t dims_[kMaxRank];
};

std::ostream& operator<<(std::ostream&, const Shape&);  // [2,3]; [?,3]; <unknown>

struct PythonShape {  // prints as Python prints a tuple: (2, 3), (3,), (None, 2)
  const Shape& shape;
};
std::ostream& operator<<(std::ostream&, PythonShape);

// The NumPy broadcasting rule; false if the shapes do not go together. Unknown dimensions stay unknown.
bool broadcast(const Shape& a, const Shape& b, Shape* result);

// Sums and products of sizes that a caller gave; throw if int64 does not hold them.
int64_t checked_sum(const char* who, int64_t a, int64_t b);
int64_t checked_product(const char* who, int64_t a, int64_t b);

// -rank..rank-1 -> 0..rank-1; throws if outside.
int normalize_axis(const char* who, int64_t axis, int rank);

}  // namespace tapeflow
