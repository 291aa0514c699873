// All-reduce between the processes of one machine, through memory that all of them see (a shared window of MPI).
//
// A process announces each message with a mark, which says what it is, copies its elements piece by piece into slots of
// its own segment, and adds the pieces of all processes as soon as they are there: always in the order of the ranks, so
// all get the same bits. Marks that differ end the program before any data are used. Messages are completed in the
// order in which they were started; nothing waits but `finish`.
#pragma once
#include <atomic>
#include <cstdint>
#include <deque>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "tensor/tensor.h"

namespace tapeflow {

class SharedWindow {
 public:
  enum class State { done, waiting, disagreement };

  // `segments[r]` is where this process sees the segment of rank r: `bytes` zeros at the start.
  SharedWindow(std::vector<void*> segments, int rank, size_t bytes);

  static constexpr size_t kMarks = 1024;           // how many messages may be announced before all have finished one
  static constexpr size_t kSlotBytes = 128 << 10;  // of a piece

  // Starts to add tensors of one dtype over all processes; `wire` is their dtype, or bfloat16 for float32. Without
  // tensors a message is an agreement only. All must agree on the checksum, on dtypes and on shapes.
  uint64_t start(uint32_t checksum, std::span<const Tensor> tensors, DType wire);
  // Works for at most `seconds` on what was started up to this message. Called with the interpreter lock.
  State finish(uint64_t message, double seconds);
  // The sums of a message that is done; they are handed over once.
  Tensors take(uint64_t message);

  // How often this process has started such a message, up to this one; 0 once it is done.
  uint64_t times(uint64_t message) const;
  // The last message that a rank has announced.
  uint64_t announced(int rank) const { return control(rank).announced.load(std::memory_order_acquire); }
  int size() const { return int(segments_.size()); }

 private:
  struct alignas(64) Counter : std::atomic<uint64_t> {};
  struct Control {
    Counter announced;          // messages whose mark is there
    Counter packed;             // pieces that lie in slots
    Counter reduced;            // pieces of which this rank has added its share
    Counter consumed;           // pieces that this rank has read from all
    Counter finished;           // messages that this rank has compared and consumed
    Counter marks[kMarks / 8];  // eight to a line; see mark()
  };
  struct Run {  // of elements in a tensor
    const void* from;
    void* to;
    int64_t size;
  };
  struct Message {
    uint64_t number = 0;
    uint64_t mark = 0;
    uint64_t times = 0;
    DType dtype = DType::invalid, wire = DType::invalid;
    int64_t elements = 0;
    uint64_t first_piece = 0, pieces = 0;
    SmallVector<Tensor, 4> inputs;
    Tensors sums;
    std::vector<Run> runs;
    bool agreed = false, done = false;
  };

  Control& control(int rank) const { return *static_cast<Control*>(segments_[size_t(rank)]); }
  std::atomic<uint64_t>& mark(int rank, uint64_t message) const;
  char* slot(int rank, uint64_t piece) const;
  uint64_t least(Counter Control::* counter) const;
  template <class Body> void for_each_run(const Message&, int64_t begin, int64_t end, Body&&) const;
  int64_t elements_per_piece(const Message& m) const { return int64_t(kSlotBytes / size_of(m.wire)); }

  bool advance();  // whether something could be done without waiting
  bool announce_and_pack();
  bool reduce_and_consume();
  bool compare_marks(Message&);
  void pack(const Message&, uint64_t piece);
  void add_piece(const Message&, uint64_t piece);
  void add_share(const Message&, uint64_t piece);
  void collect_shares(const Message&, uint64_t piece);
  void retire_front();

  const std::vector<void*> segments_;
  const int rank_;
  const uint64_t slots_;
  const bool in_shares_;  // each rank adds its share of a piece, and all collect them
  const int spins_;
  double pack_cost_[2] = {0, 0};  // seconds for a byte, through the caches and past them: the lesser one is used
  uint64_t large_pieces_ = 0;
  std::mutex mutex_;
  std::deque<Message> messages_;                  // that are not done, oldest first
  std::deque<Message> done_;                      // whose sums were not taken
  uint64_t started_ = 0, pieces_ = 0;             // so far
  std::unordered_map<uint32_t, uint64_t> times_;  // that a message was started, by what all agree on
  bool disagreement_ = false;
};

}  // namespace tapeflow
