// Pooling: walks the windows of each image, in runs for the loops of pool_kernel.cc. What needs the places of maxima
// goes window by window, 16 bytes of channels at a time (a register of every machine we know).
#include "kernels/nn/pool.h"

#include <algorithm>
#include <cstring>
#include <type_traits>

#include "base/instruction_set.h"
#include "base/parallel.h"
#include "base/small_vector.h"
#include "kernels/nn/window_geometry.h"

namespace tapeflow {
namespace {

PoolGeometry in_three_dimensions(const PoolGeometry& geometry) {
  return in_three_dimensions(geometry, &PoolGeometry::window);
}

int64_t in_size(const PoolGeometry& g) { return g.in[0] * g.in[1] * g.in[2] * g.channels; }
int64_t out_size(const PoolGeometry& g) { return g.out[0] * g.out[1] * g.out[2] * g.channels; }
int64_t out_rows(const PoolGeometry& g) { return g.out[0] * g.out[1]; }

template <class T> PoolKernels<T> kernels() { return TAPEFLOW_OF_THIS_MACHINE(pool_kernels<T>()); }

// One window of an image: the element positions of its cells inside the input, at channel 0, in scan order. They are
// origin + offset[0..count); `output` is the position of the result.
struct Window {
  int64_t origin, output;
  const int64_t* offset;
  int64_t count;
};

// Calls body(window, windows) for the windows of output rows [begin, end), counted over the first two dimensions: so
// many neighbours lie alike, which are those without an edge.
template <class Body> void for_each_run(const PoolGeometry& g, int64_t begin, int64_t end, Body&& body) {
  SmallVector<int64_t, 64> shared, own;
  auto position = [&](int64_t i, int64_t j, int64_t k) { return ((i * g.in[1] + j) * g.in[2] + k) * g.channels; };
  for (int64_t i = 0; i < g.window[0]; ++i)
    for (int64_t j = 0; j < g.window[1]; ++j)
      for (int64_t k = 0; k < g.window[2]; ++k)
        shared.push_back(position(i * g.dilation[0], j * g.dilation[1], k * g.dilation[2]));
  auto first = [&](int d, int64_t at) { return at * g.stride[d] - g.pad_before[d]; };
  auto inside = [&](int d, int64_t from) { return from >= 0 && from + (g.window[d] - 1) * g.dilation[d] < g.in[d]; };
  auto exists = [&](int d, int64_t cell) { return cell >= 0 && cell < g.in[d]; };

  for (int64_t row = begin; row < end; ++row) {
    const int64_t i0 = first(0, row / g.out[1]), j0 = first(1, row % g.out[1]);
    const bool row_inside = inside(0, i0) && inside(1, j0);
    int64_t windows = 1;
    for (int64_t at = 0; at < g.out[2]; at += windows) {
      const int64_t k0 = first(2, at), output = (row * g.out[2] + at) * g.channels;
      windows = 1;
      if (row_inside && inside(2, k0)) {
        while (at + windows < g.out[2] && inside(2, first(2, at + windows))) ++windows;
        body(Window{position(i0, j0, k0), output, shared.data(), static_cast<int64_t>(shared.size())}, windows);
        continue;
      }
      own.clear();
      for (int64_t i = 0; i < g.window[0]; ++i)
        for (int64_t j = 0; j < g.window[1]; ++j)
          for (int64_t k = 0; k < g.window[2]; ++k) {
            const int64_t a = i0 + i * g.dilation[0], b = j0 + j * g.dilation[1], c = k0 + k * g.dilation[2];
            if (exists(0, a) && exists(1, b) && exists(2, c)) own.push_back(position(a, b, c));
          }
      body(Window{0, output, own.data(), static_cast<int64_t>(own.size())}, windows);
    }
  }
}

template <class Body> void for_each_window(const PoolGeometry& g, int64_t begin, int64_t end, Body&& body) {
  for_each_run(g, begin, end, [&](Window window, int64_t windows) {
    for (; windows > 0; --windows) {
      body(window);
      window.origin += g.stride[2] * g.channels;
      window.output += g.channels;
    }
  });
}

PoolRun run_of(const PoolGeometry& g, const Window& window, int64_t windows, int64_t channels) {
  return {window.offset, window.count, windows, g.stride[2] * g.channels, g.channels, channels};
}

// Some neighbouring channels: a vector, or one number for those left over. Comparisons give Flags of the same width.
template <class T> struct VectorOf {
  typedef T type __attribute__((vector_size(16)));
};
template <class T> using Vector = typename VectorOf<T>::type;
template <class T> constexpr int64_t lanes = 16 / static_cast<int64_t>(sizeof(T));

template <class T, class Pack> [[gnu::always_inline]] inline Pack load(const T* p) {
  Pack pack;
  std::memcpy(&pack, p, sizeof pack);
  return pack;
}

template <class T, class Pack> [[gnu::always_inline]] inline void store(T* p, Pack pack) {
  std::memcpy(p, &pack, sizeof pack);
}

// Calls body(channel, pack) over [begin, end), where the type of `pack` (a zero) says how many channels it is about.
template <class T, class Body>
[[gnu::always_inline]] inline void for_each_pack(int64_t begin, int64_t end, Body&& body) {
  for (; begin + lanes<T> <= end; begin += lanes<T>) body(begin, Vector<T>{});
  for (; begin < end; ++begin) body(begin, T{});
}

// Forward: every window writes its own results, so rows of windows are shared out.
template <class Body> void for_each_row_range(const PoolGeometry& g, Body&& body) {
  const int64_t rows = out_rows(g),
                work = std::max<int64_t>(1, g.out[2] * g.channels * g.window[0] * g.window[1] * g.window[2]);
  parallel_for(g.batch * rows, std::max<int64_t>(1, 32768 / work), [&](int64_t begin, int64_t end) {
    while (begin < end) {
      const int64_t image = begin / rows, low = begin % rows, high = std::min(rows, low + end - begin);
      body(image, low, high);
      begin += high - low;
    }
  });
}

// Backward: windows may overlap, so images are shared out, and cache lines of channels where the images are few. True
// if it called `epilogue`, for the input of each image.
template <class T, class Body>
bool for_each_channel_range(const PoolGeometry& g, const Epilogue* epilogue, Body&& body) {
  constexpr int64_t line = 64 / static_cast<int64_t>(sizeof(T));
  const int64_t groups = std::max<int64_t>(1, (g.channels + line - 1) / line);
  const int64_t shares = g.batch >= 2 * thread_count() ? 1 : groups;
  const int64_t work = std::max<int64_t>(1, in_size(g) / shares);
  parallel_for(g.batch * shares, std::max<int64_t>(1, 16384 / work), [&](int64_t begin, int64_t end) {
    for (int64_t item = begin; item < end; ++item) {
      const int64_t share = item % shares;
      body(item / shares, groups * share / shares * line, std::min(g.channels, groups * (share + 1) / shares * line));
      if (epilogue && shares == 1) (*epilogue)(item* in_size(g), in_size(g), 1, 0);
    }
  });
  return epilogue && shares == 1 && g.batch > 0;
}

// Windows do not overlap.
bool disjoint(const PoolGeometry& g) {
  bool result = true;
  for (int d = 0; d < 3; ++d) result = result && g.stride[d] >= (g.window[d] - 1) * g.dilation[d] + 1;
  return result;
}

// Every input cell lies in a window.
bool covered(const PoolGeometry& g) {
  bool result = true;
  for (int d = 0; d < 3; ++d)
    result = result && g.out[d] > 0 && g.dilation[d] == 1 && g.window[d] >= g.stride[d] &&
             g.out[d] * g.stride[d] - g.pad_before[d] >= g.in[d];
  return result;
}

template <class T> void clear_channels(const PoolGeometry& g, T* image, int64_t begin, int64_t end) {
  if (begin == 0 && end == g.channels) {
    std::fill_n(image, in_size(g), T(0));
    return;
  }
  for (int64_t at = 0; at < in_size(g); at += g.channels) std::fill(image + at + begin, image + at + end, T(0));
}

// The first maximal cell of a window: the first cell, then any greater one. `cell` counts the window's cells.
template <class Pack> struct Maximum {
  using Count = std::conditional_t<std::is_arithmetic_v<Pack>, int64_t, decltype(Pack{} < Pack{})>;
  Pack value;
  Count cell;
};

template <class Pack, class T>
[[gnu::always_inline]] inline Maximum<Pack> first_maximum(const T* x, const Window& window) {
  using Count = typename Maximum<Pack>::Count;
  Maximum<Pack> best{load<T, Pack>(x + window.offset[0]), Count{}};
  Count number{};
  for (int64_t w = 1; w < window.count; ++w) {
    const Pack value = load<T, Pack>(x + window.offset[w]);
    number += 1;
    const auto greater = best.value < value;
    best.value = greater ? value : best.value;
    best.cell = greater ? number : best.cell;
  }
  return best;
}

// Calls body(l, cell) for each channel of a pack.
template <class Count, class Body> [[gnu::always_inline]] inline void for_each_lane(Count cell, Body&& body) {
  if constexpr (std::is_arithmetic_v<Count>) {
    body(0, cell);
  } else {
    for (size_t l = 0; l < sizeof(Count) / sizeof(cell[0]); ++l)
      body(static_cast<int64_t>(l), static_cast<int64_t>(cell[l]));
  }
}

}  // namespace

template <class T> void max_pool_forward(const PoolGeometry& geometry, const T* x, T* y, int64_t* argmax) {
  const PoolGeometry g = in_three_dimensions(geometry);
  for_each_row_range(g, [&](int64_t image, int64_t low, int64_t high) {
    const T* from = x + image * in_size(g);
    T* to = y + image * out_size(g);
    int64_t* positions = argmax + (argmax ? image * out_size(g) : 0);
    auto with_positions = [&](const Window& window, int64_t c, auto pack) {
      const auto best = first_maximum<decltype(pack)>(from + window.origin + c, window);
      store(to + window.output + c, best.value);
      for_each_lane(best.cell, [&](int64_t l, int64_t cell) {
        positions[window.output + c + l] = window.origin + window.offset[cell] + c + l;
      });
    };
    if (!argmax) {
      const auto find_maxima = kernels<T>().max_forward;
      for_each_run(g, low, high, [&](const Window& window, int64_t windows) {
        find_maxima(run_of(g, window, windows, g.channels), from + window.origin, to + window.output);
      });
      return;
    }
    for_each_window(g, low, high, [&](const Window& window) {
      // A vector of small integers could not count the cells of a large window.
      const int64_t vectors = sizeof(T) >= 4 ? g.channels : 0;
      for_each_pack<T>(0, vectors, [&](int64_t c, auto pack) { with_positions(window, c, pack); });
      for (int64_t c = vectors; c < g.channels; ++c) with_positions(window, c, T{});
    });
  });
}

template <class T>
bool max_pool_backward(const PoolGeometry& geometry, const T* x, const T* dy, T* dx, const Epilogue* epilogue) {
  const PoolGeometry g = in_three_dimensions(geometry);
  const bool alone = disjoint(g), clear = !alone || !covered(g);
  const auto scatter = alone ? kernels<T>().max_backward_alone : kernels<T>().max_backward;
  return for_each_channel_range<T>(g, epilogue, [&](int64_t image, int64_t begin, int64_t end) {
    const T* from = x + image * in_size(g) + begin;
    const T* given = dy + image * out_size(g) + begin;
    T* to = dx + image * in_size(g);
    if (clear) clear_channels(g, to, begin, end);
    for_each_run(g, 0, out_rows(g), [&](const Window& window, int64_t windows) {
      scatter(run_of(g, window, windows, end - begin), from + window.origin, given + window.output,
              to + begin + window.origin);
    });
  });
}

template <class T> void max_pool_gather(const PoolGeometry& geometry, const T* x, const T* v, T* y) {
  const PoolGeometry g = in_three_dimensions(geometry);
  for_each_row_range(g, [&](int64_t image, int64_t low, int64_t high) {
    const T* from = x + image * in_size(g);
    const T* values = v + image * in_size(g);
    T* to = y + image * out_size(g);
    for_each_window(g, low, high, [&](const Window& window) {
      for_each_pack<T>(0, g.channels, [&](int64_t c, auto pack) {
        for_each_lane(first_maximum<decltype(pack)>(from + window.origin + c, window).cell,
                      [&](int64_t l, int64_t cell) {
                        to[window.output + c + l] = values[window.origin + window.offset[cell] + c + l];
                      });
      });
    });
  });
}

template <class T> void max_pool_backward_at(const PoolGeometry& geometry, const int64_t* argmax, const T* dy, T* dx) {
  const PoolGeometry g = in_three_dimensions(geometry);
  parallel_for(g.batch, std::max<int64_t>(1, 16384 / std::max<int64_t>(1, in_size(g))),
               [&](int64_t begin, int64_t end) {
                 std::fill(dx + begin * in_size(g), dx + end * in_size(g), T(0));
                 for (int64_t image = begin; image < end; ++image)
                   for (int64_t i = 0; i < out_size(g); ++i)
                     dx[image * in_size(g) + argmax[image * out_size(g) + i]] += dy[image * out_size(g) + i];
               });
}

template <class T> void max_pool_gather_at(const PoolGeometry& geometry, const int64_t* argmax, const T* v, T* y) {
  const PoolGeometry g = in_three_dimensions(geometry);
  parallel_for(g.batch, std::max<int64_t>(1, 16384 / std::max<int64_t>(1, out_size(g))),
               [&](int64_t begin, int64_t end) {
                 for (int64_t image = begin; image < end; ++image)
                   for (int64_t i = 0; i < out_size(g); ++i)
                     y[image * out_size(g) + i] = v[image * in_size(g) + argmax[image * out_size(g) + i]];
               });
}

template <class T> void avg_pool_forward(const PoolGeometry& geometry, const T* x, T* y) {
  const PoolGeometry g = in_three_dimensions(geometry);
  for_each_row_range(g, [&](int64_t image, int64_t low, int64_t high) {
    const T* from = x + image * in_size(g);
    T* to = y + image * out_size(g);
    const auto average = kernels<T>().average_forward;
    for_each_run(g, low, high, [&](const Window& window, int64_t windows) {
      average(run_of(g, window, windows, g.channels), from + window.origin, to + window.output);
    });
  });
}

template <class T> bool avg_pool_backward(const PoolGeometry& geometry, const T* dy, T* dx, const Epilogue* epilogue) {
  const PoolGeometry g = in_three_dimensions(geometry);
  const bool alone = disjoint(g), clear = !alone || !covered(g);
  const auto scatter = alone ? kernels<T>().average_backward_alone : kernels<T>().average_backward;
  return for_each_channel_range<T>(g, epilogue, [&](int64_t image, int64_t begin, int64_t end) {
    const T* given = dy + image * out_size(g) + begin;
    T* to = dx + image * in_size(g);
    if (clear) clear_channels(g, to, begin, end);
    for_each_run(g, 0, out_rows(g), [&](const Window& window, int64_t windows) {
      scatter(run_of(g, window, windows, end - begin), given + window.output, to + begin + window.origin);
    });
  });
}

template void max_pool_forward(const PoolGeometry&, const float*, float*, int64_t*);
template void max_pool_forward(const PoolGeometry&, const double*, double*, int64_t*);
template void max_pool_forward(const PoolGeometry&, const int8_t*, int8_t*, int64_t*);
template void max_pool_forward(const PoolGeometry&, const int16_t*, int16_t*, int64_t*);
template void max_pool_forward(const PoolGeometry&, const int32_t*, int32_t*, int64_t*);
template void max_pool_forward(const PoolGeometry&, const int64_t*, int64_t*, int64_t*);
template void max_pool_forward(const PoolGeometry&, const uint8_t*, uint8_t*, int64_t*);
template void max_pool_forward(const PoolGeometry&, const uint16_t*, uint16_t*, int64_t*);
template void max_pool_forward(const PoolGeometry&, const uint32_t*, uint32_t*, int64_t*);
template void max_pool_forward(const PoolGeometry&, const uint64_t*, uint64_t*, int64_t*);
template bool max_pool_backward(const PoolGeometry&, const float*, const float*, float*, const Epilogue*);
template bool max_pool_backward(const PoolGeometry&, const double*, const double*, double*, const Epilogue*);
template void max_pool_gather(const PoolGeometry&, const float*, const float*, float*);
template void max_pool_gather(const PoolGeometry&, const double*, const double*, double*);
template void max_pool_backward_at(const PoolGeometry&, const int64_t*, const float*, float*);
template void max_pool_backward_at(const PoolGeometry&, const int64_t*, const double*, double*);
template void max_pool_gather_at(const PoolGeometry&, const int64_t*, const float*, float*);
template void max_pool_gather_at(const PoolGeometry&, const int64_t*, const double*, double*);
template void avg_pool_forward(const PoolGeometry&, const float*, float*);
template void avg_pool_forward(const PoolGeometry&, const double*, double*);
template bool avg_pool_backward(const PoolGeometry&, const float*, float*, const Epilogue*);
template bool avg_pool_backward(const PoolGeometry&, const double*, double*, const Epilogue*);

}  // namespace tapeflow
