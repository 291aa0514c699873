// A fusion of elementwise operations that runs as one pass: over blocks of elements that stay in the first-level cache,
// with the same loops as the operations have by themselves, so that the results are the same to the last bit.
#pragma once
#include <tuple>
#include <utility>
#include <vector>

#include "base/compiled_loop.h"
#include "tensor/tensor.h"

namespace tapeflow {

// How an operand lies along the elements of a result, which are rows of some length: each element has its own, one for
// all, one for each column, one for each row; or in another pattern, and is written out block by block.
enum class Layout : uint8_t { full, scalar, row, column, broadcast };

// How the operands of one elementwise operation lie along its result.
struct Placement {
  Layout a = Layout::full, b = Layout::full;
  Layout condition = Layout::full;  // of a choice: never one number, nor one for a row
  int64_t row_length = 0;           // 0: no operand needs rows

  void find(const Shape& operand, const Shape& result, Layout& layout);
  // False if neither varies.
  bool find(const Shape& a_shape, const Shape& b_shape, const Shape& result) {
    find(a_shape, result, a);
    find(b_shape, result, b);
    return varies(a) || varies(b);
  }
  void find_condition(const Shape& operand, const Shape& result) {
    const int64_t length = row_length;
    find(operand, result, condition);
    if (varies(condition)) return;
    condition = Layout::broadcast;
    row_length = length;
  }
  // The one of the loops vv, vs, sv that reads such operands.
  template <class Loops> auto loop(const Loops& loops) const {
    return !varies(b) ? loops.vs : !varies(a) ? loops.sv : loops.vv;
  }
  template <class Loops> auto choice_loop(const Loops& loops) const {
    return varies(a) || varies(b) ? loop(loops) : loops.ss;
  }

 private:
  static bool varies(Layout l) { return l == Layout::full || l == Layout::row || l == Layout::broadcast; }
};

// How an operand that broadcasting repeats lies along the elements of a result: neighbouring dimensions that are all
// repeated, or all not, count as one.
class BroadcastPattern {
 public:
  BroadcastPattern(const Shape& operand, const Shape& result);
  // Writes the operand's elements for the results [first, first + n). Room for kSlack more must be there.
  void write(const TensorBody& operand, int64_t first, int64_t n, char* y) const;
  static constexpr int64_t kSlack = 16;
  // A short run that comes again and again: how long it is (0: there is none), and for how many results it does so.
  int64_t period() const { return period_; }
  int64_t region() const { return region_; }
  static constexpr int64_t kLongestPeriod = 512;
  bool operator==(const BroadcastPattern&) const = default;

 private:
  template <class T> void write_as(const T* operand, int64_t first, int64_t n, T* y) const;
  struct Group {
    int64_t length, stride;  // the stride is 0 where the operand repeats
    bool operator==(const Group&) const = default;
  };
  std::vector<Group> groups_;  // outermost first
  int64_t period_ = 0, region_ = 0;
};

class ElementwiseProgram {
 public:
  using Unary = void (*)(const void* x, void* y, int64_t n);
  using Binary = void (*)(const void* a, const void* b, void* y, int64_t n);
  using Choice = void (*)(const void* condition, const void* a, const void* b, void* y, int64_t n);
  // Several operations in one loop: see kernels/simd/fused_loops.h.
  struct Combined {
    using Loop = void (*)(const void* const* operands, const int64_t* steps, void* y, int64_t n);
    void (*run)(Loop, const void* const* operands, const bool* single, void* y, int64_t n) = nullptr;
    Loop loop = nullptr;
  };
  struct Operand {
    TensorBody* body = nullptr;  // elements in memory; null: the result of `step`, in scratch memory
    int step = -1;
    Layout layout = Layout::full;
    int written = -1;   // of a short row: which of the repeated ones; of a broadcast operand: which of those
    uint8_t width = 0;  // bytes of an element in memory
    bool operator==(const Operand&) const = default;
  };
  struct Step {
    Unary unary = nullptr;
    Binary binary = nullptr;
    Operand a = {}, b = {};
    TensorBody* target = nullptr;  // where the result is stored; null: scratch memory
    size_t width = sizeof(float);  // bytes of one result; at most 8
    Choice choice = nullptr;       // by the condition c
    Combined combined = {};        // of up to four operands
    Operand c = {}, d = {};
    Arithmetic arithmetic = Arithmetic::none;  // what it computes, if floats or doubles: it may be compiled with others
    int slot = -1;
    int last_use = -1;  // the unit that reads it last

    template <class Visit> void each_operand(Visit visit) {
      for (Operand* o : {&a, &b, &c, &d}) visit(*o);
    }
  };

  // A sum, maximum or minimum of elements: of one row, of a row and a row of results so far, and of many rows.
  template <class T> struct ReductionLoops {
    T (*row)(const T* x, int64_t n);
    void (*fold)(const T* x, T* y, int64_t n);
    T start;
    void (*short_rows)(const T* x, T* y, int64_t rows,
                       int64_t length) = nullptr;  // a result for each row; null: they are long
  };
  // Reductions of a step's results, or of elements in memory that the fusion reads, too; they are divided by `divisor`.
  // Each run of `length` neighbours is a table whose columns are reduced.
  struct Reduction {
    int step;
    TensorBody* body;
    int64_t length, columns;
    double divisor;
    TensorBody* target;
    std::tuple<ReductionLoops<float>, ReductionLoops<double>> loops = {};
  };

  ElementwiseProgram(int64_t size, int64_t row_length) : size_(size), row_length_(row_length) {}
  int add(Step step) {
    steps_.push_back(step);
    return int(steps_.size()) - 1;
  }
  // Those whose length is not that of all results have one length. All are float32, or all are float64.
  template <class T> void add(Reduction reduction, ReductionLoops<T> loops) {
    std::get<ReductionLoops<T>>(reduction.loops) = loops;
    reductions_.push_back(reduction);
    reduces_doubles_ = sizeof(T) == sizeof(double);
  }
  // The operand `body`, of another shape than the result, of a step that is added next.
  Operand broadcast(TensorBody* body, const Shape& result);
  // Compiles loops and gives scratch memory to the results that are not stored. Before the first run; `once` says that
  // there will be one.
  void finish(bool once = false);
  void run() const;
  // The same for some elements, on this thread: `rows` runs of `count`, which begin `pitch` apart. Without reductions.
  void run_part(int64_t first, int64_t count, int64_t rows, int64_t pitch) const;

 private:
  // What runs on a block: one step, or several in a compiled loop.
  struct Unit {
    int first, end;
    CompiledLoop loop = nullptr, streaming_loop = nullptr;
    std::vector<Operand> operands = {};  // of the loop
    std::vector<int> results = {};       // of the loop: steps
  };
  void make_units(bool compile);
  bool compile(int first, int end, const std::vector<int>& last_reader);
  static CompiledLoop loop_for(const Unit&, void* const* memory);
  void give_slots();
  int64_t cost() const;
  void repeat_short_rows();
  struct BroadcastOperand;
  struct Workspace;
  template <class T> struct Totals;
  template <class AfterBlock> void run_range(const Workspace&, int64_t begin, int64_t end, AfterBlock) const;
  template <class T> void run_with_reductions() const;
  int64_t reduction_chunk() const;
  int64_t lanes(const Reduction&) const;
  template <class T> void add_reductions(const Workspace&, int64_t at, int64_t n, Totals<T>&) const;
  template <class T> void add_columns(const Reduction&, T* lanes, const T* x, int64_t at, int64_t n) const;
  char* result_of(const Workspace&, const Step&, int64_t at) const;
  void write_broadcast(const Workspace&, size_t k, int64_t at, int64_t n) const;
  void run_block(const Workspace&, int64_t at, int64_t row, int64_t column, int64_t n) const;
  template <class Source> void run_step(const Step&, Source source, char* y, int64_t n) const;
  template <class Source> static void run_combined(const Step&, Source source, void* y, int64_t n);
  int64_t slot_bytes() const { return block_ * int64_t(widest_); }
  int64_t broadcast_bytes() const {
    constexpr int64_t line = 64;
    return line +
           ((block_ + BroadcastPattern::kLongestPeriod + BroadcastPattern::kSlack) * int64_t(widest_) + line - 1) /
               line * line;
  }

  std::vector<Step> steps_;
  std::vector<Unit> units_;
  bool compiled_ = false;  // some unit is
  std::vector<Reduction> reductions_;
  bool reduces_doubles_ = false;
  std::vector<TensorBody*> repeated_;  // short rows that are written out as often as they fit in a block
  std::vector<std::pair<TensorBody*, BroadcastPattern>> broadcasts_;
  int64_t size_, row_length_;
  int64_t block_ = 1024;
  size_t widest_ = sizeof(float);  // bytes of an element, of any step or operand
  int slots_ = 0;
};

}  // namespace tapeflow
