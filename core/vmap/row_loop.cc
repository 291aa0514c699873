// Running an operation row by row, branches for the rows that take them, and programs as one traced graph.
#include "vmap/row_loop.h"

#include <algorithm>
#include <string_view>

#include "autodiff/deferred.h"
#include "base/forget_error.h"
#include "control_flow/control_ops.h"
#include "graph/run.h"
#include "op/batching.h"
#include "ops/ops.h"
#include "vmap/vmap.h"

namespace tapeflow {

namespace {

constexpr struct : Keys {
  Key<Boxed<const RowPlan>> plan = next("plan");
} inner_params;
const RowPlan& plan_of(const Params& params) { return params[inner_params.plan]; }

[[noreturn]] void fail_unequal(const Op& op, const Shape& a, const Shape& b) {
  fail(ErrorKind::invalid_argument, "vectorized_map: the results of all rows must have one shape; ", op.public_name(),
       " gives ", a, " for one row and ", b,
       " for another. Bring them to one shape (tf.pad), or use tf.map_fn with a RaggedTensorSpec as "
       "fn_output_signature.");
}

// The parameters with symbolic ones replaced by what is known of them now; `at(k)` gives the k-th.
template <class At> Params params_with(const RowPlan& plan, const Params& own, At at) {
  if (plan.places.empty()) return own;
  Params resolved = Params::sized(own.size());
  for (int p = 0; p < int(own.size()); ++p) resolved.mutable_at(p) = own.at(p);
  for (size_t k = 0; k < plan.places.size(); ++k) {
    int place = plan.places[k];
    resolved.mutable_at(place) = resolved_param(own.at(place), at(k));
  }
  return resolved;
}

// Once for every row; the results stacked.
Tensors run_each_row(const RowPlan& plan, const Params& own, std::span<const Tensor> in, int64_t rows) {
  std::vector<Tensors> parts;
  for (size_t i = 0; i < in.size(); ++i) parts.push_back(plan.batched[i] ? unstack(in[i], 0) : Tensors());
  auto part = [&](size_t i, int64_t row) -> const Tensor& { return plan.batched[i] ? parts[i][size_t(row)] : in[i]; };
  std::vector<SmallVector<Tensor, 8>> results(plan.specs.size());
  for (int64_t row = 0; row < rows; ++row) {
    SmallVector<Tensor, 4> one;
    for (size_t i = 0; i < plan.inputs; ++i) one.push_back(part(i, row));
    Params params = params_with(plan, own, [&](size_t k) { return part(plan.inputs + k, row); });
    Tensors out = run_all(*plan.op, one, params);
    for (size_t j = 0; j < results.size(); ++j) {
      const Tensor& t = out[plan.used[j]];
      if (!results[j].empty() && !(results[j][0].shape() == t.shape()))
        fail_unequal(*plan.op, results[j][0].shape(), t.shape());
      results[j].push_back(t);
    }
  }
  Tensors stacked;
  for (size_t j = 0; j < results.size(); ++j) stacked.push_back(stack(results[j], 0));
  return stacked;
}

bool trace_rows(const RowPlan& plan, const Params& own, std::span<const Tensor> in, int64_t rows, Tensors& result) {
  Graph graph(static_cast<Graph*>(thread_state().stage), is_recording());
  graph.names_nodes = false;
  BatchedValues given;
  {
    EnterStage stage(&graph);
    PauseRecording unrecorded;
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
    for (size_t k : plan.used) graph.outputs.push_back(graph.id_of(call.out[k]));
  }
  for (const Tensor& t : graph.captures) given.tensors.push_back(t), given.batched.push_back(false);
  result = rows_of(run_batched(graph, given, rows), rows);
  return true;
}

// A branch by row: each branch runs for the rows that take it, and the results come back into the order of the rows.
Tensors run_branches(const RowPlan& plan, const Params& own, std::span<const Tensor> in) {
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
    for (size_t i = 1; i <= branches[b]->inputs.size(); ++i) {
      bool some = plan.batched[i] && count < plan.rows;
      given.tensors.push_back(some ? gather(in[i], int_tensor(rows), 0, 0) : in[i]);
      given.batched.push_back(plan.batched[i]);
    }
    Tensors out = rows_of(run_batched(*branches[b], given, count), count);
    for (size_t j = 0; j < parts.size(); ++j) {
      const Tensor& t = out[plan.used[j]];
      Shape one = t.shape().slice(1, t.rank());
      if (!parts[j].empty() && !(parts[j][0].shape().slice(1, parts[j][0].rank()) == one))
        fail_unequal(*plan.op, parts[j][0].shape().slice(1, parts[j][0].rank()), one);
      parts[j].push_back(t);
    }
    for (int64_t row : rows) places[size_t(row)] = done++;
  }
  Tensors result;
  for (auto& p : parts) result.push_back(p.size() == 1 ? p[0] : gather(concat(p, 0), int_tensor(places), 0, 0));
  return result;
}

// By the rule of the operation; false if there is none for this call.
bool run_by_rule(const RowPlan& plan, const Params& own, std::span<const Tensor> in, Tensors& result) {
  const bool *first = plan.batched.begin(), *params_from = first + plan.inputs, *end = plan.batched.end();
  bool any = std::count(first, params_from, true) > 0, params_alike = std::count(params_from, end, true) == 0;
  BatchRule rule = any && params_alike ? plan.op->batch : nullptr;
  if (!rule) return false;
  Params resolved = params_with(plan, own, [&](size_t k) { return in[plan.inputs + k]; });
  if (resolved.has_tensor()) return false;
  BatchCall call{*plan.op, resolved, in.subspan(0, plan.inputs), std::span(plan.batched.begin(), plan.inputs),
                 plan.rows};
  if (!rule(call)) return false;
  for (size_t k : plan.used) result.push_back(call.same_for_all ? for_all_rows(call.out[k], plan.rows) : call.out[k]);
  return true;
}

Tensors run_rows(const Params& params, std::span<const Tensor> in) {
  const RowPlan& plan = plan_of(params);
  Params own = params.without_first();
  Tensors result;
  if (run_by_rule(plan, own, in, result)) return result;
  bool any = std::count(plan.batched.begin(), plan.batched.end(), true) > 0;
  if (plan.by_branch && plan.batched[0]) return run_branches(plan, own, in);
  if (any && plan.places.empty() && plan.op->is_program && trace_rows(plan, own, in, plan.rows, result)) return result;
  return run_each_row(plan, own, in, plan.rows);
}

// Applies the rule of the operation, or traces what a program does, if all shapes are known.
bool expand(Call& call) {
  if (std::any_of(call.in.begin(), call.in.end(), [](const Tensor& t) { return t.size() < 0; })) return false;
  const RowPlan& plan = plan_of(call.params);
  Params own = call.params.without_first();
  Tensors result;
  bool deferred = plan.places.empty() && plan.op->is_program && !is_control_op(*plan.op);
  if (!run_by_rule(plan, own, call.in, result) && !(deferred && trace_rows(plan, own, call.in, plan.rows, result)))
    return false;
  for (Tensor& t : result) call.out.push_back(std::move(t));
  return true;
}

const Op& batched_op = define_inner(Op{
    .name = "Batched",
    .arguments = {tensors("values", any_dtype)},
    .infer_staged =
        [](Call& call) {
          const RowPlan& plan = plan_of(call.params);
          for (const Spec& s : plan.specs)
            call.returns(s.dtype, s.shape.known_rank() ? with_batch_dimension(plan.rows, s.shape) : Shape::unknown());
        },
    .kernel =
        [](Call& call) {
          PauseRecording unrecorded;
          for (Tensor& t : run_rows(call.params, call.in)) call.out.push_back(std::move(t));
        },
    .makes_outputs = true,
    .vjp =
        [](RuleContext& c) {
          differentiate_run(c, [&](std::span<const Tensor> in) { return run_rows(c.params, in); });
        },
    .keep = keep_everything,
    .stateful = true,
    .expand = expand,
    .rule_needs_values = true,
});

// The same for operations with an effect, which a graph keeps though nobody uses their outputs.
const Op& batched_effect_op = []() -> const Op& {
  Op op = batched_op;
  op.effect = true;
  return define_inner(std::move(op));
}();

// The same for custom gradients, which give their first inputs: in forward mode the tangents of those.
const Op& batched_custom_op = []() -> const Op& {
  Op op = batched_op;
  op.jvp = [](RuleContext& c) {
    const RowPlan& plan = plan_of(c.params);
    for (size_t j = 0; j < plan.used.size(); ++j) {
      size_t k = plan.used[j];
      const Tensor& x_dot = c.x_dot(int(k));
      if (x_dot) c.set(int(j), plan.batched[k] ? x_dot : for_all_rows(x_dot, plan.rows));
    }
  };
  return define_inner(std::move(op));
}();

}  // namespace

Tensors run_by_row(std::shared_ptr<RowPlan> plan, std::span<const Tensor> in, const Params& own) {
  const bool kept = plan->op->effect || plan->op->calls_python;  // what calls Python is not planned
  const Op& form = kept ? batched_effect_op : plan->op->custom_gradient ? batched_custom_op : batched_op;
  Params params = Params::joined(Param(std::static_pointer_cast<void>(std::move(plan))), own);
  Call call(form, in, params);
  if (!thread_state().stage || !form.expand(call)) dispatch(call);
  return std::move(call.out);
}

}  // namespace tapeflow
