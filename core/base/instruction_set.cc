// Asking the processor, once.
#include "base/instruction_set.h"

#include <cstdint>
#include <cstdlib>
#include <cstring>

#if defined(__x86_64__)
#include <cpuid.h>
#endif
#if defined(__x86_64__) && defined(__linux__)
#include <sys/syscall.h>
#include <unistd.h>
#endif

namespace tapeflow {
namespace {

#if defined(__x86_64__)
// What the processor has and the system saves when it switches threads. Asked of the processor itself, because the
// compilers' builtins need a library that not every one of them links.
struct Features {
  bool avx2 = false, avx512 = false, avx512_bf16 = false, amx_bf16 = false;
};

Features ask() {
  Features found;
  uint32_t a, b, c, d, state, upper;
  if (!__get_cpuid(1, &a, &b, &c, &d) || !(c & bit_OSXSAVE)) return found;
  const bool fma_and_f16c = (c & bit_FMA) && (c & bit_F16C);
  __asm__("xgetbv" : "=a"(state), "=d"(upper) : "c"(0));
  constexpr uint32_t ymm = 0x6, zmm = 0xe6;  // of XCR0: the registers that are saved
  if (!__get_cpuid_count(7, 0, &a, &b, &c, &d)) return found;
  found.avx2 = (state & ymm) == ymm && fma_and_f16c && (b & bit_AVX2);
  constexpr uint32_t sets = bit_AVX512F | bit_AVX512BW | bit_AVX512DQ | bit_AVX512VL;
  found.avx512 = found.avx2 && (state & zmm) == zmm && (b & sets) == sets;
  constexpr uint32_t amx = 1 << 22 | 1 << 24, tiles = 0x60000;  // products of bfloat16 and tiles; of XCR0
  found.amx_bf16 = found.avx512 && (d & amx) == amx && (state & tiles) == tiles;
  constexpr uint32_t bf16 = 1 << 5;
  found.avx512_bf16 = found.avx512 && __get_cpuid_count(7, 1, &a, &b, &c, &d) && (a & bf16);
  return found;
}

const Features& features() {
  static const Features found = ask();
  return found;
}
#endif

InstructionSet choose() {
#if defined(__x86_64__)
  const char* wish = std::getenv("TAPEFLOW_ISA");
  auto wanted = [wish](const char* name) { return !wish || !std::strcmp(wish, name); };
  if (features().avx512 && wanted("avx512")) return InstructionSet::avx512;
  if (features().avx2 && (wanted("avx2") || wanted("avx512"))) return InstructionSet::avx2;
#endif
  return InstructionSet::baseline;
}

}  // namespace

InstructionSet instruction_set() {
  static const InstructionSet chosen = choose();
  return chosen;
}

bool has_avx512_bf16() {
#if defined(__x86_64__)
  return instruction_set() == InstructionSet::avx512 && features().avx512_bf16;
#else
  return false;
#endif
}

bool has_amx_bf16() {
#if defined(__x86_64__) && defined(__linux__)
  constexpr long request_permission = 0x1023, tile_data = 18;  // ARCH_REQ_XCOMP_PERM of Linux 5.16 and newer
  return has_avx512_bf16() && features().amx_bf16 && syscall(SYS_arch_prctl, request_permission, tile_data) == 0;
#else
  return false;
#endif
}

}  // namespace tapeflow
