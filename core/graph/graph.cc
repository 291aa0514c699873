// Building graphs: nodes, values, captures, names, and shapes as far as they are known while tracing.
#include "graph/graph.h"

#include <algorithm>
#include <atomic>
#include <sstream>

#include "op/escape.h"
#include "ops/ops.h"
#include "ops/partial_shape.h"

namespace tapeflow {

uint32_t (*first_seen_in)(const TensorBody&) = nullptr;

Graph::Graph(Graph* outer, bool graph_mode) : outer_(outer), graph_mode_(graph_mode) {
  static std::atomic<uint32_t> traces = 0;
  trace = outer ? outer->trace : ++traces;
}

Graph::~Graph() {
  for (Value& v : values)
    if (v.node != Value::kConstant) v.tensor.body()->symbol().graph = nullptr;
  for (Node& n : nodes)
    if (n.location.code) location_source.release(n.location.code);
}

bool Graph::takes(const Call& call) const {
  if (graph_mode_ || call.op.stateful || call.op.effect || call.params.has_tensor()) return true;
  for (const Tensor& t : call.in) {
    if (t.symbolic()) return true;
    if (call.op.gradient == Gradient::none) continue;
    if (is_of_program && t.body()->wrapper && differentiable.has(t.dtype()) && first_seen_in(*t.body()) != trace)
      return true;
    for (const Recorder* r : attached)
      if (r->watches(t)) return true;
  }
  return false;
}

Tensor Graph::add_input(const Spec& spec) {
  ValueId id = ValueId(values.size());
  values.push_back({Tensor::symbolic_value(spec.dtype, spec.shape, {this, id}), Value::kInput});
  inputs.push_back(id);
  return values[id].tensor;
}

void Graph::import(const Tensor& other, Tensor own) {
  imported_keys_.push_back(other);
  imported_[other.body()] = std::move(own);
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
  for (const Tensor& t : tensors)
    taken.push_back(imported_.contains(t.body()) ? id_of(imported_[t.body()]) : capture(t));
  ordered.insert(ordered.end(), taken.begin(), taken.end());
  inputs = std::move(ordered);
  captures.assign(tensors.begin(), tensors.end());
}

void Graph::capture_held_constants() {
  for (size_t i = 0; i < values.size(); ++i) {
    Value& v = values[i];
    if (v.node != Value::kConstant || v.tensor.body()->references == 1 || !differentiable.has(v.tensor.dtype()))
      continue;
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
  std::sort(result.begin(), result.end(),
            [&](VariableBody* a, VariableBody* b) { return captured_reads_.at(a) < captured_reads_.at(b); });
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
  auto* other = static_cast<const Graph*>(t.body()->symbol().graph);
  if (graph_mode_ && other && other->graph_mode_) {
    std::string what = describe_escaped ? describe_escaped(t) : "a symbolic tf.Tensor";
    fail(ErrorKind::value, what.substr(0, what.find('\n')),
         " must be from the same graph as the operation that takes it. Make both "
         "inside of one `with graph.as_default():`.");
  }
  fail_escaped("function", t);
}

const Tensor& Graph::read(VariableBody& v) {
  auto it = reads_.find(&v);
  if (it == reads_.end() && outer_ && !is_function && !std::count(changing.begin(), changing.end(), &v)) {
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

void Graph::enter_controls(std::vector<int> nodes) {
  control_scope = std::move(nodes);
  reads_.clear();
}

Tensor Graph::read_after(VariableBody& v, int update) {
  std::vector<int> outside = std::exchange(control_scope, {});
  control_scope = outside;
  control_scope.push_back(update);
  reads_.erase(&v);
  Tensor result = read(v);
  reads_.erase(&v);
  control_scope = std::move(outside);
  return result;
}

const ValueId* Graph::find_read(const VariableBody& v) const {
  auto it = reads_.find(&v);
  return it == reads_.end() ? nullptr : &it->second;
}

namespace {
// An operation that refuses two tensors of different dtypes: while tracing that is a TypeError, as in TensorFlow.
void check_dtypes(const Call& call, std::string_view message) {
  if (message.find("(zero-based) was expected to be a") == message.npos || call.in.size() < 2 ||
      call.op.arguments.size() < 2)
    return;
  const Argument &a = call.op.arguments[0], &b = call.op.arguments[1];
  DType x = call.in[0].dtype(), y = call.in[1].dtype();
  if (x == y || a.kind != Argument::Kind::tensor || b.kind != Argument::Kind::tensor) return;
  fail(ErrorKind::type, "Input '", b.name, "' of '", call.op.name, "' Op has type ", name_of(y),
       " that does not match type ", name_of(x), " of argument '", a.name, "'. (", message, ")");
}
// What TensorFlow says, while tracing, of two shapes that do not fit.
std::string unequal_dimensions(const Call& call, std::string_view message) {
  if (call.in.size() != 2 ||
      (message.find("Incompatible shapes") == message.npos && message.find("size-incompatible") == message.npos))
    return "";
  const Shape &a = call.in[0].shape(), &b = call.in[1].shape();
  int64_t one = 0, two = 0;
  if (size_t at = message.find("inner dimensions "); at != message.npos) {
    std::istringstream(std::string(message.substr(at + 17))) >> one;
    size_t second = message.find(" and ", at);
    if (second != message.npos) std::istringstream(std::string(message.substr(second + 5))) >> two;
  } else {
    for (int i = std::min(a.rank(), b.rank()); i > 0 && one == two; --i) {
      int64_t x = a[a.rank() - i], y = b[b.rank() - i];
      if (x != y && x > 1 && y > 1) one = x, two = y;
    }
  }
  if (one == two) return "";
  std::ostringstream text;
  text << ". Dimensions must be equal, but are " << one << " and " << two << " for '" << call.op.name
       << "' with input shapes: " << a << ", " << b << ".";
  return text.str();
}
}  // namespace

void Graph::add(Call& call) {
  if (frozen) fail(ErrorKind::runtime, "Graph is finalized and cannot be modified.");
  try {
    infer(call);
    for (const Spec& spec : call.specs)
      if (spec.shape.fully_known()) Tensor::check_size(spec.dtype, spec.shape);
  } catch (const Error& e) {
    if (e.kind != ErrorKind::invalid_argument) throw;
    check_dtypes(call, e.what());
    throw Error(e.kind, e.what() + unequal_dimensions(call, e.what()));
  }
  Node node{&call.op, call.params, {}, 0, uint32_t(call.specs.size()), {}, {}};
  if (graph_mode_ && names_nodes) {
    node.name = unique_name(scope + (wanted_name ? wanted_name : call.op.node_name ? call.op.node_name : call.op.name));
    name_constants(call, node);
  } else {
    if (wanted_name) node.name = wanted_name;  // made unique when somebody asks
    for (const Tensor& t : call.in) node.inputs.push_back(id_of(t));
  }
  if (call.params.has_tensor()) {
    node.params = Params::sized(call.params.size());
    for (int i = 0; i < int(call.params.size()); ++i) {
      const Param& p = call.params.at(i);
      node.params.mutable_at(i) =
          p.kind == Param::Kind::tensor ? Param(values[id_of(p.tensor())].tensor, p.argument_kind()) : p;
    }
  }
  node.first_output = ValueId(values.size());
  node.location = here(true);
  wanted_name = nullptr;
  if (graph_mode_) {
    if (!control_scope.empty()) controls[int(nodes.size())] = control_scope;
  }
  for (const Spec& spec : call.specs) {
    ValueId id = ValueId(values.size());
    values.push_back({Tensor::symbolic_value(spec.dtype, spec.shape, {this, id}), int(nodes.size())});
    call.out.push_back(values[id].tensor);
  }
  nodes.push_back(std::move(node));
  if (&call.op == &assign_op()) {
    VariableBody& v = variable_in(call.params);
    reads_.erase(&v);
    if (!std::count(changing.begin(), changing.end(), &v)) changing.push_back(&v);
  } else if (call.op.effect) {
    reads_.clear();
  }
}

// Constants among the inputs are nodes of their own, "add/y".
void Graph::name_constants(const Call& call, Node& node) {
  std::vector<int> controls_of_node = std::exchange(control_scope, {});
  std::string outer_scope = std::exchange(scope, {});
  for (size_t i = 0; i < call.in.size(); ++i) {
    const auto& arguments = call.op.arguments;
    bool named = !call.in[i].symbolic() && i < arguments.size() && arguments[i].kind == Argument::Kind::tensor;
    std::string name = named ? node.name + "/" + arguments[i].name : std::string();
    wanted_name = name.c_str();
    node.inputs.push_back(id_of(named ? add_constant(call.in[i]) : call.in[i]));
  }
  scope = std::move(outer_scope);
  control_scope = std::move(controls_of_node);
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
  auto key = [](std::string name) {
    for (char& c : name) c = c >= 'A' && c <= 'Z' ? char(c - 'A' + 'a') : c;
    return name;
  };
  int& count = name_counts_[key(wanted)];
  if (count++ == 0) return wanted;
  for (int i = count - 1;; ++i) {
    std::string candidate = wanted + "_" + std::to_string(i);
    if (!name_counts_.contains(key(candidate))) {
      count = i + 1;
      name_counts_[key(candidate)] = 1;
      return candidate;
    }
  }
}

// ---- shapes while tracing

namespace {

bool fully_known(const Call& call) {
  if (call.params.has_tensor()) return false;
  return std::all_of(call.in.begin(), call.in.end(), [](const Tensor& t) { return t.size() >= 0; });
}

// The shape rule on shapes that are known. An op that makes its own outputs is tried out on zeros.
void infer_known(Call& call) {
  if (call.op.infer) call.op.infer(call);
  if (!call.specs.empty() || !call.op.makes_outputs) return;
  SmallVector<Tensor, 4> in;
  for (const Tensor& t : call.in) in.push_back(t.symbolic() ? zeros(t.dtype(), t.shape()) : t);
  Call trial(call.op, in, call.params);
  trial.op.kernel(trial);
  for (const Tensor& t : trial.out) call.returns(t.dtype(), t.shape());
}

}  // namespace

void Graph::infer(Call& call) {
  if (fully_known(call) && (call.op.infer || !call.op.infer_staged)) return infer_known(call);
  if (call.op.infer_staged) {
    if (!call.params.has_tensor()) return call.op.infer_staged(call);
    Params resolved = Params::sized(call.params.size());
    for (int i = 0; i < int(call.params.size()); ++i)
      resolved.mutable_at(i) =
          call.params.at(i).kind == Param::Kind::tensor ? known_param(*this, call.params.at(i)) : call.params.at(i);
    Call view(call.op, call.in, resolved);
    call.op.infer_staged(view);
    call.specs = view.specs;
    return;
  }
  try_out(call, infer_known);
}

}  // namespace tapeflow
