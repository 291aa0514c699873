// The loops of image files that go byte by byte: the filters of PNG and the LZW codes of GIF. What files say beside
// them (chunks, palettes, frames) is read in Python.
#pragma once

#include <cstddef>
#include <cstdint>

namespace tapeflow {

// Undoes the filters of PNG in place: `rows` lines of `length` bytes, pixels of `step` bytes. filters[r] (0 to 4) says
// how line r was predicted from the pixel to the left, the line above, or both.
void undo_png_filters(uint8_t* lines, const uint8_t* filters, int64_t rows, int64_t length, int64_t step);

// Decodes the LZW codes of a GIF, which begin with `first_bits` + 1 bits (1 to 8), into at most `count` bytes. Gives
// how many it wrote, or -1 where a code is used before it is made.
int64_t decode_gif_codes(const uint8_t* data, int64_t size, int first_bits, uint8_t* out, int64_t count);

}  // namespace tapeflow
