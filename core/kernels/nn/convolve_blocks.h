// The scheme that all convolutions share: a grid of points over a source, cut into blocks that fit the cache.
//
// A *grid* of points walks over a *source*: along each dimension, point g meets the
// source cells g * step + offset[t], one per tap t. A block of grid points is given a source without edges (the block's
// own part of it if it has none, else a copy with zeros around), so that every tile inside is free of conditions.
//
// - Forward: the grid is the output, the source x. A tile is some points by some output channels, summed over taps and
//   input channels.
// - Backward input: a grid is the input cells of one residue modulo the stride, the source dy with the taps reversed.
//   Otherwise as forward.
// - Backward filter: grid and source as in forward. A tile is some (tap, input channel) by some output channels, summed
//   over points.
//
// With very few input channels a tile of backward input would be mostly empty. There each dy is multiplied with all the
// taps, and the products are added into dx.
#pragma once
#include <algorithm>
#include <array>
#include <cstring>
#include <optional>
#include <utility>

#include "base/instruction_set.h"
#include "base/parallel.h"
#include "base/scratch.h"
#include "base/small_vector.h"
#include "kernels/nn/convolve.h"
#include "kernels/nn/window_geometry.h"

namespace tapeflow::convolution {

template <class T> const ConvKernels<T>& kernels() { return TAPEFLOW_OF_THIS_MACHINE(conv_kernels<T>()); }

inline int64_t ceil_divide(int64_t a, int64_t b) { return (a + b - 1) / b; }

// The least number of items worth a thread, where all `items` together take so many multiplications.
inline int64_t grain_of(int64_t multiplications, int64_t items) {
  constexpr int64_t worth = 1 << 18;  // some microseconds
  return ceil_divide(worth * items, std::max<int64_t>(1, multiplications));
}

inline int64_t product(const std::array<int64_t, 3>& v) { return v[0] * v[1] * v[2]; }

// Lists of offsets, in the call's own memory unless they are long.
using Offsets = SmallVector<int64_t, 64>;

// One dimension of the scheme above. Offsets ascend. Grid point g writes target cell target_start + g * target_step.
struct Axis {
  int64_t points, step, source;
  SmallVector<int64_t, 8> offset, tap;
  int64_t target = 0, target_start = 0, target_step = 1;

  // Source cells that `count` neighbouring points reach.
  int64_t reach(int64_t count) const { return offset.empty() ? 0 : (count - 1) * step + last() - offset[0] + 1; }
  int64_t last() const { return offset[offset.size() - 1]; }
};
using Axes = std::array<Axis, 3>;

inline ConvGeometry in_three_dimensions(const ConvGeometry& geometry) {
  return in_three_dimensions(geometry, &ConvGeometry::filter);
}

inline int64_t out_cells(const ConvGeometry& g) { return g.batch * g.out[0] * g.out[1] * g.out[2]; }
inline int64_t in_cells(const ConvGeometry& g) { return g.batch * g.in[0] * g.in[1] * g.in[2]; }
inline int64_t filter_taps(const ConvGeometry& g) { return g.filter[0] * g.filter[1] * g.filter[2]; }

// Whether a forward pass has nothing to add up: then it writes zeros.
template <class T> bool zero_result(const ConvGeometry& g, T* y) {
  const int64_t numbers = out_cells(g) * g.out_channels;
  if (numbers == 0) return true;
  if (in_cells(g) != 0 && g.in_channels != 0 && filter_taps(g) != 0) return false;
  std::fill_n(y, numbers, T(0));
  return true;
}

inline Axes forward_axes(const ConvGeometry& g) {
  Axes axes;
  for (int d = 0; d < 3; ++d) {
    Axis& axis = axes[d];
    axis = {g.out[d], g.stride[d], g.in[d], {}, {}, g.out[d]};
    for (int64_t k = 0; k < g.filter[d]; ++k) {
      axis.offset.push_back(k * g.dilation[d] - g.pad_before[d]);
      axis.tap.push_back(k);
    }
  }
  return axes;
}

// Input cell i = start + g * stride is met by tap k of output cell (i + pad - k * dilation) / stride, where that is
// whole.
inline Axis backward_axis(const ConvGeometry& g, int d, int64_t start) {
  const int64_t stride = g.stride[d];
  Axis axis{ceil_divide(g.in[d] - start, stride), 1, g.out[d], {}, {}, g.in[d], start, stride};
  for (int64_t k = g.filter[d] - 1; k >= 0; --k) {
    const int64_t from = start + g.pad_before[d] - k * g.dilation[d];
    if (from % stride != 0) continue;
    axis.offset.push_back(from / stride);
    axis.tap.push_back(k);
  }
  return axis;
}

inline int64_t tap_count(const Axes& axes) {
  return static_cast<int64_t>(axes[0].tap.size() * axes[1].tap.size() * axes[2].tap.size());
}

// A box of grid points, the same in some neighbouring images: first point and number of points along each dimension.
struct Block {
  int64_t image, images;
  std::array<int64_t, 3> first, count;

  int64_t points() const { return images * product(count); }
};

// A cut of batch x grid into blocks.
struct Blocks {
  int64_t batch, images;
  std::array<int64_t, 3> points, size, along;

  int64_t count() const { return ceil_divide(batch, images) * product(along); }

  Block operator[](int64_t index) const {
    Block block;
    for (int d = 2; d >= 0; --d) {
      const int64_t at = index % along[d];
      index /= along[d];
      block.first[d] = at * size[d];
      block.count[d] = std::min(size[d], points[d] - block.first[d]);
    }
    block.image = index * images;
    block.images = std::min(images, batch - block.image);
    return block;
  }
};

// What a block should be: at most so many source cells and points, and at least so many points if there are under
// `wanted` blocks.
struct BlockLimits {
  int64_t cells, points, fewest, wanted;
};

inline Blocks cut(int64_t batch, const Axes& axes, const BlockLimits& limits) {
  Blocks blocks{batch, 1, {axes[0].points, axes[1].points, axes[2].points}, {}, {1, 1, 1}};
  blocks.size = blocks.points;
  auto halve = [&](int d) {
    blocks.along[d] = ceil_divide(blocks.points[d], blocks.size[d] / 2);
    blocks.size[d] = ceil_divide(blocks.points[d], blocks.along[d]);
    blocks.along[d] = ceil_divide(blocks.points[d], blocks.size[d]);
  };
  auto reach = [&] {
    return axes[0].reach(blocks.size[0]) * axes[1].reach(blocks.size[1]) * axes[2].reach(blocks.size[2]);
  };
  for (int d = 0; d < 3; ++d) {
    const int64_t smallest = d == 2 ? 24 : 1;  // shorter rows would be mostly edge
    while ((reach() > limits.cells || product(blocks.size) > limits.points) && blocks.size[d] > smallest) halve(d);
  }
  for (int d = 0; d < 3; ++d)
    while (blocks.count() < limits.wanted && product(blocks.size) >= 2 * limits.fewest && blocks.size[d] > 1) halve(d);
  if (product(blocks.along) == 1) {
    const int64_t fit = std::min(limits.points / product(blocks.size), limits.cells / std::max<int64_t>(1, reach()));
    blocks.images = std::max<int64_t>(1, std::min(fit, batch / limits.wanted));
  }
  return blocks;
}

// Where a block's source begins: the cell met by its first point with the first taps, and the steps between cells.
template <class T> struct Source {
  const T* origin;
  int64_t image, plane, row, pixel;
  std::optional<Scratch<T>> copy = {};
};

// Copies `count` cells of `width` numbers, a constant so that the copy takes few instructions.
template <class T, int width> void copy_cells(const T* from, int64_t from_step, T* to, int64_t to_step, int64_t count) {
  for (; count > 0; --count, from += from_step, to += to_step) std::memcpy(to, from, width * sizeof(T));
}

template <class T, int... width> auto cell_copies(std::integer_sequence<int, width...>) {
  return std::array{copy_cells<T, width + 1>...};
}

// How a copy lays out its channels: each `repeat` times, in `parts` of at most `width`, every part a block of whole
// cells of its own with zeros behind the channels it has. Parts share the channels of a group evenly.
struct Layout {
  int64_t repeat, groups, parts, width;

  int64_t first(int64_t part, int64_t depth) const { return depth * part / parts; }
};

// The cells along each dimension that a block meets.
struct Extent {
  std::array<int64_t, 3> low, reach;
  bool inside;
};

inline Extent extent_of(const Axes& axes, const Block& block) {
  Extent extent{{}, {}, true};
  for (int d = 0; d < 3; ++d) {
    extent.low[d] = block.first[d] * axes[d].step + axes[d].offset[0];
    extent.reach[d] = axes[d].reach(block.count[d]);
    extent.inside = extent.inside && extent.low[d] >= 0 && extent.low[d] + extent.reach[d] <= axes[d].source;
  }
  return extent;
}

// One row of cells, of which `count` from `begin` on exist.
template <class T> void copy_row(const T* from, int64_t channels, const Layout& layout, T* to, int64_t part_step,
                                 int64_t begin, int64_t count, int64_t cells) {
  static const auto copies = cell_copies<T>(std::make_integer_sequence<int, ConvKernels<T>::most_rows>{});
  const int64_t depth = channels / layout.groups, width = layout.width;
  for (int64_t part = 0; part < layout.groups * layout.parts; ++part, to += part_step) {
    const int64_t first = layout.first(part % layout.parts, depth),
                  used = layout.first(part % layout.parts + 1, depth) - first;
    const T* source = from + part / layout.parts * depth + first;
    T* target = to + begin * width;
    std::fill(to, target, T(0));
    std::fill(target + count * width, to + cells * width, T(0));
    if (layout.repeat == 1 && used == width && width == channels) {
      std::copy_n(source, count * width, target);
    } else if (layout.repeat == 1 && used <= ConvKernels<T>::most_rows && width - used <= 1) {
      copies[static_cast<size_t>(used - 1)](source, channels, target, width, count);
    } else {
      for (int64_t k = 0; k < count; ++k, source += channels, target += width) {
        if (layout.repeat == 1) std::copy_n(source, used, target);
        for (int64_t c = 0; layout.repeat > 1 && c < used; ++c)
          std::fill_n(target + c * layout.repeat, layout.repeat, source[c]);
        std::fill(target + used * layout.repeat, target + width, T(0));
      }
    }
  }
}

// The source of `block` without edges, copied if it has some or if the layout is not that of the data.
template <class T>
Source<T> surround(const Axes& axes, const Block& block, const T* data, int64_t channels, const Layout& layout) {
  const auto [low, reach, inside] = extent_of(axes, block);
  const int64_t row = axes[2].source * channels, plane = axes[1].source * row, image = axes[0].source * plane;
  const T* from = data + block.image * image;
  if (inside && layout.repeat == 1 && layout.width == channels)
    return {from + low[0] * plane + low[1] * row + low[2] * channels, image, plane, row, channels};

  const int64_t copy_row_step = reach[2] * layout.width, copy_plane = reach[1] * copy_row_step,
                copy_image = reach[0] * copy_plane;
  const int64_t part_step = block.images * copy_image;
  Scratch<T> copy(layout.groups * layout.parts * part_step);
  T* to = copy.data();
  const int64_t begin = std::clamp<int64_t>(-low[2], 0, reach[2]);
  const int64_t end = std::clamp<int64_t>(axes[2].source - low[2], begin, reach[2]);
  for (int64_t n = 0; n < block.images; ++n, from += image)
    for (int64_t i = low[0]; i < low[0] + reach[0]; ++i)
      for (int64_t j = low[1]; j < low[1] + reach[1]; ++j, to += copy_row_step) {
        const bool exists = i >= 0 && i < axes[0].source && j >= 0 && j < axes[1].source && begin < end;
        const T* cells = exists ? from + i * plane + j * row + (low[2] + begin) * channels : data;
        copy_row(cells, channels, layout, to, part_step, begin, exists ? end - begin : 0, reach[2]);
      }
  const T* origin = copy.data();
  return {origin, copy_image, copy_plane, copy_row_step, layout.width, std::move(copy)};
}

// Offsets of the taps from the first one, in the order of the filter; `last` false leaves the innermost dimension out.
template <class T> Offsets tap_offsets(const Axes& axes, const Source<T>& source, bool last) {
  Offsets offsets;
  for (int64_t i : axes[0].offset)
    for (int64_t j : axes[1].offset) {
      const int64_t row = (i - axes[0].offset[0]) * source.plane + (j - axes[1].offset[0]) * source.row;
      if (!last) offsets.push_back(row);
      for (size_t k = 0; last && k < axes[2].offset.size(); ++k)
        offsets.push_back(row + (axes[2].offset[k] - axes[2].offset[0]) * source.pixel);
    }
  return offsets;
}

// Calls body(first, rows) for tiles that share `count` evenly, none over `most`.
template <class Body> void for_each_tile(int64_t count, int64_t most, Body&& body) {
  const int64_t tiles = ceil_divide(count, most);
  for (int64_t t = 0, first = 0; t < tiles; ++t) {
    const int64_t rows = count / tiles + (t < count % tiles);
    body(first, rows);
    first += rows;
  }
}

// Addresses of a block's points: where each reads (with the first taps) and where each writes.
template <class T> struct Points {
  Scratch<const T*> read;
  Scratch<T*> write;
  int64_t count;
};

// Calls body(read, write) for each row of a block's points, with the addresses of its first point.
template <class T, class Body> void for_each_row(const Axes& axes, const Block& block, const Source<T>& source,
                                                 T* target, int64_t target_pixel, Body&& body) {
  auto cell = [&](int d, int64_t i) { return axes[d].target_start + (block.first[d] + i) * axes[d].target_step; };
  for (int64_t n = 0; n < block.images; ++n)
    for (int64_t i = 0; i < block.count[0]; ++i)
      for (int64_t j = 0; j < block.count[1]; ++j) {
        const int64_t row = ((block.image + n) * axes[0].target + cell(0, i)) * axes[1].target + cell(1, j);
        body(source.origin + n * source.image + i * axes[0].step * source.plane + j * axes[1].step * source.row,
             target + (row * axes[2].target + cell(2, 0)) * target_pixel);
      }
}

template <class T>
Points<T> points_of(const Axes& axes, const Block& block, const Source<T>& source, T* target, int64_t target_pixel) {
  const int64_t count = block.points();
  Points<T> points{Scratch<const T*>(count), Scratch<T*>(count), count};
  int64_t at = 0;
  for_each_row(axes, block, source, target, target_pixel, [&](const T* read, T* write) {
    for (int64_t k = 0; k < block.count[2]; ++k, ++at) {
      points.read[at] = read + k * axes[2].step * source.pixel;
      points.write[at] = write + k * axes[2].target_step * target_pixel;
    }
  });
  return points;
}

// Tells that a block of the target is there, in runs as long as its rows allow; its points are neighbours.
inline void run_epilogue_on_block(const Axes& axes, const Block& block, int64_t pixel, const Epilogue& epilogue) {
  const bool whole_rows = block.count[2] == axes[2].points,
             whole_planes = whole_rows && block.count[1] == axes[1].points;
  const int64_t row = axes[2].points * pixel;
  for (int64_t n = block.image; n < block.image + block.images; ++n)
    for (int64_t i = block.first[0]; i < block.first[0] + (whole_planes ? 1 : block.count[0]); ++i) {
      const int64_t first = ((n * axes[0].points + i) * axes[1].points + block.first[1]) * row + block.first[2] * pixel;
      if (whole_rows) {
        epilogue(first, (whole_planes ? block.count[0] : 1) * block.count[1] * row, 1, 0);
      } else {
        epilogue(first, block.count[2] * pixel, block.count[1], row);
      }
    }
}

constexpr int64_t source_bytes = 256 << 10;  // a block's source: a part of a level-2 cache

// Each residue of the input cells modulo the stride is a grid of its own, with the taps that reach it.
template <class Body> void for_each_residue(const ConvGeometry& g, Body&& body) {
  for (int64_t i = 0; i < std::min(g.stride[0], g.in[0]); ++i)
    for (int64_t j = 0; j < std::min(g.stride[1], g.in[1]); ++j)
      for (int64_t k = 0; k < std::min(g.stride[2], g.in[2]); ++k)
        body(Axes{backward_axis(g, 0, i), backward_axis(g, 1, j), backward_axis(g, 2, k)});
}

// The rows of dy that a block meets as one matrix of cells, in panels of columns `panel` numbers apart.
template <class T> struct Right {
  const T* data;
  int64_t pixel, panel;
  std::optional<Scratch<T>> copy = {};
};

// dy itself where its rows touch and reading `beyond` numbers more than a cell has does not leave it; else a copy.
template <class T> Right<T> right_of(const ConvGeometry& g, const Block& block, const T* dy, int64_t columns,
                                     int64_t width, int64_t beyond, bool pack) {
  const int64_t channels = g.out_channels, cells = block.points(), per_image = g.out[0] * g.out[1] * g.out[2];
  auto cell = [&](int64_t n, int64_t i, int64_t j) {
    return (block.image + n) * per_image + ((block.first[0] + i) * g.out[1] + block.first[1] + j) * g.out[2] +
           block.first[2];
  };
  const bool whole_rows = block.count[2] == g.out[2], whole_planes = whole_rows && block.count[1] == g.out[1];
  const bool touch =
      product(block.count) == per_image || (block.images == 1 && (whole_planes || (whole_rows && block.count[0] == 1)));
  const int64_t behind = (g.batch * per_image - cell(0, 0, 0) - cells) * channels;
  if (!pack && touch && behind >= beyond) return {dy + cell(0, 0, 0) * channels, channels, width};

  const int64_t panels = pack ? ceil_divide(columns, width) : 1, pixel = pack ? width : channels;
  const int64_t groups = pack ? channels / columns : 1;
  Scratch<T> copy(groups * panels * cells * pixel + beyond);
  T* to = copy.data();
  for (int64_t group = 0; group < groups; ++group)
    for (int64_t p = 0; p < panels; ++p) {
      const int64_t used = pack ? std::min(width, columns - p * width) : channels;
      for (int64_t n = 0; n < block.images; ++n)
        for (int64_t i = 0; i < block.count[0]; ++i)
          for (int64_t j = 0; j < block.count[1]; ++j) {
            const T* from = dy + cell(n, i, j) * channels + group * columns + p * width;
            for (int64_t k = 0; k < block.count[2]; ++k, from += channels, to += pixel)
              std::fill(std::copy_n(from, used, to), to + pixel, T(0));
          }
    }
  std::fill_n(to, beyond, T(0));
  const T* data = copy.data();
  return {data, pixel, pack ? cells * width : width, std::move(copy)};
}

// Offsets between the source rows that the rows of a block's points meet.
template <class T> Offsets row_offsets(const Axes& axes, const Block& block, const Source<T>& source) {
  Offsets offsets;
  for (int64_t n = 0; n < block.images; ++n)
    for (int64_t i = 0; i < block.count[0]; ++i)
      for (int64_t j = 0; j < block.count[1]; ++j)
        offsets.push_back(n * source.image + i * axes[0].step * source.plane + j * axes[1].step * source.row);
  return offsets;
}

constexpr int64_t filter_block_points = 1024;  // a panel of dy in a block: a part of a level-2 cache

// Slices of the blocks whose sums are kept apart. The number does not depend on the threads, so neither does the
// result.
template <class T> int64_t most_slices(int64_t size) {
  constexpr int64_t most_bytes = 2 << 20;
  return std::clamp<int64_t>(most_bytes / (size * static_cast<int64_t>(sizeof(T))), 1, 8);
}

// Runs add(block, sums, accumulate, share, shares) over all blocks, each share of each slice in one thread, and adds
// the slices' sums in order into `result`, of so many numbers.
template <class T, class Add> void sum_over_blocks(const Blocks& blocks, int64_t multiplications, int64_t size,
                                                   int64_t slices, int64_t shares, T* result, Add&& add) {
  std::optional<Scratch<T>> apart;
  if (slices > 1) apart.emplace(slices * size);
  T* sums = apart ? apart->data() : result;
  parallel_for(slices * shares, grain_of(multiplications, slices * shares), [&](int64_t begin, int64_t end) {
    for (int64_t item = begin; item < end; ++item) {
      const int64_t slice = item / shares;
      const int64_t first = blocks.count() * slice / slices, last = blocks.count() * (slice + 1) / slices;
      for (int64_t b = first; b < last; ++b) add(blocks[b], sums + slice * size, b != first, item % shares, shares);
    }
  });
  if (slices == 1) return;
  parallel_for(size, 16384, [&](int64_t begin, int64_t end) {
    std::copy(sums + begin, sums + end, result + begin);
    for (int64_t s = 1; s < slices; ++s)
      for (int64_t i = begin; i < end; ++i) result[i] += sums[s * size + i];
  });
}

// A tile of a sum over the points of `block`; its rows, columns and the place of `b` are still to be set.
template <class T> ConvTile<T> tile_over(const Axes& axes, const Block& block, const Source<T>& inside,
                                         const Right<T>& right, const Offsets& offsets, bool accumulate) {
  ConvTile<T> tile{};
  tile.offset = offsets.data();
  tile.outer = static_cast<int64_t>(offsets.size());
  tile.inner = block.count[2];
  tile.a_step = axes[2].step * inside.pixel;
  tile.b_step = right.pixel;
  tile.accumulate = accumulate;
  return tile;
}

}  // namespace tapeflow::convolution
