// A group of elementwise operations that runs as one pass: over blocks of elements that stay in the first-level cache,
// with the same loops as the operations have by themselves, so that the results are the same to the last bit.
#pragma once
#include <vector>

#include "kernels/elementwise.h"
#include "tensor/tensor.h"

namespace tapeflow {

class ElementwiseProgram {
 public:
  // How an operand lies along the elements of the result, which are rows of `row_length`.
  enum class Layout : uint8_t { full, scalar, row, column };
  struct Operand {
    TensorBody* body = nullptr;  // elements in memory; null: the result of `step`, in scratch memory
    int step = -1;
    Layout layout = Layout::full;
    int repeated = -1;  // of a short row: which of the repeated ones
  };
  struct Step {
    UnaryLoop unary = nullptr;
    void (*binary)(const void* a, const void* b, void* y, int64_t n) = nullptr;
    Operand a, b;
    TensorBody* target = nullptr;  // where the result is stored; null: scratch memory
    int slot = -1;
    int last_use = -1;
  };

  ElementwiseProgram(int64_t size, int64_t row_length) : size_(size), row_length_(row_length) {}
  int add(Step step) {
    steps_.push_back(step);
    return int(steps_.size()) - 1;
  }
  // Gives scratch memory to the results that are not stored. Before the first run.
  void finish();
  void run() const;

 private:
  void repeat_short_rows();
  void run_range(int64_t begin, int64_t end) const;
  struct Block;
  void run_block(const Block&) const;

  std::vector<Step> steps_;
  std::vector<TensorBody*> repeated_;  // short rows that are written out as often as they fit in a block
  int64_t size_, row_length_;  // a row length of 0: no operand needs rows
  int64_t block_ = 1024;
  int slots_ = 0;
};

}  // namespace tapeflow
