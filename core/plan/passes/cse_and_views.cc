// Common subexpressions, views and dead code.
//
// Input:     a specialised graph.
// Output:    `values` and `nodes`: reshapes, slices and the like, products with ones, and nodes equal to an earlier
//            one become aliases of their root, and so do equal small constants; a variable that was assigned is
//            read as the value it was assigned; nodes that nobody reads are gone. `variables`, `between` and
//            `stores` say which values variables have at the beginning, in between and at the end.
// Invariant: a root is its own root. Nodes read roots, where the view has the root's shape; nodes without results
//            stay only if they have an effect.
#include <algorithm>
#include <cstring>
#include <map>

#include "ops/arrays/slicing.h"
#include "plan/borrowed_memory.h"
#include "plan/passes.h"

namespace tapeflow::plan {
namespace {

bool same_param(const Param& a, const Param& b) {
  if (a.kind != b.kind) return false;
  switch (a.kind) {
    case Param::Kind::none: return true;
    case Param::Kind::flag: return a.flag == b.flag;
    case Param::Kind::integer: return a.integer == b.integer;
    case Param::Kind::real: return std::memcmp(&a.real, &b.real, sizeof a.real) == 0;
    case Param::Kind::dtype: return a.dtype == b.dtype;
    case Param::Kind::ints: return std::equal(a.ints.begin(), a.ints.end(), b.ints.begin(), b.ints.end());
    case Param::Kind::text: return a.text == b.text;
    default: return a.object == b.object;
  }
}
bool same_node(const Node& a, const Node& b) {
  if (a.op != b.op || a.params.size() != b.params.size() ||
      !std::equal(a.inputs.begin(), a.inputs.end(), b.inputs.begin(), b.inputs.end()))
    return false;
  for (int p = 0; p < int(a.params.size()); ++p)
    if (!same_param(a.params.at(p), b.params.at(p))) return false;
  return true;
}

// A small constant equal to an earlier one is an alias of it, so that nodes that read them can be equal.
void merge_constants(PlanIR& ir) {
  constexpr size_t kSmall = 64;  // bytes
  std::map<std::string, ValueId> value_by_content;
  for (ValueId v = 0; v < ir.values.size(); ++v) {
    const Tensor& t = ir.graph->values[v].tensor;
    if (ir.values[v].kind != ValueInfo::Kind::constant || t.dtype() == DType::string || t.dtype() == DType::variant ||
        t.bytes() > kSmall)
      continue;
    std::string key{char(t.dtype()), char(t.rank())};
    for (int64_t d : t.shape()) key.append(reinterpret_cast<const char*>(&d), sizeof d);
    key.append(static_cast<const char*>(t.raw()), t.bytes());
    const auto [it, fresh] = value_by_content.try_emplace(std::move(key), v);
    if (!fresh) ir.alias(v, it->second, 0);
  }
}

void find_values(PlanIR& ir) {
  const std::vector<Value>& values = ir.graph->values;
  ir.values.resize(values.size());
  for (ValueId v = 0; v < values.size(); ++v) {
    ValueInfo& info = ir.values[v];
    info.root = v;
    info.kind = values[v].node == Value::kConstant ? ValueInfo::Kind::constant
                : values[v].node == Value::kInput  ? ValueInfo::Kind::input
                                                   : ValueInfo::Kind::computed;
    info.node = values[v].node >= 0 ? values[v].node : kNone;
  }
}

// An operation that broadcasts by itself reads the operand of a broadcast.
void read_before_broadcast(PlanIR& ir, Node& n) {
  if (n.op->float_binary == nullptr) return;
  for (size_t k = 0; k < 2; ++k) {
    const int from = ir.values[n.inputs[k]].node;
    if (from == kNone || !ir.node(from).op->planning.is_broadcast) continue;
    if (ir.shape(n.inputs[1 - k]) == ir.shape(n.first_output)) n.inputs[k] = ir.node(from).inputs[0];
  }
}

// A node whose results are views of its inputs: becomes aliases. Where that depends on the parameters, the kernel
// reports it; a slice that is none has results that the plan places.
bool eliminate_view(PlanIR& ir, Node& n) {
  const ViewKind kind = n.op->planning.view;
  if (kind == ViewKind::always) {
    for (uint32_t k = 0; k < n.outputs; ++k) ir.alias(n.first_output + k, n.inputs[k], 0);
    return true;
  }
  if (kind == ViewKind::none || n.inputs.size() != 1) return false;
  const auto [dtype, shape] = ir.spec(n.inputs[0]);
  if (!fixed_size.has(dtype) || shape.elements() == 0) return false;
  const Tensor sample = bare_body(dtype, shape);
  sample.body()->buffer = allocate_buffer(sample.bytes());  // few elements would lie in the body, and be copied
  sample.body()->data = sample.body()->buffer->data;
  Call call(*n.op, std::span(&sample, 1), n.params);
  if (n.op->infer) n.op->infer(call);
  n.op->kernel(call);
  for (const Tensor& t : call.out)
    if (t.body()->buffer != sample.body()->buffer) {
      if (const Op* copy = copying_op(*n.op)) n.op = copy;
      return false;
    }
  for (uint32_t k = 0; k < n.outputs; ++k)
    ir.alias(n.first_output + k, n.inputs[0],
             size_t(static_cast<const char*>(call.out[k].raw()) - static_cast<const char*>(sample.raw())));
  return true;
}

// Whether all elements of a constant are this number.
bool is_number(PlanIR& ir, ValueId v, double number) {
  if (!ir.uniform(v)) return false;
  const Tensor& t = ir.graph->values[v].tensor;
  if (t.dtype() == DType::float32) return double(*t.data<float>()) == number;
  return t.dtype() == DType::float64 && *t.data<double>() == number;
}

// x * 1, x / 1, x ** 1: an alias of x.
bool eliminate_identity(PlanIR& ir, const Node& n) {
  for (size_t one = 0; one < 2; ++one) {
    if (!(n.op->planning.unit_operands >> one & 1)) continue;
    const ValueId other = n.inputs[1 - one];
    if (!is_number(ir, n.inputs[one], 1) || ir.shape(other) != ir.shape(n.first_output)) continue;
    ir.alias(n.first_output, other, 0);
    return true;
  }
  return false;
}

// x ** 2 is x * x, as in the kernel of powers: loops can be made of products.
void reduce_power(PlanIR& ir, Node& n) {
  const Op* product = n.op->planning.product;
  if (!product || !is_number(ir, n.inputs[1], 2)) return;
  n.op = product;
  n.inputs[1] = n.inputs[0];
}

// A node equal to one that was seen before: its results are aliases of that one's.
class CommonSubexpressions {
 public:
  bool eliminate(PlanIR& ir, const Node& n, size_t i) {
    if (n.op->stateful || n.op->effect || n.outputs == 0) return false;
    size_t hash = reinterpret_cast<size_t>(n.op);
    for (ValueId v : n.inputs) hash = hash * 1000003 + v;
    auto [from, to] = node_by_hash_.equal_range(hash);
    for (; from != to; ++from) {
      const Node& other = ir.graph->nodes[from->second];
      if (!same_node(n, other)) continue;
      for (uint32_t k = 0; k < n.outputs; ++k) ir.alias(n.first_output + k, other.first_output + k, 0);
      return true;
    }
    node_by_hash_.emplace(hash, i);
    return false;
  }

 private:
  std::multimap<size_t, size_t> node_by_hash_;
};

}  // namespace

void cse_and_views(PlanIR& ir) {
  find_values(ir);
  merge_constants(ir);
  std::map<VariableBody*, ValueId> current, first;
  std::set<VariableBody*> assigned;
  CommonSubexpressions seen;
  for (size_t i = 0; i < ir.graph->nodes.size(); ++i) {
    Node& n = ir.graph->nodes[i];
    for (ValueId& v : n.inputs)
      if (ir.values[v].offset == 0 && ir.shape(v) == ir.shape(ir.root(v))) v = ir.root(v);
    read_before_broadcast(ir, n);
    reduce_power(ir, n);
    if (n.op == &read_variable_op()) {
      VariableBody* variable = &variable_in(n.params);
      if (auto it = current.find(variable); it != current.end()) {
        ir.alias(n.first_output, it->second, 0);
      } else {
        ir.values[n.first_output].kind = ValueInfo::Kind::variable;
        current[variable] = first[variable] = n.first_output;
      }
      continue;
    }
    if (n.op == &assign_op()) {
      VariableBody* variable = &variable_in(n.params);
      if (!assigned.insert(variable).second) ir.between.push_back({variable, current[variable]});
      current[variable] = n.inputs[0];
      continue;
    }
    if (eliminate_view(ir, n) || eliminate_identity(ir, n) || seen.eliminate(ir, n, i)) continue;
    ir.nodes.push_back(int(i));
  }
  for (auto& [variable, v] : first) ir.variables.push_back({variable, v});
  for (VariableBody* variable : assigned) ir.stores.push_back({variable, current[variable]});
  ir.remove_dead_nodes();
}

}  // namespace tapeflow::plan
