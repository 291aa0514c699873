// Jacobians, computed in one of three forms. Eagerly, the traced backward pass runs for one chunk of rows after the
// other. While tracing, it becomes nodes of the graph, if the shape of the target is known and one chunk is enough;
// otherwise one node, JacobianRows, that does all this when the shape is there. A pass that cannot be traced runs again
// for every row.
#include "vmap/jacobian.h"

#include <algorithm>
#include <cstring>

#include "autodiff/cotangent.h"
#include "autodiff/deferred.h"
#include "base/forget_error.h"
#include "ops/ops.h"
#include "vmap/by_example.h"
#include "vmap/graph_op.h"

namespace tapeflow {
namespace {

// A few rows cost less without a graph.
constexpr int64_t kRowsWorthTracing = 4;

// The backward back as a graph: inputs are the cotangent of the target and what is captured, outputs are the gradients
// of the sources that are reached.
struct BackwardGraph {
  std::shared_ptr<Graph> graph;
  SmallVector<bool, 8> reached;
};

// `everything`: operations on values that are there become nodes too, so that open recorders see them as the graph
// runs.
bool trace_backward(Tape& tape, const JacobianRequest& request, bool everything, BackwardGraph& backward) {
  backward.graph = std::make_shared<Graph>(static_cast<Graph*>(thread_state().stage), everything);
  backward.graph->names_nodes = false;
  EnterStage stage(backward.graph.get());
  PauseRecording unrecorded;
  Spec spec{request.like.dtype(), request.like.shape()};
  Tensor dy = backward.graph->add_input(spec);
  try {
    BlockVector<Cotangent> flow =
        tape.gradient(std::span(&request.target, 1), std::span(&spec, 1), std::span(&dy, 1), request.sources, true);
    for (size_t s = 0; s < flow.size(); ++s) {
      backward.reached.push_back(bool(flow[s]));
      if (flow[s])
        backward.graph->outputs.push_back(backward.graph->id_of(densified(flow[s], request.source_shapes[s])));
    }
  } catch (const Error&) {
    forget_error();
    return false;
  }
  return true;
}

struct Rows {
  int64_t examples, count;  // the elements of the target are `examples` times `count`
};
Rows rows_of_target(const Shape& target, bool by_example) {
  int64_t examples = by_example ? target[0] : 1;
  return {examples, examples ? target.elements() / examples : 0};
}

// What is captured, the values of the forward pass, stands for values of the backward pass whose size was unknown while
// tracing.
int64_t chunk_of(const Graph& graph, const Tensor& like, std::span<const Tensor> captures, int64_t wanted,
                 int64_t rows) {
  if (wanted > 0) return std::min(wanted, rows);
  int64_t largest = std::max<int64_t>(1, int64_t(like.bytes()));
  bool known = true;
  for (const Value& v : graph.values) {
    if (v.node == Value::kConstant) continue;
    known &= v.tensor.size() >= 0;
    if (v.tensor.size() >= 0) largest = std::max(largest, int64_t(v.tensor.bytes()));
  }
  if (!known)
    for (const Tensor& t : captures)
      if (t.size() >= 0) largest = std::max(largest, int64_t(t.bytes()));
  return std::clamp<int64_t>(kChunkBytes / largest, 1, std::max<int64_t>(1, rows));
}

// Cotangents of the rows `first` to `first + count`: a one for the element of the row, in every example.
Tensor unit_cotangents(DType dtype, const Shape& target, const Rows& rows, int64_t first, int64_t count) {
  Shape shape = target;
  shape.insert(0, count);
  Tensor dy = zeros(dtype, shape), one = Tensor::number(dtype, 1);
  size_t size = size_of(dtype);
  for (int64_t r = 0; r < count; ++r)
    for (int64_t e = 0; e < rows.examples; ++e)
      std::memcpy(
          static_cast<char*>(dy.mutable_raw()) + size_t((r * rows.examples + e) * rows.count + first + r) * size,
          one.raw(), size);
  return dy;
}

// [rows, source...] as the Jacobian.
Tensor shaped(const Tensor& stacked, const Shape& target, bool by_example) {
  Shape shape = target;
  Tensor rows = stacked;
  if (by_example) {
    Ints order{1, 0};
    for (int i = 2; i < stacked.rank(); ++i) order.push_back(i);
    rows = transpose(stacked, order);
    for (int i = 2; i < stacked.rank(); ++i) shape.append(stacked.dim(i));
  } else {
    for (int i = 1; i < stacked.rank(); ++i) shape.append(stacked.dim(i));
  }
  return reshape(rows, shape);
}

// Of a target that may have one element for each example.
std::optional<ExampleStructure> structure_of(const Graph& graph, const Tensor& like, bool by_example) {
  const bool fits = !by_example && like.rank() > 0 && like.size() >= 0 && like.dim(0) == like.size();
  return fits ? find_example_structure(graph, like.size()) : std::nullopt;
}
// Whether one run is enough: by the structure, or since one chunk is.
bool runs_once(const Graph& graph, const Tensor& like, std::span<const Tensor> captures, bool by_example, int64_t chunk,
               int64_t rows) {
  return chunk_of(graph, like, captures, chunk, rows) == rows || structure_of(graph, like, by_example);
}

Tensors run_backward(const Graph& graph, const Tensor& like, std::span<const Tensor> captures, bool by_example,
                     int64_t wanted_chunk) {
  Rows rows = rows_of_target(like.shape(), by_example);
  if (const auto structure = structure_of(graph, like, by_example)) {
    Tensors result;
    for (const Tensor& t : gradients_by_example(graph, *structure, like, captures, rows.count))
      result.push_back(shaped(t, like.shape(), by_example));
    return result;
  }
  int64_t chunk = chunk_of(graph, like, captures, wanted_chunk, rows.count);
  std::vector<SmallVector<Tensor, 8>> parts(graph.outputs.size());
  for (int64_t first = 0; first < rows.count; first += chunk) {
    int64_t count = std::min(chunk, rows.count - first);
    BatchedValues in{{unit_cotangents(like.dtype(), like.shape(), rows, first, count)}, {true}};
    for (const Tensor& t : captures) in.tensors.push_back(t), in.batched.push_back(false);
    Tensors found = rows_of(run_batched(graph, in, count), count);
    for (size_t k = 0; k < found.size(); ++k) parts[k].push_back(found[k]);
  }
  Tensors result;
  for (auto& p : parts) result.push_back(shaped(p.size() == 1 ? p[0] : concat(p, 0), like.shape(), by_example));
  return result;
}

// ---- the operation JacobianRows: inputs are the target and the captures of the backward graph

struct RowsPlan {
  std::shared_ptr<Graph> graph;
  bool by_example;
  int64_t chunk;
};
constexpr struct : Keys {
  Key<Boxed<const RowsPlan>> plan = next("plan");
} inner_params;
const RowsPlan& plan_of(const Params& params) { return params[inner_params.plan]; }

Shape joined_shape(const Shape& target, const Shape& source, bool by_example) {
  if (!target.known_rank() || !source.known_rank()) return Shape::unknown();
  Shape shape = target;
  for (int i = by_example ? 1 : 0; i < source.rank(); ++i) shape.append(source[i]);
  return shape;
}

Tensors run_plan(const Params& params, std::span<const Tensor> in) {
  const RowsPlan& plan = plan_of(params);
  const Tensor& like = in[0];
  if (rows_of_target(like.shape(), plan.by_example).count > 0)
    return run_backward(*plan.graph, like, in.subspan(1), plan.by_example, plan.chunk);
  Tensors result;
  for (ValueId v : plan.graph->outputs) {
    const Tensor& t = plan.graph->values[v].tensor;
    Shape source = t.shape();
    for (int i = 0; i < source.rank(); ++i) source[i] = std::max<int64_t>(0, source[i]);
    result.push_back(zeros(t.dtype(), joined_shape(like.shape(), source, plan.by_example)));
  }
  return result;
}

// Puts the operations of a Jacobian in its place, if the shapes are known now and one chunk is enough.
bool expand(Call& call) {
  if (std::ranges::any_of(call.in, [](const Tensor& t) { return t.size() < 0; })) return false;
  const RowsPlan& plan = plan_of(call.params);
  int64_t rows = rows_of_target(call.in[0].shape(), plan.by_example).count;
  if (rows == 0 || !runs_once(*plan.graph, call.in[0], call.in.subspan(1), plan.by_example, plan.chunk, rows))
    return false;
  for (Tensor& t : run_plan(call.params, call.in)) call.out.push_back(std::move(t));
  return true;
}

const Op& rows_op = define_graph_op<run_plan>(Op{
    .name = "JacobianRows",
    .arguments = {tensors("target_and_captures", any_dtype)},
    .infer_staged =
        [](Call& call) {
          const RowsPlan& plan = plan_of(call.params);
          for (ValueId v : plan.graph->outputs) {
            const Tensor& t = plan.graph->values[v].tensor;
            call.returns(t.dtype(), joined_shape(call.in[0].shape(), t.shape(), plan.by_example));
          }
        },
    .expand = expand,
});

Tensors at_reached(const SmallVector<bool, 8>& reached, Tensors found) {
  Tensors result;
  size_t next = 0;
  for (bool yes : reached) result.push_back(yes ? std::move(found[next++]) : Tensor());
  return result;
}

Tensors backward_for_every_row(Tape& tape, const JacobianRequest& request) {
  const Tensor& like = request.like;
  Spec spec{like.dtype(), like.shape()};
  Rows rows = rows_of_target(like.shape(), request.by_example);
  std::vector<SmallVector<Tensor, 8>> parts(request.sources.size());
  for (int64_t r = 0; r < rows.count; ++r) {
    Tensor dy = unit_cotangents(spec.dtype, spec.shape, rows, r, 1).view(spec.shape);
    BlockVector<Cotangent> flow =
        tape.gradient(std::span(&request.target, 1), std::span(&spec, 1), std::span(&dy, 1), request.sources, true);
    for (size_t s = 0; s < flow.size(); ++s)
      if (flow[s]) parts[s].push_back(densified(flow[s], request.source_shapes[s]));
  }
  Tensors result;
  for (auto& p : parts) result.push_back(p.empty() ? Tensor() : shaped(stack(p, 0), spec.shape, request.by_example));
  return result;
}

// No rows, but whether there is a path decides between nothing and an empty result.
Tensors empty_jacobian(Tape& tape, const JacobianRequest& request) {
  Spec spec{request.like.dtype(), request.like.shape()};
  Tensor dy = zeros(spec.dtype, spec.shape);
  BlockVector<Cotangent> flow =
      tape.gradient(std::span(&request.target, 1), std::span(&spec, 1), std::span(&dy, 1), request.sources, true);
  Tensors result;
  for (size_t s = 0; s < flow.size(); ++s)
    result.push_back(flow[s] ? zeros(spec.dtype, joined_shape(spec.shape, request.source_shapes[s], request.by_example))
                             : Tensor());
  return result;
}

}  // namespace

Tensors find_jacobian(Tape& tape, const JacobianRequest& request) {
  bool staged = thread_state().stage, known = request.like.size() >= 0;
  Rows rows = known ? rows_of_target(request.like.shape(), request.by_example) : Rows{1, -1};
  if (known && rows.count == 0) return empty_jacobian(tape, request);
  BackwardGraph backward;
  bool few = known && rows.count < kRowsWorthTracing;
  if (few || !trace_backward(tape, request, is_recording(), backward)) {
    if (!known)
      fail(ErrorKind::value,
           "GradientTape.jacobian: the shape of the target must be known here, since a rule of the backward pass "
           "cannot be "
           "traced");
    return backward_for_every_row(tape, request);
  }
  const Graph& graph = *backward.graph;
  bool at_once = !staged || (known && runs_once(graph, request.like, graph.captures, request.by_example, request.chunk,
                                                rows.count));
  if (at_once)
    return at_reached(backward.reached,
                      run_backward(graph, request.like, graph.captures, request.by_example, request.chunk));
  SmallVector<Tensor, 8> in{request.like};
  for (const Tensor& t : graph.captures) in.push_back(t);
  auto plan = std::make_shared<RowsPlan>(backward.graph, request.by_example, request.chunk);
  Tensors out = run_all(rows_op, in, {Param(std::static_pointer_cast<void>(plan))});
  return at_reached(backward.reached, std::move(out));
}

const Graph* jacobian_graph_of(const Op& op, const Params& params, bool& by_example) {
  if (&op != &rows_op) return nullptr;
  by_example = plan_of(params).by_example;
  return plan_of(params).graph.get();
}

}  // namespace tapeflow
