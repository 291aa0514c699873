// Compiling elementwise loops: registers are given to values in one walk over the operations.
#include "base/compiled_loop.h"

#if defined(__x86_64__) && defined(__linux__)

#include <sys/mman.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <map>
#include <mutex>
#include <string>
#include <utility>

#include "base/instruction_set.h"
#include "base/machine_code.h"

namespace tapeflow {
namespace {

using Function = Arithmetic;
using A = Assembler;

constexpr A::Register kPointers[] = {A::rax, A::r8,  A::r9,  A::r10, A::r11, A::rbx,
                                     A::rbp, A::r12, A::r13, A::r14, A::r15};
constexpr A::Register kMemory = A::rdi, kCount = A::rsi, kIndex = A::rdx;  // arguments; the byte that comes next
constexpr int kMostPointers = int(std::size(kPointers)), kFirstSaved = 5;
constexpr int kTailMask = 1, kMask = 2;

// The last elements of a 256-bit vector are masked by a part of it.
alignas(32) constexpr int32_t kEdge[16] = {-1, -1, -1, -1, -1, -1, -1, -1};

// What the hardware does for one function.
struct Instruction {
  Function function;
  int a, b, y;
};

class Compiler {
 public:
  Compiler(const LoopProgram& p, bool wide)
      : program_(p), wide_(wide), registers_(wide ? 30 : 13), code_(wide, p.doubles), inputs_(int(p.single.size())) {}

  bool compile() {
    lower();
    if (!give_pointers()) return false;
    code_.branch_target();
    const int saved = std::max(0, pointers_ - kFirstSaved);
    for (int i = 0; i < saved; ++i) code_.push(kPointers[kFirstSaved + i]);
    if (!prepare()) return false;
    if (!loops()) return false;
    if (program_.streams) code_.fence_stores();
    code_.zero_upper();
    for (int i = saved; i-- > 0;) code_.pop(kPointers[kFirstSaved + i]);
    code_.ret();
    return true;
  }
  const std::string& bytes() const { return code_.bytes(); }

 private:
  static constexpr int kNone = -1;
  struct Value {
    int pointer = kNone;  // where it is in memory: an input
    int reg = kNone;
    int uses = 0, left = 0;  // reads, in all and in this body
    bool single = false, kept = false;
    bool can_be_read_again() const { return pointer != kNone || (single && !kept); }
  };

  // ---- operations as the hardware has them

  int constant(double x) {
    for (const auto& [known, value] : constants_)
      if (std::bit_cast<uint64_t>(known) == std::bit_cast<uint64_t>(x)) return value;
    constants_.emplace_back(x, new_value());
    return constants_.back().second;
  }
  int new_value() {
    values_.emplace_back();
    return int(values_.size()) - 1;
  }
  int emit(Function f, int a, int b = kNone) {
    const int y = new_value();
    instructions_.push_back({f, a, b, y});
    return y;
  }

  void lower() {
    values_.resize(size_t(inputs_));
    for (int i = 0; i < inputs_; ++i) values_[size_t(i)].single = program_.single[size_t(i)];
    for (int i = 0; i < inputs_; ++i) number_.push_back(i);
    for (const auto& o : program_.operations) {
      const int a = number_[size_t(o.a)], b = o.b < 0 ? kNone : number_[size_t(o.b)];
      number_.push_back(lower(o.function, a, b));
    }
    for (const Instruction& i : instructions_)
      for (int v : {i.a, i.b})
        if (v != kNone) ++values_[size_t(v)].uses;
    for (int v : program_.stored) ++values_[size_t(number_[size_t(v)])].uses;
  }
  int lower(Function f, int a, int b) {
    switch (f) {
      case Function::multiply: return emit(f, a, b == kNone ? a : b);
      case Function::reciprocal: return emit(Function::divide, constant(1), a);
      case Function::reciprocal_square_root: return emit(Function::divide, constant(1), emit(Function::square_root, a));
      case Function::squared_difference: {
        const int d = emit(Function::subtract, a, b);
        return emit(Function::multiply, d, d);
      }
      case Function::tanh_grad: {  // b (1 - a²)
        const int slope = emit(Function::subtract, constant(1), emit(Function::multiply, a, a));
        return emit(Function::multiply, b, slope);
      }
      case Function::sigmoid_grad: {  // (b a) (1 - a)
        const int rest = emit(Function::subtract, constant(1), a);
        return emit(Function::multiply, emit(Function::multiply, b, a), rest);
      }
      case Function::relu: return emit(f, constant(0), a);
      case Function::relu_grad:
      case Function::sign: constant(0), constant(1), constant(-0.0); return emit(f, a, b);
      case Function::negative: return emit(f, a, constant(-0.0));
      case Function::absolute: constant(-0.0); return emit(f, a);
      default: return emit(f, a, b);
    }
  }

  // ---- registers

  // Pointers stay in registers; those of a short run for which there is none are read again wherever they are used.
  bool give_pointers() {
    for (int i = 0; i < inputs_; ++i)
      if (!values_[size_t(i)].single) {
        values_[size_t(i)].pointer = int(places_.size());
        places_.push_back(i);
      }
    first_result_ = int(places_.size());
    for (size_t k = 0; k < program_.stored.size(); ++k) places_.push_back(inputs_ + int(k));
    pointers_ = std::min(int(places_.size()), kMostPointers);
    return int(places_.size()) <= kMostPointers || program_.short_run;
  }

  // Pointers, numbers that are the same for all elements, and the count in bytes. Constants of the instructions stay in
  // registers, and as many of the single inputs as leave enough for values; the others are read where they are used.
  bool prepare() {
    int next = 0;
    const int most = wide_ ? 16 : 7;
    auto keep = [&](Value& v) {
      v.kept = true;
      v.reg = next++;
    };
    for (const auto& [number, value] : constants_) {
      if (next == most) return false;
      keep(values_[size_t(value)]);
      code_.set(A::rcx, program_.doubles ? std::bit_cast<uint64_t>(number) : std::bit_cast<uint32_t>(float(number)));
      code_.broadcast_bits(values_[size_t(value)].reg, A::rcx);
    }
    for (int i = 0; i < inputs_ && next < most; ++i) {
      Value& v = values_[size_t(i)];
      if (!v.single || v.uses == 0) continue;
      keep(v);
      load_single(v.reg, i);
    }
    first_free_ = next;
    for (int i = 0; i < pointers_; ++i) code_.load_pointer(kPointers[i], kMemory, 8 * places_[size_t(i)]);
    code_.shift_left(kCount, program_.doubles ? 3 : 2);
    code_.zero(kIndex);
    return true;
  }

  int take_register() {
    for (int r = first_free_; r < registers_; ++r)
      if (!(busy_ >> r & 1)) {
        busy_ |= uint64_t(1) << r;
        return r;
      }
    for (int i = 0; i < inputs_; ++i) {
      Value& v = values_[size_t(i)];
      if (!v.can_be_read_again() || v.reg == kNone || v.left == 0 || i == pinned_[0] || i == pinned_[1]) continue;
      return std::exchange(v.reg, kNone);
    }
    return kNone;
  }
  void use(int value) {
    Value& v = values_[size_t(value)];
    if (--v.left > 0 || v.kept || v.reg == kNone) return;
    busy_ &= ~(uint64_t(1) << v.reg);
    v.reg = kNone;
  }

  A::Memory memory(int pointer) {
    if (pointer < pointers_) return {kPointers[pointer], kIndex};
    code_.load_pointer(A::rcx, kMemory, 8 * places_[size_t(pointer)]);
    return {A::rcx, kIndex};
  }
  int temporary(int k) const { return registers_ + k; }  // 0 or 1
  int tail_mask() const { return registers_ + 2; }       // of 256 bits

  void load(int v, int pointer, bool tail) {
    if (!tail)
      code_.vector(A::load, v, 0, memory(pointer));
    else if (wide_)
      code_.vector(A::load, v, 0, memory(pointer), kTailMask, A::Masking::zero);
    else
      code_.masked_load(v, tail_mask(), memory(pointer));
  }
  void store(int pointer, int v, bool tail) {
    if (!tail)
      code_.vector(program_.streams ? A::stream : A::store, v, 0, memory(pointer));
    else if (wide_)
      code_.vector(A::store, v, 0, memory(pointer), kTailMask, A::Masking::merge);
    else
      code_.masked_store(memory(pointer), tail_mask(), v);
  }

  void load_single(int v, int input) {
    code_.load_pointer(A::rcx, kMemory, 8 * input);
    code_.broadcast(v, A::rcx);
  }

  // The register of a value; an input is loaded.
  int in_register(int value, bool tail) {
    Value& v = values_[size_t(value)];
    if (v.reg != kNone) return v.reg;
    v.reg = take_register();
    if (v.reg != kNone && v.single)
      load_single(v.reg, value);
    else if (v.reg != kNone)
      load(v.reg, v.pointer, tail);
    return v.reg;
  }

  // ---- code

  bool loops() {
    const int step = wide_ ? 64 : 32;
    // Whole vectors: while index + step <= count.
    code_.minus(kCount, step);
    code_.compare_registers(kIndex, kCount);
    const int skip = code_.jump_if(A::greater_jump);
    const int again = code_.position();
    if (!body(false)) return false;
    code_.plus(kIndex, step);
    code_.compare_registers(kIndex, kCount);
    code_.jump_to(code_.jump_if(A::less_or_equal), again);
    code_.jump_to(skip, code_.position());
    code_.plus(kCount, step);
    // The rest.
    code_.copy(A::rcx, kCount);
    code_.minus(A::rcx, kIndex);
    const int none = code_.jump_if(A::equal);
    code_.push(kMemory);
    if (wide_) {
      code_.shift_right(A::rcx, program_.doubles ? 3 : 2);
      code_.set(kMemory, 1);
      code_.shift_left_by_rcx(kMemory);
      code_.less_one(kMemory);
      code_.set_mask(kTailMask, kMemory);
    } else {
      code_.set(kMemory, uint64_t(reinterpret_cast<uintptr_t>(kEdge + 8)));
      code_.minus(kMemory, A::rcx);
      code_.vector(A::load, tail_mask(), 0, A::Memory{kMemory});
    }
    code_.pop(kMemory);
    if (!body(true)) return false;
    code_.jump_to(none, code_.position());
    return true;
  }

  bool body(bool tail) {
    busy_ = 0;
    for (Value& v : values_) {
      v.left = v.uses;
      if (!v.kept) v.reg = kNone;
    }
    for (const Instruction& i : instructions_)
      if (!translate(i, tail)) return false;
    for (size_t k = 0; k < program_.stored.size(); ++k) {
      const int value = number_[size_t(program_.stored[k])], reg = in_register(value, tail);
      if (reg == kNone) return false;
      store(first_result_ + int(k), reg, tail);
      use(value);
    }
    return true;
  }

  bool translate(const Instruction& i, bool tail) {
    if (values_[size_t(i.y)].uses == 0) {
      for (int v : {i.a, i.b})
        if (v != kNone) use(v);
      return true;
    }
    pinned_[0] = i.a;
    pinned_[1] = i.b;
    const int a = in_register(i.a, tail);
    if (a == kNone) return false;
    // An input that is read once is an operand in memory.
    int b = kNone, from = kNone;
    if (i.b != kNone) {
      const Value& second = values_[size_t(i.b)];
      if (second.reg == kNone && second.pointer != kNone && second.left == 1 && !tail && basic(i.function) != 0)
        from = second.pointer;
      else if ((b = in_register(i.b, tail)) == kNone)
        return false;
    }
    use(i.a);
    if (i.b != kNone) use(i.b);
    const int y = take_register();
    if (y == kNone) return false;
    values_[size_t(i.y)].reg = y;
    write(i.function, y, a, b, from);
    return true;
  }

  static int basic(Function f) {
    switch (f) {
      case Function::add: return A::add;
      case Function::subtract: return A::subtract;
      case Function::multiply: return A::multiply;
      case Function::divide: return A::divide;
      case Function::relu: return A::greatest;
      case Function::negative: return A::xor_bits;
      default: return 0;
    }
  }
  int kept(double number) const {
    for (const auto& [known, value] : constants_)
      if (std::bit_cast<uint64_t>(known) == std::bit_cast<uint64_t>(number)) return values_[size_t(value)].reg;
    return kNone;
  }

  // `y` may be the register of an operand.
  void write(Function f, int y, int a, int b, int from) {
    const int t = temporary(0), s = temporary(1);
    if (const auto code = A::Code(basic(f)); code != 0) {
      if (from != kNone)
        code_.vector(code, y, a, memory(from));
      else
        code_.vector(code, y, a, b);
      return;
    }
    switch (f) {
      case Function::square_root: code_.vector(A::square_root, y, 0, a); return;
      case Function::absolute:  // without the sign bit: x ^ (x & sign)
        code_.vector(A::and_bits, t, a, kept(-0.0));
        code_.vector(A::xor_bits, y, a, t);
        return;
      case Function::maximum:
      case Function::minimum:  // a NaN in `a` stays
        code_.vector(f == Function::maximum ? A::greatest : A::least, t, a, b);
        if (wide_) {
          code_.compare_vectors(A::unordered, kMask, a, a);
          code_.vector(A::move, t, 0, a, kMask, A::Masking::merge);
          code_.vector(A::move, y, 0, t);
        } else {
          code_.compare_vectors(A::unordered, s, a, a);
          code_.blend(y, t, a, s);
        }
        return;
      case Function::relu_grad:
        if (wide_) {
          code_.compare_vectors(A::greater, kMask, b, kept(0));
          code_.vector(A::move, y, 0, a, kMask, A::Masking::zero);
        } else {
          code_.compare_vectors(A::greater, t, b, kept(0));
          code_.vector(A::and_bits, y, a, t);
        }
        return;
      case Function::sign:  // 1 with the sign of x; 0 gives 0 and NaN stays
        code_.vector(A::and_bits, t, a, kept(-0.0));
        code_.vector(A::or_bits, t, t, kept(1));
        if (wide_) {
          code_.compare_vectors(A::not_equal, kMask, a, kept(0));
          code_.vector(A::add, y, a, kept(0));
          code_.vector(A::move, y, 0, t, kMask, A::Masking::merge);
        } else {
          code_.compare_vectors(A::not_equal, s, a, kept(0));
          code_.vector(A::add, y, a, kept(0));
          code_.blend(y, y, t, s);
        }
        return;
      default: return;
    }
  }

  const LoopProgram& program_;
  const bool wide_;
  const int registers_;
  Assembler code_;
  const int inputs_;
  std::vector<Instruction> instructions_;
  std::vector<Value> values_;
  std::vector<std::pair<double, int>> constants_;
  std::vector<int> number_;  // by number in the program: the value
  std::vector<int> places_;  // by pointer: in the table of all pointers, which is an argument
  int pointers_ = 0;         // that are in registers
  int first_result_ = 0, first_free_ = 0;
  int pinned_[2] = {kNone, kNone};
  uint64_t busy_ = 0;
};

// Memory that holds code is written first and can be executed, but not written, afterwards.
CompiledLoop executable(const std::string& code) {
  void* memory = mmap(nullptr, code.size(), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return nullptr;
  std::memcpy(memory, code.data(), code.size());
  if (mprotect(memory, code.size(), PROT_READ | PROT_EXEC) != 0) {
    munmap(memory, code.size());
    return nullptr;
  }
  return reinterpret_cast<CompiledLoop>(memory);
}

}  // namespace

bool can_compile_loops() {
  static const bool can = compile_loop({false, {false}, {{Arithmetic::add, 0, 0}}, {1}}) != nullptr;
  return can;
}

CompiledLoop compile_loop(const LoopProgram& program) {
  constexpr size_t kMostLoops = 4096;
  if (instruction_set() == InstructionSet::baseline) return nullptr;
  Compiler compiler(program, instruction_set() == InstructionSet::avx512);
  if (!compiler.compile()) return nullptr;
  static std::mutex mutex;
  static auto& loops = *new std::map<std::string, CompiledLoop>;
  std::lock_guard lock(mutex);
  if (const auto known = loops.find(compiler.bytes()); known != loops.end()) return known->second;
  if (loops.size() >= kMostLoops) return nullptr;
  return loops[compiler.bytes()] = executable(compiler.bytes());
}

}  // namespace tapeflow

#else

namespace tapeflow {
bool can_compile_loops() { return false; }
CompiledLoop compile_loop(const LoopProgram&) { return nullptr; }
}  // namespace tapeflow

#endif
