// What the geometries of convolutions and pools share.
#pragma once
#include <cstdint>

namespace tapeflow {

// The sizes with their dimensions moved to the right, so that the last one always is the innermost. `extent` is the
// member that holds the size of a filter or window.
template <class Geometry> Geometry in_three_dimensions(const Geometry& geometry, int64_t (Geometry::*extent)[3]) {
  Geometry g = geometry;
  const int shift = 3 - geometry.rank;
  for (int d = 0; d < 3; ++d) {
    const bool real = d >= shift;
    g.in[d] = real ? geometry.in[d - shift] : 1;
    (g.*extent)[d] = real ? (geometry.*extent)[d - shift] : 1;
    g.out[d] = real ? geometry.out[d - shift] : 1;
    g.stride[d] = real ? geometry.stride[d - shift] : 1;
    g.dilation[d] = real ? geometry.dilation[d - shift] : 1;
    g.pad_before[d] = real ? geometry.pad_before[d - shift] : 0;
  }
  g.rank = 3;
  return g;
}

}  // namespace tapeflow
