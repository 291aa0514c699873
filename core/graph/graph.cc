// Building graphs: nodes, values, captures, names, and shapes as far as they are known while tracing.
#include "graph/graph.h"

#include <algorithm>

#include "op/escape.h"
#include "ops/ops.h"

namespace tapeflow {

Graph::~Graph() {
  for (Value& v : values)
    if (v.node != Value::kConstant) v.tensor.body()->symbol().graph = nullptr;
  for (Node& n : nodes)
    if (n.location.code) location_source.release(n.location.code);
}

bool Graph::takes(const Call& call) const {
  if (takes_everything_ || call.op.stateful || call.op.effect || call.params.has_tensor()) return true;
  for (const Tensor& t : call.in)
    if (t.symbolic()) return true;
  return false;
}

Tensor Graph::add_input(const Spec& spec) {
  ValueId id = ValueId(values.size());
  values.push_back({Tensor::symbolic_value(spec.dtype, spec.shape, {this, id}), Value::kInput});
  inputs.push_back(id);
  return values[id].tensor;
}

void Graph::import(const Tensor& foreign, Tensor own) {
  imported_keys_.push_back(foreign);
  imported_[foreign.body()] = std::move(own);
}

ValueId Graph::capture(const Tensor& t) {
  Tensor own = add_input({t.dtype(), t.shape()});
  captures.push_back(t);
  import(t, own);
  return own.body()->symbol().value;
}

void Graph::take(std::span<const Tensor> tensors) {
  std::vector<ValueId> ordered(inputs.begin(), inputs.end() - std::ptrdiff_t(captures.size()));
  std::vector<ValueId> taken;
  for (const Tensor& t : tensors) taken.push_back(imported_.contains(t.body()) ? id_of(imported_[t.body()]) : capture(t));
  ordered.insert(ordered.end(), taken.begin(), taken.end());
  inputs = std::move(ordered);
  captures.assign(tensors.begin(), tensors.end());
}

void Graph::capture_held_constants() {
  for (size_t i = 0; i < values.size(); ++i) {
    Value& v = values[i];
    if (v.node != Value::kConstant || v.tensor.body()->references == 1 || !differentiable.has(v.tensor.dtype())) continue;
    Tensor held = v.tensor;
    constant_ids_.erase(held.body());
    v = {Tensor::symbolic_value(held.dtype(), held.shape(), {this, ValueId(i)}), Value::kInput};
    inputs.push_back(ValueId(i));
    captures.push_back(held);
    import(held, values[i].tensor);
  }
}

std::vector<VariableBody*> Graph::captured_variables() const {
  std::vector<VariableBody*> result;
  for (auto& [variable, id] : captured_reads_) result.push_back(variable);
  std::sort(result.begin(), result.end(), [&](VariableBody* a, VariableBody* b) { return captured_reads_.at(a) < captured_reads_.at(b); });
  return result;
}

void Graph::read_itself(VariableBody& v) {
  auto it = captured_reads_.find(&v);
  if (it == captured_reads_.end()) return;
  ValueId id = it->second;
  captured_reads_.erase(it);
  auto place = std::find(inputs.begin(), inputs.end(), id);
  captures.erase(captures.end() - (inputs.end() - place));
  inputs.erase(place);
  for (Value& value : values)
    if (value.node >= 0) ++value.node;
  values[id].node = 0;
  nodes.insert(nodes.begin(), Node{&read_variable_op(), Params{variable_param(v)}, {}, id, 1, {}, {}});
}

ValueId Graph::id_of(const Tensor& t) {
  if (!t.symbolic()) {
    auto [it, fresh] = constant_ids_.try_emplace(t.body(), ValueId(values.size()));
    if (fresh) values.push_back({t, Value::kConstant});
    return it->second;
  }
  if (owns(t)) return t.body()->symbol().value;
  if (auto it = imported_.find(t.body()); it != imported_.end()) return id_of(it->second);
  for (Graph* g = outer_; g; g = g->outer_)
    if (g->owns(t) || g->imported_.contains(t.body())) return capture(t);
  fail_escaped("function", t);
}

const Tensor& Graph::read(VariableBody& v) {
  auto it = reads_.find(&v);
  if (it == reads_.end() && outer_ && !stands_alone && !std::count(changing.begin(), changing.end(), &v)) {
    it = reads_.emplace(&v, id_of(outer_->read(v))).first;
    captured_reads_[&v] = it->second;
  } else if (it == reads_.end()) {
    Params params{variable_param(v)};
    Call call(read_variable_op(), {}, params);
    add(call);
    it = reads_.emplace(&v, call.out[0].body()->symbol().value).first;
  }
  return values[it->second].tensor;
}

void Graph::add(Call& call) {
  try {
    infer(call);
  } catch (const Error& e) {
    // What is wrong already while tracing is a mistake in the program, as in TensorFlow; while running, one in the data.
    if (e.kind == ErrorKind::invalid_argument) throw Error(ErrorKind::value, e.what());
    throw;
  }
  Node node{&call.op, call.params, {}, 0, uint32_t(call.specs.size()), {}, {}};
  for (const Tensor& t : call.in) node.inputs.push_back(id_of(t));
  if (call.params.has_tensor()) {
    node.params = Params::sized(call.params.size());
    for (int i = 0; i < int(call.params.size()); ++i) {
      const Param& p = call.params[i];
      node.params.mutable_at(i) = p.kind == Param::Kind::tensor ? Param(values[id_of(p.tensor())].tensor, p.argument_kind()) : p;
    }
  }
  node.first_output = ValueId(values.size());
  if (location_source.current) node.location = location_source.current();
  if (takes_everything_) node.name = unique_name(scope + call.op.name);
  for (const Spec& spec : call.specs) {
    ValueId id = ValueId(values.size());
    values.push_back({Tensor::symbolic_value(spec.dtype, spec.shape, {this, id}), int(nodes.size())});
    call.out.push_back(values[id].tensor);
  }
  nodes.push_back(std::move(node));
  if (&call.op == &assign_op()) {
    VariableBody& v = variable_in(call.params[0]);
    reads_.erase(&v);
    if (!std::count(changing.begin(), changing.end(), &v)) changing.push_back(&v);
  } else if (call.op.effect) {
    reads_.clear();
  }
}

void Graph::cut_back(size_t count) {
  if (count >= nodes.size()) return;
  // Constants and captures made in between stay: they do no harm, and their numbers lie among those that go.
  for (size_t i = count; i < nodes.size(); ++i) {
    if (nodes[i].location.code) location_source.release(nodes[i].location.code);
    nodes[i] = Node{nullptr, {}, {}, nodes[i].first_output, nodes[i].outputs, {}, {}};
  }
  reads_.clear();
}

std::string Graph::unique_name(std::string wanted) {
  int& count = name_counts_[wanted];
  if (count++ == 0) return wanted;
  for (int i = count - 1;; ++i) {
    std::string candidate = wanted + "_" + std::to_string(i);
    if (!name_counts_.contains(candidate)) {
      count = i + 1;
      name_counts_[candidate] = 1;
      return candidate;
    }
  }
}

void Graph::set_name(size_t node, std::string wanted) { nodes[node].name = unique_name(std::move(wanted)); }

// ---- shapes while tracing

namespace {

bool fully_known(const Call& call) {
  if (call.params.has_tensor()) return false;
  return std::all_of(call.in.begin(), call.in.end(), [](const Tensor& t) { return t.size() >= 0; });
}

// Whether the shapes of the outputs depend on elements.
bool depends_on_elements(const Op& op) {
  static const std::string_view names[] = {"Where", "DistinctElements", "DynamicPartition", "NonMaxSuppressionV5",
                                           "NonMaxSuppressionWithOverlaps", "CTCBeamSearchDecoder"};
  return std::find(std::begin(names), std::end(names), op.name) != std::end(names);
}

// An op that makes its own outputs is tried out on zeros.
void try_out(Call& call) {
  SmallVector<Tensor, 4> in;
  for (const Tensor& t : call.in) in.push_back(t.symbolic() ? zeros(t.dtype(), t.shape()) : t);
  Call trial(call.op, in, call.params);
  trial.op.kernel(trial);
  for (const Tensor& t : trial.out) call.returns(t.dtype(), t.shape());
}

// The shape rule on shapes that are known.
void infer_known(Call& call) {
  if (call.op.infer) call.op.infer(call);
  if (!call.specs.empty() || !call.op.makes_outputs) return;
  try_out(call);
  if (!depends_on_elements(call.op)) return;
  for (Spec& spec : call.specs)
    if (spec.shape.rank() > 0) spec.shape[0] = -1;
}

// Dimensions that are not known are tried out with two numbers each, alone and together. What no trial changes is known.
class Trial {
 public:
  explicit Trial(const Call& call) : call_(call) {
    for (size_t i = 0; i < call.in.size(); ++i) {
      Shape shape = call.in[i].shape();
      if (!shape.known_rank()) {
        unknown_rank_ = true;
        shape = Shape{1};
      }
      shapes_.push_back(shape);
      for (int d = 0; d < shape.rank(); ++d)
        if (shape[d] < 0) open_.push_back({i, d});
    }
    params_ = call.params;
    if (!call.params.has_tensor()) return;
    unknown_rank_ = true;
    params_ = Params::sized(call.params.size());
    for (int i = 0; i < int(call.params.size()); ++i)
      params_.mutable_at(i) = call.params[i].kind == Param::Kind::tensor ? guess(i) : call.params[i];
  }

  void run(SmallVector<Spec, 1>& result) {
    std::vector<int64_t> bases = {840, 1};
    for (const Shape& s : shapes_)
      for (int64_t d : s)
        if (d >= 0) bases.push_back(d);
    SmallVector<int64_t, 8> numbers;
    numbers.resize(open_.size());
    SmallVector<Spec, 1> first;
    std::string message;
    ErrorKind kind = ErrorKind::runtime;
    size_t b = 0;
    for (; b < bases.size(); ++b) {
      std::fill(numbers.begin(), numbers.end(), bases[b]);
      try {
        first = specs(numbers);
        break;
      } catch (const Error& e) {
        if (message.empty()) message = e.what(), kind = e.kind;
      }
    }
    if (b == bases.size()) throw Error(kind, message);
    result = first;
    auto compare = [&] {
      try {
        SmallVector<Spec, 1> other = specs(numbers);
        for (size_t i = 0; i < result.size(); ++i) {
          if (other.size() != result.size() || other[i].shape.rank() != first[i].shape.rank())
            result[i].shape = Shape::unknown();
          else
            for (int d = 0; d < result[i].shape.rank(); ++d)
              if (other[i].shape[d] != first[i].shape[d]) result[i].shape[d] = -1;
        }
      } catch (const Error&) {
        // This dimension has no choice, or goes together with another one.
      }
    };
    for (int64_t& n : numbers) n *= 2;
    compare();
    for (size_t i = 0; i < numbers.size(); ++i) {
      for (size_t k = 0; k < numbers.size(); ++k) numbers[k] = k == i ? 2 * bases[b] : bases[b];
      compare();
    }
    for (Spec& spec : result) {
      if (unknown_rank_) spec.shape = Shape::unknown();
      for (int d = 0; d < spec.shape.rank(); ++d)
        if (bases[b] == 840 && spec.shape[d] == 840) spec.shape[d] = -1;
    }
  }

 private:
  Param guess(int i) const {
    int at = 0;
    for (const Argument& a : call_.op.arguments) {
      if (a.kind == Argument::Kind::tensor || a.kind == Argument::Kind::tensors || at++ != i) continue;
      if (a.kind == Argument::Kind::flag) return Param(false);
      if (a.kind == Argument::Kind::real) return Param(1.0);
      if (a.kind == Argument::Kind::integer) return Param(0);
    }
    Ints ones;
    ones.resize(1);
    ones[0] = 0;
    return Param(ones);
  }

  SmallVector<Spec, 1> specs(std::span<const int64_t> numbers) {
    std::vector<Shape> shapes(shapes_.begin(), shapes_.end());
    for (size_t k = 0; k < open_.size(); ++k) shapes[open_[k].first][open_[k].second] = numbers[k];
    SmallVector<Tensor, 4> in;
    for (size_t i = 0; i < shapes.size(); ++i)
      in.push_back(call_.in[i].symbolic() ? Tensor::symbolic_value(call_.in[i].dtype(), shapes[i], {nullptr, 0}) : call_.in[i]);
    Call trial(call_.op, in, params_);
    infer_known(trial);
    return trial.specs;
  }

  const Call& call_;
  Params params_;
  SmallVector<Shape, 4> shapes_;
  SmallVector<std::pair<size_t, int>, 4> open_;
  bool unknown_rank_ = false;
};

}  // namespace

void Graph::infer(Call& call) {
  if (call.op.infer_staged) {
    if (!call.params.has_tensor()) return call.op.infer_staged(call);
    Params told = Params::sized(call.params.size());
    for (int i = 0; i < int(call.params.size()); ++i)
      told.mutable_at(i) = call.params[i].kind == Param::Kind::tensor ? Param(known_elements(*this, call.params[i].tensor())) : call.params[i];
    Call view(call.op, call.in, told);
    call.op.infer_staged(view);
    call.specs = view.specs;
    return;
  }
  if (fully_known(call)) return infer_known(call);
  std::string_view name = call.op.name;
  if ((name == "Reshape" || name == "BroadcastTo") && call.params[0].kind == Param::Kind::tensor) {
    const Tensor& sizes = call.params[0].tensor();
    Shape shape = sizes.rank() == 1 && sizes.dim(0) >= 0 ? Shape() : Shape::unknown();
    if (shape.known_rank())
      for (int64_t n : known_elements(*this, sizes)) shape.append(n < 0 ? -1 : n);
    return call.returns(call.in[0].dtype(), shape);
  }
  Trial(call).run(call.specs);
}

Ints known_elements(const Graph& graph, const Tensor& t) {
  if (!t.symbolic()) return read_ints(t);
  Ints result;
  if (t.size() < 0 || t.rank() > 1 || t.size() > 64) return result;
  result.resize(size_t(t.size()));
  std::fill(result.begin(), result.end(), kUnknownInt);
  if (!graph.owns(t)) return result;
  const Value& value = graph.values[t.body()->symbol().value];
  if (value.node < 0) return result;
  const Node& node = graph.nodes[size_t(value.node)];
  if (!node.op) return result;
  std::string_view name = node.op->name;
  auto input = [&](size_t i) -> const Tensor& { return graph.values[node.inputs[i]].tensor; };
  if (name == "Shape") {
    for (size_t i = 0; i < result.size(); ++i)
      if (input(0).dim(int(i)) >= 0) result[i] = input(0).dim(int(i));
  } else if (name == "Pack" || name == "ConcatV2") {
    Ints joined;
    for (size_t i = 0; i < node.inputs.size(); ++i)
      for (int64_t n : known_elements(graph, input(i))) joined.push_back(n);
    if (joined.size() == result.size()) result = joined;
  } else if (name == "Cast" || name == "Reshape" || name == "Identity" || name == "ExpandDims" || name == "Squeeze") {
    Ints same = known_elements(graph, input(0));
    if (same.size() == result.size()) result = same;
  } else if (name == "GetItem" && input(0).size() >= 0 && !node.params.has_tensor()) {
    Ints from = known_elements(graph, input(0));
    if (int64_t(from.size()) != input(0).size()) return result;
    EnterStage nowhere(nullptr);
    PauseRecording unheard;
    Tensor places = int_tensor(from, DType::int64);
    Tensor cut = run(*node.op, {places.view(input(0).shape())}, node.params);
    Ints picked = read_ints(cut);
    if (picked.size() == result.size()) result = picked;
  }
  return result;
}

}  // namespace tapeflow
