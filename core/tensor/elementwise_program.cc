// Running groups of elementwise operations block by block.
#include "tensor/elementwise_program.h"

#include <algorithm>
#include <cstring>

#include "base/parallel.h"
#include "base/scratch.h"
#include "base/small_vector.h"

namespace tapeflow {
namespace {
constexpr int64_t kScratchFloats = 12 * 1024;  // of one thread
constexpr int64_t kGrain = 1 << 16;            // elements of one cheap step that are worth a thread
constexpr int64_t kShortestRow = 128;          // elements of a row for which an operand of its own is not written out
constexpr int64_t kSumChunk = 1 << 14;         // elements of one partial sum: the same for any number of threads
}  // namespace

void Placement::find(const Shape& operand, const Shape& result, Layout& layout) {
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
    const int ahead = result.rank() - operand.rank();  // dimensions that the operand has not got
    if (ahead == 0)
      while (same < operand.rank() && operand[same] == result[same]) ++same;
    bool by_row = ahead == 0;
    for (int i = same; i < operand.rank(); ++i) by_row &= operand[i] == 1;
    length = by_row ? result.elements(same, result.rank()) : 0;
    layout = length >= kShortestRow ? Layout::column : Layout::spread;
  }
  if (length != 0 && row_length != 0 && row_length != length) layout = Layout::spread;
  if (layout == Layout::row || layout == Layout::column) row_length = length;
}

Spreading::Spreading(const Shape& operand, const Shape& result) {
  const int ahead = result.rank() - operand.rank();
  int64_t stride = 1;
  for (int i = result.rank(); i-- > 0;) {
    if (result[i] == 1) continue;
    const bool varies = i >= ahead && operand[i - ahead] != 1;
    if (!groups_.empty() && (groups_.back().stride != 0) == varies) groups_.back().length *= result[i];
    else groups_.push_back({result[i], varies ? stride : 0});
    if (varies) stride *= result[i];
  }
  if (groups_.empty()) groups_.push_back({1, 0});
  std::reverse(groups_.begin(), groups_.end());
}

void Spreading::write(const float* operand, int64_t first, int64_t n, float* y) const {
  const size_t last = groups_.size() - 1;
  const Group inner = groups_[last];
  int64_t index[kMaxRank], rest = first, offset = 0;
  for (size_t g = groups_.size(); g-- > 0;) {
    index[g] = rest % groups_[g].length;
    rest /= groups_[g].length;
    offset += index[g] * groups_[g].stride;
  }
  for (int64_t done = 0; done < n;) {
    const int64_t count = std::min(inner.length - index[last], n - done);
    const float* from = operand + offset;
    if (inner.stride == 0) {
      constexpr int64_t together = 4;
      for (int64_t i = 0; i < count; i += together)
        for (int64_t k = 0; k < together; ++k) y[done + i + k] = *from;
    } else if (count >= 8) {
      std::memcpy(y + done, from, size_t(count) * sizeof(float));
    } else {
      for (int64_t i = 0; i < count; ++i) y[done + i] = from[i];
    }
    done += count;
    // A short run that comes again, as often as it does.
    if (last > 0 && groups_[last - 1].stride == 0 && count == inner.length && done < n) {
      int64_t more = std::min((groups_[last - 1].length - 1 - index[last - 1]) * count, n - done), there = count;
      index[last - 1] += more / count;
      if (more % count == 0) {
        for (int64_t made = 0, part; made < more; made += part, there += part) {
          part = std::min(there, more - made);
          std::memcpy(y + done + made, y + done - count, size_t(part) * sizeof(float));
        }
        done += more;
      } else {
        for (int64_t made = 0; made < more; made += std::min(count, more - made))
          std::memcpy(y + done + made, y + done - count, size_t(std::min(count, more - made)) * sizeof(float));
        return;  // n is reached
      }
    }
    offset -= index[last] * inner.stride;
    index[last] = 0;
    for (size_t g = last; g-- > 0;) {
      offset += groups_[g].stride;
      if (++index[g] < groups_[g].length) break;
      offset -= index[g] * groups_[g].stride;
      index[g] = 0;
    }
  }
}

ElementwiseProgram::Operand ElementwiseProgram::spread(TensorBody* body, const Shape& result) {
  Operand o{body, -1, Layout::spread, int(spread_.size())};
  spread_.emplace_back(body, Spreading(body->shape, result));
  return o;
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
      o->written = int(at - repeated_.begin());
      if (at == repeated_.end()) repeated_.push_back(o->body);
    }
}

// The memory of one thread: what steps leave for later ones, the short rows, written out, and spread operands.
struct ElementwiseProgram::Workspace {
  explicit Workspace(const ElementwiseProgram& program, int64_t elements) {
    const int64_t block = program.block_, rows = program.row_length_;
    const int64_t slots = program.slots_ * block, short_rows = int64_t(program.repeated_.size()) * block;
    const int64_t floats = slots + short_rows + int64_t(program.spread_.size()) * (block + Spreading::kSlack);
    if (floats > kOnStack) {
      more.resize(size_t(floats));
      scratch = more.data();
    }
    repeated = scratch + slots;
    spread = repeated + short_rows;
    for (size_t k = 0; k < program.repeated_.size(); ++k)
      for (int64_t i = 0; i + rows <= block && i < elements + rows; i += rows)
        std::memcpy(repeated + int64_t(k) * block + i, program.repeated_[k]->data, size_t(rows) * sizeof(float));
  }

  static constexpr int64_t kOnStack = kScratchFloats + 4096;
  alignas(64) float on_stack[kOnStack];
  std::vector<float> more;
  float *scratch = on_stack, *repeated, *spread;
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

// How many elements have partial sums of their own: the same for any number of threads.
int64_t ElementwiseProgram::sum_chunk() const {
  int64_t unit = 1, least = kSumChunk;
  for (const Sum& s : sums_) {
    if (s.length != size_) unit = s.length;
    else if (s.columns > 1) least = std::max(least, 32 * s.columns);
  }
  return std::max<int64_t>(1, least / unit) * unit;
}

// Several rows of a table are added up side by side if they are short.
int64_t ElementwiseProgram::lanes(const Sum& s) const {
  return s.columns == 1 ? 0 : s.columns * std::clamp<int64_t>(block_ / s.columns, 1, s.length / s.columns);
}

// Where the sums of one chunk go.
struct ElementwiseProgram::Totals {
  float* of_all;   // one number for each sum over all elements, `pitch` apart; then the columns of each table of all elements
  int64_t pitch;
  float* columns;
  float* lanes;    // of all sums of columns, one after the other; zeros at first
};

void ElementwiseProgram::run_with_sums() const {
  const int64_t chunk = sum_chunk(), chunks = (size_ + chunk - 1) / chunk;
  int64_t lane_count = 0, columns = 0;
  for (const Sum& s : sums_) {
    lane_count += lanes(s);
    if (s.columns > 1 && s.length == size_) columns += s.columns;
    if (s.length != size_) std::memset(s.target->data, 0, size_t(s.target->size) * sizeof(float));
  }
  SmallVector<float, 64> totals;
  totals.resize(size_t(chunks) * sums_.size());
  Scratch<float> tables(chunks * columns);
  std::ranges::fill(tables, 0.0f);
  const int64_t cost = chunk * int64_t(steps_.size() + sums_.size());
  parallel_for(chunks, std::max<int64_t>(1, kGrain / cost), [&](int64_t begin, int64_t end) {
    Workspace workspace(*this, (end - begin) * chunk);
    Scratch<float> all_lanes(lane_count);
    std::ranges::fill(all_lanes, 0.0f);
    for (int64_t c = begin; c < end; ++c) {
      Totals of_chunk{totals.data() + c, chunks, tables.data() + c * columns, all_lanes.data()};
      run_range(workspace, c * chunk, std::min(size_, (c + 1) * chunk), &of_chunk);
      float *from = all_lanes.data(), *to = of_chunk.columns;
      for (const Sum& s : sums_) {
        if (s.columns > 1 && s.length == size_) {
          for (int64_t k = 0; k < lanes(s); k += s.columns) loops_.accumulate(from + k, to, s.columns);
          std::memset(from, 0, size_t(lanes(s)) * sizeof(float));
          to += s.columns;
        }
        from += lanes(s);
      }
    }
  });
  int64_t column = 0;
  for (size_t k = 0; k < sums_.size(); ++k) {
    const Sum& s = sums_[k];
    float* y = static_cast<float*>(s.target->data);
    if (s.length == size_ && s.columns == 1) *y = loops_.sum(totals.data() + int64_t(k) * chunks, chunks);
    if (s.length == size_ && s.columns > 1) {
      std::memset(y, 0, size_t(s.columns) * sizeof(float));
      for (int64_t c = 0; c < chunks; ++c) loops_.accumulate(tables.data() + c * columns + column, y, s.columns);
      column += s.columns;
    }
    for (int64_t i = 0; s.divisor != 1 && i < s.target->size; ++i) y[i] /= s.divisor;
  }
}

// What a step left for the block that begins at an element.
const float* ElementwiseProgram::result_of(const Workspace& workspace, int step, int64_t at) const {
  const Step& s = steps_[size_t(step)];
  return s.target ? static_cast<const float*>(s.target->data) + at : workspace.scratch + s.slot * block_;
}

void ElementwiseProgram::add_sums(const Workspace& workspace, int64_t at, int64_t n, Totals& totals) const {
  float* own_lanes = totals.lanes;
  for (size_t k = 0; k < sums_.size(); ++k) {
    const Sum& s = sums_[k];
    const float* x = result_of(workspace, s.step, at);
    if (s.columns > 1) {
      add_columns(s, own_lanes, x, at, n);
      own_lanes += lanes(s);
      continue;
    }
    if (s.length == size_) {
      totals.of_all[int64_t(k) * totals.pitch] += loops_.sum(x, n);
      continue;
    }
    float* y = static_cast<float*>(s.target->data);
    int64_t row = at / s.length, count = std::min(n, (row + 1) * s.length - at);
    for (int64_t done = 0; done < n; done += count, ++row, count = std::min(n - done, s.length)) y[row] += loops_.sum(x + done, count);
  }
}

// A table that is not of all elements lies in one chunk; its columns are ready with its last element.
void ElementwiseProgram::add_columns(const Sum& s, float* own_lanes, const float* x, int64_t at, int64_t n) const {
  const int64_t width = lanes(s);
  for (int64_t done = 0, count; done < n; done += count) {
    const int64_t in_table = (at + done) % s.length, lane = in_table % width;
    count = std::min({n - done, s.length - in_table, width - lane});
    loops_.accumulate(x + done, own_lanes + lane, count);
    if (s.length == size_ || in_table + count < s.length) continue;
    float* y = static_cast<float*>(s.target->data) + (at + done) / s.length * s.columns;
    for (int64_t k = 0; k < width; k += s.columns) loops_.accumulate(own_lanes + k, y, s.columns);
    std::memset(own_lanes, 0, size_t(width) * sizeof(float));
  }
}

void ElementwiseProgram::run_range(const Workspace& workspace, int64_t begin, int64_t end, Totals* totals) const {
  // Blocks do not go beyond the rows that a row operand is written out for.
  int64_t whole = row_length_ == 0 ? block_ : repeated_.empty() ? row_length_ : block_ / row_length_ * row_length_;
  for (int64_t at = begin, n; at < end; at += n) {
    int64_t column = row_length_ == 0 ? 0 : at % row_length_;
    n = std::min({block_, whole - column, end - at});
    run_block(workspace, at, row_length_ == 0 ? 0 : at / row_length_, column, n);
    if (totals) add_sums(workspace, at, n, *totals);
  }
}

void ElementwiseProgram::run_block(const Workspace& workspace, int64_t at, int64_t row, int64_t column, int64_t n) const {
  float* scratch = workspace.scratch;
  const int64_t spread_pitch = block_ + Spreading::kSlack;
  for (size_t k = 0; k < spread_.size(); ++k)
    spread_[k].second.write(static_cast<const float*>(spread_[k].first->data), at, n, workspace.spread + int64_t(k) * spread_pitch);
  auto source = [&](const Operand& o) -> const float* {
    if (o.step >= 0) return result_of(workspace, o.step, at);
    if (o.layout == Layout::spread) return workspace.spread + o.written * spread_pitch;
    if (o.written >= 0) return workspace.repeated + o.written * block_ + column;
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
