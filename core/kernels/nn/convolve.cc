// Convolution: cut into blocks that fit the cache, each padded once and then covered with the tiles of
// convolve_kernel.cc.
//
// All six functions are one scheme. A *grid* of points walks over a *source*: along each dimension, point g meets the
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
#include "kernels/nn/convolve.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <optional>
#include <utility>

#include "base/instruction_set.h"
#include "base/parallel.h"
#include "base/scratch.h"
#include "base/small_vector.h"
#include "kernels/linalg/gemm.h"

namespace tapeflow {
namespace {

template <class T> const ConvKernels<T>& kernels() {
#if defined(__x86_64__)
  if (instruction_set() == InstructionSet::avx512) return avx512::conv_kernels<T>();
  if (instruction_set() == InstructionSet::avx2) return avx2::conv_kernels<T>();
#endif
  return baseline::conv_kernels<T>();
}

int64_t ceil_divide(int64_t a, int64_t b) { return (a + b - 1) / b; }

// The least number of items worth a thread, where all `items` together take so many multiplications.
int64_t grain_of(int64_t multiplications, int64_t items) {
  constexpr int64_t worth = 1 << 18;  // some microseconds
  return ceil_divide(worth * items, std::max<int64_t>(1, multiplications));
}

int64_t product(const std::array<int64_t, 3>& v) { return v[0] * v[1] * v[2]; }

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

// The sizes with their dimensions moved to the right, so that the last one always is the innermost.
ConvGeometry in_three_dimensions(const ConvGeometry& geometry) {
  ConvGeometry g = geometry;
  const int shift = 3 - geometry.rank;
  for (int d = 0; d < 3; ++d) {
    const bool real = d >= shift;
    g.in[d] = real ? geometry.in[d - shift] : 1;
    g.filter[d] = real ? geometry.filter[d - shift] : 1;
    g.out[d] = real ? geometry.out[d - shift] : 1;
    g.stride[d] = real ? geometry.stride[d - shift] : 1;
    g.dilation[d] = real ? geometry.dilation[d - shift] : 1;
    g.pad_before[d] = real ? geometry.pad_before[d - shift] : 0;
  }
  g.rank = 3;
  return g;
}

int64_t out_cells(const ConvGeometry& g) { return g.batch * g.out[0] * g.out[1] * g.out[2]; }
int64_t in_cells(const ConvGeometry& g) { return g.batch * g.in[0] * g.in[1] * g.in[2]; }
int64_t filter_taps(const ConvGeometry& g) { return g.filter[0] * g.filter[1] * g.filter[2]; }

Axes forward_axes(const ConvGeometry& g) {
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
Axis backward_axis(const ConvGeometry& g, int d, int64_t start) {
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

int64_t tap_count(const Axes& axes) {
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

Blocks cut(int64_t batch, const Axes& axes, const BlockLimits& limits) {
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

Extent extent_of(const Axes& axes, const Block& block) {
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

template <class T>
Points<T> points_of(const Axes& axes, const Block& block, const Source<T>& source, T* target, int64_t target_pixel) {
  const int64_t count = block.points();
  Points<T> points{Scratch<const T*>(count), Scratch<T*>(count), count};
  auto cell = [&](int d, int64_t i) { return axes[d].target_start + (block.first[d] + i) * axes[d].target_step; };
  int64_t at = 0;
  for (int64_t n = 0; n < block.images; ++n)
    for (int64_t i = 0; i < block.count[0]; ++i)
      for (int64_t j = 0; j < block.count[1]; ++j) {
        const T* read =
            source.origin + n * source.image + i * axes[0].step * source.plane + j * axes[1].step * source.row;
        const int64_t row = ((block.image + n) * axes[0].target + cell(0, i)) * axes[1].target + cell(1, j);
        T* write = target + (row * axes[2].target + cell(2, 0)) * target_pixel;
        for (int64_t k = 0; k < block.count[2]; ++k, ++at) {
          points.read[at] = read + k * axes[2].step * source.pixel;
          points.write[at] = write + k * axes[2].target_step * target_pixel;
        }
      }
  return points;
}

// A filter seen as `depth` numbers per tap and group, by `columns`: element (tap, k, n) of group g is
// data[tap * tap_step + k * depth_step + n * column_step + g * group_step].
template <class T> struct FilterView {
  const T* data;
  int64_t groups, depth, columns, tap_step, depth_step, column_step, group_step;
};

// Panels of `width` columns, ordered group, panel, tap, depth, column; the last panel of a group is filled up with
// zeros.
template <class T>
Scratch<T> pack_panels(const Axes& axes, const ConvGeometry& g, const FilterView<T>& filter, int64_t width) {
  Offsets taps;
  for (int64_t i : axes[0].tap)
    for (int64_t j : axes[1].tap)
      for (int64_t k : axes[2].tap) taps.push_back((i * g.filter[1] + j) * g.filter[2] + k);
  const int64_t panels = ceil_divide(filter.columns, width), tap_total = static_cast<int64_t>(taps.size());
  Scratch<T> packed(filter.groups * panels * tap_total * filter.depth * width + width);
  const int64_t grain = std::max<int64_t>(1, 32768 / (filter.depth * width + 1));
  parallel_for(filter.groups * panels * tap_total, grain, [&](int64_t begin, int64_t end) {
    for (int64_t item = begin; item < end; ++item) {
      const int64_t tap = taps[static_cast<size_t>(item % tap_total)];
      const int64_t panel = item / tap_total % panels, group = item / tap_total / panels;
      const T* from =
          filter.data + tap * filter.tap_step + group * filter.group_step + panel * width * filter.column_step;
      const int64_t columns = std::min(width, filter.columns - panel * width);
      T* to = packed.data() + item * filter.depth * width;
      // Short runs of k, so that each cache line of a filter whose columns lie apart is read once.
      for (int64_t low = 0; low < filter.depth; low += 16) {
        const int64_t high = std::min(low + 16, filter.depth);
        if (filter.column_step == 1) {
          for (int64_t k = low; k < high; ++k) std::copy_n(from + k * filter.depth_step, columns, to + k * width);
        } else {
          for (int64_t n = 0; n < columns; ++n)
            for (int64_t k = low; k < high; ++k)
              to[k * width + n] = from[k * filter.depth_step + n * filter.column_step];
        }
        for (int64_t k = low; k < high; ++k) std::fill(to + k * width + columns, to + (k + 1) * width, T(0));
      }
    }
  });
  return packed;
}

// Tells that a block of the target is there, in runs as long as its rows allow; its points are neighbours.
void finish_block(const Axes& axes, const Block& block, int64_t pixel, const Finish& finish) {
  const bool whole_rows = block.count[2] == axes[2].points,
             whole_planes = whole_rows && block.count[1] == axes[1].points;
  const int64_t row = axes[2].points * pixel;
  for (int64_t n = block.image; n < block.image + block.images; ++n)
    for (int64_t i = block.first[0]; i < block.first[0] + (whole_planes ? 1 : block.count[0]); ++i) {
      const int64_t first = ((n * axes[0].points + i) * axes[1].points + block.first[1]) * row + block.first[2] * pixel;
      if (whole_rows) {
        finish(first, (whole_planes ? block.count[0] : 1) * block.count[1] * row, 1, 0);
      } else {
        finish(first, block.count[2] * pixel, block.count[1], row);
      }
    }
}

constexpr int64_t source_bytes = 256 << 10;  // a block's source: a part of a level-2 cache

// target[point] = sum over taps of source[point, tap] times filter[tap]. True if it called `finish`, for which the
// points must be neighbours in the target.
template <class T> bool correlate(const ConvGeometry& g, const Axes& axes, const T* source, const FilterView<T>& filter,
                                  T* target, const Finish* finish) {
  const ConvKernels<T>& kernel = kernels<T>();
  const int64_t channels = filter.groups * filter.depth, target_pixel = filter.groups * filter.columns;
  const int64_t width = filter.columns > kernel.lanes ? 2 * kernel.lanes : kernel.lanes;
  const int64_t panels = ceil_divide(filter.columns, width), depth = tap_count(axes) * filter.depth;
  const Scratch<T> packed_filter = pack_panels(axes, g, filter, width);
  const T* packed = packed_filter.data();

  const auto& last = axes[2].offset;
  const bool contiguous =
      filter.groups == 1 && !last.empty() && axes[2].last() - last[0] + 1 == static_cast<int64_t>(last.size());
  // The work is shared out by blocks, or by panels of a filter too large for a cache, or by both where either is few.
  const int64_t items = 4 * thread_count(), total = filter.groups * panels;
  const bool by_panels = total * depth * width * static_cast<int64_t>(sizeof(T)) > (1 << 20);
  const int64_t wanted = by_panels ? ceil_divide(items, total) : items;
  const Blocks blocks =
      cut(g.batch, axes, {source_bytes / static_cast<int64_t>(sizeof(T)) / channels, 4096, 4 * kernel.rows, wanted});
  const int64_t shares = std::clamp<int64_t>(by_panels ? items : items / blocks.count(), 1, total);
  const bool finishes = finish && shares == 1;

  auto run_block = [&](const Block& block, int64_t first_panel, int64_t end_panel) {
    const bool reads = depth > 0;
    const Source<T> inside =
        reads ? surround(axes, block, source, channels, {1, 1, 1, channels}) : Source<T>{source, 0, 0, 0, 0};
    Offsets offsets;
    if (reads) offsets = tap_offsets(axes, inside, !contiguous);
    const Points<T> points = points_of(axes, block, inside, target, target_pixel);
    ConvTile<T> tile{};
    tile.outer = static_cast<int64_t>(offsets.size());
    tile.inner = contiguous ? static_cast<int64_t>(last.size()) * filter.depth : filter.depth;
    tile.a_step = 1;
    tile.b_step = width;
    tile.offset = offsets.data();
    int64_t group = 0;
    for (int64_t p = first_panel; p < end_panel; ++p) {
      for (; group < p / panels; ++group)
        for (int64_t& offset : offsets) offset += filter.depth;
      tile.b = packed + p * depth * width;
      tile.columns = std::min(width, filter.columns - p % panels * width);
      tile.c_offset = group * filter.columns + p % panels * width;
      const auto& run = tile.columns > kernel.lanes ? kernel.two_vectors : kernel.one_vector;
      for_each_tile(points.count, kernel.rows, [&](int64_t first, int64_t rows) {
        tile.a = points.read.data() + first;
        tile.c = points.write.data() + first;
        run[rows - 1](tile);
      });
    }
  };
  const int64_t multiplications = g.batch * axes[0].points * axes[1].points * axes[2].points * depth * target_pixel;
  const int64_t grain = grain_of(multiplications / filter.groups, blocks.count() * shares);
  parallel_for(blocks.count() * shares, grain, [&](int64_t begin, int64_t end) {
    for (int64_t item = begin; item < end; ++item) {
      const int64_t share = item / blocks.count();
      const Block block = blocks[item % blocks.count()];
      run_block(block, total * share / shares, total * (share + 1) / shares);
      if (finishes) finish_block(axes, block, target_pixel, *finish);
    }
  });
  return finishes;
}

// Each residue of the input cells modulo the stride is a grid of its own, with the taps that reach it.
template <class Body> void for_each_residue(const ConvGeometry& g, Body&& body) {
  for (int64_t i = 0; i < std::min(g.stride[0], g.in[0]); ++i)
    for (int64_t j = 0; j < std::min(g.stride[1], g.in[1]); ++j)
      for (int64_t k = 0; k < std::min(g.stride[2], g.in[2]); ++k)
        body(Axes{backward_axis(g, 0, i), backward_axis(g, 1, j), backward_axis(g, 2, k)});
}

// dx of a convolution with few input channels and one group: products of each row of dy with all taps, added into dx.
template <class T> void scatter_backward(const ConvGeometry& g, const T* dy, const T* filter, T* dx) {
  const ConvKernels<T>& kernel = kernels<T>();
  const int64_t taps = g.filter[0] * g.filter[1] * g.filter[2], channels = g.in_channels, columns = taps * channels;
  const int64_t width = columns > kernel.lanes ? 2 * kernel.lanes : kernel.lanes, panels = ceil_divide(columns, width);
  const int64_t depth = g.out_channels, pitch = panels * width;
  const Scratch<T> packed_filter(panels * depth * width);
  T* packed = packed_filter.data();
  for (int64_t p = 0; p < panels; ++p)
    for (int64_t k = 0; k < depth; ++k)
      for (int64_t n = 0; n < width; ++n) {
        const int64_t column = p * width + n;
        packed[(p * depth + k) * width + n] = column < columns ? filter[column * depth + k] : T(0);
      }

  const int64_t row = g.in[2] * channels;

  // Adds the products of dy's row (i, j) into those rows of the image that lie in [low, high) of the middle dimension.
  // The points are the inner loop: neighbours add to different cells, so that no sum waits for the one before.
  auto add_row = [&](auto width, const T* products, T* image, int64_t i, int64_t j, int64_t low, int64_t high) {
    for (int64_t a = 0; a < g.filter[0]; ++a) {
      const int64_t at_i = i * g.stride[0] + a * g.dilation[0] - g.pad_before[0];
      if (at_i < 0 || at_i >= g.in[0]) continue;
      for (int64_t b = 0; b < g.filter[1]; ++b) {
        const int64_t at_j = j * g.stride[1] + b * g.dilation[1] - g.pad_before[1];
        if (at_j < low || at_j >= high) continue;
        for (int64_t c = 0; c < g.filter[2]; ++c) {
          const int64_t shift = c * g.dilation[2] - g.pad_before[2], step = g.stride[2];
          const int64_t first = shift < 0 ? ceil_divide(-shift, step) : 0;
          const int64_t end = std::min(g.out[2], shift < g.in[2] ? (g.in[2] - 1 - shift) / step + 1 : 0);
          const T* from = products + ((a * g.filter[1] + b) * g.filter[2] + c) * width + first * pitch;
          T* to = image + (at_i * g.in[1] + at_j) * row + (first * step + shift) * width;
          for (int64_t k = first; k < end; ++k, from += pitch, to += step * width)
            for (int e = 0; e < width; ++e) to[e] += from[e];
        }
      }
    }
  };

  const int64_t bands = std::clamp<int64_t>(4 * thread_count() / g.batch, 1, ceil_divide(g.in[1], 8));
  const int64_t grain = grain_of(out_cells(g) * depth * columns, g.batch * bands);
  parallel_for(g.batch * bands, grain, [&](int64_t begin, int64_t end) {
    const Scratch<T> rows_of_products(g.out[2] * pitch);
    T* products = rows_of_products.data();
    const Scratch<const T*> reads(g.out[2]);
    const Scratch<T*> writes(g.out[2]);
    const T** read = reads.data();
    T** write = writes.data();
    for (int64_t k = 0; k < g.out[2]; ++k) write[k] = products + k * pitch;
    const int64_t zero = 0;
    ConvTile<T> tile{};
    tile.offset = &zero;
    tile.outer = 1;
    tile.inner = depth;
    tile.a_step = 1;
    tile.b_step = width;
    tile.columns = width;
    const auto& run = width > kernel.lanes ? kernel.two_vectors : kernel.one_vector;
    for (int64_t item = begin; item < end; ++item) {
      const int64_t n = item / bands, band = item % bands;
      const int64_t low = g.in[1] * band / bands, high = g.in[1] * (band + 1) / bands;
      T* image = dx + n * g.in[0] * g.in[1] * row;
      for (int64_t i = 0; i < g.in[0]; ++i) std::fill_n(image + (i * g.in[1] + low) * row, (high - low) * row, T(0));
      for (int64_t i = 0; i < g.out[0]; ++i)
        for (int64_t j = 0; j < g.out[1]; ++j) {
          const int64_t top = j * g.stride[1] - g.pad_before[1];
          if (top >= high || top + (g.filter[1] - 1) * g.dilation[1] < low) continue;
          const T* from = dy + ((n * g.out[0] + i) * g.out[1] + j) * g.out[2] * depth;
          for (int64_t k = 0; k < g.out[2]; ++k) read[k] = from + k * depth;
          for (int64_t p = 0; p < panels; ++p) {
            tile.b = packed + p * depth * width;
            tile.c_offset = p * width;
            for_each_tile(g.out[2], kernel.rows, [&](int64_t first, int64_t rows) {
              tile.a = read + first;
              tile.c = write + first;
              run[rows - 1](tile);
            });
          }
          switch (channels) {
            case 1: add_row(std::integral_constant<int, 1>{}, products, image, i, j, low, high); break;
            case 2: add_row(std::integral_constant<int, 2>{}, products, image, i, j, low, high); break;
            case 3: add_row(std::integral_constant<int, 3>{}, products, image, i, j, low, high); break;
            default: add_row(static_cast<int>(channels), products, image, i, j, low, high);
          }
        }
    }
  });
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

// A filter of one cell that moves by one over an unpadded input: a matrix product.
bool is_product(const ConvGeometry& g) {
  bool plain = g.groups == 1;
  for (int d = 0; d < 3; ++d)
    plain = plain && g.filter[d] == 1 && g.stride[d] == 1 && g.pad_before[d] == 0 && g.in[d] == g.out[d];
  return plain;
}

}  // namespace

template <class T>
bool conv_forward(const ConvGeometry& geometry, const T* x, const T* filter, T* y, const Finish* finish) {
  const ConvGeometry g = in_three_dimensions(geometry);
  const int64_t numbers = out_cells(g) * g.out_channels;
  if (numbers == 0) return false;
  if (in_cells(g) == 0 || g.in_channels == 0 || filter_taps(g) == 0) {
    std::fill_n(y, numbers, T(0));
    return false;
  }
  if (is_product(g)) {
    return gemm<T>(false, false, out_cells(g), g.out_channels, g.in_channels, x, g.in_channels, filter, g.out_channels,
                   y, g.out_channels, false, finish);
  }
  const int64_t depth = g.in_channels / g.groups, columns = g.out_channels / g.groups;
  return correlate<T>(g, forward_axes(g), x,
                      {filter, g.groups, depth, columns, depth * g.out_channels, g.out_channels, 1, columns}, y,
                      finish);
}

template <class T>
bool conv_backward_input(const ConvGeometry& geometry, const T* dy, const T* filter, T* dx, const Finish* finish) {
  const ConvGeometry g = in_three_dimensions(geometry);
  const int64_t numbers = in_cells(g) * g.in_channels;
  if (numbers == 0) return false;
  if (out_cells(g) == 0 || g.out_channels == 0 || filter_taps(g) == 0) {
    std::fill_n(dx, numbers, T(0));
    return false;
  }
  if (is_product(g)) {
    return gemm<T>(false, true, in_cells(g), g.in_channels, g.out_channels, dy, g.out_channels, filter, g.out_channels,
                   dx, g.in_channels, false, finish);
  }
  if (g.groups == 1 && g.in_channels <= kernels<T>().lanes / 4) {
    scatter_backward(g, dy, filter, dx);
    return false;
  }
  const int64_t depth = g.out_channels / g.groups, columns = g.in_channels / g.groups;
  const bool neighbours = g.stride[0] == 1 && g.stride[1] == 1 && g.stride[2] == 1;
  bool finished = false;
  for_each_residue(g, [&](const Axes& axes) {
    finished = correlate<T>(g, axes, dy,
                            {filter, g.groups, depth, columns, columns * g.out_channels, 1, g.out_channels, depth}, dx,
                            neighbours ? finish : nullptr);
  });
  return finished;
}

template <class T> void conv_backward_filter(const ConvGeometry& geometry, const T* x, const T* dy, T* dfilter) {
  const ConvGeometry g = in_three_dimensions(geometry);
  const int64_t depth = g.groups == 0 ? 0 : g.in_channels / g.groups,
                columns = g.groups == 0 ? 0 : g.out_channels / g.groups;
  const int64_t rows_total = filter_taps(g) * depth, size = rows_total * g.out_channels;
  if (size == 0) return;
  if (out_cells(g) == 0 || in_cells(g) == 0) {
    std::fill_n(dfilter, size, T(0));
    return;
  }
  if (is_product(g)) {
    gemm<T>(true, false, g.in_channels, g.out_channels, out_cells(g), x, g.in_channels, dy, g.out_channels, dfilter,
            g.out_channels, false);
    return;
  }
  const ConvKernels<T>& kernel = kernels<T>();
  const Axes axes = forward_axes(g);
  const int64_t taps_total = filter_taps(g);
  const int64_t width = columns > kernel.lanes ? 2 * kernel.lanes : kernel.lanes, panels = ceil_divide(columns, width);
  // With enough channels a tile is one tap by one part of the channels, and the parts lie apart; else it takes several
  // taps.
  const bool in_parts = depth >= 6;
  const int64_t parts = in_parts ? ceil_divide(depth, kernel.rows) : 1;
  const Layout layout{1, in_parts || g.groups > 1 ? g.groups : 1, parts, ceil_divide(depth, parts)};
  const bool pack = rows_total >= 4 * kernel.rows;
  const Blocks blocks = cut(g.batch, axes,
                            {2 * source_bytes / static_cast<int64_t>(sizeof(T)) / g.in_channels, filter_block_points,
                             64, most_slices<T>(size)});
  const int64_t slices = std::min(most_slices<T>(size), blocks.count()), total = g.groups * panels;
  const int64_t shares = std::clamp<int64_t>(ceil_divide(4 * thread_count(), slices), 1, total);

  sum_over_blocks<T>(
      blocks, out_cells(g) * rows_total * columns * g.groups, size, slices, slices < 8 ? shares : 1, dfilter,
      [&](const Block& block, T* sums, bool accumulate, int64_t share, int64_t share_count) {
        const Source<T> inside = surround(axes, block, x, g.in_channels, layout);
        const int64_t part_step = block.images * inside.image;
        const Right<T> right =
            right_of(g, block, dy, columns, width, ceil_divide(columns, kernel.lanes) * kernel.lanes - columns, pack);
        const Offsets offsets = row_offsets(axes, block, inside);
        const Offsets taps = tap_offsets(axes, inside, true);
        const Scratch<const T*> reads(rows_total);
        const Scratch<T*> writes(rows_total);
        const T** read = reads.data();
        T** write = writes.data();
        ConvTile<T> tile{};
        tile.offset = offsets.data();
        tile.outer = static_cast<int64_t>(offsets.size());
        tile.inner = block.count[2];
        tile.a_step = axes[2].step * inside.pixel;
        tile.b_step = right.pixel;
        tile.accumulate = accumulate;
        int64_t group = -1;
        for (int64_t p = total * share / share_count; p < total * (share + 1) / share_count; ++p) {
          if (group != p / panels) {
            group = p / panels;
            int64_t r = 0;
            for (int64_t part = 0; part < parts; ++part)
              for (int64_t tap = 0; tap < taps_total; ++tap)
                for (int64_t c = layout.first(part, depth); c < layout.first(part + 1, depth); ++c, ++r) {
                  read[r] = inside.origin + (group * parts + part) * part_step + taps[static_cast<size_t>(tap)] + c -
                            layout.first(part, depth);
                  write[r] = sums + (tap * depth + c) * g.out_channels;
                }
          }
          tile.c_offset = group * columns + p % panels * width;
          tile.columns = std::min(width, columns - p % panels * width);
          tile.b = right.data + (pack ? p * right.panel : tile.c_offset);
          const auto& run = tile.columns > kernel.lanes ? kernel.two_vectors : kernel.one_vector;
          auto run_tile = [&](int64_t first, int64_t rows) {
            tile.a = read + first;
            tile.c = write + first;
            run[rows - 1](tile);
          };
          if (!in_parts) {
            for_each_tile(rows_total, kernel.rows, run_tile);
            continue;
          }
          int64_t first = 0;
          for (int64_t part = 0; part < parts; ++part) {
            const int64_t rows = layout.first(part + 1, depth) - layout.first(part, depth);
            for (int64_t tap = 0; tap < taps_total; ++tap, first += rows) run_tile(first, rows);
          }
        }
      });
}

namespace {

// target[point, c] = sum over taps of source[point, tap, c] * filter[tap, c], the source's channels taken `repeat`
// times each; neighbouring runs of `fold` channels are then added into one of the target.
template <class T> void correlate_lanewise(const ConvGeometry& g, const Axes& axes, const T* source,
                                           int64_t source_channels, int64_t repeat, const T* filter, int64_t fold,
                                           T* target, const Finish* finish) {
  const ConvKernels<T>& kernel = kernels<T>();
  const int64_t channels = source_channels * repeat, pixel = ceil_divide(channels, kernel.lanes) * kernel.lanes;
  const int64_t taps = tap_count(axes);
  const Scratch<T> packed_filter(taps * pixel + 1);
  T* packed = packed_filter.data();
  T* to = packed;
  for (int64_t i : axes[0].tap)
    for (int64_t j : axes[1].tap)
      for (int64_t k : axes[2].tap) {
        std::copy_n(filter + ((i * g.filter[1] + j) * g.filter[2] + k) * channels, channels, to);
        std::fill(to + channels, to + pixel, T(0));
        to += pixel;
      }
  const Blocks blocks =
      cut(g.batch, axes,
          {source_bytes / 2 / static_cast<int64_t>(sizeof(T)) / pixel, 4096, 4 * kernel.rows, 4 * thread_count()});
  const int64_t multiplications = g.batch * axes[0].points * axes[1].points * axes[2].points * taps * channels;
  parallel_for(blocks.count(), grain_of(multiplications, blocks.count()), [&](int64_t begin, int64_t end) {
    for (int64_t item = begin; item < end; ++item) {
      const Block block = blocks[item];
      const Source<T> inside = taps > 0 ? surround(axes, block, source, source_channels, {repeat, 1, 1, pixel})
                                        : Source<T>{source, 0, 0, 0, 0};
      Offsets offsets;
      if (taps > 0) offsets = tap_offsets(axes, inside, true);
      const Points<T> points = points_of(axes, block, inside, target, channels / fold);
      const Scratch<T> products(fold > 1 ? kernel.rows * pixel : 0);
      T* unfolded = products.data();
      std::array<T*, ConvKernels<T>::most_rows> unfolded_rows;
      for (int64_t r = 0; fold > 1 && r < kernel.rows; ++r)
        unfolded_rows[static_cast<size_t>(r)] = unfolded + r * pixel;
      std::array<const T*, ConvKernels<T>::most_rows> read;
      ConvTile<T> tile{};
      tile.a = read.data();
      tile.offset = offsets.data();
      tile.outer = taps;
      tile.inner = 1;
      tile.b_step = pixel;
      for_each_tile(points.count, kernel.rows, [&](int64_t first, int64_t rows) {
        tile.c = fold > 1 ? unfolded_rows.data() : points.write.data() + first;
        for (int64_t c = 0; c < channels; c += kernel.lanes) {
          for (int64_t r = 0; r < rows; ++r) read[static_cast<size_t>(r)] = points.read[first + r] + c;
          tile.b = packed + c;
          tile.c_offset = c;
          tile.columns = std::min<int64_t>(kernel.lanes, channels - c);
          kernel.lanewise[rows - 1](tile);
        }
        for (int64_t r = 0; fold > 1 && r < rows; ++r)
          for (int64_t c = 0; c < channels / fold; ++c) {
            T sum = 0;
            for (int64_t m = 0; m < fold; ++m) sum += unfolded[r * pixel + c * fold + m];
            points.write[first + r][c] = sum;
          }
      });
      if (finish) finish_block(axes, block, channels / fold, *finish);
    }
  });
}

}  // namespace

template <class T>
bool depthwise_forward(const ConvGeometry& geometry, const T* x, const T* filter, T* y, const Finish* finish) {
  const ConvGeometry g = in_three_dimensions(geometry);
  const int64_t numbers = out_cells(g) * g.out_channels;
  if (numbers == 0) return false;
  if (in_cells(g) == 0 || filter_taps(g) == 0) {
    std::fill_n(y, numbers, T(0));
    return false;
  }
  correlate_lanewise<T>(g, forward_axes(g), x, g.in_channels, g.out_channels / g.in_channels, filter, 1, y, finish);
  return finish;
}

template <class T> void depthwise_backward_input(const ConvGeometry& geometry, const T* dy, const T* filter, T* dx) {
  const ConvGeometry g = in_three_dimensions(geometry);
  const int64_t numbers = in_cells(g) * g.in_channels;
  if (numbers == 0) return;
  if (out_cells(g) == 0 || g.out_channels == 0 || filter_taps(g) == 0) {
    std::fill_n(dx, numbers, T(0));
    return;
  }
  for_each_residue(g, [&](const Axes& axes) {
    correlate_lanewise<T>(g, axes, dy, g.out_channels, 1, filter, g.out_channels / g.in_channels, dx, nullptr);
  });
}

template <class T> void depthwise_backward_filter(const ConvGeometry& geometry, const T* x, const T* dy, T* dfilter) {
  const ConvGeometry g = in_three_dimensions(geometry);
  const int64_t taps_total = filter_taps(g), channels = g.out_channels, size = taps_total * channels;
  if (size == 0) return;
  if (out_cells(g) == 0 || in_cells(g) == 0) {
    std::fill_n(dfilter, size, T(0));
    return;
  }
  const ConvKernels<T>& kernel = kernels<T>();
  const Axes axes = forward_axes(g);
  const int64_t repeat = channels / g.in_channels, pixel = ceil_divide(channels, kernel.lanes) * kernel.lanes;
  const Blocks blocks =
      cut(g.batch, axes, {source_bytes / 2 / static_cast<int64_t>(sizeof(T)) / pixel, 4096, 64, most_slices<T>(size)});
  sum_over_blocks<T>(blocks, out_cells(g) * size, size, std::min(most_slices<T>(size), blocks.count()), 1, dfilter,
                     [&](const Block& block, T* sums, bool accumulate, int64_t, int64_t) {
                       const Source<T> inside = surround(axes, block, x, g.in_channels, {repeat, 1, 1, pixel});
                       const Right<T> right = right_of(g, block, dy, channels, channels, pixel - channels, false);
                       const Offsets offsets = row_offsets(axes, block, inside);
                       const Offsets taps = tap_offsets(axes, inside, true);
                       std::array<const T*, ConvKernels<T>::most_rows> read;
                       std::array<T*, ConvKernels<T>::most_rows> write;
                       ConvTile<T> tile{};
                       tile.a = read.data();
                       tile.c = write.data();
                       tile.offset = offsets.data();
                       tile.outer = static_cast<int64_t>(offsets.size());
                       tile.inner = block.count[2];
                       tile.a_step = axes[2].step * inside.pixel;
                       tile.b_step = right.pixel;
                       tile.accumulate = accumulate;
                       for (int64_t c = 0; c < channels; c += kernel.lanes)
                         for_each_tile(taps_total, kernel.rows, [&](int64_t first, int64_t rows) {
                           for (int64_t r = 0; r < rows; ++r) {
                             read[static_cast<size_t>(r)] = inside.origin + taps[static_cast<size_t>(first + r)] + c;
                             write[static_cast<size_t>(r)] = sums + (first + r) * channels;
                           }
                           tile.b = right.data + c;
                           tile.c_offset = c;
                           tile.columns = std::min<int64_t>(kernel.lanes, channels - c);
                           kernel.lanewise[rows - 1](tile);
                         });
                     });
}

template bool conv_forward(const ConvGeometry&, const float*, const float*, float*, const Finish*);
template bool conv_forward(const ConvGeometry&, const double*, const double*, double*, const Finish*);
template bool conv_backward_input(const ConvGeometry&, const float*, const float*, float*, const Finish*);
template bool conv_backward_input(const ConvGeometry&, const double*, const double*, double*, const Finish*);
template void conv_backward_filter(const ConvGeometry&, const float*, const float*, float*);
template void conv_backward_filter(const ConvGeometry&, const double*, const double*, double*);
template bool depthwise_forward(const ConvGeometry&, const float*, const float*, float*, const Finish*);
template bool depthwise_forward(const ConvGeometry&, const double*, const double*, double*, const Finish*);
template void depthwise_backward_input(const ConvGeometry&, const float*, const float*, float*);
template void depthwise_backward_input(const ConvGeometry&, const double*, const double*, double*);
template void depthwise_backward_filter(const ConvGeometry&, const float*, const float*, float*);
template void depthwise_backward_filter(const ConvGeometry&, const double*, const double*, double*);

}  // namespace tapeflow
