// Convolution over all channels of a group, and its two transposes.
#include "kernels/linalg/gemm.h"
#include "kernels/nn/convolve_blocks.h"

namespace tapeflow {
using namespace convolution;
namespace {

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

// target[point] = sum over taps of source[point, tap] times filter[tap]. True if it called `epilogue`, for which the
// points must be neighbours in the target.
template <class T> bool correlate(const ConvGeometry& g, const Axes& axes, const T* source, const FilterView<T>& filter,
                                  T* target, const Epilogue* epilogue) {
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
  const bool with_epilogue = epilogue && shares == 1;

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
      if (with_epilogue) run_epilogue_on_block(axes, block, target_pixel, *epilogue);
    }
  });
  return with_epilogue;
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

// A filter of one cell that moves by one over an unpadded input: a matrix product.
bool is_product(const ConvGeometry& g) {
  bool plain = g.groups == 1;
  for (int d = 0; d < 3; ++d)
    plain = plain && g.filter[d] == 1 && g.stride[d] == 1 && g.pad_before[d] == 0 && g.in[d] == g.out[d];
  return plain;
}

}  // namespace

template <class T>
bool conv_forward(const ConvGeometry& geometry, const T* x, const T* filter, T* y, const Epilogue* epilogue) {
  const ConvGeometry g = in_three_dimensions(geometry);
  if (zero_result(g, y)) return false;
  if (is_product(g)) {
    return gemm<T>(false, false, out_cells(g), g.out_channels, g.in_channels, x, g.in_channels, filter, g.out_channels,
                   y, g.out_channels, false, epilogue);
  }
  const int64_t depth = g.in_channels / g.groups, columns = g.out_channels / g.groups;
  return correlate<T>(g, forward_axes(g), x,
                      {filter, g.groups, depth, columns, depth * g.out_channels, g.out_channels, 1, columns}, y,
                      epilogue);
}

template <class T>
bool conv_backward_input(const ConvGeometry& geometry, const T* dy, const T* filter, T* dx, const Epilogue* epilogue) {
  const ConvGeometry g = in_three_dimensions(geometry);
  const int64_t numbers = in_cells(g) * g.in_channels;
  if (numbers == 0) return false;
  if (out_cells(g) == 0 || g.out_channels == 0 || filter_taps(g) == 0) {
    std::fill_n(dx, numbers, T(0));
    return false;
  }
  if (is_product(g)) {
    return gemm<T>(false, true, in_cells(g), g.in_channels, g.out_channels, dy, g.out_channels, filter, g.out_channels,
                   dx, g.in_channels, false, epilogue);
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
                            neighbours ? epilogue : nullptr);
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
        ConvTile<T> tile = tile_over(axes, block, inside, right, offsets, accumulate);
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

template bool conv_forward(const ConvGeometry&, const float*, const float*, float*, const Epilogue*);
template bool conv_forward(const ConvGeometry&, const double*, const double*, double*, const Epilogue*);
template bool conv_backward_input(const ConvGeometry&, const float*, const float*, float*, const Epilogue*);
template bool conv_backward_input(const ConvGeometry&, const double*, const double*, double*, const Epilogue*);
template void conv_backward_filter(const ConvGeometry&, const float*, const float*, float*);
template void conv_backward_filter(const ConvGeometry&, const double*, const double*, double*);

}  // namespace tapeflow
