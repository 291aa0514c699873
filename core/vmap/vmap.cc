// Running graphs under vmap: the run over the nodes, and the random numbers that rows draw.
#include "vmap/vmap.h"

#include <algorithm>
#include <string_view>

#include "autodiff/deferred.h"
#include "control_flow/control_ops.h"
#include "graph/run.h"
#include "op/batching.h"
#include "ops/ops.h"
#include "vmap/row_loop.h"

namespace tapeflow {

Tensors rows_of(const BatchedValues& values, int64_t rows) {
  Tensors result;
  for (size_t i = 0; i < values.tensors.size(); ++i)
    result.push_back(values.batched[i] ? values.tensors[i] : for_all_rows(values.tensors[i], rows));
  return result;
}

namespace {

// ---- random numbers: every row draws its own, as it would in a loop

// The keys and counters of the rows, and the state after the last one.
constexpr struct : Keys {
  Key<int64_t> rows = next("rows");
} advance_params;
const Op& advance_rows_op = define_inner(Op{
    .name = "AdvanceRows",
    .arguments = {tensor("state", any_dtype), tensor("blocks", any_dtype), integer(advance_params.rows)},
    .infer_staged =
        [](Call& call) {
          int64_t rows = call.params[advance_params.rows];
          call.returns(DType::uint64, {rows, 1});
          call.returns(DType::uint64, {rows, 2});
          call.returns(DType::int64, {3});
        },
    .kernel =
        [](Call& call) {
          PauseRecording unrecorded;
          SmallVector<Tensor, 8> keys, counters;
          Tensor state = call.in[0];
          for (int64_t row = 0; row < call.params[advance_params.rows]; ++row) {
            Tensor in[] = {state, call.in[1]};
            Tensors out = run_all(advance_op(), in);
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

// ---- the run

// It draws, writes, or calls Python for an effect.
bool differs_by_row(const Node& node) {
  if (!node.op) return false;
  if (node.op == &advance_op() || node.op == &assign_op()) return true;
  if (!is_control_op(*node.op)) return node.op->effect;
  std::vector<std::shared_ptr<Graph>> graphs = graphs_of(node);
  return std::any_of(graphs.begin(), graphs.end(), [](const auto& graph) { return differs_by_row(*graph); });
}

// A custom gradient gives its first inputs; if nobody listens, that is all it does.
bool shows_inputs(const Op& op) {
  return op.custom_gradient && thread_state().recorders.empty() && !thread_state().stage;
}

class BatchedRun {
 public:
  BatchedRun(const Graph& graph, const BatchedValues& inputs, int64_t rows,
             std::span<const SmallVector<bool, 4>> cut_inputs)
      : graph_(graph), rows_(rows), cut_inputs_(cut_inputs), batched_(graph.values.size()) {
    at_.resize(graph.values.size());
    for (size_t i = 0; i < graph.values.size(); ++i)
      if (graph.values[i].node == Value::kConstant) at_[i] = graph.values[i].tensor;
    for (size_t i = 0; i < inputs.tensors.size(); ++i) {
      at_[graph.inputs[i]] = inputs.tensors[i];
      batched_[graph.inputs[i]] = inputs.batched[i];
    }
  }

  BatchedValues run() {
    needs_ = find_needs(graph_, graph_.outputs, true, {}, at_);
    for (size_t i = 0; i < graph_.nodes.size(); ++i) {
      const Node& node = graph_.nodes[i];
      if (!needs_.nodes[i]) continue;
      RunFor traced(node.op, node.location, thread_locals.origin && thread_locals.origin->backward);
      if (!cut_inputs_.empty() && !cut_inputs_[i].empty())
        run_on_rows(node, cut_inputs_[i]);
      else
        run_node(node);
      if (!graph_.overrides.empty())
        if (auto it = graph_.overrides.find(int(i)); it != graph_.overrides.end())
          run_node(override_node(node, it->second));
      for (ValueId v : node.inputs)
        if (needs_.last_use[v] == int(i)) at_[v] = Tensor();
    }
    BatchedValues result;
    for (ValueId v : graph_.outputs) {
      result.tensors.push_back(at_[v]);
      result.batched.push_back(batched_[v]);
    }
    return result;
  }

 private:
  // What stands behind a node whose rule is overridden, as a node with the same outputs.
  static Node override_node(const Node& node, const Graph::Override& override_) {
    Node behind{override_.op, override_.params, {}, node.first_output, node.outputs, {}, {}};
    for (uint32_t k = 0; k < node.outputs; ++k) behind.inputs.push_back(node.first_output + k);
    for (ValueId v : node.inputs) behind.inputs.push_back(v);
    for (ValueId v : override_.more) behind.inputs.push_back(v);
    return behind;
  }

  void give(const Node& node, size_t k, Tensor t, bool batched) {
    at_[node.first_output + k] = std::move(t);
    batched_[node.first_output + k] = batched;
  }

  void run_node(const Node& node) {
    if (node.op == &read_variable_op()) return give(node, 0, read_variable(variable_in(node.params)), false);
    SmallVector<Tensor, 4> in;
    SmallVector<bool, 8> batched;
    SmallVector<int, 2> places;
    auto take = [&](ValueId v) {
      in.push_back(at_[v]);
      batched.push_back(batched_[v]);
    };
    for (ValueId v : node.inputs) take(v);
    for (int p = 0; p < int(node.params.size()); ++p)
      if (node.params.at(p).kind == Param::Kind::tensor) {
        places.push_back(p);
        take(node.params.at(p).tensor().body()->symbol().value);
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
    BatchRule rule = any ? node.op->batch : nullptr;
    bool known =
        std::all_of(in.begin(), in.begin() + node.inputs.size(), [](const Tensor& t) { return t.size() >= 0; });
    if (!rule || !known) return run_later(node, in, batched, places);
    BatchCall call{*node.op, params, std::span(in.begin(), node.inputs.size()),
                   std::span(batched.begin(), node.inputs.size()), rows_};
    if (!rule(call)) return run_later(node, in, batched, places);
    for (size_t k = 0; k < call.out.size(); ++k) give(node, k, call.out[k], !call.same_for_all);
  }

  // A node on the rows of some inputs, which become batched: [rows * n, ...] is [rows, n, ...].
  void run_on_rows(const Node& node, std::span<const bool> cut) {
    SmallVector<Tensor, 4> in;
    for (size_t k = 0; k < node.inputs.size(); ++k) {
      in.push_back(at_[node.inputs[k]]);
      if (!cut[k]) continue;
      Shape shape = in.back().shape();
      shape[0] /= rows_;
      shape.insert(0, rows_);
      in.back() = reshape(in.back(), shape);
    }
    BatchRule rule = node.op->batch;
    BatchCall call{*node.op, node.params, in, cut, rows_};
    if (!rule || !rule(call)) return run_later(node, in, cut, {});
    for (size_t k = 0; k < call.out.size(); ++k) give(node, k, call.out[k], !call.same_for_all);
  }

  // Parameters that were symbolic while tracing, if all of them are known now and are the same for all rows.
  bool settle(const Node& node, std::span<const Tensor> in, std::span<const bool> batched, std::span<const int> places,
              Params* params) {
    *params = Params::sized(node.params.size());
    for (int p = 0; p < int(node.params.size()); ++p) params->mutable_at(p) = node.params.at(p);
    for (size_t k = 0; k < places.size(); ++k) {
      size_t i = node.inputs.size() + k;
      if (batched[i]) return false;
      params->mutable_at(places[k]) = resolved_param(node.params.at(places[k]), in[i]);
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
    if (!thread_state().stage || !node.op->expand || !node.op->expand(call)) dispatch(call);
    for (size_t k = 0; k < call.out.size(); ++k) give(node, k, call.out[k], false);
  }

  void run_later(const Node& node, std::span<const Tensor> in, std::span<const bool> batched,
                 std::span<const int> places) {
    auto plan = std::make_shared<RowPlan>();
    plan->op = node.op;
    plan->inputs = node.inputs.size();
    plan->rows = rows_;
    plan->by_branch = is_control_op(*node.op) && !loop_of(node) && !differs_by_row(node);
    for (bool b : batched) plan->batched.push_back(b);
    for (int p : places) plan->places.push_back(p);
    for (uint32_t k = 0; k < node.outputs; ++k) {
      if (needs_.last_use[node.first_output + k] < 0) continue;
      const Tensor& row = graph_.values[node.first_output + k].tensor;
      plan->used.push_back(k);
      plan->specs.push_back({row.dtype(), row.shape()});
    }
    SmallVector<size_t, 2> used = plan->used;
    Params own = Params::sized(node.params.size());
    for (int p = 0; p < int(own.size()); ++p) {
      const Param& given = node.params.at(p);
      // An input stands for it; what kind of argument it is stays.
      own.mutable_at(p) = given.kind == Param::Kind::tensor ? Param(int64_t(given.argument_kind())) : given;
    }
    Tensors out = run_by_row(std::move(plan), in, own);
    for (size_t j = 0; j < out.size(); ++j) give(node, used[j], out[j], true);
  }

  void assign(const Node& node, std::span<const Tensor> in, bool any) {
    if (any) {
      std::string name = variable_in(node.params).name;
      fail(ErrorKind::value, "vectorized_map: a variable cannot be given another value by every row; `fn` assigns to ",
           name, " what depends on its argument. Return the values and assign after the map, or use tf.map_fn.");
    }
    run_all(assign_op(), in, node.params);
  }

  void draw(const Node& node, std::span<const Tensor> in) {
    Tensors out = run_all(advance_rows_op, in, {Param(rows_)});
    for (size_t k = 0; k < 3; ++k) give(node, k, out[k], k < 2);
  }

  const Graph& graph_;
  int64_t rows_;
  std::span<const SmallVector<bool, 4>> cut_inputs_;
  Needs needs_;
  Tensors at_;
  std::vector<uint8_t> batched_;
};

}  // namespace

bool differs_by_row(const Graph& graph) {
  return std::any_of(graph.nodes.begin(), graph.nodes.end(), [](const Node& node) { return differs_by_row(node); });
}

std::vector<Obstacle> find_obstacles(const Graph& graph, std::span<const bool> batched_inputs) {
  std::vector<uint8_t> batched(graph.values.size());
  for (size_t i = 0; i < batched_inputs.size(); ++i) batched[graph.inputs[i]] = batched_inputs[i];
  std::vector<Obstacle> found;
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    const Node& node = graph.nodes[i];
    if (!node.op) continue;
    bool any = false;
    for_each_operand(node, [&](ValueId v) { any |= batched[v]; });
    if (node.op == &assign_op()) {
      if (any) found.push_back({int(i), Obstacle::Kind::assignment});
      continue;
    }
    bool shows = shows_inputs(*node.op);
    if ((any || differs_by_row(node)) && !node.op->random && !shows && !node.op->batch && !node.op->is_program)
      found.push_back({int(i), Obstacle::Kind::row_by_row});
    bool own = node.op == &advance_op() ? any : any || differs_by_row(node);  // the state after all rows is one
    for (uint32_t k = 0; k < node.outputs; ++k)
      batched[node.first_output + k] =
          (own && node.op->elements != Elements::shape) || (node.op == &advance_op() && k < 2);
  }
  return found;
}

BatchedValues run_batched(const Graph& graph, const BatchedValues& inputs, int64_t rows,
                          std::span<const SmallVector<bool, 4>> cut_inputs) {
  return BatchedRun(graph, inputs, rows, cut_inputs).run();
}

}  // namespace tapeflow
