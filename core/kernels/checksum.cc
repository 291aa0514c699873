// The checksum, eight bytes at a time: table k holds the effect of a byte with k bytes after it.
#include "kernels/checksum.h"

#include <array>
#include <cstring>

namespace tapeflow {
namespace {

using Tables = std::array<std::array<uint32_t, 256>, 8>;

constexpr Tables make_tables() {
  Tables tables{};
  for (uint32_t byte = 0; byte < 256; ++byte) {
    uint32_t crc = byte;
    for (int bit = 0; bit < 8; ++bit) crc = crc >> 1 ^ (crc & 1 ? 0x82f63b78u : 0);
    tables[0][byte] = crc;
  }
  for (size_t k = 1; k < 8; ++k)
    for (size_t byte = 0; byte < 256; ++byte)
      tables[k][byte] = tables[0][tables[k - 1][byte] & 0xff] ^ tables[k - 1][byte] >> 8;
  return tables;
}

constexpr Tables tables = make_tables();

}  // namespace

uint32_t crc32c(const void* data, size_t size, uint32_t start) {
  const auto* p = static_cast<const unsigned char*>(data);
  uint32_t crc = ~start;
  for (; size >= 8; size -= 8, p += 8) {
    unsigned char bytes[8];
    std::memcpy(bytes, p, sizeof bytes);
    for (int k = 0; k < 4; ++k) bytes[k] = static_cast<unsigned char>(bytes[k] ^ crc >> 8 * k);
    crc = 0;
    for (size_t k = 0; k < 8; ++k) crc ^= tables[7 - k][bytes[k]];
  }
  for (; size > 0; --size, ++p) crc = tables[0][(crc ^ *p) & 0xff] ^ crc >> 8;
  return ~crc;
}

}  // namespace tapeflow
