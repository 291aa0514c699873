// Scalar replacement of aggregates: tensors that are stacked from few parts and cut into them again, such as the state
// of an integrator, become tensors of their parts.
//
// Input:     a specialised graph.
// Output:    the same graph with stacks, slices along a short axis, their gradients, and the elementwise nodes,
//            broadcasts and reductions between them replaced by nodes on parts, where that saves steps.
// Invariant: nodes are in program order. A value that other nodes read is stacked for them once; a value that other
//            nodes compute is cut once.
//
// Which operations move parts is said by their entries: planning.movement.
#include <algorithm>
#include <map>
#include <numeric>
#include <optional>

#include "ops/arrays/slicing.h"
#include "ops/ops.h"
#include "plan/passes.h"

namespace tapeflow::plan {
namespace {

Shape without(Shape shape, int axis) {
  shape.remove(axis);
  return shape;
}

// The axis of `operand` that broadcasting lines up with `axis` of the result; none if it has no such axis.
int aligned_axis(const Shape& operand, const Shape& result, int axis) {
  const int at = axis - (result.rank() - operand.rank());
  return at >= 0 ? at : kNone;
}

// Axes over which a reduction goes, and where the others are in its result.
struct ReducedAxes {
  bool reduced[kMaxRank] = {};
  bool keepdims = false;

  static std::optional<ReducedAxes> of(const PlanIR& ir, const Node& n) {
    const Param& axes = n.params.value(reduction_params.axis);
    const int rank = ir.shape(n.inputs[0]).rank();
    ReducedAxes r;
    r.keepdims = n.params[reduction_params.keepdims];
    if (axes.kind == Param::Kind::none)
      std::fill_n(r.reduced, rank, true);
    else if (axes.kind != Param::Kind::ints)
      return std::nullopt;
    else
      for (int64_t a : axes.ints) r.reduced[a < 0 ? a + rank : a] = true;
    return r;
  }
  int axis_in_result(int axis) const { return axis - (keepdims ? 0 : int(std::count(reduced, reduced + axis, true))); }
  // Those of a part, which lacks `axis`.
  Ints without(int axis, int rank) const {
    Ints rest;
    for (int i = 0; i < rank; ++i)
      if (i != axis && reduced[i]) rest.push_back(i - (i > axis));
    return rest;
  }
};

bool is_reduction(const PlanIR& ir, const Node& n) {
  return n.op->planning.reduction != ReductionKind::none && n.inputs.size() == 1 && n.outputs == 1 &&
         wide_floating.has(ir.dtype(n.inputs[0])) && ReducedAxes::of(ir, n);
}

// Operands broadcast to the result.
bool is_elementwise(const PlanIR& ir, const Node& n) {
  if (n.outputs != 1 || n.inputs.empty()) return false;
  if (n.op->planning.is_broadcast) return true;
  if (!n.op->element_loops) return false;
  Shape both = ir.shape(n.inputs[0]);
  for (ValueId v : n.inputs)
    if (!broadcast(both, ir.shape(v), &both)) return false;
  return both == ir.shape(n.first_output);
}

// ---- which values become parts

// Values of one component are taken apart together, each along an axis of its own.
class Aggregates {
 public:
  explicit Aggregates(const PlanIR& ir)
      : ir_(ir), movements_(ir.graph->nodes.size()), axis_(ir.graph->values.size(), kNone), component_(axis_.size()) {
    std::iota(component_.begin(), component_.end(), ValueId(0));
    for (size_t i = 0; i < ir.graph->nodes.size(); ++i) find_movement(i);
    if (pending_.empty()) return;
    find_readers();
    while (!pending_.empty()) {
      const ValueId v = pending_.back();
      pending_.pop_back();
      if (const int producer = ir.graph->values[v].node; producer >= 0) connect(v, ir.node(producer));
      for (int reader : readers_[v]) connect(v, ir.node(reader));
    }
    choose();
  }

  bool any() const { return any_; }
  // Along which a value is taken apart; none: it stays whole.
  int axis(ValueId v) const { return axis_[v]; }
  const AxisMovement* movement(size_t node) const { return movements_[node] ? &*movements_[node] : nullptr; }

 private:
  bool assign(ValueId v, int axis) {
    const Shape& shape = ir_.shape(v);
    if (shape[axis] < 2 || shape[axis] > AxisMovement::kMostParts || shape.elements() == 0) return false;
    if (axis_[v] == kNone) {
      axis_[v] = axis;
      pending_.push_back(v);
    }
    return axis_[v] == axis;
  }
  ValueId first_of(ValueId v) {
    while (component_[v] != v) v = component_[v] = component_[component_[v]];
    return v;
  }
  void unite(ValueId a, ValueId b) {
    a = first_of(a), b = first_of(b);
    component_[std::max(a, b)] = std::min(a, b);
  }

  void find_movement(size_t i) {
    const Node& n = ir_.node(int(i));
    if (!n.op->planning.movement || n.params.has_tensor() || !fixed_size.has(ir_.dtype(n.first_output))) return;
    SmallVector<Tensor, 4> in;
    for (ValueId v : n.inputs) in.push_back(ir_.graph->values[v].tensor);
    AxisMovement m;
    if (!n.op->planning.movement(Call(*n.op, in, n.params), m)) return;
    if (m.out_axis != kNone)
      for (uint32_t k = 0; k < n.outputs; ++k) assign(n.first_output + k, m.out_axis);
    if (m.in_axis != kNone)
      for (ValueId v : n.inputs) assign(v, m.in_axis);
    movements_[i] = std::move(m);
  }
  void find_readers() {
    readers_.resize(axis_.size());
    for (size_t i = 0; i < ir_.graph->nodes.size(); ++i)
      for (ValueId v : ir_.node(int(i)).inputs) readers_[v].push_back(int(i));
  }

  // Values that a node computes element by element of `v`, or `v` of them, are taken apart as `v` is.
  void connect(ValueId v, const Node& n) {
    const ValueId y = n.first_output;
    if (is_reduction(ir_, n)) {
      const ReducedAxes axes = *ReducedAxes::of(ir_, n);
      for (int a = 0; a < ir_.shape(n.inputs[0]).rank(); ++a) {
        if (axes.reduced[a] || (v == y ? axes.axis_in_result(a) : a) != axis_[v]) continue;
        const ValueId other = v == y ? n.inputs[0] : y;
        if (assign(other, v == y ? a : axes.axis_in_result(a))) unite(v, other);
      }
    } else if (is_elementwise(ir_, n)) {
      const int in_result = axis_[v] + ir_.shape(y).rank() - ir_.shape(v).rank();
      if (ir_.shape(y)[in_result] != ir_.shape(v)[axis_[v]] || !assign(y, in_result)) return;
      unite(v, y);
      for (ValueId x : n.inputs)
        if (const int a = aligned_axis(ir_.shape(x), ir_.shape(y), in_result); a != kNone && assign(x, a)) unite(v, x);
    }
  }

  // ---- steps that are saved

  // Neighbours in memory along the axis: a slice is a view.
  bool slices_are_views(ValueId v, int axis) const { return ir_.shape(v).elements(0, axis) == 1; }
  bool is_computed_in_parts(ValueId v) const {
    const int i = ir_.graph->values[v].node;
    if (i == Value::kConstant) return true;
    if (i < 0) return false;
    const Node& n = ir_.node(i);
    if (movements_[size_t(i)]) return movements_[size_t(i)]->out_axis == axis_[v];
    return is_elementwise(ir_, n) || (is_reduction(ir_, n) && axis_[n.inputs[0]] != kNone);
  }
  bool is_read_in_parts(ValueId v, int reader) const {
    const Node& n = ir_.node(reader);
    if (movements_[size_t(reader)]) return movements_[size_t(reader)]->in_axis == axis_[v];
    return is_reduction(ir_, n) || (is_elementwise(ir_, n) && axis_[n.first_output] != kNone);
  }

  // Of an elementwise node whose result `v` is taken apart, though they are not, or along another axis.
  double cuts_of_operands(ValueId v, const Node& n) const {
    double cuts = 0;
    for (ValueId x : n.inputs) {
      const int a = aligned_axis(ir_.shape(x), ir_.shape(v), axis_[v]);
      if (a == kNone || ir_.shape(x)[a] == 1 || axis_[x] == a || slices_are_views(x, a)) continue;
      if (ir_.graph->values[x].node != Value::kConstant) cuts += double(ir_.shape(x)[a]);
    }
    return is_elementwise(ir_, n) ? cuts : 0;
  }

  // In steps of a plan; another node of a fusion counts a tenth of one.
  double saved_by(ValueId v) const {
    constexpr double kFusedNode = 0.1;
    const double parts = double(ir_.shape(v)[axis_[v]]), cuts = slices_are_views(v, axis_[v]) ? 0 : 1;
    const bool computed = is_computed_in_parts(v);
    const int producer = ir_.graph->values[v].node;
    double saved = 0, sliced = 0;
    if (computed && producer >= 0) {
      if (const auto& m = movements_[size_t(producer)]) {
        const Node& n = ir_.node(producer);
        saved += m->in_axis == kNone || is_computed_in_parts(n.inputs[0]) ? 1 : 1 - parts * cuts;
      } else {
        saved -= kFusedNode * (parts - 1) + cuts_of_operands(v, ir_.node(producer));
      }
    }
    bool read_in_parts = false, read_whole = std::ranges::count(ir_.graph->outputs, v) > 0;
    for (int reader : readers_[v]) {
      if (!is_read_in_parts(v, reader))
        read_whole = true;
      else if (movements_[size_t(reader)])
        sliced += ir_.node(reader).outputs * cuts;
      else
        read_in_parts = true;
    }
    if (computed) return saved + sliced - (read_whole && producer >= 0 ? 1 : 0);
    return saved - (read_in_parts ? std::max(0.0, parts * cuts - sliced) : 0);
  }
  void choose() {
    std::map<ValueId, double> saved;
    for (ValueId v = 0; v < axis_.size(); ++v)
      if (axis_[v] != kNone) saved[first_of(v)] += saved_by(v);
    for (ValueId v = 0; v < axis_.size(); ++v) {
      if (axis_[v] == kNone) continue;
      if (saved[first_of(v)] > 0)
        any_ = true;
      else
        axis_[v] = kNone;
    }
  }

  const PlanIR& ir_;
  std::vector<std::optional<AxisMovement>> movements_;  // by node
  std::vector<int> axis_;                               // by value
  std::vector<ValueId> component_;                      // by value
  std::vector<std::vector<int>> readers_;               // by value
  std::vector<ValueId> pending_;
  bool any_ = false;
};

// ---- the rewriting

class Rewriter {
 public:
  Rewriter(PlanIR& ir, const Aggregates& aggregates)
      : ir_(ir), graph_(*ir.graph), aggregates_(aggregates), parts_(graph_.values.size()), whole_(parts_.size()) {}

  void run() {
    std::vector<Node> nodes = std::move(graph_.nodes);
    graph_.nodes.clear();
    EnterStage stage(&graph_);
    PauseRecording paused;
    for (size_t i = 0; i < nodes.size(); ++i) {
      Node& n = nodes[i];  // owns its location, unless it is copied
      RunFor sake(n.op, n.location, false);
      if (!rewrite(n, i)) {
        copy(std::move(n));
        continue;
      }
      if (n.location.code) location_source.release(n.location.code);
      for (uint32_t k = 0; k < n.outputs; ++k) graph_.values[n.first_output + k].node = Value::kInput;  // nobody's
    }
    for (ValueId& v : graph_.outputs) v = graph_.id_of(whole(v));
  }

 private:
  using Parts = std::vector<Tensor>;

  const Shape& shape(ValueId v) const { return ir_.shape(v); }

  void copy(Node n) {
    for (ValueId& v : n.inputs) v = graph_.id_of(whole(v));
    for (uint32_t k = 0; k < n.outputs; ++k) graph_.values[n.first_output + k].node = int(graph_.nodes.size());
    graph_.nodes.push_back(std::move(n));
  }

  Tensor whole(ValueId v) {
    if (v >= whole_.size()) return graph_.values[v].tensor;
    if (!whole_[v]) whole_[v] = parts_[v].empty() ? graph_.values[v].tensor : stack(parts_[v], aggregates_.axis(v));
    return whole_[v];
  }
  Tensor part(ValueId v, int axis, int64_t i) {
    if (shape(v)[axis] == 1) return reshape(whole(v), without(shape(v), axis));
    if (aggregates_.axis(v) == axis && !parts_[v].empty()) return parts_[v][size_t(i)];
    Parts& known = slices_[{v, axis}];
    known.resize(size_t(shape(v)[axis]));
    if (!known[size_t(i)]) {
      Ints begin, step, count;
      for (int64_t d : shape(v)) begin.push_back(0), step.push_back(1), count.push_back(d);
      begin[size_t(axis)] = i, count[size_t(axis)] = 1;
      known[size_t(i)] = reshape(strided_slice(whole(v), begin, step, count), without(shape(v), axis));
    }
    return known[size_t(i)];
  }
  void define(ValueId v, int axis, Parts parts) {
    if (axis == kNone)
      whole_[v] = parts[0];
    else if (shape(v)[axis] == 1)
      whole_[v] = reshape(parts[0], shape(v));
    else if (aggregates_.axis(v) == axis)
      parts_[v] = std::move(parts);
    else
      whole_[v] = stack(parts, axis);
  }

  bool rewrite(const Node& n, size_t i) {
    if (const AxisMovement* m = aggregates_.movement(i)) return move(n, *m);
    if (n.outputs != 1) return false;
    const ValueId y = n.first_output;
    if (is_reduction(ir_, n) && aggregates_.axis(n.inputs[0]) != kNone)
      reduce(n, aggregates_.axis(n.inputs[0]));
    else if (aggregates_.axis(y) != kNone && is_elementwise(ir_, n))
      define(y, aggregates_.axis(y), compute(n, aggregates_.axis(y)));
    else
      return false;
    return true;
  }

  // A part that no input gives is zero.
  bool move(const Node& n, const AxisMovement& m) {
    bool in_parts = false;
    for (ValueId v : n.inputs) in_parts |= m.in_axis != kNone && aggregates_.axis(v) == m.in_axis;
    for (uint32_t k = 0; k < n.outputs; ++k)
      in_parts |= m.out_axis != kNone && aggregates_.axis(n.first_output + k) == m.out_axis;
    if (!in_parts) return false;
    for (uint32_t k = 0; k < n.outputs; ++k) {
      const ValueId y = n.first_output + k;
      Parts parts;
      for (const AxisMovement::Source& from : m.results[k]) {
        if (from.input == kNone)
          parts.push_back(zero(ir_.dtype(y), without(shape(y), m.out_axis)));
        else if (const ValueId x = n.inputs[size_t(from.input)]; m.in_axis == kNone)
          parts.push_back(whole(x));
        else
          parts.push_back(part(x, m.in_axis, from.part));
      }
      define(y, m.out_axis, std::move(parts));
    }
    return true;
  }

  Parts compute(const Node& n, int axis) {
    const Shape& result = shape(n.first_output);
    Parts parts;
    for (int64_t i = 0; i < result[axis]; ++i) {
      SmallVector<Tensor, 4> in;
      for (ValueId v : n.inputs) {
        const int a = aligned_axis(shape(v), result, axis);
        in.push_back(a == kNone ? whole(v) : part(v, a, i));
      }
      parts.push_back(compute_part(n, in, without(result, axis)));
    }
    return parts;
  }
  Tensor compute_part(const Node& n, std::span<const Tensor> in, const Shape& shape) {
    if (n.op->planning.is_broadcast) return in[0].shape() == shape ? in[0] : broadcast_to(in[0], shape);
    const Arithmetic f = n.op->planning.arithmetic;
    if (f == Arithmetic::add && is_zero(in[0]) && in[1].shape() == shape) return in[1];
    if ((f == Arithmetic::add || f == Arithmetic::subtract) && in.size() == 2 && is_zero(in[1]) &&
        in[0].shape() == shape)
      return in[0];
    return tapeflow::run(*n.op, in, n.params);
  }

  void reduce(const Node& n, int axis) {
    const ValueId x = n.inputs[0], y = n.first_output;
    const ReducedAxes axes = *ReducedAxes::of(ir_, n);
    const Ints rest = axes.without(axis, shape(x).rank());
    auto reduce_part = [&](const Tensor& t) {
      return rest.empty() ? t : tapeflow::run(*n.op, {t}, n.params.with(reduction_params.axis, Param(rest)));
    };
    Parts parts;
    for (int64_t i = 0; i < shape(x)[axis]; ++i) parts.push_back(part(x, axis, i));
    if (!axes.reduced[axis]) {
      for (Tensor& t : parts) t = reduce_part(t);
      return define(y, axes.axis_in_result(axis), std::move(parts));
    }
    Tensor total = parts[0];
    for (size_t i = 1; i < parts.size(); ++i) total = combine(n.op->planning.reduction, total, parts[i]);
    total = reduce_part(total);
    if (n.op->planning.reduction == ReductionKind::mean)
      total = divide(total, filled(total.dtype(), Shape{}, double(parts.size())));
    whole_[y] = reshape(total, shape(y));
  }
  Tensor combine(ReductionKind kind, const Tensor& a, const Tensor& b) const {
    switch (kind) {
      case ReductionKind::max: return maximum(a, b);
      case ReductionKind::min: return negative(maximum(negative(a), negative(b)));
      default: return is_zero(a) ? b : is_zero(b) ? a : add(a, b);
    }
  }

  Tensor zero(DType dtype, const Shape& shape) {
    for (const Tensor& t : zeros_)
      if (t.dtype() == dtype && t.shape() == shape) return t;
    return zeros_.emplace_back(zeros(dtype, shape));
  }
  bool is_zero(const Tensor& t) const {
    return std::ranges::any_of(zeros_, [&](const Tensor& z) { return z.body() == t.body(); });
  }

  PlanIR& ir_;
  Graph& graph_;
  const Aggregates& aggregates_;
  std::vector<Parts> parts_;                         // by value: of those that are computed in parts
  std::vector<Tensor> whole_;                        // by value, once somebody asked
  std::map<std::pair<ValueId, int>, Parts> slices_;  // of values that are computed whole, by axis
  std::vector<Tensor> zeros_;
};

}  // namespace

void scalar_replacement(PlanIR& ir) {
  const Aggregates aggregates(ir);
  if (aggregates.any()) Rewriter(ir, aggregates).run();
}

}  // namespace tapeflow::plan
