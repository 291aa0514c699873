#include "collectives/shared_window.h"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <thread>

#include "collectives/sum_of_parts.h"
#include "tensor/unlocked.h"

namespace tapeflow {
namespace {

constexpr int kSharesFrom = 4;             // ranks: with fewer, each rank adds everything, which saves a meeting
constexpr int kSpins = 2000;               // looks before a waiting process offers its core to others
constexpr int kCrowdedSpins = 10;          // the same where there are fewer cores than processes
constexpr double kYieldFor = 0.004;        // seconds, before it sleeps
constexpr size_t kWorthTiming = 32 << 10;  // bytes of a piece
constexpr uint64_t kTryOtherEvery = 64;    // large pieces
constexpr double kNewShare = 0.1;          // of a new time in the smoothed one
constexpr auto kNap = std::chrono::microseconds(100);

uint32_t mixed(uint32_t checksum, uint64_t x) {
  const uint64_t product = (x ^ checksum) * 0x9E3779B97F4A7C15u;
  return uint32_t(product ^ product >> 32);
}

void pause_briefly() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

}  // namespace

SharedWindow::SharedWindow(std::vector<void*> segments, int rank, size_t bytes)
    : segments_(std::move(segments)),
      rank_(rank),
      slots_((bytes - sizeof(Control)) / kSlotBytes),
      in_shares_(segments_.size() >= size_t(kSharesFrom)),
      spins_(long(segments_.size()) > sysconf(_SC_NPROCESSORS_ONLN) ? kCrowdedSpins : kSpins) {}

std::atomic<uint64_t>& SharedWindow::mark(int rank, uint64_t message) const {
  auto* marks = reinterpret_cast<std::atomic<uint64_t>*>(control(rank).marks);
  return marks[message % kMarks];
}

char* SharedWindow::slot(int rank, uint64_t piece) const {
  return static_cast<char*>(segments_[size_t(rank)]) + sizeof(Control) + (piece % slots_) * kSlotBytes;
}

uint64_t SharedWindow::least(Counter Control::* counter) const {
  uint64_t found = ~uint64_t(0);
  for (int r = 0; r < size(); ++r) found = std::min(found, (control(r).*counter).load(std::memory_order_acquire));
  return found;
}

uint64_t SharedWindow::start(uint32_t checksum, std::span<const Tensor> tensors, DType wire) {
  const std::lock_guard lock(mutex_);
  Message m;
  m.number = ++started_;
  if (!tensors.empty()) {
    m.dtype = tensors[0].dtype();
    m.wire = wire;
    checksum = mixed(mixed(checksum, uint64_t(m.dtype)), uint64_t(wire));
  }
  for (const Tensor& t : tensors) {
    checksum = mixed(checksum, uint64_t(t.rank()));
    for (int i = 0; i < t.rank(); ++i) checksum = mixed(checksum, uint64_t(t.dim(i)));
    m.inputs.push_back(t);
    m.sums.push_back(Tensor::allocate(t.dtype(), t.shape()));
    m.runs.push_back({t.raw(), m.sums.back().mutable_raw(), t.size()});
    m.elements += t.size();
  }
  m.mark = m.number << 32 | checksum;
  m.times = ++times_[checksum];
  m.first_piece = pieces_;
  if (m.elements) m.pieces = uint64_t((m.elements + elements_per_piece(m) - 1) / elements_per_piece(m));
  pieces_ += m.pieces;
  const uint64_t number = m.number;
  messages_.push_back(std::move(m));
  if (!disagreement_) {
    announce_and_pack();
    reduce_and_consume();
  }
  return number;
}

SharedWindow::State SharedWindow::finish(uint64_t message, double seconds) {
  using Clock = std::chrono::steady_clock;
  auto is_done = [&] { return messages_.empty() || messages_.front().number > message; };
  auto work = [&](int spins) {  // until it is done, or nothing could be done so many times
    for (int idle = 0; !is_done() && !disagreement_ && idle < spins;) {
      if (advance())
        idle = 0;
      else
        ++idle, pause_briefly();
    }
    return is_done() || disagreement_;
  };
  bool ended;
  {
    const std::lock_guard lock(mutex_);
    ended = (messages_.empty() || messages_.back().pieces <= 1) && work(spins_);
  }
  if (!ended) {
    Unlocked unlocked;
    const std::lock_guard lock(mutex_);
    const auto begin = Clock::now();
    while (!work(spins_)) {
      const double waited = std::chrono::duration<double>(Clock::now() - begin).count();
      if (waited > seconds) break;
      if (waited < kYieldFor)
        sched_yield();
      else
        std::this_thread::sleep_for(kNap);
    }
  }
  if (disagreement_) return State::disagreement;
  return is_done() ? State::done : State::waiting;
}

Tensors SharedWindow::take(uint64_t message) {
  const std::lock_guard lock(mutex_);
  auto found = std::ranges::find(done_, message, &Message::number);
  if (found == done_.end()) return {};
  Tensors sums = std::move(found->sums);
  done_.erase(found);
  return sums;
}

uint64_t SharedWindow::times(uint64_t message) const {
  auto found = std::ranges::find(messages_, message, &Message::number);
  return found == messages_.end() ? 0 : found->times;
}

bool SharedWindow::advance() {
  const bool packed = announce_and_pack();
  return reduce_and_consume() || packed;
}

template <class Body> void SharedWindow::for_each_run(const Message& m, int64_t begin, int64_t end, Body&& body) const {
  int64_t at = 0;
  for (const Run& run : m.runs) {
    const int64_t from = std::max(begin, at), to = std::min(end, at + run.size);
    if (from < to) body(run, from - at, from - begin, to - from);  // offset in the run, in the piece, elements
    at += run.size;
    if (at >= end) break;
  }
}

// Announces messages, and fills as many slots as nobody reads any more.
bool SharedWindow::announce_and_pack() {
  Control& mine = control(rank_);
  bool moved = false;
  uint64_t announced = mine.announced.load(std::memory_order_relaxed);
  uint64_t packed = mine.packed.load(std::memory_order_relaxed);
  for (Message& m : messages_) {
    if (m.number > announced) {
      if (m.number - least(&Control::finished) >= kMarks) break;
      mark(rank_, m.number).store(m.mark, std::memory_order_relaxed);
      mine.announced.store(announced = m.number, std::memory_order_release);
      moved = true;
    }
    while (packed < m.first_piece + m.pieces) {
      if (packed - least(&Control::consumed) >= slots_) return moved;
      pack(m, packed);
      mine.packed.store(++packed, std::memory_order_release);
      moved = true;
    }
  }
  return moved;
}

// Writes a piece into its slot. How far the cores are from each other decides which way is faster, and a virtual
// machine may move them: both ways are timed, and the slower one is tried again now and then.
void SharedWindow::pack(const Message& m, uint64_t piece) {
  using Clock = std::chrono::steady_clock;
  const int64_t each = elements_per_piece(m), begin = int64_t(piece - m.first_piece) * each;
  const int64_t end = std::min(begin + each, m.elements);
  const size_t bytes = size_t(end - begin) * size_of(m.wire);
  const bool large = bytes >= kWorthTiming;
  bool past_caches = large && pack_cost_[1] < pack_cost_[0];
  if (large && ++large_pieces_ % kTryOtherEvery == 0) past_caches = !past_caches;
  const auto before = large ? Clock::now() : Clock::time_point();
  char* to = slot(rank_, piece);
  for_each_run(m, begin, end, [&](const Run& run, int64_t at, int64_t in, int64_t n) {
    convert_elements(static_cast<const char*>(run.from) + size_t(at) * size_of(m.dtype), m.dtype,
                     to + size_t(in) * size_of(m.wire), m.wire, n, past_caches);
  });
  if (!large) return;
  if (past_caches) fence_stores();
  double& cost = pack_cost_[past_caches];
  const double now = std::chrono::duration<double>(Clock::now() - before).count() / double(bytes);
  cost = cost == 0 ? now : std::min(now, 4 * cost) * kNewShare + cost * (1 - kNewShare);
}

// Whether all ranks have announced this message; sets `disagreement_` if it is another one there.
bool SharedWindow::compare_marks(Message& m) {
  if (m.agreed) return true;
  if (least(&Control::announced) < m.number) return false;
  for (int r = 0; r < size(); ++r)
    if (mark(r, m.number).load(std::memory_order_relaxed) != m.mark) disagreement_ = true;
  return m.agreed = !disagreement_;
}

bool SharedWindow::reduce_and_consume() {
  Control& mine = control(rank_);
  bool moved = false;
  while (!messages_.empty()) {
    Message& m = messages_.front();
    if (mine.announced.load(std::memory_order_relaxed) < m.number || !compare_marks(m)) return moved;
    const uint64_t end = m.first_piece + m.pieces;
    uint64_t consumed = mine.consumed.load(std::memory_order_relaxed);
    if (consumed < end) {
      const uint64_t ready = std::min(end, least(&Control::packed));
      if (in_shares_) {
        uint64_t reduced = mine.reduced.load(std::memory_order_relaxed);
        for (; reduced < ready; moved = true) {
          add_share(m, reduced);
          mine.reduced.store(++reduced, std::memory_order_release);
        }
        const uint64_t collectable = std::min(end, least(&Control::reduced));
        for (; consumed < collectable; moved = true) {
          collect_shares(m, consumed);
          mine.consumed.store(++consumed, std::memory_order_release);
        }
      } else {
        for (; consumed < ready; moved = true) {
          add_piece(m, consumed);
          mine.consumed.store(++consumed, std::memory_order_release);
        }
      }
      if (consumed < end) return moved;
    }
    mine.finished.store(m.number, std::memory_order_release);
    retire_front();
    moved = true;
  }
  return moved;
}

void SharedWindow::retire_front() {
  if (!messages_.front().runs.empty()) done_.push_back(std::move(messages_.front()));
  messages_.pop_front();
}

// The whole piece, from the slots of all ranks to the sums.
void SharedWindow::add_piece(const Message& m, uint64_t piece) {
  const int64_t each = elements_per_piece(m), begin = int64_t(piece - m.first_piece) * each;
  SmallVector<const void*, 8> parts;
  for_each_run(m, begin, std::min(begin + each, m.elements), [&](const Run& run, int64_t at, int64_t in, int64_t n) {
    parts.clear();
    for (int r = 0; r < size(); ++r) parts.push_back(slot(r, piece) + size_t(in) * size_of(m.wire));
    if (m.wire == m.dtype) parts[size_t(rank_)] = static_cast<const char*>(run.from) + size_t(at) * size_of(m.dtype);
    void* sum = static_cast<char*>(run.to) + size_t(at) * size_of(m.dtype);
    sum_of_parts({parts.data(), parts.size()}, m.wire, sum, m.dtype, n);
  });
}

namespace {

// The elements of a piece of `n` that rank r adds.
std::pair<int64_t, int64_t> share_of(int r, int ranks, int64_t n) { return {n * r / ranks, n * (r + 1) / ranks}; }

}  // namespace

// This rank's share of a piece, from the slots of all ranks into its own; nobody else reads it there before.
void SharedWindow::add_share(const Message& m, uint64_t piece) {
  const int64_t each = elements_per_piece(m), begin = int64_t(piece - m.first_piece) * each;
  const auto [from, to] = share_of(rank_, size(), std::min(each, m.elements - begin));
  SmallVector<const void*, 8> parts;
  for (int r = 0; r < size(); ++r) parts.push_back(slot(r, piece) + size_t(from) * size_of(m.wire));
  if (from < to) {
    void* own = slot(rank_, piece) + size_t(from) * size_of(m.wire);
    sum_of_parts({parts.data(), parts.size()}, m.wire, own, m.wire, to - from);
  }
}

void SharedWindow::collect_shares(const Message& m, uint64_t piece) {
  const int64_t each = elements_per_piece(m), begin = int64_t(piece - m.first_piece) * each;
  const int64_t count = std::min(each, m.elements - begin);
  for (int r = 0; r < size(); ++r) {
    const auto [first, last] = share_of(r, size(), count);
    const char* from = slot(r, piece) + size_t(first) * size_of(m.wire);
    for_each_run(m, begin + first, begin + last, [&](const Run& run, int64_t at, int64_t in, int64_t n) {
      convert_elements(from + size_t(in) * size_of(m.wire), m.wire,
                       static_cast<char*>(run.to) + size_t(at) * size_of(m.dtype), m.dtype, n);
    });
  }
}

}  // namespace tapeflow
