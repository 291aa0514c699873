// Recording and the walk back.
#include "autodiff/tape.h"

#include <algorithm>
#include <cstdlib>
#include <new>

#include "ops/ops.h"

namespace tapeflow {

LocationSource location_source;

// One run of an operation. Behind the struct lie, in this order: the kept tensors, the dimensions of the inputs that
// are not shaped like output 0, the input indices, the dtypes and ranks of inputs and outputs.
struct Record {
  const Op* op;
  Params params;
  Location location;
  ValueIndex first_output;
  uint16_t inputs, outputs;
  uint32_t kept_count, dims_count;

  struct Kept {
    TensorBody* body;
    uint32_t which;  // input, or 2^16 + output
  };

  static size_t bytes(size_t inputs, size_t outputs, size_t kept, size_t dims) {
    return sizeof(Record) + kept * sizeof(Kept) + dims * sizeof(int64_t) + inputs * sizeof(ValueIndex) +
           (inputs + outputs) * sizeof(Form);
  }
  Kept* kept() { return reinterpret_cast<Kept*>(this + 1); }
  int64_t* dims() { return reinterpret_cast<int64_t*>(kept() + kept_count); }
  ValueIndex* input() { return reinterpret_cast<ValueIndex*>(dims() + dims_count); }
  Form* form() { return reinterpret_cast<Form*>(input() + inputs); }

  void release_kept() {
    for (uint32_t i = 0; i < kept_count; ++i) Tensor(std::exchange(kept()[i].body, nullptr));
    params = Params();
  }
  void destroy() {
    release_kept();
    if (location.code) location_source.release(location.code);
    this->~Record();
  }
};

namespace {
constexpr size_t kChunkBytes = 1 << 15;
constexpr size_t kFreeChunks = 64;
std::vector<char*> free_chunks;

// Vectors of the last tape that ended, so that the next one need not grow its own. Not larger than kSpareLimit.
constexpr size_t kSpareLimit = 1 << 12;
struct Spare {
  std::vector<Record*> records;
  std::vector<VariableBody*> watched;
  std::vector<uint8_t> useful;
  std::vector<Cotangent> flow;
} spare;
template <class T> std::vector<T> take(std::vector<T>& from) { return std::exchange(from, {}); }
template <class T> void give_back(std::vector<T>& to, std::vector<T>& used) {
  if (used.capacity() > kSpareLimit || used.capacity() <= to.capacity()) return;
  used.clear();
  to.swap(used);
}
}  // namespace

Tape::Tape(bool persistent, bool watch_accessed_variables)
    : records_(take(spare.records)), watched_(take(spare.watched)), persistent_(persistent),
      watch_accessed_variables_(watch_accessed_variables) {}

Tape::~Tape() {
  stop();
  clear();
  give_back(spare.records, records_);
  give_back(spare.watched, watched_);
}

void Tape::start() {
  if (recording_) fail(ErrorKind::value, "GradientTape: Tape is still recording, This can happen if you try to re-enter an already-active tape.");
  if (used_up_) reset();
  thread_state().recorders.push_back(this);
  recording_ = true;
  used_up_ = false;
}

void Tape::stop() {
  if (!recording_) return;
  stop_recorder(this);
  recording_ = false;
}

void Tape::clear() {
  for (Record* r : records_) r->destroy();
  records_.clear();
  for (char* chunk : chunks_) {
    if (free_chunks.size() < kFreeChunks)
      free_chunks.push_back(chunk);
    else
      std::free(chunk);
  }
  chunks_.clear();
  for (char* chunk : oversized_) std::free(chunk);
  oversized_.clear();
  chunk_used_ = 0;
  for (VariableBody* v : watched_) v->drop();
  watched_.clear();
  next_value_ = 0;
}

void Tape::reset() {
  clear();
  forget_all();
}

void* Tape::allocate(size_t bytes) {
  bytes = (bytes + 7) / 8 * 8;
  if (bytes > kChunkBytes) {
    // Rare (operations with thousands of inputs): memory of its own.
    char* chunk = static_cast<char*>(std::malloc(bytes));
    if (!chunk) throw std::bad_alloc();
    oversized_.push_back(chunk);
    return chunk;
  }
  if (chunks_.empty() || chunk_used_ + bytes > kChunkBytes) {
    char* chunk;
    if (free_chunks.empty()) {
      chunk = static_cast<char*>(std::malloc(kChunkBytes));
      if (!chunk) throw std::bad_alloc();
    } else {
      chunk = free_chunks.back();
      free_chunks.pop_back();
    }
    chunks_.push_back(chunk);
    chunk_used_ = 0;
  }
  void* place = chunks_.back() + chunk_used_;
  chunk_used_ += bytes;
  return place;
}

void Tape::watch(const Tensor& t) {
  if (differentiable.has(t.dtype()) && find(t) == kNotFollowed) follow(t, next_value_++);
}

void Tape::watch(VariableBody& v) {
  if (!differentiable.has(v.dtype) || find(v) != kNotFollowed) return;
  follow(v, next_value_++);
  v.retain();
  watched_.push_back(&v);
}

void Tape::read(VariableBody& v) {
  ValueIndex index = find(v);
  if (index == kNotFollowed) {
    if (!watch_accessed_variables_ || !v.trainable || !differentiable.has(v.dtype)) return;
    watch(v);
    index = find(v);
  }
  if (find(v.value) != index) follow(v.value, index);
}

void Tape::record(const Call& call) {
  bool followed = false;
  SmallVector<ValueIndex, 4> input;
  for (const Tensor& t : call.in) {
    input.push_back(find(t));
    followed |= input.back() != kNotFollowed;
  }
  if (!followed || call.out.empty()) return;
  if (call.in.size() > 0xffff || call.out.size() > 0xffff)
    fail(ErrorKind::unimplemented, call.name(), ": at most 65535 inputs or outputs can be recorded");

  const Op& op = call.op;
  Keep keep = op.keep;
  if (op.keep_by_input)
    keep = (input[0] != kNotFollowed ? op.keep_for[0] : 0) | (input[1] != kNotFollowed ? op.keep_for[1] : 0);
  const Tensor& y = call.out[0];
  size_t dims = 0, kept = 0;
  SmallVector<Form, 4> form;
  for (size_t i = 0; i < call.in.size(); ++i) {
    const Tensor& t = call.in[i];
    bool like_output = t.dtype() == y.dtype() && t.shape() == y.shape();
    form.push_back({t.dtype(), like_output ? kLikeOutput : int8_t(t.rank())});
    if (!like_output) dims += size_t(t.rank());
    kept += keep == keep_all_inputs || (i < 16 && (keep >> i & 1));
  }
  for (size_t i = 0; i < call.out.size(); ++i) {
    form.push_back({call.out[i].dtype(), int8_t(call.out[i].rank())});
    dims += size_t(call.out[i].rank());
    kept += i < 16 && (keep >> (16 + i) & 1);
  }

  Record* r = new (allocate(Record::bytes(call.in.size(), call.out.size(), kept, dims))) Record;
  r->op = &op;
  r->params = call.params;
  if (location_source.current) r->location = location_source.current();
  r->first_output = next_value_;
  r->inputs = uint16_t(call.in.size());
  r->outputs = uint16_t(call.out.size());
  r->kept_count = uint32_t(kept);
  r->dims_count = uint32_t(dims);
  Record::Kept* k = r->kept();
  int64_t* d = r->dims();
  for (size_t i = 0; i < call.in.size(); ++i) {
    const Tensor& t = call.in[i];
    if (keep == keep_all_inputs || (i < 16 && (keep >> i & 1))) *k++ = {Tensor(t).release(), uint32_t(i)};
    if (form[i].rank != kLikeOutput) d = std::copy(t.shape().begin(), t.shape().end(), d);
    r->input()[i] = input[i];
  }
  for (size_t i = 0; i < call.out.size(); ++i) {
    const Tensor& t = call.out[i];
    if (i < 16 && (keep >> (16 + i) & 1)) *k++ = {Tensor(t).release(), uint32_t(0x10000 + i)};
    d = std::copy(t.shape().begin(), t.shape().end(), d);
    if (differentiable.has(t.dtype())) follow(t, next_value_);
    ++next_value_;
  }
  std::copy(form.begin(), form.end(), r->form());
  records_.push_back(r);
}

std::vector<Cotangent> Tape::gradient(std::span<const ValueIndex> targets, std::span<const Spec> target_specs,
                                      std::span<const Tensor> cotangents, std::span<const ValueIndex> sources,
                                      bool keep) {
  keep |= persistent_;
  // Which values lie on a path from a source.
  constexpr uint8_t kUseful = 1, kSource = 2;
  const ValueIndex values = next_value_;
  const size_t count = records_.size();
  std::vector<uint8_t> useful = take(spare.useful);
  useful.assign(values, 0);
  for (ValueIndex s : sources)
    if (s != kNotFollowed) useful[s] = kUseful | kSource;
  for (Record* r : records_)
    for (int i = 0; i < r->inputs; ++i) {
      ValueIndex x = r->input()[i];
      if (x == kNotFollowed || !useful[x]) continue;
      for (int j = 0; j < r->outputs; ++j) useful[r->first_output + ValueIndex(j)] |= kUseful;
      break;
    }

  std::vector<Cotangent> flow = take(spare.flow);
  flow.resize(values);
  for (size_t t = 0; t < targets.size(); ++t) {
    if (targets[t] == kNotFollowed || !useful[targets[t]]) continue;
    const Spec& spec = target_specs[t];
    Tensor start = cotangents[t] ? cotangents[t] : filled(spec.dtype, spec.shape, 1);
    accumulate(flow[targets[t]], {std::move(start), Tensor()}, spec.shape);
  }

  if (!keep) used_up_ = true;
  for (size_t i = count; i-- > 0;) {
    Record& r = *records_[i];
    run_rule(r, flow, useful);
    for (int j = 0; j < r.outputs; ++j) {
      ValueIndex y = r.first_output + ValueIndex(j);
      if (!(useful[y] & kSource)) flow[y] = Cotangent();
    }
    if (!keep) r.release_kept();
  }

  std::vector<Cotangent> result;
  for (ValueIndex s : sources) result.push_back(s == kNotFollowed ? Cotangent() : flow[s]);
  // Whoever asked wants the values: what still waits is computed here, in one pass where it belongs together.
  for (const Cotangent& c : result)
    if (c) c.values.raw();
  give_back(spare.useful, useful);
  give_back(spare.flow, flow);
  // A result that is empty may be asked about (why is it None?): then the records stay, without the tensors.
  bool complete = std::all_of(result.begin(), result.end(), [](const Cotangent& c) { return bool(c); });
  if (!keep && complete) use_up();
  return result;
}

void Tape::use_up() {
  used_up_ = true;
  std::vector<VariableBody*> watched;
  watched.swap(watched_);
  clear();
  forget_all();
  watched_.swap(watched);
}

void Tape::run_rule(Record& r, std::vector<Cotangent>& flow, const std::vector<uint8_t>& useful) {
  bool reached = false;
  for (int j = 0; j < r.outputs; ++j) reached |= bool(flow[r.first_output + ValueIndex(j)]);
  if (!reached || r.op->gradient == Gradient::none) return;
  if (r.op->gradient == Gradient::missing)
    fail(ErrorKind::lookup, r.op->public_name(), ": gradient registry has no entry for: ", r.op->name,
         ". The operation has no gradient.");

  SmallVector<Tensor, 4> kept_inputs, dy;
  SmallVector<Tensor, 2> kept_outputs;
  SmallVector<bool, 8> wanted;
  bool any_wanted = false;
  for (int i = 0; i < r.inputs; ++i) {
    ValueIndex x = r.input()[i];
    wanted.push_back(x != kNotFollowed && useful[x]);
    any_wanted |= wanted.back();
  }
  if (!any_wanted) return;
  kept_inputs.resize(r.inputs);
  kept_outputs.resize(r.outputs);
  for (uint32_t i = 0; i < r.kept_count; ++i) {
    Record::Kept k = r.kept()[i];
    (k.which < 0x10000 ? kept_inputs[k.which] : kept_outputs[k.which - 0x10000]) = Tensor::borrow(k.body);
  }
  RuleContext context{*r.op,  r.params, kept_inputs, kept_outputs, std::span<const Form>(r.form(), size_t(r.inputs + r.outputs)),
                      r.dims(), {},       wanted,      {},           {}};
  for (int j = 0; j < r.outputs; ++j) {
    ValueIndex y = r.first_output + ValueIndex(j);
    Cotangent& c = flow[y];
    dy.push_back(c.indices ? densified(c, context.output_spec(j).shape) : c.values);
    if (useful[y] == 1) c = Cotangent();  // the rule's dy is then the only holder of what is not needed any more
  }
  context.given = dy;
  context.result.resize(r.inputs);
  if (r.op->adds_in_place && thread_state().recorders.empty()) {
    context.totals.resize(r.inputs);
    for (int i = 0; i < r.inputs; ++i) {
      context.totals[size_t(i)] = nullptr;
      if (!wanted[size_t(i)]) continue;
      const Cotangent& so_far = flow[r.input()[i]];
      bool alone = std::count(r.input(), r.input() + r.inputs, r.input()[i]) == 1;
      if (so_far.values && !so_far.indices && alone && so_far.values.unique()) context.totals[size_t(i)] = &so_far.values;
    }
  }
  r.op->vjp(context);
  context.given = {};
  dy.clear();
  for (int i = 0; i < r.inputs; ++i) {
    Tensor& dx = context.result[size_t(i)];
    if (!wanted[size_t(i)] || !dx) continue;
    Cotangent& total = flow[r.input()[i]];
    Tensor indices = size_t(i) < context.sparse_indices.size() ? context.sparse_indices[size_t(i)] : Tensor();
    if (!total)
      total = {std::move(dx), std::move(indices)};
    else
      accumulate(total, {std::move(dx), std::move(indices)}, context.shape(i));
  }
}

void Tape::visit_records(FunctionRef<void(const RecordView&)> see) const {
  for (Record* r : records_) {
    size_t kept = 0;
    for (uint32_t i = 0; i < r->kept_count; ++i)
      if (const TensorBody* body = r->kept()[i].body) kept += size_t(body->size) * size_of(body->dtype);
    see({*r->op, r->location, kept, {r->input(), r->inputs}, r->first_output, r->outputs});
  }
}

}  // namespace tapeflow
