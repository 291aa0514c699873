// Copies of elements as plain bits: rows that are a step apart, transposed blocks, any strides.
#pragma once
#include <algorithm>
#include <cstring>
#include <type_traits>
#include <utility>

#include "base/parallel.h"
#include "kernels/copy.h"
#include "ops/arrays/elements.h"

namespace tapeflow {

template <class T> T* offset(T* p, int64_t elements, size_t size) {
  using Byte = std::conditional_t<std::is_const_v<T>, const char, char>;
  return static_cast<Byte*>(p) + size_t(elements) * size;
}

// to[i] = from[i * step]. Of every second word, four at a time change places in registers.
template <class T> void copy_steps(const T* from, int64_t step, T* to, int64_t n) {
  int64_t i = 0;
  if constexpr (std::is_same_v<T, uint32_t>) {
    typedef uint32_t Four __attribute__((vector_size(16)));
    for (; step == 2 && i + 4 < n; i += 4) {  // not to the end: the words behind the last one are not read
      Four words[2];
      std::memcpy(words, from + 2 * i, sizeof words);
      const Four even = __builtin_shufflevector(words[0], words[1], 0, 2, 4, 6);
      std::memcpy(to + i, &even, sizeof even);
    }
  }
#pragma GCC unroll 8
  for (; i < n; ++i) to[i] = from[i * step];
}

// Copies `rows` runs of `length` elements, whose starts are from_step and to_step elements apart.
template <class T>
void copy_lines(const T* from, int64_t from_step, T* to, int64_t to_step, int64_t length, int64_t rows) {
  if constexpr (std::is_trivially_copyable_v<T>) {
    constexpr int64_t size = sizeof(T);
    copy_runs(from, from_step * size, to, to_step * size, length * size, rows);
  } else {
    for (int64_t r = 0; r < rows; ++r) std::copy(from + r * from_step, from + r * from_step + length, to + r * to_step);
  }
}

// The same for any dtype, on several threads.
inline void copy_rows(DType d, const void* x, int64_t from_step, void* y, int64_t to_step, int64_t length,
                      int64_t rows) {
  if (length == 0) return;
  by_size(d, [&]<class T>(T*) {
    const T* from = static_cast<const T*>(x);
    T* to = static_cast<T*>(y);
    if (length >= 2 * kCopyGrain && rows < thread_count()) {
      for (int64_t r = 0; r < rows; ++r)
        parallel_for(length, kCopyGrain, [&](int64_t begin, int64_t end) {
          std::copy(from + r * from_step + begin, from + r * from_step + end, to + r * to_step + begin);
        });
      return;
    }
    parallel_for(rows, std::max<int64_t>(1, kCopyGrain / length), [&](int64_t begin, int64_t end) {
      if (length == 1 && to_step == 1) {
        copy_steps(from + begin * from_step, from_step, to + begin, end - begin);
      } else if (length == 1) {
        for (int64_t r = begin; r < end; ++r) to[r * to_step] = from[r * from_step];
      } else {
        copy_lines(from + begin * from_step, from_step, to + begin * to_step, to_step, length, end - begin);
      }
    });
  });
}

// Writes `value` n times. The library writes long runs with the widest registers that the machine has: of equal bytes,
// as zeros are, or as copies of what is written already, at most of the first page.
template <class T> void fill_elements(T* to, int64_t n, const T& value) {
  constexpr int64_t page = 4096 / int64_t(sizeof(T)), line = 256 / int64_t(sizeof(T));
  if constexpr (std::is_trivially_copyable_v<T>) {
    unsigned char bytes[sizeof(T)];
    std::memcpy(bytes, &value, sizeof value);
    if (n >= 4 * page && std::all_of(bytes, bytes + sizeof value, [&](auto byte) { return byte == bytes[0]; })) {
      std::memset(static_cast<void*>(to), bytes[0], size_t(n) * sizeof(T));
      return;
    }
    if (n >= 2 * line) {
      std::fill_n(to, line, value);
      for (int64_t at = line, part; at < n; at += part) {
        part = std::min({at, page, n - at});
        std::memcpy(static_cast<void*>(to + at), to, size_t(part) * sizeof(T));
      }
      return;
    }
  }
  std::fill_n(to, n, value);
}

// to[i] = from[-i]. Sixteen bytes change places in a register.
template <class T> void copy_backwards(const T* from, T* to, int64_t n) {
  int64_t i = 0;
  if constexpr (std::is_trivially_copyable_v<T> && sizeof(T) <= 8) {
    constexpr int64_t width = 16 / int64_t(sizeof(T));
    using Word = std::conditional_t<
        sizeof(T) == 8, uint64_t,
        std::conditional_t<sizeof(T) == 4, uint32_t, std::conditional_t<sizeof(T) == 2, uint16_t, uint8_t>>>;
    typedef Word Words __attribute__((vector_size(16)));
    const auto turned = [&]<int... I>(Words x, std::integer_sequence<int, I...>) {
      return __builtin_shufflevector(x, x, (int(width) - 1 - I)...);
    };
    for (; i + width <= n; i += width) {
      Words words;
      std::memcpy(&words, from - i - (width - 1), sizeof words);
      words = turned(words, std::make_integer_sequence<int, int(width)>());
      std::memcpy(static_cast<void*>(to + i), &words, sizeof words);
    }
  }
  for (; i < n; ++i) to[i] = from[-i];
}

// One line of y: x repeats, runs along, runs backwards or jumps.
template <class T> void copy_line(const T* from, int64_t step, T* to, int64_t n) {
  if (step == 1)
    std::copy(from, from + n, to);
  else if (step == 0)
    fill_elements(to, n, *from);
  else if (step == -1)
    copy_backwards(from, to, n);
  else
    copy_steps(from, step, to, n);
}

// A transposed block: to[r * to_step + c] = from[r + c * from_step]. Four by four words change places in registers.
template <class T>
void transpose_block(const T* from, int64_t from_step, T* to, int64_t to_step, int64_t rows, int64_t columns) {
  int64_t r = 0;
  if constexpr (std::is_same_v<T, uint32_t>) {
    typedef uint32_t Four __attribute__((vector_size(16)));
    for (; r + 4 <= rows; r += 4) {
      int64_t c = 0;
      for (; c + 4 <= columns; c += 4) {
        Four in[4];
        for (int k = 0; k < 4; ++k) std::memcpy(&in[k], from + r + (c + k) * from_step, sizeof(Four));
        Four a = __builtin_shufflevector(in[0], in[1], 0, 4, 1, 5),
             b = __builtin_shufflevector(in[2], in[3], 0, 4, 1, 5);
        Four d = __builtin_shufflevector(in[0], in[1], 2, 6, 3, 7),
             e = __builtin_shufflevector(in[2], in[3], 2, 6, 3, 7);
        Four out[4] = {__builtin_shufflevector(a, b, 0, 1, 4, 5), __builtin_shufflevector(a, b, 2, 3, 6, 7),
                       __builtin_shufflevector(d, e, 0, 1, 4, 5), __builtin_shufflevector(d, e, 2, 3, 6, 7)};
        for (int k = 0; k < 4; ++k) std::memcpy(to + (r + k) * to_step + c, &out[k], sizeof(Four));
      }
      for (int k = 0; k < 4; ++k)
        for (int64_t rest = c; rest < columns; ++rest) to[(r + k) * to_step + rest] = from[r + k + rest * from_step];
    }
  }
  if constexpr (std::is_same_v<T, uint64_t>) {
    typedef uint64_t Two __attribute__((vector_size(16)));
    for (; r + 4 <= rows; r += 4) {
      int64_t c = 0;
      for (; c + 2 <= columns; c += 2)
        for (int k = 0; k < 4; k += 2) {
          Two a, b;
          std::memcpy(&a, from + r + k + c * from_step, sizeof a);
          std::memcpy(&b, from + r + k + (c + 1) * from_step, sizeof b);
          const Two first = __builtin_shufflevector(a, b, 0, 2), second = __builtin_shufflevector(a, b, 1, 3);
          std::memcpy(to + (r + k) * to_step + c, &first, sizeof first);
          std::memcpy(to + (r + k + 1) * to_step + c, &second, sizeof second);
        }
      for (int k = 0; k < 4 && c < columns; ++k) to[(r + k) * to_step + c] = from[r + k + c * from_step];
    }
  }
  for (; r < rows; ++r)
    for (int64_t c = 0; c < columns; ++c) to[r * to_step + c] = from[r + c * from_step];
}

// Neighbouring dimensions through which x runs evenly count as one.
struct StridedView {
  Shape shape;
  int64_t stride[kMaxRank];
};
inline StridedView merged_view(const Shape& shape, const int64_t* strides) {
  StridedView view;
  for (int d = 0; d < shape.rank(); ++d) {
    const int last = view.shape.rank() - 1;
    if (shape[d] == 1) continue;
    if (last >= 0 && view.stride[last] == strides[d] * shape[d]) {
      view.shape[last] *= shape[d];
      view.stride[last] = strides[d];
    } else {
      view.stride[last + 1] = strides[d];
      view.shape.append(shape[d]);
    }
  }
  return view;
}

// Writes each of `rows` elements, `step` apart, `times` times.
template <int times, class T> void repeat_each(const T* from, int64_t step, T* to, int64_t to_step, int64_t rows) {
  if (step == 1 && to_step == times) {  // of which the compiler can make vectors
    for (int64_t r = 0; r < rows; ++r)
#pragma GCC unroll 8
      for (int k = 0; k < times; ++k) to[r * times + k] = from[r];
    return;
  }
  for (int64_t r = 0; r < rows; ++r, to += to_step) {
    const T value = from[r * step];
#pragma GCC unroll 8
    for (int k = 0; k < times; ++k) to[k] = value;
  }
}
template <class T> void repeat_each(const T* from, int64_t step, T* to, int64_t to_step, int64_t rows, int64_t times) {
  switch (times) {
    case 2: return repeat_each<2>(from, step, to, to_step, rows);
    case 3: return repeat_each<3>(from, step, to, to_step, rows);
    case 4: return repeat_each<4>(from, step, to, to_step, rows);
    case 5: return repeat_each<5>(from, step, to, to_step, rows);
    case 6: return repeat_each<6>(from, step, to, to_step, rows);
    case 7: return repeat_each<7>(from, step, to, to_step, rows);
    case 8: return repeat_each<8>(from, step, to, to_step, rows);
  }
  for (int64_t r = 0; r < rows; ++r) fill_elements(to + r * to_step, times, from[r * step]);
}

// Copies y[i0, i1, ...] = x[strides . i]. The last dimension is done together with another one: with that along which x
// runs, in square blocks, so that both sides touch whole cache lines; otherwise with the one before it, or with the
// longest one if that is short.
template <class T> class StridedGather {
 public:
  StridedGather(const T* x, T* y, const StridedView& view) : x_(x), y_(y), view_(view) {
    const int rank = view.shape.rank();
    columns_ = view.shape[rank - 1], column_step_ = view.stride[rank - 1];
    other_ = rank - 2;
    int along = -1;
    for (int d = 0; d + 1 < rank; ++d) {
      if (view.stride[d] == 1 && column_step_ != 1) along = d;
      if (view.shape[rank - 2] < kBlock && view.shape[d] > view.shape[other_]) other_ = d;
    }
    if (along >= 0) other_ = along;
    block_ = along >= 0 ? kBlock : std::max(kBlock, kCopyGrain / columns_);
    y_stride_[rank - 1] = 1;
    for (int d = rank - 2; d >= 0; --d) y_stride_[d] = y_stride_[d + 1] * view.shape[d + 1];
    if (other_ >= 0) rows_ = view.shape[other_], row_step_ = view.stride[other_], to_step_ = y_stride_[other_];
    blocks_ = (rows_ + block_ - 1) / block_;
  }

  void run() const {
    const int64_t planes = view_.shape.elements() / (rows_ * columns_), work = std::min(rows_, block_) * columns_;
    parallel_for(planes * blocks_, std::max<int64_t>(1, kCopyGrain / std::max<int64_t>(1, work)),
                 [&](int64_t begin, int64_t end) {
                   for (int64_t at = begin; at < end; ++at) copy_block(at / blocks_, at % blocks_ * block_);
                 });
  }

 private:
  static constexpr int64_t kBlock = 16;

  void copy_block(int64_t plane, int64_t first_row) const {
    const int64_t height = std::min(block_, rows_ - first_row);
    const T* from = x_ + first_row * row_step_;
    T* to = y_ + first_row * to_step_;
    for (int d = view_.shape.rank() - 2; d >= 0; --d) {
      if (d == other_) continue;
      from += plane % view_.shape[d] * view_.stride[d];
      to += plane % view_.shape[d] * y_stride_[d];
      plane /= view_.shape[d];
    }
    if (column_step_ == 0) {
      repeat_each(from, row_step_, to, to_step_, height, columns_);
    } else if (row_step_ == 1 && column_step_ != 1) {
      for (int64_t r = 0; r < height; r += kBlock)
        for (int64_t c = 0; c < columns_; c += kBlock)
          transpose_block(from + r + c * column_step_, column_step_, to + r * to_step_ + c, to_step_,
                          std::min(kBlock, height - r), std::min(kBlock, columns_ - c));
    } else if (column_step_ == 1) {
      copy_lines(from, row_step_, to, to_step_, columns_, height);
    } else {
      for (int64_t r = 0; r < height; ++r) copy_line(from + r * row_step_, column_step_, to + r * to_step_, columns_);
    }
  }

  const T* x_;
  T* y_;
  const StridedView& view_;
  int64_t columns_, column_step_, rows_ = 1, row_step_ = 0, to_step_ = 0, block_, blocks_;
  int64_t y_stride_[kMaxRank];
  int other_;  // the dimension of the rows; -1 if there is but one
};
template <class T> void gather_strided(const T* x, T* y, const Shape& shape, const int64_t* strides) {
  const StridedView view = merged_view(shape, strides);
  if (view.shape.rank() == 0) {
    *y = *x;
    return;
  }
  StridedGather<T>(x, y, view).run();
}

inline void strides_of(const Shape& shape, int64_t* stride) {
  int64_t step = 1;
  for (int i = shape.rank() - 1; i >= 0; --i) {
    stride[i] = step;
    step *= shape[i];
  }
}

}  // namespace tapeflow
