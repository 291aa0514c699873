// How broadcasting becomes a few long inner loops.
//
// Dimensions are sorted into groups of neighbours in which the same operands vary ("both", "only a", "only b"); each
// group is then one dimension. The innermost group is handed to the operation's loop; the others are counted through.
// If the innermost group is short, the repeating operand is first broadcast over a small tile, so that the inner loop
// is long again.
#include "kernels/elementwise.h"

#include <algorithm>
#include <cstring>

#include "base/parallel.h"

namespace tapeflow {
namespace {

enum Varies { only_a = 1, only_b = 2, both = 3 };

struct Group {
  int64_t length;
  int varies;
};

struct Plan {
  int count = 0;
  Group group[kMaxRank];  // outermost first
};

Plan make_plan(const Shape& a, const Shape& b, const Shape& y) {
  Plan plan;
  int rank = y.rank(), skip_a = rank - a.rank(), skip_b = rank - b.rank();
  for (int i = 0; i < rank; ++i) {
    if (y[i] == 1) continue;
    int varies = (i >= skip_a && a[i - skip_a] != 1 ? only_a : 0) | (i >= skip_b && b[i - skip_b] != 1 ? only_b : 0);
    if (plan.count && plan.group[plan.count - 1].varies == varies)
      plan.group[plan.count - 1].length *= y[i];
    else
      plan.group[plan.count++] = {y[i], varies};
  }
  if (plan.count == 0) plan.group[plan.count++] = {1, both};
  return plan;
}

constexpr int64_t kTileElements = 512, kShortInner = 48;
struct Tile {
  alignas(64) unsigned char bytes[kTileElements * 16];
};

// Writes each of `rows` elements `times` times.
template <class Bits> void repeat_elements(const unsigned char* from, int64_t rows, int64_t times, unsigned char* to) {
  for (int64_t r = 0; r < rows; ++r, from += sizeof(Bits), to += size_t(times) * sizeof(Bits)) {
    Bits value;
    std::memcpy(&value, from, sizeof value);
    for (int64_t i = 0; i < times; ++i) std::memcpy(to + size_t(i) * sizeof value, &value, sizeof value);
  }
}
void repeat_elements(const unsigned char* from, int64_t rows, int64_t times, unsigned char* to, size_t size) {
  struct Pair {
    uint64_t half[2];
  };
  switch (size) {
    case 1: return repeat_elements<uint8_t>(from, rows, times, to);
    case 2: return repeat_elements<uint16_t>(from, rows, times, to);
    case 4: return repeat_elements<uint32_t>(from, rows, times, to);
    case 8: return repeat_elements<uint64_t>(from, rows, times, to);
    default: return repeat_elements<Pair>(from, rows, times, to);
  }
}

class BinaryWalk {
 public:
  BinaryWalk(const BinaryLoops& loops, const Plan& plan, const void* a, const void* b, void* y, ElementSizes sizes)
      : loops_(loops),
        plan_(plan),
        a_(static_cast<const unsigned char*>(a)),
        b_(static_cast<const unsigned char*>(b)),
        y_(static_cast<unsigned char*>(y)),
        sizes_(sizes) {
    int64_t step_a = 1, step_b = 1, step_y = 1;
    for (int g = plan.count - 1; g >= 0; --g) {
      step_a_[g] = (plan.group[g].varies & only_a) ? step_a : 0;
      step_b_[g] = (plan.group[g].varies & only_b) ? step_b : 0;
      step_y_[g] = step_y;
      if (step_a_[g]) step_a *= plan.group[g].length;
      if (step_b_[g]) step_b *= plan.group[g].length;
      step_y *= plan.group[g].length;
    }
  }

  // All of the outer positions [begin, end), counted over the groups but the last `inner`.
  void run(int64_t begin, int64_t end, int inner) const {
    int outer = plan_.count - inner;
    int64_t index[kMaxRank] = {};
    int64_t rest = begin;
    for (int g = outer - 1; g >= 0; --g) {
      index[g] = rest % plan_.group[g].length;
      rest /= plan_.group[g].length;
    }
    for (int64_t position = begin; position < end; ++position) {
      int64_t at_a = 0, at_b = 0, at_y = 0;
      for (int g = 0; g < outer; ++g) {
        at_a += index[g] * step_a_[g];
        at_b += index[g] * step_b_[g];
        at_y += index[g] * step_y_[g];
      }
      const unsigned char* a = a_ + size_t(at_a) * sizes_.a;
      const unsigned char* b = b_ + size_t(at_b) * sizes_.b;
      unsigned char* y = y_ + size_t(at_y) * sizes_.y;
      if (inner == 1)
        row(a, b, y, plan_.group[outer].length, plan_.group[outer].varies);
      else
        short_rows(a, b, y, plan_.group[outer], plan_.group[outer + 1]);
      for (int g = outer - 1; g >= 0 && ++index[g] == plan_.group[g].length; --g) index[g] = 0;
    }
  }

  void row(const void* a, const void* b, void* y, int64_t n, int varies) const {
    (varies == both ? loops_.vv : varies == only_a ? loops_.vs : loops_.sv)(a, b, y, n);
  }

  void flat(int64_t begin, int64_t end) const {
    int varies = plan_.group[0].varies;
    row(a_ + (varies & only_a ? size_t(begin) * sizes_.a : 0), b_ + (varies & only_b ? size_t(begin) * sizes_.b : 0),
        y_ + size_t(begin) * sizes_.y, end - begin, varies);
  }

 private:
  // Two groups, the inner one short: broadcasts the operand that is not contiguous over both into a tile.
  void short_rows(const unsigned char* a, const unsigned char* b, unsigned char* y, Group rows, Group inner) const {
    bool broadcast_b = rows.varies == only_a || inner.varies == only_a;  // b repeats in one of the groups
    const unsigned char* repeated = broadcast_b ? b : a;
    const unsigned char* steady = broadcast_b ? a : b;
    size_t size = broadcast_b ? sizes_.b : sizes_.a, steady_size = broadcast_b ? sizes_.a : sizes_.b;
    int only_steady = broadcast_b ? only_a : only_b;
    bool same_each_row = rows.varies == only_steady;  // a bias; otherwise one value per row
    Tile tile;
    int64_t rows_per_tile = std::min(kTileElements / inner.length, rows.length);
    if (same_each_row)
      for (int64_t r = 0; r < rows_per_tile; ++r)
        std::memcpy(tile.bytes + size_t(r * inner.length) * size, repeated, size_t(inner.length) * size);
    for (int64_t first = 0; first < rows.length; first += rows_per_tile) {
      int64_t count = std::min(rows_per_tile, rows.length - first), n = count * inner.length;
      if (!same_each_row) repeat_elements(repeated + size_t(first) * size, count, inner.length, tile.bytes, size);
      const unsigned char* from = steady + size_t(first * inner.length) * steady_size;
      unsigned char* to = y + size_t(first * inner.length) * sizes_.y;
      if (broadcast_b)
        loops_.vv(from, tile.bytes, to, n);
      else
        loops_.vv(tile.bytes, from, to, n);
    }
  }

  const BinaryLoops& loops_;
  const Plan& plan_;
  const unsigned char *a_, *b_;
  unsigned char* y_;
  ElementSizes sizes_;
  int64_t step_a_[kMaxRank], step_b_[kMaxRank], step_y_[kMaxRank];
};

// One operand contiguous over both groups, the other repeating in exactly one of them.
bool worth_a_tile(const Plan& plan, ElementSizes sizes) {
  if (plan.count < 2 || sizes.a > 16 || sizes.b > 16) return false;
  const Group &rows = plan.group[plan.count - 2], &inner = plan.group[plan.count - 1];
  return inner.length < kShortInner && rows.length > 1 && (rows.varies == both) != (inner.varies == both);
}

}  // namespace

void loop_unary(UnaryLoop loop, const void* x, size_t x_size, void* y, size_t y_size, int64_t n, int64_t grain) {
  if (n <= grain) return loop(x, y, n);
  parallel_for(n, grain, [&](int64_t begin, int64_t end) {
    loop(static_cast<const char*>(x) + size_t(begin) * x_size, static_cast<char*>(y) + size_t(begin) * y_size,
         end - begin);
  });
}

void loop_binary(const BinaryLoops& loops, const void* a, const Shape& a_shape, const void* b, const Shape& b_shape,
                 void* y, const Shape& y_shape, ElementSizes sizes, int64_t grain) {
  if (y_shape.elements() == 0) return;
  Plan plan = make_plan(a_shape, b_shape, y_shape);
  BinaryWalk walk(loops, plan, a, b, y, sizes);
  if (plan.count == 1) {
    int64_t n = plan.group[0].length;
    if (n <= grain) return walk.flat(0, n);
    return parallel_for(n, grain, [&](int64_t begin, int64_t end) { walk.flat(begin, end); });
  }
  int inner = worth_a_tile(plan, sizes) ? 2 : 1;
  int64_t outer = 1, length = 1;
  for (int g = 0; g < plan.count; ++g) (g < plan.count - inner ? outer : length) *= plan.group[g].length;
  parallel_for(outer, std::max<int64_t>(1, grain / length),
               [&](int64_t begin, int64_t end) { walk.run(begin, end, inner); });
}

}  // namespace tapeflow
