// vmap of a graph as one operation, BatchedCall, for when the number of rows is not known while tracing. Inputs
// are those of the graph, of which some have the leading batch dimension, or 1, if they are the same for all rows.
#include <algorithm>

#include "autodiff/deferred.h"
#include "op/batching.h"
#include "ops/ops.h"
#include "vmap/graph_op.h"
#include "vmap/vmap.h"

namespace tapeflow {
namespace {

struct CallPlan {
  std::shared_ptr<Graph> graph;
  SmallVector<bool, 8> sliced;  // per input
};
constexpr struct : Keys {
  Key<Boxed<const CallPlan>> plan = next("plan");
} inner_params;
const CallPlan& plan_of(const Params& params) { return params[inner_params.plan]; }

// The number of rows, or -1 if it is not known.
int64_t count_rows(const CallPlan& plan, std::span<const Tensor> in) {
  int64_t rows = -1;
  for (size_t i = 0; i < in.size(); ++i) {
    if (!plan.sliced[i]) continue;
    int64_t own = in[i].dim(0);
    if (own < 0) return -1;
    if (rows >= 0 && own != rows && own != 1 && rows != 1)
      fail(ErrorKind::invalid_argument,
           "vectorized_map: the first dimensions of all tensors in elems must be equal, or 1; got ", rows, " and ",
           own);
    rows = rows < 0 || rows == 1 ? own : rows;
  }
  return rows;
}

Tensors run_plan(const Params& params, std::span<const Tensor> in) {
  const CallPlan& plan = plan_of(params);
  int64_t rows = count_rows(plan, in);
  Tensors result;
  if (rows == 0) {
    for (ValueId v : plan.graph->outputs) {
      const Tensor& t = plan.graph->values[v].tensor;
      if (t.size() < 0)
        fail(ErrorKind::invalid_argument,
             "vectorized_map: there are no slices, and the shape of the result is not known without them: ", t.shape());
      result.push_back(zeros(t.dtype(), with_batch_dimension(0, t.shape())));
    }
    return result;
  }
  BatchedValues given;
  for (size_t i = 0; i < in.size(); ++i) {
    bool alike = plan.sliced[i] && in[i].dim(0) != rows;
    given.tensors.push_back(alike ? reshape(in[i], in[i].shape().slice(1, in[i].rank())) : in[i]);
    given.batched.push_back(plan.sliced[i] && !alike);
  }
  return rows_of(run_batched(*plan.graph, given, rows), rows);
}

bool expand(Call& call) {
  if (!std::all_of(call.in.begin(), call.in.end(), [](const Tensor& t) { return t.size() >= 0; })) return false;
  if (count_rows(plan_of(call.params), call.in) == 0) return false;
  for (Tensor& t : run_plan(call.params, call.in)) call.out.push_back(std::move(t));
  return true;
}

const Op& batched_call_op = define_graph_op<run_plan>(Op{
    .name = "BatchedCall",
    .arguments = {tensors("args", any_dtype)},
    .infer_staged =
        [](Call& call) {
          const CallPlan& plan = plan_of(call.params);
          int64_t rows = count_rows(plan, call.in);
          for (ValueId v : plan.graph->outputs) {
            const Tensor& t = plan.graph->values[v].tensor;
            call.returns(t.dtype(), t.shape().known_rank() ? with_batch_dimension(rows, t.shape()) : Shape::unknown());
          }
        },
    .expand = expand,
});

}  // namespace

Tensors call_batched(std::shared_ptr<Graph> graph, std::span<const Tensor> in, std::span<const bool> sliced) {
  auto plan = std::make_shared<CallPlan>();
  plan->graph = std::move(graph);
  for (bool yes : sliced) plan->sliced.push_back(yes);
  return run_all(batched_call_op, in, {Param(std::static_pointer_cast<void>(plan))});
}

const Graph* batched_graph_of(const Op& op, const Params& params, SmallVector<bool, 8>& sliced) {
  if (&op != &batched_call_op) return nullptr;
  sliced = plan_of(params).sliced;
  return plan_of(params).graph.get();
}

}  // namespace tapeflow
