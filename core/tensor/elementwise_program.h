// A group of elementwise operations that runs as one pass: over blocks of elements that stay in the first-level cache,
// with the same loops as the operations have by themselves, so that the results are the same to the last bit.
#pragma once
#include <vector>

#include "tensor/tensor.h"

namespace tapeflow {

// How an operand lies along the elements of a result, which are rows of some length: each element has its own, one for
// all, one for each column, one for each row.
enum class Layout : uint8_t { full, scalar, row, column };

// How the operands of one elementwise operation lie along its result.
struct Placement {
  Layout a = Layout::full, b = Layout::full;
  int64_t row_length = 0;  // 0: no operand needs rows

  // False if they lie in another way, or in one that blocks would make slow.
  bool find(const Shape& operand, const Shape& result, Layout& layout);
  bool find(const Shape& a_shape, const Shape& b_shape, const Shape& result) {
    return find(a_shape, result, a) && find(b_shape, result, b) && (varies(a) || varies(b));
  }
  // The one of the loops vv, vs, sv that reads such operands.
  template <class Loops> auto loop(const Loops& loops) const { return !varies(b) ? loops.vs : !varies(a) ? loops.sv : loops.vv; }

 private:
  static bool varies(Layout l) { return l == Layout::full || l == Layout::row; }
};

class ElementwiseProgram {
 public:
  using Unary = void (*)(const void* x, void* y, int64_t n);
  using Binary = void (*)(const void* a, const void* b, void* y, int64_t n);
  struct Operand {
    TensorBody* body = nullptr;  // elements in memory; null: the result of `step`, in scratch memory
    int step = -1;
    Layout layout = Layout::full;
    int repeated = -1;  // of a short row: which of the repeated ones
  };
  struct Step {
    Unary unary = nullptr;
    Binary binary = nullptr;
    Operand a, b;
    TensorBody* target = nullptr;  // where the result is stored; null: scratch memory
    int slot = -1;
    int last_use = -1;
  };

  // The sum of a step's results, or the sums of so many neighbours each, divided by `divisor`.
  struct Sum {
    int step;
    int64_t length;
    float divisor;
    TensorBody* target;
  };
  using SumLoop = float (*)(const float* x, int64_t n);

  ElementwiseProgram(int64_t size, int64_t row_length) : size_(size), row_length_(row_length) {}
  int add(Step step) {
    steps_.push_back(step);
    return int(steps_.size()) - 1;
  }
  // Sums that are not of all results have one length.
  void add(Sum sum, SumLoop loop) {
    sums_.push_back(sum);
    sum_ = loop;
  }
  // Gives scratch memory to the results that are not stored. Before the first run.
  void finish();
  void run() const;
  // The same for some elements, on this thread: `rows` runs of `count`, which begin `pitch` apart. Without sums.
  void run_part(int64_t first, int64_t count, int64_t rows, int64_t pitch) const;

 private:
  void repeat_short_rows();
  struct Workspace;
  void run_range(const Workspace&, int64_t begin, int64_t end, float* totals = nullptr, int64_t chunks = 0) const;
  void run_with_sums() const;
  void add_sums(const Workspace&, int64_t at, int64_t n, float* totals, int64_t chunks) const;
  const float* result_of(const Workspace&, int step, int64_t at) const;
  void run_block(const Workspace&, int64_t at, int64_t row, int64_t column, int64_t n) const;

  std::vector<Step> steps_;
  std::vector<Sum> sums_;
  SumLoop sum_ = nullptr;
  std::vector<TensorBody*> repeated_;  // short rows that are written out as often as they fit in a block
  int64_t size_, row_length_;
  int64_t block_ = 1024;
  int slots_ = 0;
};

}  // namespace tapeflow
