// Running fused elementwise operations block by block.
#include "tensor/elementwise_program.h"

#include <algorithm>
#include <cstring>
#include <optional>

#include "base/parallel.h"
#include "base/scratch.h"

namespace tapeflow {
namespace {
constexpr int64_t kScratchBytes = 48 * 1024;  // of one thread
constexpr int64_t kGrain = 1 << 16;           // elements of one cheap step that are worth a thread
constexpr int64_t kWorthCompiling = 256, kWorthCompilingOnce = 1 << 17;  // elements
constexpr int64_t kStreamedBytes = 64 << 20;                             // read and written: more than caches hold
constexpr size_t kManySteps = 8;                                         // worth compiling for fewer elements
constexpr size_t kMostPointers = 32, kMostPointersOfShortRun = 96;       // of a compiled loop, single numbers too
constexpr int64_t kReductionChunk = 1 << 14;  // elements of one partial result: the same for any number of threads
}  // namespace

ElementwiseProgram::Operand ElementwiseProgram::broadcast(TensorBody* body, const Shape& result) {
  const BroadcastPattern pattern(body->shape, result);
  const auto known =
      std::ranges::find_if(broadcasts_, [&](const auto& s) { return s.first == body && s.second == pattern; });
  if (known != broadcasts_.end()) return {body, -1, Layout::broadcast, int(known - broadcasts_.begin())};
  Operand o{body, -1, Layout::broadcast, int(broadcasts_.size())};
  broadcasts_.emplace_back(body, pattern);
  return o;
}

void ElementwiseProgram::finish(bool once) {
  for (Step& s : steps_) {
    widest_ = std::max(widest_, s.width);
    s.each_operand([&](Operand& o) {
      if (!o.body) return;
      o.width = uint8_t(size_of(o.body->dtype));
      widest_ = std::max(widest_, size_t(o.width));
    });
  }
  make_units(once ? size_ >= kWorthCompilingOnce : size_ >= kWorthCompiling || steps_.size() >= kManySteps);
  give_slots();
  while (block_ > 128 && slots_ * slot_bytes() > kScratchBytes) block_ /= 2;
  block_ = std::min(block_, std::max<int64_t>(16, (size_ + 15) / 16 * 16));
  repeat_short_rows();
}

// Neighbouring steps of arithmetic become one unit, if they can be compiled; others have units of their own.
void ElementwiseProgram::make_units(bool compile_them) {
  const int count = int(steps_.size());
  std::vector<int> last_reader(steps_.size(), -1);
  for (int i = 0; i < count; ++i)
    steps_[size_t(i)].each_operand([&](const Operand& o) {
      if (o.step >= 0) last_reader[size_t(o.step)] = i;
    });
  for (const Reduction& r : reductions_)
    if (!r.body) last_reader[size_t(r.step)] = count;
  auto fits = [&](int i, int first) {
    const Step& s = steps_[size_t(i)];
    bool same_width = s.arithmetic != Arithmetic::none && s.width == steps_[size_t(first)].width;
    for (const Operand* o : {&s.a, &s.b}) {
      same_width &= !o->body || o->width == s.width;
      same_width &= o->step < 0 || steps_[size_t(o->step)].width == s.width;
    }
    return same_width;
  };
  for (int first = 0, end; first < count; first = end) {
    end = first;
    while (compile_them && end < count && fits(end, first)) ++end;
    while (end > first + 1 && !compile(first, end, last_reader)) end = first + (end - first) / 2;
    if (end > first + 1) continue;
    units_.push_back({first, end = first + 1});
  }
}

// Adds a unit of several steps; false if they cannot be compiled. All results are written after all operands are read.
bool ElementwiseProgram::compile(int first, int end, const std::vector<int>& last_reader) {
  Unit unit{first, end};
  LoopProgram loop;
  loop.doubles = steps_[size_t(first)].width == sizeof(double);
  auto outside = [&](const Operand& o) { return o.body || (o.step >= 0 && o.step < first); };
  for (int i = first; i < end; ++i)
    steps_[size_t(i)].each_operand([&](const Operand& o) {
      if (!outside(o) || std::ranges::find(unit.operands, o) != unit.operands.end()) return;
      unit.operands.push_back(o);
      loop.single.push_back(o.layout == Layout::scalar || o.layout == Layout::column);
    });
  const int inputs = int(unit.operands.size());
  auto value = [&](const Operand& o) {
    if (outside(o)) return int(std::ranges::find(unit.operands, o) - unit.operands.begin());
    return o.step < 0 ? -1 : inputs + o.step - first;
  };
  for (int i = first; i < end; ++i) {
    const Step& s = steps_[size_t(i)];
    loop.operations.push_back({s.arithmetic, value(s.a), value(s.b)});
    if (!s.target && last_reader[size_t(i)] < end) continue;
    unit.results.push_back(i);
    loop.stored.push_back(inputs + i - first);
  }
  loop.short_run = size_ < kWorthCompiling;
  if (unit.operands.size() + unit.results.size() > (loop.short_run ? kMostPointersOfShortRun : kMostPointers))
    return false;
  unit.loop = compile_loop(loop);
  const auto in_memory = std::ranges::count(loop.single, false) + std::ranges::ssize(unit.results);
  if (size_ * in_memory * int64_t(steps_[size_t(first)].width) >= kStreamedBytes &&
      std::ranges::all_of(unit.results, [&](int i) { return steps_[size_t(i)].target != nullptr; })) {
    loop.streams = true;
    unit.streaming_loop = compile_loop(loop);
  }
  if (!unit.loop) return false;
  compiled_ = true;
  units_.push_back(std::move(unit));
  return true;
}

// The loop that goes past the caches if it may: its results are aligned and in no operand's place.
CompiledLoop ElementwiseProgram::loop_for(const Unit& u, void* const* memory) {
  if (!u.streaming_loop) return u.loop;
  void* const* results = memory + u.operands.size();
  for (size_t i = 0; i < u.results.size(); ++i) {
    if (reinterpret_cast<uintptr_t>(results[i]) % kStreamAlignment != 0) return u.loop;
    if (std::find(memory, results, results[i]) != results) return u.loop;
  }
  return u.streaming_loop;
}

// Scratch memory for the results that later units read.
void ElementwiseProgram::give_slots() {
  const int count = int(units_.size());
  auto each_step = [&](const Unit& u, auto visit) {
    for (int i = u.first; i < u.end; ++i) visit(steps_[size_t(i)]);
  };
  for (int u = 0; u < count; ++u)
    each_step(units_[size_t(u)], [&](Step& s) {
      s.each_operand([&](const Operand& o) {
        if (o.step >= 0) steps_[size_t(o.step)].last_use = u;
      });
    });
  for (const Reduction& r : reductions_)
    if (!r.body) steps_[size_t(r.step)].last_use = count;
  std::vector<bool> used;
  for (int u = 0; u < count; ++u) {
    const Unit& unit = units_[size_t(u)];
    const size_t width = steps_[size_t(unit.first)].width;
    auto let_go = [&](bool same_width) {
      each_step(unit, [&](const Step& s) {
        for (const Operand* o : {&s.a, &s.b, &s.c, &s.d}) {
          if (o->step < 0) continue;
          const Step& read = steps_[size_t(o->step)];
          if (read.last_use == u && read.slot >= 0 && o->step < unit.first && (read.width == width) == same_width)
            used[size_t(read.slot)] = false;
        }
      });
    };
    // The loops may write over what they read: the slot of an operand as wide is free for the result of its last
    // reader.
    let_go(true);
    auto give = [&](Step& s) {
      if (s.target) return;
      auto free = std::find(used.begin(), used.end(), false);
      s.slot = int(free - used.begin());
      if (free == used.end())
        used.push_back(true);
      else
        *free = true;
    };
    if (unit.loop)
      for (int i : unit.results) give(steps_[size_t(i)]);
    else
      give(steps_[size_t(unit.first)]);
    let_go(false);
  }
  slots_ = int(used.size());
}

void ElementwiseProgram::repeat_short_rows() {
  if (row_length_ == 0 || 2 * row_length_ > block_) return;
  bool columns = false;
  for (Step& s : steps_) s.each_operand([&](const Operand& o) { columns |= o.body && o.layout == Layout::column; });
  if (columns) return;
  auto repeat = [&](Operand& o) {
    if (!o.body || o.layout != Layout::row) return;
    auto at = std::find(repeated_.begin(), repeated_.end(), o.body);
    o.written = int(at - repeated_.begin());
    if (at == repeated_.end()) repeated_.push_back(o.body);
  };
  for (Step& s : steps_) s.each_operand(repeat);
  for (Unit& u : units_) std::ranges::for_each(u.operands, repeat);
}

// A broadcast operand in the memory of a thread: its elements follow.
struct alignas(64) ElementwiseProgram::BroadcastOperand {
  int64_t region;   // whose elements are there; -1: those of a block
  const char* now;  // the first element for this block
  char* elements() { return reinterpret_cast<char*>(this + 1); }
};

// The memory of one thread: what steps leave for later ones, the short rows, written out, and broadcast operands.
struct ElementwiseProgram::Workspace {
  explicit Workspace(const ElementwiseProgram& program, int64_t elements) {
    const int64_t pitch = program.slot_bytes(), rows = program.row_length_;
    if (const int64_t bytes = bytes_for(program); bytes > kOnStack) scratch = more.emplace(bytes).data();
    repeated = scratch + program.slots_ * pitch;
    broadcast = repeated + int64_t(program.repeated_.size()) * pitch;
    for (size_t k = 0; k < program.repeated_.size(); ++k) {
      const int64_t bytes = rows * int64_t(size_of(program.repeated_[k]->dtype));
      for (int64_t i = 0, at = 0; i + rows <= program.block_ && i < elements + rows; i += rows, at += bytes)
        std::memcpy(repeated + int64_t(k) * pitch + at, program.repeated_[k]->data, size_t(bytes));
    }
    for (size_t k = 0; k < program.broadcasts_.size(); ++k) broadcast_operand(program, k).region = -1;
  }

  BroadcastOperand& broadcast_operand(const ElementwiseProgram& program, size_t k) const {
    return *reinterpret_cast<BroadcastOperand*>(broadcast + int64_t(k) * program.broadcast_bytes());
  }

  static int64_t bytes_for(const ElementwiseProgram& p) {
    return (p.slots_ + int64_t(p.repeated_.size())) * p.slot_bytes() +
           int64_t(p.broadcasts_.size()) * p.broadcast_bytes();
  }
  static constexpr int64_t kOnStack = kScratchBytes + 16 * 1024;
  alignas(64) char on_stack[kOnStack];
  std::optional<Scratch<char>> more;
  char *scratch = on_stack, *repeated, *broadcast;
};

// What an element costs, in cheap steps: several of a compiled loop take as long as one by itself.
int64_t ElementwiseProgram::cost() const {
  constexpr int64_t kStepsInOne = 4;
  int64_t sum = 0;
  for (const Unit& u : units_) sum += (u.end - u.first + kStepsInOne - 1) / kStepsInOne;
  return sum;
}

void ElementwiseProgram::run() const {
  if (!reductions_.empty()) return reduces_doubles_ ? run_with_reductions<double>() : run_with_reductions<float>();
  const int64_t least = 4 * block_;
  if (size_ <= least) return run_part(0, size_, 1, 0);
  const int64_t grain = std::max(least, kGrain / cost());
  if (size_ <= grain) return run_part(0, size_, 1, 0);
  int64_t unit = row_length_ == 0 ? 1 : row_length_;
  parallel_for(size_ / unit, std::max<int64_t>(1, grain / unit),
               [&](int64_t begin, int64_t end) { run_part(begin * unit, (end - begin) * unit, 1, 0); });
}

void ElementwiseProgram::run_part(int64_t first, int64_t count, int64_t rows, int64_t pitch) const {
  Workspace workspace(*this, count);
  for (int64_t r = 0; r < rows; ++r)
    run_range(workspace, first + r * pitch, first + r * pitch + count, [](int64_t, int64_t) {});
}

// How many elements have partial results of their own: the same for any number of threads.
int64_t ElementwiseProgram::reduction_chunk() const {
  int64_t unit = 1, least = kReductionChunk;
  for (const Reduction& r : reductions_) {
    if (r.length != size_)
      unit = r.length;
    else if (r.columns > 1)
      least = std::max(least, 32 * r.columns);
  }
  return std::max<int64_t>(1, least / unit) * unit;
}

// Several rows of a table are folded side by side if they are short.
int64_t ElementwiseProgram::lanes(const Reduction& r) const {
  return r.columns == 1 ? 0 : r.columns * std::clamp<int64_t>(block_ / r.columns, 1, r.length / r.columns);
}

// Folds rows that lie side by side into one row of results, and begins anew.
template <class T> static void fold_lanes(const ElementwiseProgram::ReductionLoops<T>& loops, T* lanes, int64_t width,
                                          int64_t columns, T* y) {
  for (int64_t rows = width / columns; rows > 1; rows -= rows / 2)
    loops.fold(lanes + (rows - rows / 2) * columns, lanes, rows / 2 * columns);
  loops.fold(lanes, y, columns);
  std::fill_n(lanes, width, loops.start);
}

// Where the results of one chunk go.
template <class T> struct ElementwiseProgram::Totals {
  T* of_all;  // one number for each reduction of all elements, `pitch` apart
  int64_t pitch;
  T* columns;  // of each table of all elements
  T* lanes;    // of all reductions of columns, one after the other; as they start
};

template <class T> void ElementwiseProgram::run_with_reductions() const {
  using Loops = ReductionLoops<T>;
  const int64_t chunk = reduction_chunk(), chunks = (size_ + chunk - 1) / chunk;
  int64_t lane_count = 0, columns = 0;
  for (const Reduction& r : reductions_) {
    lane_count += lanes(r);
    if (r.columns > 1 && r.length == size_) columns += r.columns;
    if (r.length != size_) std::fill_n(static_cast<T*>(r.target->data), r.target->size, std::get<Loops>(r.loops).start);
  }
  Scratch<T> totals(chunks * int64_t(reductions_.size())), tables(chunks * columns);
  T* table = tables.data();
  for (size_t k = 0; k < reductions_.size(); ++k) {
    const Reduction& r = reductions_[k];
    std::fill_n(totals.data() + int64_t(k) * chunks, chunks, std::get<Loops>(r.loops).start);
    if (r.columns == 1 || r.length != size_) continue;
    for (int64_t c = 0; c < chunks; ++c) std::fill_n(table + c * columns, r.columns, std::get<Loops>(r.loops).start);
    table += r.columns;
  }
  const int64_t work = chunk * (cost() + int64_t(reductions_.size()));
  parallel_for(chunks, std::max<int64_t>(1, kGrain / work), [&](int64_t begin, int64_t end) {
    Workspace workspace(*this, (end - begin) * chunk);
    Scratch<T> all_lanes(lane_count);
    T* lane = all_lanes.data();
    for (const Reduction& r : reductions_) lane = std::fill_n(lane, lanes(r), std::get<Loops>(r.loops).start);
    for (int64_t c = begin; c < end; ++c) {
      Totals<T> of_chunk{totals.data() + c, chunks, tables.data() + c * columns, all_lanes.data()};
      run_range(workspace, c * chunk, std::min(size_, (c + 1) * chunk),
                [&](int64_t at, int64_t n) { add_reductions(workspace, at, n, of_chunk); });
      T *from = all_lanes.data(), *to = of_chunk.columns;
      for (const Reduction& r : reductions_) {
        const Loops& loops = std::get<Loops>(r.loops);
        if (r.columns > 1 && r.length == size_) {
          fold_lanes(loops, from, lanes(r), r.columns, to);
          to += r.columns;
        }
        from += lanes(r);
      }
    }
  });
  int64_t column = 0;
  for (size_t k = 0; k < reductions_.size(); ++k) {
    const Reduction& r = reductions_[k];
    const Loops& loops = std::get<Loops>(r.loops);
    T* y = static_cast<T*>(r.target->data);
    if (r.length == size_ && r.columns == 1) *y = loops.row(totals.data() + int64_t(k) * chunks, chunks);
    if (r.length == size_ && r.columns > 1) {
      std::fill_n(y, r.columns, loops.start);
      for (int64_t c = 0; c < chunks; ++c) loops.fold(tables.data() + c * columns + column, y, r.columns);
      column += r.columns;
    }
    for (int64_t i = 0; r.divisor != 1 && i < r.target->size; ++i) y[i] /= T(r.divisor);
  }
}

// What a step leaves for the block that begins at an element.
char* ElementwiseProgram::result_of(const Workspace& workspace, const Step& s, int64_t at) const {
  return s.target ? static_cast<char*>(s.target->data) + at * int64_t(s.width)
                  : workspace.scratch + s.slot * slot_bytes();
}

template <class T>
void ElementwiseProgram::add_reductions(const Workspace& workspace, int64_t at, int64_t n, Totals<T>& totals) const {
  T* own_lanes = totals.lanes;
  for (size_t k = 0; k < reductions_.size(); ++k) {
    const Reduction& r = reductions_[k];
    const auto& loops = std::get<ReductionLoops<T>>(r.loops);
    const T* x = r.body ? static_cast<const T*>(r.body->data) + at
                        : reinterpret_cast<const T*>(result_of(workspace, steps_[size_t(r.step)], at));
    auto reduce_row = [&](const T* from, int64_t count, T* y) {
      const T part = loops.row(from, count);
      loops.fold(&part, y, 1);
    };
    if (r.columns > 1) {
      add_columns(r, own_lanes, x, at, n);
      own_lanes += lanes(r);
    } else if (r.length == size_) {
      reduce_row(x, n, totals.of_all + int64_t(k) * totals.pitch);
    } else {
      T* y = static_cast<T*>(r.target->data);
      int64_t row = at / r.length, done = 0;
      if (at % r.length != 0) {
        reduce_row(x, done = std::min(n, (row + 1) * r.length - at), y + row);
        ++row;
      }
      const int64_t whole = (n - done) / r.length;
      if (loops.short_rows && whole > 0) loops.short_rows(x + done, y + row, whole, r.length);
      for (int64_t k = 0; !loops.short_rows && k < whole; ++k)
        y[row + k] = loops.row(x + done + k * r.length, r.length);
      done += whole * r.length;
      if (done < n) reduce_row(x + done, n - done, y + row + whole);
    }
  }
}

// A table that is not of all elements lies in one chunk; its columns are ready with its last element.
template <class T>
void ElementwiseProgram::add_columns(const Reduction& r, T* own_lanes, const T* x, int64_t at, int64_t n) const {
  const auto& loops = std::get<ReductionLoops<T>>(r.loops);
  const int64_t width = lanes(r);
  for (int64_t done = 0, count; done < n; done += count) {
    const int64_t in_table = (at + done) % r.length, lane = in_table % width;
    count = std::min({n - done, r.length - in_table, width - lane});
    loops.fold(x + done, own_lanes + lane, count);
    if (r.length == size_ || in_table + count < r.length) continue;
    T* y = static_cast<T*>(r.target->data) + (at + done) / r.length * r.columns;
    fold_lanes(loops, own_lanes, width, r.columns, y);
  }
}

template <class AfterBlock> void ElementwiseProgram::run_range(const Workspace& workspace, int64_t begin, int64_t end,
                                                               AfterBlock after_block) const {
  // One loop from memory to memory needs no blocks.
  if (units_.size() == 1 && (units_[0].loop || steps_.size() == 1) && row_length_ == 0 && broadcasts_.empty() &&
      reductions_.empty()) {
    run_block(workspace, begin, 0, 0, end - begin);
    return after_block(begin, end - begin);
  }
  // Blocks do not go beyond the rows that a row operand is written out for.
  int64_t whole = row_length_ == 0 ? block_ : repeated_.empty() ? row_length_ : block_ / row_length_ * row_length_;
  for (int64_t at = begin, n; at < end; at += n) {
    int64_t column = row_length_ == 0 ? 0 : at % row_length_;
    n = std::min({block_, whole - column, end - at});
    run_block(workspace, at, row_length_ == 0 ? 0 : at / row_length_, column, n);
    after_block(at, n);
  }
}

// A short run that is repeated is written out once for all blocks where it is.
void ElementwiseProgram::write_broadcast(const Workspace& workspace, size_t k, int64_t at, int64_t n) const {
  const auto& [body, pattern] = broadcasts_[k];
  BroadcastOperand& operand = workspace.broadcast_operand(*this, k);
  const int64_t region = pattern.period() > 0 ? at / pattern.region() : -1;
  if (region >= 0 && at + n <= (region + 1) * pattern.region()) {
    const int64_t first = region * pattern.region();
    if (operand.region != region)
      pattern.write(*body, first, std::min(block_ + pattern.period(), pattern.region()), operand.elements());
    operand.region = region;
    operand.now = operand.elements() + (at - first) % pattern.period() * int64_t(size_of(body->dtype));
    return;
  }
  operand.region = -1;
  operand.now = operand.elements();
  pattern.write(*body, at, n, operand.elements());
}

template <class Source> void ElementwiseProgram::run_combined(const Step& s, Source source, void* y, int64_t n) {
  const void* operands[4] = {};
  bool single[4] = {};
  int k = 0;
  for (const Operand* o : {&s.a, &s.b, &s.c, &s.d}) {
    if (o->body || o->step >= 0) operands[k] = source(*o);
    single[k++] = o->layout == Layout::scalar || o->layout == Layout::column;
  }
  s.combined.run(s.combined.loop, operands, single, y, n);
}

template <class Source> [[gnu::always_inline]] inline void ElementwiseProgram::run_step(const Step& s, Source source,
                                                                                        char* y, int64_t n) const {
  if (s.binary)
    s.binary(source(s.a), source(s.b), y, n);
  else if (s.unary)
    s.unary(source(s.a), y, n);
  else if (s.choice)
    s.choice(source(s.c), source(s.a), source(s.b), y, n);
  else
    run_combined(s, source, y, n);
}

void ElementwiseProgram::run_block(const Workspace& workspace, int64_t at, int64_t row, int64_t column,
                                   int64_t n) const {
  for (size_t k = 0; k < broadcasts_.size(); ++k) write_broadcast(workspace, k, at, n);
  auto source = [&](const Operand& o) -> const char* {
    if (o.step >= 0) return result_of(workspace, steps_[size_t(o.step)], at);
    if (o.layout == Layout::broadcast) return workspace.broadcast_operand(*this, size_t(o.written)).now;
    const int64_t width = o.width;
    if (o.written >= 0) return workspace.repeated + o.written * slot_bytes() + column * width;
    const char* p = static_cast<const char*>(o.body->data);
    switch (o.layout) {
      case Layout::full: return p + at * width;
      case Layout::row: return p + column * width;
      case Layout::column: return p + row * width;
      default: return p;
    }
  };
  if (!compiled_) {
    for (const Step& s : steps_) run_step(s, source, result_of(workspace, s, at), n);
    return;
  }
  for (const Unit& u : units_) {
    if (!u.loop) {
      const Step& s = steps_[size_t(u.first)];
      run_step(s, source, result_of(workspace, s, at), n);
      continue;
    }
    void* memory[kMostPointersOfShortRun];
    void** next = memory;
    for (const Operand& o : u.operands) *next++ = const_cast<char*>(source(o));
    for (int i : u.results) *next++ = result_of(workspace, steps_[size_t(i)], at);
    loop_for(u, memory)(memory, n);
  }
}

}  // namespace tapeflow
