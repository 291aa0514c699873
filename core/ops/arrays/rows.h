// Rows of a tensor that positions name: the checks, copies and sums that gather and scatter share.
#pragma once
#include <algorithm>
#include <string>

#include "base/blocks.h"
#include "ops/arrays/positions.h"

namespace tapeflow {

// Positions as int64, checked against [0, limit). Negative ones are refused, as on TensorFlow's CPU.
inline Positions checked_indices(const char* who, const Tensor& indices, int64_t limit) {
  Positions result(indices);
  if (const int64_t outside = result.first_outside(0, limit); outside >= 0) {
    std::string at = place_text(indices.shape(), outside);
    fail(ErrorKind::invalid_argument, who, ": indices", at, " = ", result[outside], " is not in [0, ", limit, ")");
  }
  return result;
}

// Where elements are added up: in place, or for small floats in floats that are rounded once at the end.
template <class T> class Sums {
 public:
  explicit Sums(const Tensor& y) : y_(y) {
    if constexpr (is_small_float<T>) wide_.resize(size_t(y.size()));
  }
  ~Sums() {
    if constexpr (is_small_float<T>)
      for (size_t i = 0; i < wide_.size(); ++i) store(y_.template mutable_data<T>() + i, wide_[i]);
  }
  Sums(const Sums&) = delete;
  Compute<T>* data() {
    if constexpr (is_small_float<T>)
      return wide_.data();
    else
      return y_.template mutable_data<T>();
  }

 private:
  const Tensor& y_;
  BlockVector<float> wide_;
};

// Copies a row. Short ones go by 16 bytes, the last of which may overlap those before: a call of the library takes
// longer.
template <class T> void copy_row(const T* from, T* to, int64_t inner) {
  if constexpr (std::is_trivially_copyable_v<T>) {
    constexpr int64_t part = 16, longest = 512;
    const int64_t bytes = inner * int64_t(sizeof(T));
    if (bytes >= part && bytes <= longest) {
      const auto* source = reinterpret_cast<const unsigned char*>(from);
      auto* target = reinterpret_cast<unsigned char*>(to);
      for (int64_t at = 0; at <= bytes - part; at += part) std::memcpy(target + at, source + at, part);
      std::memcpy(target + bytes - part, source + bytes - part, part);
      return;
    }
    if (bytes < part) {
      for (int64_t k = 0; k < inner; ++k) to[k] = from[k];
      return;
    }
  }
  std::copy_n(from, inner, to);
}
// The rows of x at the given places, one after the other.
template <class T, class Place> void copy_picked(const T* x, const Place* place, int64_t count, int64_t inner, T* y) {
  if (inner == 1) {
    for (int64_t i = 0; i < count; ++i) y[i] = x[place[i]];
  } else {
    for (int64_t i = 0; i < count; ++i) copy_row(x + int64_t(place[i]) * inner, y + i * inner, inner);
  }
}
// The same; of a negative place, zeros.
template <class T, class Place> void copy_inside(const T* x, const Place* place, int64_t count, int64_t inner, T* y) {
  for (int64_t i = 0; i < count; ++i, y += inner)
    if (place[i] < 0)
      std::fill_n(y, inner, T{});
    else
      copy_row(x + int64_t(place[i]) * inner, y, inner);
}
// Adds rows to the rows of y at the given places.
template <class T, class Place>
void add_rows(const T* x, const Place* place, int64_t count, int64_t inner, Compute<T>* y) {
  if constexpr (!std::is_same_v<T, bool>)
    if (inner == 1) {
      for (int64_t i = 0; i < count; ++i) y[place[i]] = Compute<T>(y[place[i]] + load(x + i));
      return;
    }
  for (int64_t i = 0; i < count; ++i) {
    Compute<T>* row = y + int64_t(place[i]) * inner;
    for (int64_t k = 0; k < inner; ++k) {
      if constexpr (std::is_same_v<T, bool>)
        row[k] = row[k] || x[i * inner + k];
      else
        row[k] = Compute<T>(row[k] + load(x + i * inner + k));
    }
  }
}

// Indices that hold whole positions in their last dimension.
struct NdPlan {
  int64_t positions, depth, inner, batches;
  Shape result;
};
inline NdPlan plan_nd(const char* who, const Shape& x, const Shape& indices, int64_t batch_dims) {
  if (indices.rank() < 1) fail(ErrorKind::invalid_argument, who, ": indices must be at least a vector");
  NdPlan n;
  n.depth = indices.back();
  if (batch_dims < 0 || batch_dims >= indices.rank() || batch_dims > x.rank())
    fail(ErrorKind::invalid_argument, who, ": batch_dims must be in [0, ", indices.rank(), "); got ", batch_dims);
  if (n.depth + batch_dims > x.rank())
    fail(ErrorKind::invalid_argument, who, ": index innermost dimension length must be <= params rank; saw: ", n.depth,
         " vs. ", x.rank() - batch_dims);
  for (int i = 0; i < batch_dims; ++i)
    if (x[i] != indices[i])
      fail(ErrorKind::invalid_argument, who, ": batch dimensions must be equal; got ", x, " and ", indices);
  n.batches = x.elements(0, int(batch_dims));
  n.positions = indices.elements(int(batch_dims), indices.rank() - 1);
  n.inner = x.elements(int(n.depth + batch_dims), x.rank());
  n.result = indices.slice(0, indices.rank() - 1);
  for (int i = int(n.depth + batch_dims); i < x.rank(); ++i) n.result.append(x[i]);
  return n;
}

[[noreturn]] inline void fail_position(const char* who, const Shape& x, const Tensor& indices, int64_t position,
                                       int64_t depth, const char* of_what) {
  if (x.elements() == 0)
    fail(ErrorKind::invalid_argument, who, ": Indices and updates specified for empty output: Requested more than 0 ",
         "entries, but params is empty. It has shape ", x);
  Scratch<int64_t> flat = integers_in(indices);
  std::string text, place;
  for (int64_t k = 0; k < depth; ++k) text += (k ? ", " : "") + std::to_string(flat[size_t(position * depth + k)]);
  for (int d = indices.rank() - 2; d >= 0; position /= indices.dim(d), --d)
    place = std::to_string(position % indices.dim(d)) + (place.empty() ? "" : ",") + place;
  fail(ErrorKind::invalid_argument, who, ": indices[", place, "] = [", text, "] does not index into ", of_what,
       "shape ", x);
}

// Updates whose shape is not that of the slices at the indices.
[[noreturn]] inline void fail_updates(const char* who, const Shape& x, const Shape& indices, const Shape& updates) {
  const int outer = indices.rank() - 1;
  if (updates.rank() < outer || !(updates.slice(0, outer) == indices.slice(0, outer)))
    fail(ErrorKind::invalid_argument, who, ": Dimensions [0,", outer, ") of indices[shape=", indices,
         "] must match dimensions [0,", outer, ") of updates[shape=", updates,
         "]: Outer dimensions of indices and update must match");
  fail(ErrorKind::invalid_argument, who, ": Dimensions [", indices.back(), ",", x.rank(), ") of input[shape=", x,
       "] must match dimensions [", outer, ",", updates.rank(), ") of updates[shape=", updates,
       "]: Inner dimensions of output shape must match inner dimensions of updates shape");
}

// gather_nd and scatter_nd with what they do about positions outside.
Tensor gather_nd(const Tensor& x, const Tensor& indices, int64_t batch_dims, const std::string& policy);
Tensor scatter_nd(const Tensor& indices, const Tensor& updates, const Shape& shape, const std::string& policy);

// Whether positions outside of a tensor count as nothing; otherwise they are an error.
inline bool ignores_outside(const char* who, const std::string& policy) {
  if (policy != "" && policy != "DEFAULT" && policy != "ERROR" && policy != "IGNORE")
    fail(ErrorKind::invalid_argument, who, ": bad_indices_policy must be '', 'DEFAULT', 'ERROR' or 'IGNORE'; got '",
         policy, "'");
  return policy == "IGNORE";
}

// Row numbers of the positions in x seen as [batches, rows, inner]; -1 for those outside that are ignored.
inline Positions nd_rows(const char* who, const Shape& x, const Tensor& indices, const NdPlan& n, int64_t batch_dims,
                         bool ignore_outside, const char* of_what = "") {
  if (n.depth == 1 && batch_dims == 0 && !ignore_outside) {
    Positions rows(indices);
    if (const int64_t outside = rows.first_outside(0, x[0]); outside >= 0)
      fail_position(who, x, indices, outside, n.depth, of_what);
    return rows;
  }
  Scratch<int64_t> rows(n.batches * n.positions);
  int64_t per_batch = x.elements(int(batch_dims), int(batch_dims + n.depth));
  visit<integers.bits>(indices.dtype(), [&](auto* p) {
    const auto* flat = indices.data<Pointee<decltype(p)>>();
    for (int64_t b = 0, i = 0; b < n.batches; ++b)
      for (int64_t end = i + n.positions; i < end; ++i) {
        int64_t row = 0;
        bool inside = true;
        for (int64_t d = 0; d < n.depth; ++d) {
          int64_t at = int64_t(*flat++), limit = x[int(d + batch_dims)];
          if (at < 0 || at >= limit) {
            if (!ignore_outside) fail_position(who, x, indices, i, n.depth, of_what);
            inside = false;
          }
          row = row * limit + (inside ? at : 0);
        }
        rows[size_t(i)] = inside ? b * per_batch + row : -1;
      }
  });
  return Positions(std::move(rows));
}

}  // namespace tapeflow
