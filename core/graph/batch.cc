// Running graphs for many rows at once: the walk over the nodes, and what runs row by row.
#include "graph/batch.h"

#include <algorithm>
#include <string_view>

#include "autodiff/deferred.h"
#include "autodiff/forward.h"
#include "graph/batch_rules.h"
#include "graph/control_ops.h"
#include "graph/run.h"

namespace tapeflow {

void (*forget_error)() = [] {};

Tensor for_all_rows(const Tensor& t, int64_t rows) {
  Shape one = with_rows_in_front(1, t.shape()), all = with_rows_in_front(rows, t.shape());
  return broadcast_to(reshape(t, one), all);
}

std::vector<Tensor> rows_of(const BatchedValues& values, int64_t rows) {
  std::vector<Tensor> result;
  for (size_t i = 0; i < values.tensors.size(); ++i)
    result.push_back(values.batched[i] ? values.tensors[i] : for_all_rows(values.tensors[i], rows));
  return result;
}

namespace {

// ---- the operation Batched: another operation, for all rows. Inputs are those of the other operation and then its
// parameters that were symbolic; parameters are the plan, and then the operation's own. It is used where a rule cannot
// be applied while tracing, and where there is none.

struct RowPlan {
  const Op* op;
  size_t inputs;
  int64_t rows;
  SmallVector<bool, 8> batched;  // per input, and then per parameter that is an input
  SmallVector<int, 2> places;    // of the parameters that are inputs
  SmallVector<Spec, 2> specs;    // of a row of each output
  bool by_branch = false;        // branches whose rows may run in any order
};
const RowPlan& plan_of(const Params& params) { return *static_cast<const RowPlan*>(params[0].object.get()); }

[[noreturn]] void fail_unequal(const Op& op, const Shape& a, const Shape& b) {
  fail(ErrorKind::invalid_argument, "vectorized_map: the results of all rows must have one shape; ", op.public_name(), " gives ", a,
       " for one row and ", b, " for another. Bring them to one shape (tf.pad), or use tf.map_fn with a RaggedTensorSpec as "
       "fn_output_signature.");
}

// The parameters with symbolic ones replaced by what is known of them now; `at(k)` gives the k-th.
template <class At> Params params_with(const RowPlan& plan, const Params& own, At at) {
  if (plan.places.empty()) return own;
  Params told = Params::sized(own.size());
  for (int p = 0; p < int(own.size()); ++p) told.mutable_at(p) = own[p];
  for (size_t k = 0; k < plan.places.size(); ++k) {
    int place = plan.places[k];
    told.mutable_at(place) = resolved_param(own[place], at(k));
  }
  return told;
}

// Once for every row; the results stacked.
std::vector<Tensor> run_each_row(const RowPlan& plan, const Params& own, std::span<const Tensor> in, int64_t rows) {
  std::vector<SmallVector<Tensor, 2>> parts;
  for (size_t i = 0; i < in.size(); ++i) parts.push_back(plan.batched[i] ? unstack(in[i], 0) : SmallVector<Tensor, 2>());
  auto part = [&](size_t i, int64_t row) -> const Tensor& { return plan.batched[i] ? parts[i][size_t(row)] : in[i]; };
  std::vector<SmallVector<Tensor, 8>> results(plan.specs.size());
  for (int64_t row = 0; row < rows; ++row) {
    SmallVector<Tensor, 4> one;
    for (size_t i = 0; i < plan.inputs; ++i) one.push_back(part(i, row));
    Params params = params_with(plan, own, [&](size_t k) { return part(plan.inputs + k, row); });
    SmallVector<Tensor, 2> out = run_all(*plan.op, one, params);
    for (size_t j = 0; j < results.size(); ++j) {
      if (!results[j].empty() && !(results[j][0].shape() == out[j].shape())) fail_unequal(*plan.op, results[j][0].shape(), out[j].shape());
      results[j].push_back(out[j]);
    }
  }
  std::vector<Tensor> stacked;
  for (size_t j = 0; j < results.size(); ++j) stacked.push_back(stack(results[j], 0));
  return stacked;
}

// Operations whose kernel runs other operations: it can be traced, as far as it looks at no values of rows.
bool is_program(const Op& op) {
  std::string_view name = op.name;
  return name == "Deferred" || name == "DeferredTangent" || is_control_op(op);
}

bool trace_rows(const RowPlan& plan, const Params& own, std::span<const Tensor> in, int64_t rows, std::vector<Tensor>& result) {
  Graph graph;
  BatchedValues given;
  {
    EnterStage stage(&graph);
    PauseRecording unheard;
    SmallVector<Tensor, 4> one;
    for (size_t i = 0; i < in.size(); ++i) {
      if (plan.batched[i]) {
        given.tensors.push_back(in[i]);
        given.batched.push_back(true);
      }
      one.push_back(plan.batched[i] ? graph.add_input({in[i].dtype(), in[i].shape().slice(1, in[i].rank())}) : in[i]);
    }
    Call call(*plan.op, one, own);
    try {
      plan.op->kernel(call);
    } catch (const Error&) {
      forget_error();
      return false;  // it looks at values; if something else is wrong, a row says so
    }
    for (const Tensor& t : call.out) graph.outputs.push_back(graph.id_of(t));
  }
  result = rows_of(run_batched(graph, given, rows), rows);
  return true;
}

// A branch by row: each branch runs for the rows that take it, and the results come back into the order of the rows.
std::vector<Tensor> run_branches(const RowPlan& plan, const Params& own, std::span<const Tensor> in) {
  std::vector<std::shared_ptr<Graph>> branches = graphs_of(Node{plan.op, own, {}, 0, 0, {}, {}});
  Ints chosen = read_ints(in[0].dtype() == DType::boolean ? cast(in[0], DType::int32) : in[0]);
  std::vector<Ints> rows_by_branch(branches.size());
  for (int64_t row = 0; row < plan.rows; ++row) {
    int64_t branch = chosen[size_t(row)], last = int64_t(branches.size()) - 1;
    rows_by_branch[size_t(branch < 0 || branch > last ? last : branch)].push_back(row);
  }
  std::vector<SmallVector<Tensor, 8>> parts(plan.specs.size());
  Ints places;  // of the rows among the results
  places.resize(size_t(plan.rows));
  int64_t done = 0;
  for (size_t b = 0; b < branches.size(); ++b) {
    const Ints& rows = rows_by_branch[b];
    if (rows.empty()) continue;
    int64_t count = int64_t(rows.size());
    BatchedValues given;
    for (size_t i = 1; i < in.size(); ++i) {
      bool some = plan.batched[i] && count < plan.rows;
      given.tensors.push_back(some ? gather(in[i], int_tensor(rows), 0, 0) : in[i]);
      given.batched.push_back(plan.batched[i]);
    }
    std::vector<Tensor> out = rows_of(run_batched(*branches[b], given, count), count);
    for (size_t j = 0; j < out.size(); ++j) {
      Shape one = out[j].shape().slice(1, out[j].rank());
      if (!parts[j].empty() && !(parts[j][0].shape().slice(1, parts[j][0].rank()) == one))
        fail_unequal(*plan.op, parts[j][0].shape().slice(1, parts[j][0].rank()), one);
      parts[j].push_back(out[j]);
    }
    for (int64_t row : rows) places[size_t(row)] = done++;
  }
  std::vector<Tensor> result;
  for (auto& p : parts) result.push_back(p.size() == 1 ? p[0] : gather(concat(p, 0), int_tensor(places), 0, 0));
  return result;
}

std::vector<Tensor> run_rows(const Params& params, std::span<const Tensor> in) {
  const RowPlan& plan = plan_of(params);
  Params own = params.without_first();
  bool any = false, params_alike = true;
  for (size_t i = 0; i < in.size(); ++i) {
    any |= plan.batched[i];
    if (i >= plan.inputs) params_alike &= !plan.batched[i];
  }
  BatchRule rule = any && params_alike ? find_batch_rule(*plan.op) : nullptr;
  if (rule) {
    Params told = params_with(plan, own, [&](size_t k) { return in[plan.inputs + k]; });
    BatchCall call{*plan.op, told, in.subspan(0, plan.inputs), std::span(plan.batched.begin(), plan.inputs), plan.rows};
    if (rule(call)) {
      std::vector<Tensor> result;
      for (const Tensor& t : call.out) result.push_back(call.same_for_all ? for_all_rows(t, plan.rows) : t);
      return result;
    }
  }
  if (plan.by_branch && plan.batched[0]) return run_branches(plan, own, in);
  std::vector<Tensor> result;
  if (any && plan.places.empty() && is_program(*plan.op) && thread_state().recorders.empty() && trace_rows(plan, own, in, plan.rows, result))
    return result;
  return run_each_row(plan, own, in, plan.rows);
}

const Op& batched_op = define_inner(Op{
    .name = "Batched",
    .arguments = {tensors("values", any_dtype)},
    .infer_staged =
        [](Call& call) {
          const RowPlan& plan = plan_of(call.params);
          for (const Spec& s : plan.specs)
            call.returns(s.dtype, s.shape.known_rank() ? with_rows_in_front(plan.rows, s.shape) : Shape::unknown());
        },
    .kernel =
        [](Call& call) {
          PauseRecording unheard;
          for (Tensor& t : run_rows(call.params, call.in)) call.out.push_back(std::move(t));
        },
    .makes_outputs = true,
    .vjp = [](RuleContext& c) { differentiate_run(c, [&](std::span<const Tensor> in) { return run_rows(c.params, in); }); },
    .keep = keep_everything,
    .stateful = true,
    .rule_needs_values = true,
});

// The same for operations with an effect, which a graph keeps though nobody uses their outputs.
const Op& batched_effect_op = [] () -> const Op& {
  Op op = batched_op;
  op.effect = true;
  return define_inner(std::move(op));
}();

bool is_custom_gradient(const Op& op) { return std::string_view(op.name) == "CustomGradient"; }

// The same for custom gradients, which give their first inputs: in forward mode the tangents of those.
const Op& batched_custom_op = [] () -> const Op& {
  Op op = batched_op;
  op.jvp = [](RuleContext& c) {
    const RowPlan& plan = plan_of(c.params);
    for (size_t k = 0; k < plan.specs.size(); ++k) {
      const Tensor& x_dot = c.x_dot(int(k));
      if (x_dot) c.set(int(k), plan.batched[k] ? x_dot : for_all_rows(x_dot, plan.rows));
    }
  };
  return define_inner(std::move(op));
}();

// ---- random numbers: every row draws its own, as it would in a loop

const Op& advance_op() {
  static const Op& op = *find_op("PhiloxAdvance");
  return op;
}

// The keys and counters of the rows, and the state after the last one.
const Op& advance_rows_op = define_inner(Op{
    .name = "AdvanceRows",
    .arguments = {tensor("state", any_dtype), tensor("blocks", any_dtype), integer("rows")},
    .infer_staged =
        [](Call& call) {
          int64_t rows = call.params.integer(0);
          call.returns(DType::uint64, {rows, 1});
          call.returns(DType::uint64, {rows, 2});
          call.returns(DType::int64, {3});
        },
    .kernel =
        [](Call& call) {
          PauseRecording unheard;
          SmallVector<Tensor, 8> keys, counters;
          Tensor state = call.in[0];
          for (int64_t row = 0; row < call.params.integer(0); ++row) {
            Tensor in[] = {state, call.in[1]};
            SmallVector<Tensor, 2> out = run_all(advance_op(), in);
            keys.push_back(out[0]);
            counters.push_back(out[1]);
            state = out[2];
          }
          call.out.push_back(stack(keys, 0));
          call.out.push_back(stack(counters, 0));
          call.out.push_back(state);
        },
    .makes_outputs = true,
    .gradient = Gradient::none,
    .stateful = true,
});

// ---- the walk

// Whether running it again does or gives something else: it draws, writes, or calls Python for an effect.
bool differs_by_row(const Node& node) {
  if (!node.op) return false;
  if (node.op == &advance_op() || node.op == &assign_op()) return true;
  if (!is_control_op(*node.op)) return node.op->effect;
  for (const auto& graph : graphs_of(node))
    if (std::any_of(graph->nodes.begin(), graph->nodes.end(), differs_by_row)) return true;
  return false;
}

// A custom gradient gives its first inputs; if nobody listens, that is all it does.
bool shows_inputs(const Op& op) {
  return is_custom_gradient(op) && thread_state().recorders.empty() && !thread_state().stage;
}

class BatchedRun {
 public:
  BatchedRun(const Graph& graph, const BatchedValues& inputs, int64_t rows) : graph_(graph), rows_(rows), at_(graph.values.size()), batched_(graph.values.size()) {
    for (size_t i = 0; i < graph.values.size(); ++i)
      if (graph.values[i].node == Value::kConstant) at_[i] = graph.values[i].tensor;
    for (size_t i = 0; i < inputs.tensors.size(); ++i) {
      at_[graph.inputs[i]] = inputs.tensors[i];
      batched_[graph.inputs[i]] = inputs.batched[i];
    }
  }

  BatchedValues run() {
    Needs needs = find_needs(graph_, graph_.outputs, true, {}, at_);
    for (size_t i = 0; i < graph_.nodes.size(); ++i) {
      const Node& node = graph_.nodes[i];
      if (!needs.nodes[i]) continue;
      run_node(node);
      for (ValueId v : node.inputs)
        if (needs.last_use[v] == int(i)) at_[v] = Tensor();
    }
    BatchedValues result;
    for (ValueId v : graph_.outputs) {
      result.tensors.push_back(at_[v]);
      result.batched.push_back(batched_[v]);
    }
    return result;
  }

 private:
  void give(const Node& node, size_t k, Tensor t, bool batched) {
    at_[node.first_output + k] = std::move(t);
    batched_[node.first_output + k] = batched;
  }

  void run_node(const Node& node) {
    if (node.op == &read_variable_op()) return give(node, 0, read_variable(variable_in(node.params[0])), false);
    SmallVector<Tensor, 4> in;
    SmallVector<bool, 8> batched;
    SmallVector<int, 2> places;
    auto take = [&](ValueId v) {
      in.push_back(at_[v]);
      batched.push_back(batched_[v]);
    };
    for (ValueId v : node.inputs) take(v);
    for (int p = 0; p < int(node.params.size()); ++p)
      if (node.params[p].kind == Param::Kind::tensor) {
        places.push_back(p);
        take(node.params[p].tensor().body()->symbol().value);
      }
    bool any = std::count(batched.begin(), batched.end(), true) > 0;
    if (any && shows_inputs(*node.op)) {
      for (uint32_t k = 0; k < node.outputs; ++k) give(node, k, in[k], batched[k]);
      return;
    }
    if (node.op == &assign_op()) return assign(node, in, any);
    if (node.op == &advance_op() && !any) return draw(node, in);
    if (!any && !differs_by_row(node)) return run_once(node, in, places);
    Params params = node.params;
    if (!places.empty() && !settle(node, in, batched, places, &params)) return run_later(node, in, batched, places);
    BatchRule rule = any ? find_batch_rule(*node.op) : nullptr;
    bool known = std::all_of(in.begin(), in.begin() + node.inputs.size(), [](const Tensor& t) { return t.size() >= 0; });
    if (!rule || !known) return run_later(node, in, batched, places);
    BatchCall call{*node.op, params, std::span(in.begin(), node.inputs.size()), std::span(batched.begin(), node.inputs.size()), rows_};
    if (!rule(call)) return run_later(node, in, batched, places);
    for (size_t k = 0; k < call.out.size(); ++k) give(node, k, call.out[k], !call.same_for_all);
  }

  // Parameters that were symbolic while tracing, if all of them are known now and are the same for all rows.
  bool settle(const Node& node, std::span<const Tensor> in, std::span<const bool> batched, std::span<const int> places, Params* params) {
    *params = Params::sized(node.params.size());
    for (int p = 0; p < int(node.params.size()); ++p) params->mutable_at(p) = node.params[p];
    for (size_t k = 0; k < places.size(); ++k) {
      size_t i = node.inputs.size() + k;
      if (batched[i]) return false;
      params->mutable_at(places[k]) = resolved_param(node.params[places[k]], in[i]);
    }
    return !params->has_tensor();
  }

  void run_once(const Node& node, std::span<const Tensor> in, std::span<const int> places) {
    Params params = node.params;
    if (!places.empty()) {
      SmallVector<bool, 8> none;
      none.resize(in.size());
      settle(node, in, none, places, &params);
    }
    Call call(*node.op, in.subspan(0, node.inputs.size()), params);
    if (!thread_state().stage || !run_deferred(call)) dispatch(call);
    for (size_t k = 0; k < call.out.size(); ++k) give(node, k, call.out[k], false);
  }

  void run_later(const Node& node, std::span<const Tensor> in, std::span<const bool> batched, std::span<const int> places) {
    auto plan = std::make_shared<RowPlan>();
    plan->op = node.op;
    plan->inputs = node.inputs.size();
    plan->rows = rows_;
    plan->by_branch = std::string_view(node.op->name) == "Case" && !differs_by_row(node);
    for (bool b : batched) plan->batched.push_back(b);
    for (int p : places) plan->places.push_back(p);
    for (uint32_t k = 0; k < node.outputs; ++k) {
      const Tensor& row = graph_.values[node.first_output + k].tensor;
      plan->specs.push_back({row.dtype(), row.shape()});
    }
    Params own = Params::sized(node.params.size());
    for (int p = 0; p < int(own.size()); ++p) {
      const Param& given = node.params[p];
      // An input stands for it; what kind of argument it is stays.
      own.mutable_at(p) = given.kind == Param::Kind::tensor ? Param(int64_t(given.argument_kind())) : given;
    }
    bool kept = node.op->effect || std::string_view(node.op->name) == "Composition";  // what calls Python is not planned
    const Op& batched_form = kept ? batched_effect_op : is_custom_gradient(*node.op) ? batched_custom_op : batched_op;
    SmallVector<Tensor, 2> out = run_all(batched_form, in, Params::joined(Param(std::shared_ptr<void>(plan)), own));
    for (size_t k = 0; k < out.size(); ++k) give(node, k, out[k], true);
  }

  void assign(const Node& node, std::span<const Tensor> in, bool any) {
    if (any) {
      std::string name = variable_in(node.params[0]).name;
      fail(ErrorKind::value, "vectorized_map: a variable cannot be given another value by every row; `fn` assigns to ", name,
           " what depends on its argument. Return the values and assign after the map, or use tf.map_fn.");
    }
    run_all(assign_op(), in, node.params);
  }

  void draw(const Node& node, std::span<const Tensor> in) {
    SmallVector<Tensor, 2> out = run_all(advance_rows_op, in, {Param(rows_)});
    for (size_t k = 0; k < 3; ++k) give(node, k, out[k], k < 2);
  }

  const Graph& graph_;
  int64_t rows_;
  std::vector<Tensor> at_;
  std::vector<uint8_t> batched_;
};

// ---- forward mode in many directions

SmallVector<Tensor, 4> find_rows_of_tangents(const Call& call, std::span<const Tensor> x_dot, int64_t rows, TangentRule rule) {
  Graph graph(static_cast<Graph*>(thread_state().stage), is_recording());
  graph.names_nodes = false;
  BatchedValues given;
  SmallVector<bool, 8> flows;
  bool traced = true;
  {
    EnterStage stage(&graph);
    PauseRecording unheard;
    SmallVector<Tensor, 4> one;
    for (const Tensor& t : x_dot) {
      one.push_back(t ? graph.add_input({t.dtype(), t.shape().slice(1, t.rank())}) : Tensor());
      if (t) given.tensors.push_back(t), given.batched.push_back(true);
    }
    try {
      for (const Tensor& t : rule(call, one)) {
        flows.push_back(bool(t));
        if (t) graph.outputs.push_back(graph.id_of(t));
      }
    } catch (const Error&) {
      forget_error();
      traced = false;
    }
  }
  SmallVector<Tensor, 4> result;
  if (traced) {
    for (const Tensor& t : graph.captures) given.tensors.push_back(t), given.batched.push_back(false);
    std::vector<Tensor> found = rows_of(run_batched(graph, given, rows), rows);
    size_t next = 0;
    for (bool yes : flows) result.push_back(yes ? found[next++] : Tensor());
    return result;
  }
  std::vector<SmallVector<Tensor, 8>> parts(call.out.size());
  for (int64_t row = 0; row < rows; ++row) {
    SmallVector<Tensor, 4> one;
    for (const Tensor& t : x_dot) one.push_back(t ? unstack(t, 0)[size_t(row)] : Tensor());
    SmallVector<Tensor, 4> y_dot = rule(call, one);
    for (size_t j = 0; j < parts.size(); ++j)
      if (y_dot[j]) parts[j].push_back(y_dot[j]);
  }
  for (auto& p : parts) result.push_back(p.empty() ? Tensor() : stack(p, 0));
  return result;
}

[[maybe_unused]] const bool serves_forward_mode = [] {
  tangents_for_rows = find_rows_of_tangents;
  return true;
}();

}  // namespace

std::vector<Obstacle> find_obstacles(const Graph& graph, std::span<const bool> batched_inputs) {
  std::vector<uint8_t> batched(graph.values.size());
  for (size_t i = 0; i < batched_inputs.size(); ++i) batched[graph.inputs[i]] = batched_inputs[i];
  std::vector<Obstacle> found;
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    const Node& node = graph.nodes[i];
    if (!node.op) continue;
    bool any = false;
    for_each_operand(node, [&](ValueId v) { any |= batched[v]; });
    std::string_view name = node.op->name;
    bool draws = name.starts_with("Philox") || name.starts_with("StatelessRandom") || name.starts_with("StatelessTruncated");
    if (node.op == &assign_op()) {
      if (any) found.push_back({int(i), Obstacle::Kind::assignment});
      continue;
    }
    bool shows = shows_inputs(*node.op);
    if ((any || differs_by_row(node)) && !draws && !shows && !find_batch_rule(*node.op) && !is_program(*node.op))
      found.push_back({int(i), Obstacle::Kind::row_by_row});
    bool own = node.op == &advance_op() ? any : any || differs_by_row(node);  // the state after all rows is one
    for (uint32_t k = 0; k < node.outputs; ++k)
      batched[node.first_output + k] = (own && name != "Shape") || (node.op == &advance_op() && k < 2);
  }
  return found;
}

BatchedValues run_batched(const Graph& graph, const BatchedValues& inputs, int64_t rows) { return BatchedRun(graph, inputs, rows).run(); }

}  // namespace tapeflow
