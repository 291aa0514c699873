// What a tape saw beside its records: operations on values that it does not track, values that left for Python or came
// from there, assignments. Only read when somebody asks why a gradient is None. Of a long program the end is
// kept.
#pragma once
#include <span>

#include "autodiff/watcher.h"
#include "base/blocks.h"
#include "base/thread_locals.h"

namespace tapeflow {

// The line of the user's program that an operation came from, as the Python layer reports it: a code object and an
// instruction in it. Turned into a file and a line only when somebody asks.
struct Location {
  void* code = nullptr;
  int instruction = 0;
};
struct LocationSource {
  Location (*current)() = nullptr;  // retains the code object
  void (*release)(void* code) = nullptr;
  void (*retain)(void* code) = nullptr;
};
extern LocationSource location_source;

// The operation for whose sake others run: a node of a graph that is run, or a record whose rule is.
struct Origin {
  const Op* op;
  Location location;
  bool backward;
};

class RunFor {
 public:
  RunFor(const Op* op, const Location& at, bool backward) : origin_{op, at, backward}, outer_(thread_locals.origin) {
    thread_locals.origin = &origin_;
  }
  ~RunFor() { thread_locals.origin = outer_; }
  RunFor(const RunFor&) = delete;

 private:
  Origin origin_;
  const Origin* outer_;
};

// The line of the program that the operation now running stands in: in a graph, the one that was traced; for what a
// rule runs, the one that asked for gradients, or (`of_forward`) the one whose gradient it is.
Location place_of_origin(bool of_forward);
inline Location here(bool of_forward = false) {
  if (thread_locals.origin) return place_of_origin(of_forward);
  return location_source.current ? location_source.current() : Location{};
}

// A location that is let go of with its holder.
class Place {
 public:
  Place() = default;
  Place(const Place&) = delete;
  Place& operator=(const Place&) = delete;
  ~Place() { forget(); }
  void set_here();
  void forget();
  const Location& location() const { return at_; }

 private:
  Location at_;
};

enum class Event : uint8_t {
  operation,  // one that is not recorded
  constant,   // a tensor made from Python numbers or an array
  numpy,      // a tensor read as a NumPy array
  number,     // ... as a Python number
  boolean,    // ... as a condition
  shape,      // its shape read
  argument,   // integers read as an index, a shape or an axis
  assign,     // from a value to a variable
  watch,      // from the value as it was before to the tracked one
};

// What the tape was doing meanwhile.
enum class Moment : uint8_t { open, paused, closed };

struct LoggedEvent {
  const Op* op = nullptr;  // of an operation
  Location location;
  uint32_t records = 0;  // how many the tape had
  ValueIndex first_output = kUntracked;
  uint32_t first_input = 0;
  uint16_t inputs = 0, outputs = 0;
  Event event = Event::operation;
  Moment moment = Moment::open;
};

// A value that no logged operation made.
struct Leaf {
  ValueIndex index;
  DType dtype;
  bool fresh;  // made from a Python value for the operation that used it first
  int64_t size;
  uint64_t first, last;  // its first and last eight bytes (fewer if it is smaller), to recognise the value by
};

Leaf describe(ValueIndex, const Tensor&);

class Trace {
 public:
  Trace() = default;
  Trace(const Trace&) = delete;
  ~Trace() { clear(); }

  LoggedEvent& add(Event, Moment, const Op*, size_t records);
  void add_input(ValueIndex i) {
    part_[0].inputs.push_back(i);
    ++part_[0].events.back().inputs;
  }
  void add_leaf(ValueIndex, const Tensor&);
  ValueIndex new_values(size_t count) {
    ValueIndex first = kOnlyKnown | next_value_;
    next_value_ += ValueIndex(count);
    return first;
  }
  void clear();

  // Oldest first.
  template <class See> void visit_events(See see) const {
    for (const Part* part : {&part_[1], &part_[0]})
      for (const LoggedEvent& n : part->events)
        see(n, std::span<const ValueIndex>(part->inputs.data() + n.first_input, n.inputs));
  }
  template <class See> void visit_leaves(See see) const {
    for (const Part* part : {&part_[1], &part_[0]})
      for (const Leaf& leaf : part->leaves) see(leaf);
  }

 private:
  struct Part {
    BlockVector<LoggedEvent> events;
    BlockVector<ValueIndex> inputs;
    BlockVector<Leaf> leaves;
    void clear();
  };
  void make_room();

  Part part_[2];  // the current one and the one before; when it is full they change places
  ValueIndex next_value_ = 0;
};

}  // namespace tapeflow
