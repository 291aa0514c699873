// The tape: a list of records, one per operation that touched a followed value, and the walk back over it.
//
// Every followed value has an index; a record names its inputs by index and its outputs by the first of consecutive
// indices. So the walk back needs no look-ups: cotangents lie in an array by index, and records are already in order.
// A record keeps the shapes of its inputs and those tensors that the rule of its op names, nothing else.
#pragma once
#include <vector>

#include "autodiff/cotangent.h"
#include "autodiff/watcher.h"
#include "base/parallel.h"

namespace tapeflow {

// The line of the user's program that an operation came from, as the Python layer tells it: a code object and an
// instruction in it. Turned into a file and a line only when somebody asks.
struct Location {
  void* code = nullptr;
  int instruction = 0;
};
struct LocationSource {
  Location (*current)() = nullptr;  // retains the code object
  void (*release)(void* code) = nullptr;
};
extern LocationSource location_source;

struct Record;

class Tape final : public Recorder, public Watcher {
 public:
  Tape(bool persistent, bool watch_accessed_variables);
  ~Tape();

  void start();  // begins to listen on this thread
  void stop();
  bool recording() const { return recording_; }
  bool persistent() const { return persistent_; }
  bool watches_accessed_variables() const { return watch_accessed_variables_; }
  bool used_up() const { return used_up_; }

  void watch(const Tensor&);
  void watch(VariableBody&);
  void reset();
  const std::vector<VariableBody*>& watched_variables() const { return watched_; }

  void record(const Call&) override;
  void read(VariableBody&, const Tensor& value) override;
  bool asked_once() const override { return !persistent_; }
  bool follows(const Tensor& t) const override { return find(t) != kNotFollowed; }

  // Sum over the targets of cotangent * d target / d source, for each source; empty where there is no path.
  // `cotangents` may hold empty handles, which stand for ones. Uses the tape up unless it is persistent or `keep` is set.
  std::vector<Cotangent> gradient(std::span<const ValueIndex> targets, std::span<const Spec> target_specs,
                                  std::span<const Tensor> cotangents, std::span<const ValueIndex> sources,
                                  bool keep = false);
  // Lets go of all records; only the list of watched variables stays.
  void use_up();

  // What can be told about a record: where it came from, and between which values it stands.
  struct RecordView {
    const Op& op;
    Location location;
    size_t kept_bytes;
    std::span<const ValueIndex> inputs;
    ValueIndex first_output;
    int outputs;
  };
  void visit_records(FunctionRef<void(const RecordView&)> see) const;  // oldest first

 private:
  void clear();
  void* allocate(size_t bytes);
  void run_rule(Record&, std::vector<Cotangent>& cotangents, const std::vector<uint8_t>& useful);

  std::vector<Record*> records_;
  std::vector<char*> chunks_;  // memory of the records
  std::vector<char*> oversized_;
  size_t chunk_used_ = 0;
  std::vector<VariableBody*> watched_;
  ValueIndex next_value_ = 0;
  bool persistent_, watch_accessed_variables_, recording_ = false, used_up_ = false;
};

}  // namespace tapeflow
