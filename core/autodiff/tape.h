// The tape: a list of records, one per operation that read a tracked value, and the backward pass over it.
//
// Every tracked value has an index; a record names its inputs by index and its outputs by the first of consecutive
// indices. So the backward pass needs no look-ups: cotangents lie in an array by index, and records are already in
// order. A record keeps the shapes of its inputs and those tensors that the rule of its op names, nothing else.
#pragma once

#include "autodiff/cotangent.h"
#include "autodiff/trace.h"
#include "base/parallel.h"

namespace tapeflow {

struct Record;

class Tape final : public Recorder, public Watcher {
 public:
  // A tape that explains logs events for explanations.
  Tape(bool persistent, bool watch_accessed_variables, bool explains = false);
  ~Tape();

  void start();  // begins to record on this thread
  void stop();
  void close();  // stops, but goes on logging events for a while, until gradients are asked for
  void pause();  // records nothing, but logs events
  void resume();
  bool recording() const { return recording_ && !paused_; }
  bool persistent() const { return persistent_; }
  bool watches_accessed_variables() const { return watch_accessed_variables_; }
  bool used_up() const { return used_up_; }

  void watch(const Tensor&);
  void watch(VariableBody&);
  void reset();
  std::span<VariableBody* const> watched_variables() const { return watched_; }

  // The index of a tracked value, or kUntracked.
  ValueIndex find(const Tensor& t) const { return tracked(Watcher::find(t)); }
  ValueIndex find(const VariableBody& v) const { return tracked(Watcher::find(v)); }
  // The index of a value that is tracked or known, or kUntracked.
  ValueIndex find_known(const Tensor& t) const { return Watcher::find(t); }
  ValueIndex find_known(const VariableBody& v) const { return Watcher::find(v); }

  void record(const Call&) override;
  void read(VariableBody&, const Tensor& value) override;
  bool asked_once() const override { return !persistent_; }
  bool watches(const Tensor& t) const override { return find(t) != kUntracked; }

  // The provenance log.
  void log_operation(const Call&, Moment);
  void log_event(Event, const Tensor&, Moment);
  void log_read(VariableBody&);
  void log_assignment(VariableBody&, const Tensor& value, Moment);
  Moment moment() const { return paused_ ? Moment::paused : recording_ ? Moment::open : Moment::closed; }
  const Trace& trace() const { return trace_; }
  const Location& opened_at() const { return opened_.location(); }
  const Location& used_up_at() const { return used_up_place_.location(); }
  const Location& reset_at() const { return reset_place_.location(); }
  bool forgot_by_reset() const { return forgot_by_reset_; }  // else by being used up
  // Whether a value was on this tape before it was used up or reset last.
  bool forgot(const Marks& marks) const {
    return forgotten_serial_ && (marks.slot[0].tape == forgotten_serial_ || marks.slot[1].tape == forgotten_serial_);
  }

  // Sum over the targets of cotangent * d target / d source, for each source; empty where there is no path.
  // `cotangents` may hold empty handles, which stand for ones. Uses the tape up unless it is persistent or `keep` is
  // set.
  BlockVector<Cotangent> gradient(std::span<const ValueIndex> targets, std::span<const Spec> target_specs,
                                  std::span<const Tensor> cotangents, std::span<const ValueIndex> sources,
                                  bool keep = false);
  // Lets go of the tensors of all records: the tape is used up, but can still be asked why a gradient is None.
  void release_tensors();
  // Lets go of all records; only the list of watched variables stays.
  void use_up();
  // The list as well.
  void release_watched();

  // What diagnostics report about a record: where it came from, and between which values it stands.
  struct RecordView {
    const Op& op;
    Location location;
    size_t kept_bytes;
    std::span<const ValueIndex> inputs;
    ValueIndex first_output;
    int outputs;
    std::span<const Form> output_forms;
    const RuleContext& context;  // the parameters and the shapes
  };
  void visit_records(FunctionRef<void(const RecordView&)> see) const;  // oldest first
  void visit_params(FunctionRef<void(const Op&, const Params&)> see) const;

 private:
  static ValueIndex tracked(ValueIndex i) { return is_tracked(i) ? i : kUntracked; }
  void forget(bool by_reset);
  ValueIndex known(const Tensor&);  // makes it known if it is not
  ValueIndex known(VariableBody&);
  void clear();
  char* more_room(size_t bytes);  // for the next record, where `room_` is too small
  void run_rule(Record&, BlockVector<Cotangent>& cotangents, const BlockVector<uint8_t>& useful);

  BlockVector<Record*> records_;
  BlockVector<std::pair<char*, size_t>> chunks_;  // memory of the records
  char *room_ = nullptr, *room_end_ = nullptr;    // what is left of the last chunk
  BlockVector<VariableBody*> watched_;
  ValueIndex next_value_ = 0;
  bool persistent_, watch_accessed_variables_, explains_, recording_ = false, paused_ = false, used_up_ = false;
  bool forgot_by_reset_ = false;
  Trace trace_;
  Place opened_, used_up_place_, reset_place_;
  uint64_t forgotten_serial_ = 0;
};

// Notifies the tapes that record on this thread. Costs one comparison if there are none.
void log_on_tapes(Event, const Tensor&);
void log_variable_on_tapes(Event, VariableBody&);
void log_assignment_on_tapes(VariableBody&, const Tensor& value);
inline void log_on_tapes_if_any(Event event, const Tensor& t) {
  if (!thread_state().recorders.empty()) log_on_tapes(event, t);
}
bool is_recording();  // whether something on this thread tracks values

}  // namespace tapeflow
