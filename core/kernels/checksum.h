// CRC-32C (Castagnoli), the checksum of record and checkpoint files.
#pragma once

#include <cstddef>
#include <cstdint>

namespace tapeflow {

// The checksum of some bytes, after others of which the checksum is `start` (0 for none).
uint32_t crc32c(const void* data, size_t size, uint32_t start);

}  // namespace tapeflow
