// Recording and the backward pass.
#include "autodiff/tape.h"

#include <algorithm>
#include <cstdlib>
#include <new>

#include "autodiff/deferred.h"
#include "ops/ops.h"
#include "tensor/addition.h"

namespace tapeflow {

// One run of an operation. After the struct come, in this order: a tensor for each input and output (empty where the
// rule does not look at it), the input indices, the dtypes and ranks of inputs and outputs, and the dimensions of the
// outputs and of the inputs that are not shaped like output 0.
struct Record {
  const Op* op;
  Params params;
  Location location;
  ValueIndex first_output;
  uint16_t inputs, outputs;

  static size_t bytes_before_dims(size_t inputs, size_t outputs) {
    size_t bytes = sizeof(Record) + (inputs + outputs) * (sizeof(Tensor) + sizeof(Form)) + inputs * sizeof(ValueIndex);
    return (bytes + alignof(int64_t) - 1) / alignof(int64_t) * alignof(int64_t);
  }
  Tensor* kept() { return reinterpret_cast<Tensor*>(this + 1); }
  std::span<const Tensor> kept_inputs() { return {kept(), inputs}; }
  std::span<const Tensor> kept_outputs() { return {kept() + inputs, outputs}; }
  ValueIndex* input() { return reinterpret_cast<ValueIndex*>(kept() + inputs + outputs); }
  Form* form() { return reinterpret_cast<Form*>(input() + inputs); }
  int64_t* dims() {
    return reinterpret_cast<int64_t*>(reinterpret_cast<char*>(this) + bytes_before_dims(inputs, outputs));
  }

  void release_kept() {
    for (Tensor *t = kept(), *end = t + inputs + outputs; t != end; ++t)
      if (*t) *t = Tensor();
    if (params.size() && !op->keeps_params) params = Params();
  }
  void destroy() {
    release_kept();
    if (location.code) location_source.release(location.code);
    this->~Record();
  }
};

namespace {
constexpr uint8_t kUseful = 1, kSource = 2;  // what the backward pass knows of a value

constexpr size_t kChunkBytes = 1 << 15, kFirstRecords = 64;
}  // namespace

// Receives what is computed after a tape was closed, for a number of operations, for diagnostics only. It stays
// last in the list of recorders, where it can leave while they are being notified.
struct AfterClose final : Recorder {
  static constexpr int kOperations = 64;
  Tape* tape = nullptr;
  uint64_t serial = 0;
  int left = 0;

  bool active() const { return tape && left > 0 && Watcher::live(serial); }
  void attach(Tape* closed) {
    detach();
    tape = closed;
    serial = closed->serial();
    left = kOperations;
    thread_state().recorders.push_back(this);
  }
  void detach() {
    if (tape) stop_recorder(this);
    tape = nullptr;
  }
  void leave() {
    auto& recorders = thread_state().recorders;
    if (recorders[recorders.size() - 1] != this) return;
    recorders.pop_back();
    tape = nullptr;
  }
  void record(const Call& call) override {
    if (!active()) return leave();
    --left;
    tape->log_operation(call, Moment::closed);
  }
  void read(VariableBody& v, const Tensor&) override {
    if (active()) tape->log_read(v);
  }
  bool watches(const Tensor&) const override { return false; }
  bool only_events() const override { return true; }
};
static AfterClose* after_close() { return static_cast<AfterClose*>(thread_state().after_close.get()); }  // or null

Tape::Tape(bool persistent, bool watch_accessed_variables, bool explains)
    : Watcher(Kind::tape),
      persistent_(persistent),
      watch_accessed_variables_(watch_accessed_variables),
      explains_(explains) {}

Tape::~Tape() {
  stop();
  clear();
}

void Tape::start() {
  if (recording_)
    fail(ErrorKind::value,
         "GradientTape: Tape is still recording, This can happen if you try to re-enter an already-active tape.");
  if (used_up_) reset();
  if (AfterClose* after = after_close(); after && after->tape) after->detach();
  thread_state().recorders.push_back(this);
  recording_ = true;
  used_up_ = false;
  if (explains_) opened_.set_here();
}

void Tape::close() {
  bool recorded = recording_;
  stop();
  if (!explains_ || !recorded) return;
  if (!after_close()) thread_state().after_close = std::make_shared<AfterClose>();
  after_close()->attach(this);
}

void Tape::pause() {
  if (explains_)
    paused_ = true;
  else
    stop();
}

void Tape::resume() {
  if (recording_ && paused_)
    paused_ = false;
  else
    start();
}

void Tape::stop() {
  if (!recording_) return;
  stop_recorder(this);
  recording_ = paused_ = false;
}

void Tape::release_watched() {
  BlockVector<VariableBody*> watched;
  watched.swap(watched_);  // releasing the last reference to an object may run code that uses this tape
  for (VariableBody* v : watched) {
    void* wrapper = v->wrapper;
    v->drop();
    if (wrapper) location_source.release(wrapper);
  }
}

void Tape::clear() {
  for (Record* r : records_) r->destroy();
  records_.clear();
  for (auto [chunk, bytes] : chunks_) give_block(chunk, bytes);
  chunks_.clear();
  room_ = room_end_ = nullptr;
  next_value_ = 0;
  trace_.clear();
  release_watched();
}

void Tape::forget(bool by_reset) {
  forgotten_serial_ = serial();
  forgot_by_reset_ = by_reset;
  if (explains_) (by_reset ? reset_place_ : used_up_place_).set_here();
  forget_all();
}

void Tape::reset() {
  clear();
  forget(true);
}

char* Tape::more_room(size_t bytes) {
  if (records_.empty()) records_.reserve(kFirstRecords);
  const size_t size = std::max(bytes, kChunkBytes);
  auto& chunk = chunks_.emplace_back(nullptr, size);
  try {
    chunk.first = static_cast<char*>(take_block(size));
  } catch (...) {
    chunks_.pop_back();
    throw;
  }
  if (bytes > kChunkBytes) return chunk.first;  // rare (operations with thousands of inputs): a chunk of its own
  room_end_ = chunk.first + kChunkBytes;
  return room_ = chunk.first;
}

void Tape::watch(const Tensor& t) {
  if (!differentiable.has(t.dtype()) || find(t) != kUntracked) return;
  ValueIndex before = find_known(t);
  track(t, next_value_++);
  if (before == kUntracked) return;
  LoggedEvent& n = trace_.add(Event::watch, moment(), nullptr, records_.size());
  n.first_output = next_value_ - 1;
  n.outputs = 1;
  trace_.add_input(before);
}

void Tape::watch(VariableBody& v) {
  if (!differentiable.has(v.dtype) || find(v) != kUntracked) return;
  ValueIndex before = find_known(v);
  track(v, next_value_++);
  if (before != kUntracked) {
    LoggedEvent& n = trace_.add(Event::watch, moment(), nullptr, records_.size());
    n.first_output = next_value_ - 1;
    n.outputs = 1;
    trace_.add_input(before);
  }
  v.retain();
  if (v.wrapper) location_source.retain(v.wrapper);  // watched_variables() gives the object itself
  watched_.push_back(&v);
}

void Tape::read(VariableBody& v, const Tensor& value) {
  ValueIndex index = find(v);
  if (index == kUntracked) {
    if (paused_ || !watch_accessed_variables_ || !v.trainable || !differentiable.has(v.dtype)) {
      if (!value.symbolic()) return log_read(v);
      if (!explains_) return;
      ValueIndex i = known(v);
      if (i != kUntracked && find_known(value) != i) mark_known(value.body()->marks, i);
      return;
    }
    watch(v);
    index = find(v);
  }
  if (find(value) != index) track(value, index);
}

ValueIndex Tape::known(const Tensor& t) {
  ValueIndex i = find_known(t);
  if (i != kUntracked) return i;
  i = trace_.new_values(1);
  // What Python does not hold is not asked for again.
  if (t.body()->wrapper && !mark_known(t, i)) return kUntracked;
  trace_.add_leaf(i, t);
  return i;
}

ValueIndex Tape::known(VariableBody& v) {
  ValueIndex i = find_known(v);
  if (i != kUntracked) return i;
  i = trace_.new_values(1);
  return mark_known(v.marks, i) ? i : kUntracked;
}

void Tape::log_operation(const Call& call, Moment moment) {
  if (!explains_ || call.out.empty() || call.in.size() > 0xffff || call.out.size() > 0xffff) return;
  SmallVector<ValueIndex, 4> input;
  for (const Tensor& t : call.in) input.push_back(known(t));
  LoggedEvent& n = trace_.add(Event::operation, moment, &call.op, records_.size());
  n.first_output = trace_.new_values(call.out.size());
  n.outputs = uint16_t(call.out.size());
  for (ValueIndex i : input) trace_.add_input(i);
  for (size_t i = 0; i < call.out.size(); ++i)
    if (find(call.out[i]) == kUntracked) mark_known(call.out[i], n.first_output + ValueIndex(i));
}

void Tape::log_event(Event event, const Tensor& t, Moment moment) {
  if (!explains_) return;
  bool made = event == Event::constant && find_known(t) == kUntracked;
  ValueIndex i = known(t);
  if (made) mark_known(t, i);  // Python is about to hold it
  LoggedEvent& n = trace_.add(event, moment, nullptr, records_.size());
  if (made) {
    n.first_output = i;
    n.outputs = 1;
  } else {
    trace_.add_input(i);
  }
}

void Tape::log_read(VariableBody& v) {
  if (!explains_ || !v.value) return;
  ValueIndex i = known(v);
  if (i == kUntracked || find_known(v.value) == i) return;
  if (is_tracked(i))
    track(v.value, i);
  else
    mark_known(v.value.body()->marks, i);
}

void Tape::log_assignment(VariableBody& v, const Tensor& value, Moment moment) {
  if (!explains_) return;
  ValueIndex from = known(value), to = known(v);
  LoggedEvent& n = trace_.add(Event::assign, moment, nullptr, records_.size());
  n.first_output = to;
  n.outputs = 1;
  trace_.add_input(from);
}

namespace {
template <class Use> void for_each_tape(Use use) {
  AfterClose* after = after_close();
  for (Recorder* r : thread_state().recorders) {
    if (r == after) {
      if (after->active()) use(*after->tape, Moment::closed);
    } else if (auto* tape = dynamic_cast<Tape*>(r)) {
      use(*tape, tape->moment());
    }
  }
}
}  // namespace

void log_on_tapes(Event event, const Tensor& t) {
  for_each_tape([&](Tape& tape, Moment moment) { tape.log_event(event, t, moment); });
}
void log_variable_on_tapes(Event event, VariableBody& v) {
  for_each_tape([&](Tape& tape, Moment moment) {
    tape.log_read(v);
    tape.log_event(event, v.value, moment);
  });
}
void log_assignment_on_tapes(VariableBody& v, const Tensor& value) {
  for_each_tape([&](Tape& tape, Moment moment) { tape.log_assignment(v, value, moment); });
}
bool is_recording() {
  for (Recorder* r : thread_state().recorders) {
    if (r->forward()) return true;
    auto* tape = dynamic_cast<Tape*>(r);
    if (!r->only_events() && (!tape || tape->recording())) return true;
  }
  return false;
}

void Tape::record(const Call& call) {
  if (paused_) return log_operation(call, Moment::paused);
  const size_t inputs = call.in.size(), outputs = call.out.size();
  bool tracked = false;
  size_t dims = 0;
  for (const Tensor& t : call.in) {
    tracked |= is_tracked(find_known(t));
    dims += t.shape().dims().size();
  }
  if (!tracked) return log_operation(call, Moment::open);
  if (outputs == 0) return;
  if (inputs > 0xffff || outputs > 0xffff)
    fail(ErrorKind::unimplemented, call.name(), ": at most 65535 inputs or outputs can be recorded");
  for (const Tensor& t : call.out) dims += t.shape().dims().size();

  const Op& op = call.op;
  const size_t before_dims = Record::bytes_before_dims(inputs, outputs), most = before_dims + dims * sizeof(int64_t);
  char* place = most <= size_t(room_end_ - room_) ? room_ : more_room(most);
  Record* r = new (place) Record;
  r->op = &op;
  r->params = call.params;
  r->location = here();
  r->first_output = next_value_;
  r->inputs = uint16_t(inputs);
  r->outputs = uint16_t(outputs);
  ValueIndex* index = r->input();
  for (size_t i = 0; i < inputs; ++i) {
    index[i] = find_known(call.in[i]);
    if (index[i] == kUntracked && explains_) index[i] = known(call.in[i]);
  }

  Keep keep = op.keep;
  if (thread_state().stage && must_defer(call))
    keep = keep_everything;
  else if (op.keep_by_input)
    keep = (is_tracked(index[0]) ? op.keep_for[0] : 0) | (is_tracked(index[1]) ? op.keep_for[1] : 0);
  // A copy without a gradient is there to stop it: what follows sees a constant.
  const bool stops = op.gradient == Gradient::none && op.copies_elements;
  const Tensor& y = call.out[0];
  Tensor* kept = r->kept();
  Form* form = r->form();
  auto* d = reinterpret_cast<int64_t*>(place + before_dims);
  for (size_t i = 0; i < inputs; ++i) {
    const Tensor& t = call.in[i];
    new (kept++) Tensor(keeps_input(keep, i) ? t : Tensor());
    bool like_output = t.dtype() == y.dtype() && t.shape() == y.shape();
    *form++ = {t.dtype(), like_output ? kLikeOutput : int8_t(t.rank())};
    if (!like_output) d = std::copy(t.shape().begin(), t.shape().end(), d);
  }
  for (size_t i = 0; i < outputs; ++i) {
    const Tensor& t = call.out[i];
    new (kept++) Tensor(keeps_output(keep, i) ? t : Tensor());
    *form++ = {t.dtype(), int8_t(t.rank())};
    d = std::copy(t.shape().begin(), t.shape().end(), d);
    if (differentiable.has(t.dtype()) && !stops)
      track(t, next_value_);
    else if (explains_ && next_value_ < kRecordOutput)
      mark_known(t.body()->marks, kOnlyKnown | kRecordOutput | next_value_);
    ++next_value_;
  }
  if (place == room_) room_ = reinterpret_cast<char*>(d);
  records_.push_back(r);
}

namespace {
// A paused tape logs no events of its own backward pass.
class Hidden {
 public:
  explicit Hidden(Tape* tape) {
    auto& recorders = thread_state().recorders;
    size_t kept = 0;
    for (Recorder* r : recorders)
      if (r == tape)
        tape_ = tape;
      else
        recorders[kept++] = r;
    recorders.resize(kept);
  }
  ~Hidden() {
    if (tape_) thread_state().recorders.push_back(tape_);
  }
  Hidden(const Hidden&) = delete;

 private:
  Tape* tape_ = nullptr;
};
}  // namespace

BlockVector<Cotangent> Tape::gradient(std::span<const ValueIndex> targets, std::span<const Spec> target_specs,
                                      std::span<const Tensor> cotangents, std::span<const ValueIndex> sources,
                                      bool keep) {
  keep |= persistent_;
  if (AfterClose* after = after_close(); after && after->tape == this) after->detach();
  Hidden hidden(paused_ ? this : nullptr);
  // Which values lie on a path from a source.
  const ValueIndex values = next_value_;
  const size_t count = records_.size();
  BlockVector<uint8_t> useful(values, 0);
  for (ValueIndex s : sources)
    if (s != kUntracked) useful[s] = kUseful | kSource;
  for (Record* r : records_) {
    if (r->op->gradient == Gradient::none) continue;  // recorded for explanations alone
    for (int i = 0; i < r->inputs; ++i) {
      ValueIndex x = r->input()[i];
      if (!is_tracked(x) || !useful[x]) continue;
      for (int j = 0; j < r->outputs; ++j) useful[r->first_output + ValueIndex(j)] |= kUseful;
      break;
    }
  }

  BlockVector<Cotangent> flow(values);
  for (size_t t = 0; t < targets.size(); ++t) {
    if (targets[t] == kUntracked || !useful[targets[t]]) continue;
    const Spec& spec = target_specs[t];
    Tensor start = cotangents[t] ? cotangents[t] : filled(spec.dtype, spec.shape, 1);
    accumulate(flow[targets[t]], {std::move(start), Tensor()}, spec.shape);
  }

  if (!keep) used_up_ = true;
  for (size_t i = count; i-- > 0;) {
    Record& r = *records_[i];
    run_rule(r, flow, useful);
    for (ValueIndex y = r.first_output, end = y + r.outputs; y != end; ++y)
      if (flow[y] && !(useful[y] & kSource)) flow[y] = Cotangent();
    if (!keep) r.release_kept();
  }

  BlockVector<Cotangent> result;
  result.reserve(sources.size());
  for (ValueIndex s : sources) result.push_back(s == kUntracked ? Cotangent() : flow[s]);
  // Whoever asked wants the values: what is still lazy is computed here, in one pass where it belongs together.
  for (const Cotangent& c : result)
    if (c && !c.values.symbolic()) c.values.raw();
  // A result that is empty may be asked about (why is it None?): then the records stay, without the tensors.
  bool complete = std::all_of(result.begin(), result.end(), [](const Cotangent& c) { return bool(c); });
  if (!keep && complete) use_up();
  if (!keep && !complete && explains_) used_up_place_.set_here();
  return result;
}

void Tape::release_tensors() {
  used_up_ = true;
  for (Record* r : records_) r->release_kept();
  if (explains_) used_up_place_.set_here();
}

void Tape::use_up() {
  used_up_ = true;
  BlockVector<VariableBody*> watched;
  watched.swap(watched_);
  clear();
  forget(false);
  watched_.swap(watched);
}

void Tape::run_rule(Record& r, BlockVector<Cotangent>& flow, const BlockVector<uint8_t>& useful) {
  bool reached = false;
  for (int j = 0; j < r.outputs; ++j) reached |= bool(flow[r.first_output + ValueIndex(j)]);
  if (!reached || r.op->gradient == Gradient::none) return;
  if (r.op->gradient == Gradient::missing)
    fail(ErrorKind::lookup, r.op->public_name(), ": gradient registry has no entry for: ", r.op->name,
         ". The operation has no gradient.");

  const ValueIndex* input = r.input();
  const size_t inputs = r.inputs;
  SmallVector<bool, 8> wanted;
  bool any_wanted = false;
  for (size_t i = 0; i < inputs; ++i) {
    wanted.push_back(is_tracked(input[i]) && useful[input[i]]);
    any_wanted |= wanted.back();
  }
  if (!any_wanted) return;
  RuleContext context{*r.op,
                      r.params,
                      r.kept_inputs(),
                      r.kept_outputs(),
                      {r.form(), size_t(r.inputs + r.outputs)},
                      r.dims(),
                      {},
                      wanted,
                      {},
                      {}};
  if (flow[r.first_output].indices && r.op->keeps_sparse) {  // as in the read of a variable that is looked up in
    Cotangent& from = flow[r.first_output];
    Cotangent rows{cast(from.values, context.dtype(0)), from.indices};
    if (useful[r.first_output] == kUseful) from = Cotangent();
    return accumulate(flow[input[0]], std::move(rows), context.shape(0));
  }
  Tensors dy;
  for (int j = 0; j < r.outputs; ++j) {
    ValueIndex y = r.first_output + ValueIndex(j);
    Cotangent& c = flow[y];
    const bool last_use = useful[y] == kUseful;  // then the rule is the only holder
    if (c.indices) {
      dy.push_back(densified(c, context.output_spec(j).shape));
      if (last_use) c = Cotangent();
    } else {
      dy.push_back(last_use ? std::move(c.values) : c.values);
    }
  }
  context.given = dy;
  context.result.resize(inputs);
  if (r.op->adds_in_place && thread_state().recorders.empty() && !thread_state().stage) {
    context.totals.resize(inputs);
    for (size_t i = 0; i < inputs; ++i) {
      context.totals[i] = nullptr;
      if (!wanted[i]) continue;
      const Cotangent& so_far = flow[input[i]];
      bool alone = std::count(input, input + inputs, input[i]) == 1;
      if (so_far.values && !so_far.indices && alone && may_be_added_to(so_far.values))
        context.totals[i] = &so_far.values;
    }
  }
  RunFor sake(r.op, r.location, true);
  if (thread_state().stage && must_defer(context))
    defer_rule(context);
  else
    r.op->vjp(context);
  context.given = {};
  dy.clear();
  for (size_t i = 0; i < inputs; ++i) {
    Tensor& dx = context.result[i];
    if (!dx || !wanted[i]) continue;
    Cotangent& total = flow[input[i]];
    if (i < context.sparse_indices.size() && context.sparse_indices[i])
      accumulate(total, {std::move(dx), std::move(context.sparse_indices[i])}, context.shape(int(i)));
    else if (!total)
      total.values = std::move(dx);
    else if (!total.indices)
      add_dense(total.values, dx);
    else
      accumulate(total, {std::move(dx), Tensor()}, context.shape(int(i)));
  }
}

void Tape::visit_params(FunctionRef<void(const Op&, const Params&)> see) const {
  for (const Record* r : records_) see(*r->op, r->params);
}

void Tape::visit_records(FunctionRef<void(const RecordView&)> see) const {
  for (Record* r : records_) {
    size_t kept = 0;
    for (const Tensor& t : std::span(r->kept(), r->inputs + r->outputs))
      if (t) kept += t.bytes();
    RuleContext context{*r->op,
                        r->params,
                        r->kept_inputs(),
                        r->kept_outputs(),
                        {r->form(), size_t(r->inputs + r->outputs)},
                        r->dims(),
                        {},
                        {},
                        {},
                        {}};
    see({*r->op,
         r->location,
         kept,
         {r->input(), r->inputs},
         r->first_output,
         r->outputs,
         {r->form() + r->inputs, r->outputs},
         context});
  }
}

}  // namespace tapeflow
