// Writes x86-64 machine code: the few instructions that elementwise loops need, with vectors of 256 or 512 bits.
#pragma once
#include <cstdint>
#include <string>

namespace tapeflow {

class Assembler {
 public:
  // General registers by their numbers; those of the caller are saved by whoever uses them.
  enum Register : uint8_t { rax, rcx, rdx, rbx, rsp, rbp, rsi, rdi, r8, r9, r10, r11, r12, r13, r14, r15 };
  struct Memory {
    Register base;
    int index = -1;  // a register that is added, or none
  };
  // The operation codes of map 0F.
  enum Code : uint8_t {
    load = 0x10,
    store = 0x11,
    move = 0x28,
    stream = 0x2b,  // stores past the caches, to aligned memory
    square_root = 0x51,
    and_bits = 0x54,
    or_bits = 0x56,
    xor_bits = 0x57,
    add = 0x58,
    multiply = 0x59,
    subtract = 0x5c,
    least = 0x5d,  // a < b ? a : b
    divide = 0x5e,
    greatest = 0x5f,  // a > b ? a : b
    compare = 0xc2,
  };
  // How elements are compared: predicates of `compare`.
  enum Predicate : uint8_t { unordered = 0x03, not_equal = 0x0c, greater = 0x1e };
  enum class Masking : uint8_t { none, merge, zero };

  Assembler(bool wide, bool doubles) : wide_(wide), doubles_(doubles) {}
  const std::string& bytes() const { return bytes_; }
  int position() const { return int(bytes_.size()); }

  // ---- general registers

  void push(Register r) { general(r, 0x50); }
  void pop(Register r) { general(r, 0x58); }
  void ret() { put(0xc3); }
  void branch_target() { put(0xf3, 0x0f, 0x1e, 0xfa); }
  void load_pointer(Register to, Register base, int32_t offset) {
    put(0x48 | (to >> 3) << 2 | base >> 3, 0x8b, 0x80 | (to & 7) << 3 | (base & 7));
    if ((base & 7) == rsp) put(0x24);
    put32(offset);
  }
  void set(Register to, uint64_t value) {
    put(0x48 | to >> 3, 0xb8 | (to & 7));
    for (int i = 0; i < 8; ++i) put(uint8_t(value >> 8 * i));
  }
  void copy(Register to, Register from) { two(0x89, to, from); }
  void minus(Register a, Register b) { two(0x29, a, b); }
  void plus(Register a, int32_t number) { with_number(0, a, number); }
  void minus(Register a, int32_t number) { with_number(5, a, number); }
  void zero(Register r) { two(0x31, r, r); }
  void test(Register r) { two(0x85, r, r); }
  void less_one(Register r) { put(0x48 | r >> 3, 0xff, 0xc8 | (r & 7)); }
  void shift_left(Register r, int by) { put(0x48 | r >> 3, 0xc1, 0xe0 | (r & 7), by); }
  void shift_right(Register r, int by) { put(0x48 | r >> 3, 0xc1, 0xe8 | (r & 7), by); }
  void shift_left_by_rcx(Register r) { put(0x48 | r >> 3, 0xd3, 0xe0 | (r & 7)); }
  void compare_registers(Register a, Register b) { two(0x39, a, b); }

  // Jumps; a forward one is given its target later.
  enum Condition : uint8_t { equal = 0x84, less = 0x8c, less_or_equal = 0x8e, greater_jump = 0x8f };
  int jump_if(Condition c) {
    put(0x0f, c);
    put32(0);
    return position();
  }
  void jump_to(int jump, int target) {
    for (int i = 0; i < 4; ++i) bytes_[size_t(jump - 4 + i)] = char(uint32_t(target - jump) >> 8 * i);
  }

  // ---- vectors: v, a and b are numbers of vector registers. Those of 512 bits may have a mask, k1 or k2.

  void vector(Code code, int v, int a, int b, int mask = 0, Masking m = Masking::none) {
    prefix(1, doubles_, doubles_, v, a, b >> 3 & 1, b >> 4 & 1, mask, m);
    put(code, 0xc0 | (v & 7) << 3 | (b & 7));
  }
  void vector(Code code, int v, int a, Memory b, int mask = 0, Masking m = Masking::none) {
    prefix(1, doubles_, doubles_, v, a, b.base >> 3, b.index < 0 ? 0 : b.index >> 3, mask, m);
    put(code);
    address(v, b);
  }
  // Into a mask register, or with 256 bits into a vector.
  void compare_vectors(Predicate p, int to, int a, int b) {
    vector(compare, to, a, b);
    put(p);
  }
  // One number for all elements.
  void broadcast(int v, Register from) {
    prefix(2, true, wide_ && doubles_, v, 0, from >> 3, 0, 0, Masking::none);
    put(doubles_ ? 0x19 : 0x18);
    address(v, {from});
  }
  void broadcast_bits(int v, Register from) {
    put(0xc4, uint8_t((v & 8 ? 0 : 0x80) | 0x40 | (from & 8 ? 0 : 0x20) | 1), doubles_ ? 0xf9 : 0x79, 0x6e,
        0xc0 | (v & 7) << 3 | (from & 7));  // vmovd or vmovq
    prefix(2, true, wide_ && doubles_, v, 0, v >> 3 & 1, 0, 0, Masking::none);
    put(doubles_ ? 0x19 : 0x18, 0xc0 | (v & 7) << 3 | (v & 7));
  }
  // 256 bits: mask ? b : a.
  void blend(int v, int a, int b, int mask) {
    prefix(3, true, false, v, a, b >> 3 & 1, 0, 0, Masking::none);
    put(doubles_ ? 0x4b : 0x4a, 0xc0 | (v & 7) << 3 | (b & 7), mask << 4);
  }
  void masked_load(int v, int mask, Memory from) { masked(0x2c, v, mask, from); }
  void masked_store(Memory to, int mask, int v) { masked(0x2e, v, mask, to); }
  // 512 bits: the mask register from a general one.
  void set_mask(int mask, Register from) { put(0xc5, 0xf8, 0x92, 0xc0 | mask << 3 | (from & 7)); }
  void fence_stores() { put(0x0f, 0xae, 0xf8); }
  void zero_upper() { put(0xc5, 0xf8, 0x77); }

 private:
  template <class... Bytes> void put(Bytes... bytes) { (bytes_.push_back(char(uint8_t(bytes))), ...); }
  void put32(int32_t x) {
    for (int i = 0; i < 4; ++i) put(uint8_t(uint32_t(x) >> 8 * i));
  }
  void general(Register r, uint8_t code) {
    if (r >= r8) put(0x41);
    put(code | (r & 7));
  }
  void two(uint8_t code, Register a, Register b) {
    put(0x48 | (b >> 3) << 2 | a >> 3, code, 0xc0 | (b & 7) << 3 | (a & 7));
  }
  void with_number(int code, Register a, int32_t number) {
    put(0x48 | a >> 3, 0x81, 0xc0 | code << 3 | (a & 7));
    put32(number);
  }
  void masked(uint8_t code, int v, int mask, Memory m) {
    prefix(2, true, false, v, mask, m.base >> 3, m.index < 0 ? 0 : m.index >> 3, 0, Masking::none);
    put(code);
    address(v, m);
  }
  // EVEX for 512 bits, else VEX. `b` and `x` are the higher bits of base and index, or of the register b.
  void prefix(int map, bool p66, bool w, int v, int a, int b, int x, int mask, Masking m) {
    auto inverted = [](int bit, int at) { return (bit & 1 ? 0 : 1) << at; };
    if (wide_) {
      put(0x62, inverted(v >> 3, 7) | inverted(x, 6) | inverted(b, 5) | inverted(v >> 4, 4) | map,
          int(w) << 7 | (~a & 15) << 3 | 4 | int(p66),
          (m == Masking::zero ? 0x80 : 0) | 0x40 | inverted(a >> 4, 3) | (m == Masking::none ? 0 : mask));
    } else {
      put(0xc4, inverted(v >> 3, 7) | inverted(x, 6) | inverted(b, 5) | map,
          int(w) << 7 | (~a & 15) << 3 | 4 | int(p66));
    }
  }
  // A memory operand without offset.
  void address(int v, Memory m) {
    const bool plain = m.index < 0 && (m.base & 7) != rsp;
    put(0x40 | (v & 7) << 3 | (plain ? m.base & 7 : 4));
    if (!plain) put((m.index < 0 ? 4 : m.index & 7) << 3 | (m.base & 7));
    put(0);
  }

  std::string bytes_;
  bool wide_, doubles_;
};

}  // namespace tapeflow
