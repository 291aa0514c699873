// Control flow as operations: If and While hold the graphs of their branches and bodies. Their rules run them again under
// a tape, when the values are there.
#include "graph/control_ops.h"

#include <algorithm>
#include <utility>

#include "autodiff/deferred.h"
#include "graph/differentiate.h"
#include "ops/ops.h"

namespace tapeflow {
namespace {

const std::shared_ptr<Graph>& graph_in(const Param& p) { return *static_cast<const std::shared_ptr<Graph>*>(p.object.get()); }

// While it lives, nodes run a second time, for their derivative.
struct Replay {
  bool before = std::exchange(replaying(), true);
  ~Replay() { replaying() = before; }
};

bool is_true(const Tensor& t, const char* who) {
  if (t.size() != 1) fail(ErrorKind::invalid_argument, who, ": the condition must be one value; got shape ", t.shape());
  return read_ints(t.dtype() == DType::boolean ? cast(t, DType::int32) : t)[0] != 0;
}

Shape common_shape(const Shape& a, const Shape& b) {
  if (!a.known_rank() || a.rank() != b.rank()) return Shape::unknown();
  Shape both = a;
  for (int i = 0; i < a.rank(); ++i)
    if (a[i] != b[i]) both[i] = -1;
  return both;
}

// ---- branches: the index of the branch, then what the branches use

size_t chosen_branch(const Call& call) {
  int64_t branches = int64_t(call.params.size());
  int64_t index = read_ints(call.in[0].dtype() == DType::boolean ? cast(call.in[0], DType::int32) : call.in[0])[0];
  return size_t(index < 0 || index >= branches ? branches - 1 : index);
}

const Op& case_op = define_inner(Op{
    .name = "Case",
    .arguments = {tensors("branch_index_and_inputs", any_dtype)},
    .infer_staged =
        [](Call& call) {
          const Graph& first = *graph_in(call.params[0]);
          for (size_t i = 0; i < first.outputs.size(); ++i) {
            const Tensor& t = first.values[first.outputs[i]].tensor;
            Shape shape = t.shape();
            for (int b = 1; b < int(call.params.size()); ++b) {
              const Graph& other = *graph_in(call.params[b]);
              shape = common_shape(shape, other.values[other.outputs[i]].tensor.shape());
            }
            call.returns(t.dtype(), shape);
          }
        },
    .kernel =
        [](Call& call) {
          PauseRecording unheard;
          for (Tensor& t : call_graph(graph_in(call.params[int(chosen_branch(call))]), call.in.subspan(1))) call.out.push_back(std::move(t));
        },
    .makes_outputs = true,
    .vjp =
        [](RuleContext& c) {
          Call call(c.op, c.kept_inputs, c.params);
          const auto& graph = graph_in(c.params[int(chosen_branch(call))]);
          Replay replay;
          differentiate_run(c, [&](std::span<const Tensor> in) { return call_graph(graph, in); }, 1);
        },
    .keep = keep_everything,
    .stateful = true,
    .effect = true,
    .rule_needs_values = true,
});

// ---- loops: the loop variables, then what condition and body use besides

std::vector<Tensor> run_loop(const Params& params, std::span<const Tensor> in) {
  const auto &condition = graph_in(params[0]), &body = graph_in(params[1]);
  int64_t variables = params.integer(2), limit = params.integer(3);
  std::vector<Tensor> state(in.begin(), in.end());
  for (int64_t i = 0; limit < 0 || i < limit; ++i) {
    {
      PauseRecording unheard;
      if (!is_true(call_graph(condition, state)[0], "while_loop")) break;
    }
    std::vector<Tensor> next = call_graph(body, state);
    std::move(next.begin(), next.end(), state.begin());
  }
  state.resize(size_t(variables));
  return state;
}

const Op& while_op = define_inner(Op{
    .name = "While",
    .arguments = {tensors("input", any_dtype)},
    .infer_staged =
        [](Call& call) {
          const Graph& body = *graph_in(call.params[1]);
          for (int64_t i = 0; i < call.params.integer(2); ++i) {
            const Tensor& t = body.values[body.inputs[size_t(i)]].tensor;
            call.returns(t.dtype(), t.shape());
          }
        },
    .kernel =
        [](Call& call) {
          PauseRecording unheard;
          for (Tensor& t : run_loop(call.params, call.in)) call.out.push_back(std::move(t));
        },
    .makes_outputs = true,
    .vjp =
        [](RuleContext& c) {
          Replay replay;
          differentiate_run(c, [&](std::span<const Tensor> in) { return run_loop(c.params, in); });
        },
    .keep = keep_everything,
    .stateful = true,
    .effect = true,
    .rule_needs_values = true,
});

Param graph_param(std::shared_ptr<Graph> graph) {
  return Param(std::static_pointer_cast<void>(std::make_shared<std::shared_ptr<Graph>>(std::move(graph))));
}

}  // namespace

bool is_control_op(const Op& op) { return &op == &case_op || &op == &while_op; }

std::vector<std::shared_ptr<Graph>> graphs_of(const Node& node) {
  std::vector<std::shared_ptr<Graph>> graphs;
  for (int i = 0; i < int(node.params.size()); ++i)
    if (node.params[i].kind == Param::Kind::object) graphs.push_back(graph_in(node.params[i]));
  return graphs;
}

SmallVector<Tensor, 2> add_case(const Tensor& index, std::span<const std::shared_ptr<Graph>> branches, std::span<const Tensor> inputs) {
  SmallVector<Tensor, 8> in;
  in.push_back(index);
  for (const Tensor& t : inputs) in.push_back(t);
  Params params = Params::sized(branches.size());
  for (size_t i = 0; i < branches.size(); ++i) params.mutable_at(int(i)) = graph_param(branches[i]);
  return run_all(case_op, in, params);
}

SmallVector<Tensor, 2> add_while(std::shared_ptr<Graph> condition, std::shared_ptr<Graph> body, std::span<const Tensor> inputs,
                                 int64_t variables, int64_t limit) {
  return run_all(while_op, inputs, {graph_param(std::move(condition)), graph_param(std::move(body)), Param(variables), Param(limit)});
}

}  // namespace tapeflow
