// A group of elementwise operations that runs as one pass: over blocks of elements that stay in the first-level cache,
// with the same loops as the operations have by themselves, so that the results are the same to the last bit.
#pragma once
#include <utility>
#include <vector>

#include "tensor/tensor.h"

namespace tapeflow {

// How an operand lies along the elements of a result, which are rows of some length: each element has its own, one for
// all, one for each column, one for each row; or in another way, and is written out block by block.
enum class Layout : uint8_t { full, scalar, row, column, spread };

// How the operands of one elementwise operation lie along its result.
struct Placement {
  Layout a = Layout::full, b = Layout::full;
  int64_t row_length = 0;  // 0: no operand needs rows

  void find(const Shape& operand, const Shape& result, Layout& layout);
  // False if neither varies.
  bool find(const Shape& a_shape, const Shape& b_shape, const Shape& result) {
    find(a_shape, result, a);
    find(b_shape, result, b);
    return varies(a) || varies(b);
  }
  // The one of the loops vv, vs, sv that reads such operands.
  template <class Loops> auto loop(const Loops& loops) const { return !varies(b) ? loops.vs : !varies(a) ? loops.sv : loops.vv; }

 private:
  static bool varies(Layout l) { return l == Layout::full || l == Layout::row || l == Layout::spread; }
};

// How an operand that broadcasting repeats lies along the elements of a result: neighbouring dimensions that are all
// repeated, or all not, count as one.
class Spreading {
 public:
  Spreading(const Shape& operand, const Shape& result);
  // Writes the operand's elements for the results [first, first + n). Room for kSlack more must be there.
  void write(const float* operand, int64_t first, int64_t n, float* y) const;
  static constexpr int64_t kSlack = 16;

 private:
  struct Group {
    int64_t length, stride;  // the stride is 0 where the operand repeats
  };
  std::vector<Group> groups_;  // outermost first
};

class ElementwiseProgram {
 public:
  using Unary = void (*)(const void* x, void* y, int64_t n);
  using Binary = void (*)(const void* a, const void* b, void* y, int64_t n);
  struct Operand {
    TensorBody* body = nullptr;  // elements in memory; null: the result of `step`, in scratch memory
    int step = -1;
    Layout layout = Layout::full;
    int written = -1;  // of a short row: which of the repeated ones; of a spread operand: which of those
  };
  struct Step {
    Unary unary = nullptr;
    Binary binary = nullptr;
    Operand a, b;
    TensorBody* target = nullptr;  // where the result is stored; null: scratch memory
    int slot = -1;
    int last_use = -1;
  };

  // Sums of a step's results, divided by `divisor`: each run of `length` neighbours is a table whose columns are added up.
  struct Sum {
    int step;
    int64_t length, columns;
    float divisor;
    TensorBody* target;
  };
  struct SumLoops {
    float (*sum)(const float* x, int64_t n);
    void (*accumulate)(const float* x, float* y, int64_t n);  // y += x
  };

  ElementwiseProgram(int64_t size, int64_t row_length) : size_(size), row_length_(row_length) {}
  int add(Step step) {
    steps_.push_back(step);
    return int(steps_.size()) - 1;
  }
  // Sums whose length is not that of all results have one length.
  void add(Sum sum, SumLoops loops) {
    sums_.push_back(sum);
    loops_ = loops;
  }
  // The operand `body`, of another shape than the result, of a step that is added next.
  Operand spread(TensorBody* body, const Shape& result);
  // Gives scratch memory to the results that are not stored. Before the first run.
  void finish();
  void run() const;
  // The same for some elements, on this thread: `rows` runs of `count`, which begin `pitch` apart. Without sums.
  void run_part(int64_t first, int64_t count, int64_t rows, int64_t pitch) const;

 private:
  void repeat_short_rows();
  struct Workspace;
  struct Totals;
  void run_range(const Workspace&, int64_t begin, int64_t end, Totals* = nullptr) const;
  void run_with_sums() const;
  int64_t sum_chunk() const;
  int64_t lanes(const Sum&) const;
  void add_sums(const Workspace&, int64_t at, int64_t n, Totals&) const;
  void add_columns(const Sum&, float* lanes, const float* x, int64_t at, int64_t n) const;
  const float* result_of(const Workspace&, int step, int64_t at) const;
  void run_block(const Workspace&, int64_t at, int64_t row, int64_t column, int64_t n) const;

  std::vector<Step> steps_;
  std::vector<Sum> sums_;
  SumLoops loops_{};
  std::vector<TensorBody*> repeated_;  // short rows that are written out as often as they fit in a block
  std::vector<std::pair<TensorBody*, Spreading>> spread_;
  int64_t size_, row_length_;
  int64_t block_ = 1024;
  int slots_ = 0;
};

}  // namespace tapeflow
