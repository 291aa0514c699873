// Depthwise convolution, each channel by itself, and its two transposes.
#include "kernels/nn/convolve_blocks.h"

namespace tapeflow {
using namespace convolution;
namespace {

// Whether the points of a row, and the taps that each meets, are neighbouring cells.
bool in_neighbouring_cells(const Axis& axis) {
  bool taps = !axis.offset.empty() && axis.step == 1;
  for (size_t k = 1; k < axis.offset.size(); ++k) taps = taps && axis.offset[k] == axis.offset[k - 1] + 1;
  return taps;
}

// The block row by row, where in_neighbouring_cells(axes[2]); `packed` has `pixel` numbers for each tap.
template <class T> void correlate_rows(const Axes& axes, const Block& block, const Source<T>& inside, const T* packed,
                                       int64_t pixel, T* target, int64_t channels) {
  const ConvKernels<T>& kernel = kernels<T>();
  const Offsets offsets = tap_offsets(axes, inside, false);
  ConvRow<T> row{};
  row.a_pixel = inside.pixel;
  row.offset = offsets.data();
  row.outer = int64_t(offsets.size());
  row.width = int64_t(axes[2].tap.size());
  row.b_step = pixel;
  row.c_pixel = axes[2].target_step * channels;
  row.points = block.count[2];
  for_each_row(axes, block, inside, target, channels, [&](const T* read, T* write) {
    for (int64_t c = 0; c < channels; c += kernel.lanes) {
      row.a = read + c;
      row.b = packed + c;
      row.c = write + c;
      row.columns = std::min<int64_t>(kernel.lanes, channels - c);
      kernel.row(row);
    }
  });
}

// target[point, c] = sum over taps of source[point, tap, c] * filter[tap, c], the source's channels taken `repeat`
// times each; neighbouring runs of `fold` channels are then added into one of the target.
template <class T> void correlate_lanewise(const ConvGeometry& g, const Axes& axes, const T* source,
                                           int64_t source_channels, int64_t repeat, const T* filter, int64_t fold,
                                           T* target, const Epilogue* epilogue) {
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
      if (taps > 0 && fold == 1 && in_neighbouring_cells(axes[2])) {
        correlate_rows(axes, block, inside, packed, pixel, target, channels);
        if (epilogue) run_epilogue_on_block(axes, block, channels, *epilogue);
        continue;
      }
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
      if (epilogue) run_epilogue_on_block(axes, block, channels / fold, *epilogue);
    }
  });
}

}  // namespace

template <class T>
bool depthwise_forward(const ConvGeometry& geometry, const T* x, const T* filter, T* y, const Epilogue* epilogue) {
  const ConvGeometry g = in_three_dimensions(geometry);
  if (zero_result(g, y)) return false;
  correlate_lanewise<T>(g, forward_axes(g), x, g.in_channels, g.out_channels / g.in_channels, filter, 1, y, epilogue);
  return epilogue;
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
                       ConvTile<T> tile = tile_over(axes, block, inside, right, offsets, accumulate);
                       tile.a = read.data();
                       tile.c = write.data();
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

template bool depthwise_forward(const ConvGeometry&, const float*, const float*, float*, const Epilogue*);
template bool depthwise_forward(const ConvGeometry&, const double*, const double*, double*, const Epilogue*);
template void depthwise_backward_input(const ConvGeometry&, const float*, const float*, float*);
template void depthwise_backward_input(const ConvGeometry&, const double*, const double*, double*);
template void depthwise_backward_filter(const ConvGeometry&, const float*, const float*, float*);
template void depthwise_backward_filter(const ConvGeometry&, const double*, const double*, double*);

}  // namespace tapeflow
