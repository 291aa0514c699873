// Running groups of elementwise operations block by block.
#include "tensor/elementwise_program.h"

#include <algorithm>
#include <cstring>

#include "base/parallel.h"
#include "base/small_vector.h"

namespace tapeflow {
namespace {
constexpr int64_t kScratchFloats = 12 * 1024;  // of one thread
constexpr int64_t kGrain = 1 << 16;            // elements of one cheap step that are worth a thread
constexpr int64_t kShortestRow = 32;           // elements, if each row has an operand of its own
constexpr int64_t kSumChunk = 1 << 14;         // elements of one partial sum: the same for any number of threads
}  // namespace

bool Placement::find(const Shape& operand, const Shape& result, Layout& layout) {
  int64_t size = operand.elements(), length = 0;
  int skip = 0, same = 0;
  while (skip < operand.rank() && operand[skip] == 1) ++skip;
  if (size == result.elements()) {
    layout = Layout::full;
  } else if (size == 1) {
    layout = Layout::scalar;
  } else if (operand.slice(skip, operand.rank()) == result.slice(result.rank() - operand.rank() + skip, result.rank())) {
    layout = Layout::row;
    length = size;
  } else {
    if (operand.rank() != result.rank()) return false;
    while (same < operand.rank() && operand[same] == result[same]) ++same;
    for (int i = same; i < operand.rank(); ++i)
      if (operand[i] != 1) return false;
    layout = Layout::column;
    length = result.elements(same, result.rank());
    if (length < kShortestRow) return false;
  }
  if (length != 0 && row_length != 0 && row_length != length) return false;
  if (length != 0) row_length = length;
  return true;
}

void ElementwiseProgram::finish() {
  for (Step& s : steps_) s.last_use = -1;
  for (size_t i = 0; i < steps_.size(); ++i)
    for (const Operand& o : {steps_[i].a, steps_[i].b})
      if (o.step >= 0) steps_[size_t(o.step)].last_use = int(i);
  for (const Sum& s : sums_) steps_[size_t(s.step)].last_use = int(steps_.size());
  std::vector<bool> used;
  for (size_t i = 0; i < steps_.size(); ++i) {
    Step& s = steps_[i];
    // The loops may write over what they read: an operand's slot is free for the result of its last reader.
    for (const Operand& o : {s.a, s.b})
      if (o.step >= 0 && steps_[size_t(o.step)].last_use == int(i) && steps_[size_t(o.step)].slot >= 0)
        used[size_t(steps_[size_t(o.step)].slot)] = false;
    if (s.target) continue;
    auto free = std::find(used.begin(), used.end(), false);
    s.slot = int(free - used.begin());
    if (free == used.end())
      used.push_back(true);
    else
      *free = true;
  }
  slots_ = int(used.size());
  while (block_ > 128 && slots_ * block_ > kScratchFloats) block_ /= 2;
  block_ = std::min(block_, std::max<int64_t>(16, (size_ + 15) / 16 * 16));
  repeat_short_rows();
}

void ElementwiseProgram::repeat_short_rows() {
  if (row_length_ == 0 || 2 * row_length_ > block_) return;
  for (const Step& s : steps_)
    for (const Operand& o : {s.a, s.b})
      if (o.body && o.layout == Layout::column) return;
  for (Step& s : steps_)
    for (Operand* o : {&s.a, &s.b}) {
      if (!o->body || o->layout != Layout::row) continue;
      auto at = std::find(repeated_.begin(), repeated_.end(), o->body);
      o->repeated = int(at - repeated_.begin());
      if (at == repeated_.end()) repeated_.push_back(o->body);
    }
}

// The memory of one thread: what steps leave for later ones, and the short rows, written out.
struct ElementwiseProgram::Workspace {
  explicit Workspace(const ElementwiseProgram& program, int64_t elements) {
    const int64_t block = program.block_, rows = program.row_length_;
    const int64_t slots = program.slots_ * block, floats = slots + int64_t(program.repeated_.size()) * block;
    if (floats > kOnStack) {
      more.resize(size_t(floats));
      scratch = more.data();
    }
    repeated = scratch + slots;
    for (size_t k = 0; k < program.repeated_.size(); ++k)
      for (int64_t i = 0; i + rows <= block && i < elements + rows; i += rows)
        std::memcpy(repeated + int64_t(k) * block + i, program.repeated_[k]->data, size_t(rows) * sizeof(float));
  }

  static constexpr int64_t kOnStack = kScratchFloats + 4096;
  alignas(64) float on_stack[kOnStack];
  std::vector<float> more;
  float *scratch = on_stack, *repeated;
};

void ElementwiseProgram::run() const {
  if (!sums_.empty()) return run_with_sums();
  int64_t grain = std::max<int64_t>(4 * block_, kGrain / int64_t(steps_.size()));
  if (size_ <= grain) return run_part(0, size_, 1, 0);
  int64_t unit = row_length_ == 0 ? 1 : row_length_;
  parallel_for(size_ / unit, std::max<int64_t>(1, grain / unit),
               [&](int64_t begin, int64_t end) { run_part(begin * unit, (end - begin) * unit, 1, 0); });
}

void ElementwiseProgram::run_part(int64_t first, int64_t count, int64_t rows, int64_t pitch) const {
  Workspace workspace(*this, count);
  for (int64_t r = 0; r < rows; ++r) run_range(workspace, first + r * pitch, first + r * pitch + count);
}

// Each chunk has a partial sum of its own.
void ElementwiseProgram::run_with_sums() const {
  int64_t unit = 1;
  for (const Sum& s : sums_) {
    if (s.length == size_) continue;
    unit = s.length;
    std::memset(s.target->data, 0, size_t(s.target->size) * sizeof(float));
  }
  const int64_t chunk = std::max<int64_t>(1, kSumChunk / unit) * unit, chunks = (size_ + chunk - 1) / chunk;
  SmallVector<float, 64> totals;
  totals.resize(size_t(chunks) * sums_.size());
  const int64_t cost = chunk * int64_t(steps_.size() + sums_.size());
  parallel_for(chunks, std::max<int64_t>(1, kGrain / cost), [&](int64_t begin, int64_t end) {
    Workspace workspace(*this, (end - begin) * chunk);
    for (int64_t c = begin; c < end; ++c) run_range(workspace, c * chunk, std::min(size_, (c + 1) * chunk), totals.data() + c, chunks);
  });
  for (size_t k = 0; k < sums_.size(); ++k) {
    const Sum& s = sums_[k];
    float* y = static_cast<float*>(s.target->data);
    if (s.length == size_) *y = sum_(totals.data() + int64_t(k) * chunks, chunks);
    for (int64_t i = 0; s.divisor != 1 && i < s.target->size; ++i) y[i] /= s.divisor;
  }
}

// What a step left for the block that begins at an element.
const float* ElementwiseProgram::result_of(const Workspace& workspace, int step, int64_t at) const {
  const Step& s = steps_[size_t(step)];
  return s.target ? static_cast<const float*>(s.target->data) + at : workspace.scratch + s.slot * block_;
}

void ElementwiseProgram::add_sums(const Workspace& workspace, int64_t at, int64_t n, float* totals, int64_t chunks) const {
  for (size_t k = 0; k < sums_.size(); ++k) {
    const Sum& s = sums_[k];
    const float* x = result_of(workspace, s.step, at);
    if (s.length == size_) {
      totals[int64_t(k) * chunks] += sum_(x, n);
      continue;
    }
    float* y = static_cast<float*>(s.target->data);
    for (int64_t done = 0, count; done < n; done += count) {
      const int64_t row = (at + done) / s.length;
      count = std::min(n - done, (row + 1) * s.length - at - done);
      y[row] += sum_(x + done, count);
    }
  }
}

void ElementwiseProgram::run_range(const Workspace& workspace, int64_t begin, int64_t end, float* totals, int64_t chunks) const {
  // Blocks do not go beyond the rows that a row operand is written out for.
  int64_t whole = row_length_ == 0 ? block_ : repeated_.empty() ? row_length_ : block_ / row_length_ * row_length_;
  for (int64_t at = begin, n; at < end; at += n) {
    int64_t column = row_length_ == 0 ? 0 : at % row_length_;
    n = std::min({block_, whole - column, end - at});
    run_block(workspace, at, row_length_ == 0 ? 0 : at / row_length_, column, n);
    if (totals) add_sums(workspace, at, n, totals, chunks);
  }
}

void ElementwiseProgram::run_block(const Workspace& workspace, int64_t at, int64_t row, int64_t column, int64_t n) const {
  float* scratch = workspace.scratch;
  auto source = [&](const Operand& o) -> const float* {
    if (o.step >= 0) return result_of(workspace, o.step, at);
    if (o.repeated >= 0) return workspace.repeated + o.repeated * block_ + column;
    const float* p = static_cast<const float*>(o.body->data);
    switch (o.layout) {
      case Layout::full: return p + at;
      case Layout::row: return p + column;
      case Layout::column: return p + row;
      default: return p;
    }
  };
  for (const Step& s : steps_) {
    float* y = s.target ? static_cast<float*>(s.target->data) + at : scratch + s.slot * block_;
    if (s.binary)
      s.binary(source(s.a), source(s.b), y, n);
    else
      s.unary(source(s.a), y, n);
  }
}

}  // namespace tapeflow
