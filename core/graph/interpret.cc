// Running a graph through dispatch, and the operations on variables that only graphs need.
#include <algorithm>

#include "base/parallel.h"
#include "graph/replay.h"
#include "graph/run.h"
#include "graph/scatter_sums.h"
#include "kernels/elementwise.h"
#include "kernels/simd/vector.h"
#include "ops/ops.h"

namespace tapeflow {

Param variable_param(VariableBody& v) {
  v.retain();
  return Param(std::shared_ptr<void>(&v, [](void* p) { static_cast<VariableBody*>(p)->drop(); }));
}
VariableBody& variable_in(const Param& p) { return *static_cast<VariableBody*>(p.object.get()); }
VariableBody& variable_in(const Params& params) { return params[variable_params.variable]; }

namespace {

template <class T> void update_in_place(const Tensor& target, const Tensor& delta, Update update) {
  const VectorKernels<T>& v = vector_kernels<T>();
  auto kernel = update == Update::add ? v.add.vv : v.subtract.vv;
  T* y = target.mutable_data<T>();
  const T* x = delta.data<T>();
  if (target.size() <= kCheapGrain) return kernel(y, x, y, target.size());
  parallel_for(target.size(), kCheapGrain,
               [&](int64_t begin, int64_t end) { kernel(y + begin, x + begin, y + begin, end - begin); });
}

[[noreturn]] void fail_uninitialized(const VariableBody& v) {
  std::string name = v.name.substr(0, v.name.rfind(':'));
  fail(ErrorKind::failed_precondition, "Could not find variable ", name,
       ". This could mean that the variable has been deleted. In TF1, it can also mean the variable is uninitialized. "
       "(Attempting to use uninitialized value ",
       name,
       ": run its initializer first, e.g. "
       "sess.run(tf.compat.v1.global_variables_initializer()).)\n\t [[{{node ",
       name, "/Read/ReadVariableOp}}]]");
}

// For a lazy value: computed together with the sum, in the variable's memory if nobody else holds that.
void update_in_one_pass(VariableBody& v, const Tensor& t, Update update) {
  PauseRecording paused;
  Tensor sum = update == Update::add ? add(v.value, t) : subtract(v.value, t);
  Tensor before = std::exchange(v.value, Tensor());
  TensorBody* body = before.body();
  try {
    before = Tensor();  // the sum holds it, if it is lazy
    sum.raw();
  } catch (...) {
    v.value = Tensor::borrow(body);
    throw;
  }
  v.value = std::move(sum);
}

const Op& read_op = define_inner(Op{
    .name = "ReadVariableOp",
    .arguments = {},
    .infer =
        [](Call& call) {
          const VariableBody& v = variable_in(call.params);
          call.returns(v.dtype, v.shape);
        },
    .kernel =
        [](Call& call) {
          const Tensor& value = variable_in(call.params).value;
          if (!value) fail_uninitialized(variable_in(call.params));
          call.out.push_back(value.view(value.shape()));
        },
    .makes_outputs = true,
    .gradient = Gradient::none,
    .stateful = true,
    .copies_elements = true,
});

const Op& assign_variable_op = define_inner(Op{
    .name = "AssignVariableOp",
    .arguments = {tensor("value", any_dtype)},
    .infer_staged = [](Call&) {},
    .kernel =
        [](Call& call) {
          apply_update(variable_in(call.params), call.in[0], Update(call.params[variable_params.update]));
        },
    .makes_outputs = true,
    .gradient = Gradient::none,
    .stateful = true,
    .effect = true,
});

}  // namespace

Param resolved_param(const Param& p, Tensor t) {
  if (t.symbolic()) {
    Param open(std::move(t), p.argument_kind());
    auto* stage = static_cast<const Graph*>(thread_state().stage);
    std::optional<Param> settled = stage ? settled_param(*stage, open) : std::nullopt;
    return settled ? *settled : open;
  }
  bool single = Argument::Kind(p.argument_kind()) <= Argument::Kind::real;
  if (single && t.size() != 1)
    fail(ErrorKind::invalid_argument, "an argument that is one number was given a tensor of shape ", t.shape());
  switch (Argument::Kind(p.argument_kind())) {
    case Argument::Kind::flag: return Param(read_ints(cast(t, DType::int32))[0] != 0);
    case Argument::Kind::real: return Param(*cast(t, DType::float64).data<double>());
    case Argument::Kind::integer: return Param(read_ints(t)[0]);
    default: return Param(read_ints(t));
  }
}

const Op& read_variable_op() { return read_op; }
const Op& assign_op() { return assign_variable_op; }

void apply_update(VariableBody& v, const Tensor& t, Update update) {
  static const char* names[] = {"assign", "assign_add", "assign_sub"};
  const char* who = names[int(update)];
  check_assignable(v, t, who);
  if (update == Update::assign) {
    v.value = t.view(t.shape());  // shared until the next write, which finds the other holder, if it still lives
    return;
  }
  if (!v.value) fail(ErrorKind::failed_precondition, who, ": the variable is not initialised");
  if (!(v.value.shape() == t.shape()))
    fail(ErrorKind::invalid_argument, who, ": the shapes must be equal; got variable shape ", v.value.shape(),
         " and value shape ", t.shape());
  if (!t.computed()) return update_in_one_pass(v, t, update);
  if (v.value.unique() && t.dtype() == DType::float32) return update_in_place<float>(v.value, t, update);
  if (v.value.unique() && t.dtype() == DType::float64) return update_in_place<double>(v.value, t, update);
  PauseRecording paused;
  v.value = update == Update::add ? add(v.value, t) : subtract(v.value, t);
}

// The outputs of a node, passed through the operation that overrides its rule.
static void override_rule(const Graph::Override& override_, const Node& node, std::span<const Tensor> in,
                          std::span<const Tensor> at, Call& call) {
  auto value = [&](ValueId v) {
    for (size_t k = 0; k < node.inputs.size(); ++k)
      if (node.inputs[k] == v) return in[k];
    return v >= node.first_output && v < node.first_output + node.outputs ? call.out[v - node.first_output] : at[v];
  };
  SmallVector<Tensor, 8> all;
  for (const Tensor& t : call.out) all.push_back(t);
  for (const Tensor& t : in) all.push_back(t);
  for (ValueId v : override_.more) all.push_back(value(v));
  call.out = run_all(*override_.op, all, override_.params);
}

static Tensors interpret(const Graph&, const Subgraph&, FunctionRef<void(ValueId, const Tensor&)> see, bool alone);

Tensors interpret(const Graph& graph, std::span<const Tensor> inputs) {
  const bool alone = thread_state().recorders.empty() && !thread_state().stage && graph.overrides.empty();
  return interpret(graph, {graph.inputs, inputs, graph.outputs, true}, [](ValueId, const Tensor&) {}, alone);
}
Tensors interpret(const Graph& graph, const Subgraph& subgraph, FunctionRef<void(ValueId, const Tensor&)> see) {
  return interpret(graph, subgraph, see, false);
}

Needs find_needs(const Graph& graph, std::span<const ValueId> wanted, bool effects, std::span<const int> nodes,
                 std::span<const Tensor> at) {
  size_t count = graph.nodes.size();
  Needs needs;
  needs.nodes.resize(count);
  needs.last_use.resize(graph.values.size());
  std::ranges::fill(needs.last_use, -1);
  auto use = [&](ValueId v, size_t by) {
    if (needs.last_use[v] < 0) needs.last_use[v] = int(by);
    if (!at[v] && graph.values[v].node >= 0) needs.nodes[size_t(graph.values[v].node)] = 1;
  };
  for (ValueId v : wanted) use(v, count);
  for (int node : nodes) needs.nodes[size_t(node)] = 1;
  for (size_t i = count; i-- > 0;) {
    const Node& node = graph.nodes[i];
    if (needs.nodes[i] && !graph.controls.empty())
      if (auto it = graph.controls.find(int(i)); it != graph.controls.end())
        for (int before : it->second) {
          const Node& earlier = graph.nodes[size_t(before)];
          bool given = earlier.outputs > 0;
          for (uint32_t k = 0; k < earlier.outputs; ++k) given = given && at[earlier.first_output + k];
          if (!given) needs.nodes[size_t(before)] = 1;
        }
    if (!node.op || !(needs.nodes[i] || (effects && node.op->effect))) continue;
    needs.nodes[i] = 1;
    for_each_operand(node, [&](ValueId v) { use(v, i); });
    if (!graph.overrides.empty())
      if (auto it = graph.overrides.find(int(i)); it != graph.overrides.end()) {
        for (ValueId v : it->second.more) use(v, i);
        for (uint32_t k = 0; k < node.outputs; ++k) use(node.first_output + k, i);
      }
  }
  return needs;
}

// Work on half types that is done in float32 becomes casts, that work, and casts of its results: casts of one value
// merge, and those of results join fusions. False: the call is no such work.
static bool lower_to_float(const Graph& stage, Call& call) {
  const DTypes half = call.op.planning.rounded_once;
  if (!stage.lowers || half.bits == 0 || call.in.empty() || !half.has(call.in[0].dtype())) return false;
  for (int p = 0; p < int(call.params.size()); ++p)
    if (call.params.at(p).kind == Param::Kind::dtype) return false;
  const DType dtype = call.in[0].dtype();
  SmallVector<Tensor, 4> in;
  for (const Tensor& x : call.in) in.push_back(x.dtype() == dtype ? cast(x, DType::float32) : x);
  for (const Tensor& y : run_all(call.op, std::span<const Tensor>(in.begin(), in.size()), call.params))
    call.out.push_back(cast(y, dtype));
  return true;
}

// `alone`: nobody sees the values between.
static Tensors interpret(const Graph& graph, const Subgraph& subgraph, FunctionRef<void(ValueId, const Tensor&)> see,
                         bool alone) {
  size_t count = graph.nodes.size();
  Tensors at;
  at.resize(graph.values.size());
  for (size_t i = 0; i < graph.values.size(); ++i)
    if (graph.values[i].node == Value::kConstant) at[i] = graph.values[i].tensor;
  for (size_t i = 0; i < subgraph.given.size(); ++i) at[subgraph.given[i]] = subgraph.tensors[i];
  Needs needs = find_needs(graph, subgraph.wanted, subgraph.effects, subgraph.nodes, at);
  for (size_t i = 0; i < graph.values.size(); ++i)
    if (at[i]) see(ValueId(i), at[i]);
  auto* stage = static_cast<Graph*>(thread_state().stage);
  SmallVector<Tensor, 4> in;
  std::optional<ScatterSums> sums;
  if (alone) sums.emplace(graph, needs, subgraph.wanted);
  for (size_t i = 0; i < count; ++i) {
    const Node& node = graph.nodes[i];
    if (!needs.nodes[i]) continue;
    if (sums && sums->adds(node)) {
      Tensor& first = at[node.inputs[0]];
      at[node.first_output] = sums->sum(needs.last_use[node.inputs[0]] == int(i) ? std::move(first) : first, node);
      continue;
    }
    if (node.op == &read_op) {
      VariableBody& variable = variable_in(node.params);
      if (!variable.value && !thread_state().stage) fail_uninitialized(variable);
      Tensor again = Replay::reading(variable);
      at[node.first_output] = again ? std::move(again) : read_variable(variable);
      see(node.first_output, at[node.first_output]);
      continue;
    }
    if (node.op == &assign_variable_op && stage && stage->lowers &&
        node.params[variable_params.update] != int(Update::assign)) {
      VariableBody& v = variable_in(node.params);
      Tensor before = read_variable(v), delta = at[node.inputs[0]];
      Tensor after =
          node.params[variable_params.update] == int(Update::add) ? add(before, delta) : subtract(before, delta);
      run_all(assign_variable_op, std::span(&after, 1),
              node.params.with(variable_params.update, Param(int64_t(Update::assign))));
      continue;
    }
    in.clear();
    for (ValueId v : node.inputs) {
      if (!at[v])
        fail(ErrorKind::invalid_argument, "You must feed a value for placeholder tensor: ", node.op->name,
             " depends on an input that is not given");
      in.push_back(at[v]);
    }
    Params params = node.params;
    if (params.has_tensor())
      params =
          resolved_params(node.params, [&](int p) { return at[node.params.at(p).tensor().body()->symbol().value]; });
    for (ValueId v : node.inputs)
      if (needs.last_use[v] == int(i)) at[v] = Tensor();
    if (sums && sums->defers(i)) {
      sums->keep(node.first_output, in, params);
      continue;
    }
    if (node.op->watched_params && !thread_state().recorders.empty()) params = node.op->watched_params(params, in);
    Call call(*node.op, in, params);
    RunFor sake(node.op, node.location, false);
    if (node.op == &assign_variable_op && !thread_state().recorders.empty())
      log_assignment_on_tapes(variable_in(params), in[0]);
    if (!(stage && (lower_to_float(*stage, call) || (node.op->expand && node.op->expand(call))))) dispatch(call);
    if (call.out.size() != node.outputs)
      fail(ErrorKind::invalid_argument, call.name(), ": it was traced with ", node.outputs, " results, but has ",
           call.out.size(), " now");
    if (!graph.overrides.empty())
      if (auto it = graph.overrides.find(int(i)); it != graph.overrides.end())
        override_rule(it->second, node, in, at, call);
    for (size_t k = 0; k < call.out.size(); ++k) {
      see(node.first_output + ValueId(k), call.out[k]);
      at[node.first_output + k] = std::move(call.out[k]);
    }
  }
  Tensors results;
  for (ValueId v : subgraph.wanted) {
    if (!at[v])
      fail(ErrorKind::invalid_argument,
           "You must feed a value for placeholder tensor: a result is an input that is not given");
    results.push_back(at[v]);
  }
  return results;
}

void build_subgraph(Graph& part, const Graph& from, std::span<const ValueId> given, std::span<const ValueId> wanted,
                    bool effects, std::span<const int> nodes) {
  Tensors in;
  for (ValueId v : given) in.push_back(part.add_input({from.values[v].tensor.dtype(), from.values[v].tensor.shape()}));
  EnterStage stage(&part);
  PauseRecording unrecorded;
  for (const Tensor& t : interpret(from, {given, in, wanted, effects, nodes}, [](ValueId, const Tensor&) {}))
    part.outputs.push_back(part.id_of(t));
}

}  // namespace tapeflow
