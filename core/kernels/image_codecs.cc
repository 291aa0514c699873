// PNG: every line is a sum, modulo 256, of its bytes and a prediction. GIF: a code stands for the bytes of an earlier
// code and one byte more, so the decoded bytes of any code lie together in what was written already.
#include "kernels/image_codecs.h"

#include <algorithm>
#include <cstdlib>

namespace tapeflow {
namespace {

// The neighbour that is nearest to left + up - corner.
uint8_t paeth(int left, int up, int corner) {
  const int to_left = std::abs(up - corner), to_up = std::abs(left - corner);
  const int to_corner = std::abs(left + up - 2 * corner);
  if (to_left <= to_up && to_left <= to_corner) return uint8_t(left);
  return uint8_t(to_up <= to_corner ? up : corner);
}

template <class Predict>
void add_predictions(uint8_t* line, const uint8_t* above, int64_t length, int64_t step, Predict predict) {
  for (int64_t i = 0; i < length; ++i) {
    const int left = i < step ? 0 : line[i - step], corner = i < step || !above ? 0 : above[i - step];
    line[i] = uint8_t(line[i] + predict(left, above ? above[i] : 0, corner));
  }
}

}  // namespace

void undo_png_filters(uint8_t* lines, const uint8_t* filters, int64_t rows, int64_t length, int64_t step) {
  for (int64_t r = 0; r < rows; ++r) {
    uint8_t* line = lines + r * length;
    const uint8_t* above = r ? line - length : nullptr;
    switch (filters[r]) {
      case 1: add_predictions(line, above, length, step, [](int left, int, int) { return left; }); break;
      case 2: add_predictions(line, above, length, step, [](int, int up, int) { return up; }); break;
      case 3: add_predictions(line, above, length, step, [](int left, int up, int) { return (left + up) / 2; }); break;
      case 4: add_predictions(line, above, length, step, paeth); break;
      default: break;
    }
  }
}

int64_t decode_gif_codes(const uint8_t* data, int64_t size, int first_bits, uint8_t* out, int64_t count) {
  struct Entry {
    int64_t at, length;  // its bytes in `out`
  };
  constexpr int most = 4096;
  Entry table[most];
  const int clear = 1 << first_bits, end = clear + 1;
  int next = end + 1, bits = first_bits + 1;
  Entry last{0, 0};
  int64_t written = 0;
  uint32_t held = 0;
  int held_bits = 0;
  for (int64_t i = 0; i < size; ++i) {
    held |= uint32_t(data[i]) << held_bits;
    held_bits += 8;
    while (held_bits >= bits) {
      const int code = int(held & ((1u << bits) - 1));
      held >>= bits;
      held_bits -= bits;
      if (code == clear) {
        next = end + 1, bits = first_bits + 1, last = {0, 0};
        continue;
      }
      if (code == end || written >= count) return written;
      if (code > next || (code == next && !last.length)) return -1;
      // A code that is just being made is the last one and its own first byte: both lie in `out` already.
      const Entry from = code < clear ? Entry{0, 1} : code == next ? Entry{last.at, last.length + 1} : table[code];
      const Entry made{written, std::min(from.length, count - written)};
      if (code < clear)
        out[written] = uint8_t(code);
      else
        for (int64_t k = 0; k < made.length; ++k) out[written + k] = out[from.at + k];
      written += made.length;
      if (last.length && next < most) {
        table[next++] = {last.at, last.length + 1};  // it goes on with the byte that was just written
        if (next == 1 << bits && bits < 12) ++bits;
      }
      last = made;
    }
  }
  return written;
}

}  // namespace tapeflow
