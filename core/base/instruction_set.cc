// Asking the processor, once.
#include "base/instruction_set.h"

#include <cstdlib>
#include <cstring>

namespace tapeflow {
namespace {

InstructionSet choose() {
#if defined(__x86_64__)
  const char* wish = std::getenv("TAPEFLOW_ISA");
  auto wanted = [wish](const char* name) { return !wish || !std::strcmp(wish, name); };
  __builtin_cpu_init();
  const bool has_avx2 =
      __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("f16c");
  const bool has_avx512 = has_avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                          __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
  if (has_avx512 && wanted("avx512")) return InstructionSet::avx512;
  if (has_avx2 && (wanted("avx2") || wanted("avx512"))) return InstructionSet::avx2;
#endif
  return InstructionSet::baseline;
}

}  // namespace

InstructionSet instruction_set() {
  static const InstructionSet chosen = choose();
  return chosen;
}

}  // namespace tapeflow
