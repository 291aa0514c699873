// The IR as text. A value is %number, with its dtype and shape where it is defined.
#include <algorithm>
#include <sstream>

#include "plan/ir.h"

namespace tapeflow::plan {
namespace {

class Printer {
 public:
  explicit Printer(const PlanIR& ir) : ir_(ir) {}

  std::string print() {
    if (!ir_.traced) {
      text_ << "untraceable: the graph runs node by node\n";
      return text_.str();
    }
    print_list("inputs", ir_.graph->inputs, [&](ValueId v) { define(v); });
    print_list("variables", ir_.variables, [&](const auto& read) {
      define(read.value);
      text_ << " = " << name_of(*read.variable);
    });
    print_aliases();
    if (!ir_.steps.empty())
      print_steps();
    else if (ir_.values.empty())
      print_graph();
    else
      for (int i : ir_.nodes) print_node(i, "  ");
    print_list("stores", ir_.stores, [&](const auto& store) {
      text_ << name_of(*store.variable) << " = %" << ir_.root(store.value);
      if (const PlanCode::Store* placed = placed_store(*store.variable))
        text_ << (placed->in_place ? " in place" : placed->computed ? " in new memory" : " by copy");
    });
    print_list("outputs", ir_.graph->outputs,
               [&](ValueId v) { text_ << '%' << (ir_.values.empty() ? v : ir_.root(v)); });
    return text_.str();
  }

 private:
  static std::string name_of(const VariableBody& v) { return v.name.substr(0, v.name.rfind(':')); }

  template <class List, class Item> void print_list(const char* title, const List& list, Item item) {
    if (list.empty()) return;
    text_ << title << ": ";
    bool first = true;
    for (const auto& x : list) {
      if (!std::exchange(first, false)) text_ << ", ";
      item(x);
    }
    text_ << '\n';
  }

  void define(ValueId v) {
    const Tensor& t = ir_.graph->values[v].tensor;
    text_ << '%' << v << ' ' << tapeflow::name_of(t.dtype());
    t.size() < 0 && !t.shape().known_rank() ? text_ << "<unknown>" : text_ << t.shape();
  }

  void print_operand(ValueId v) {
    const Value& value = ir_.graph->values[v];
    if (value.node == Value::kConstant && value.tensor.size() == 1 && real_numbers.has(value.tensor.dtype()))
      print_number(value.tensor);
    else if (value.node == Value::kConstant)
      text_ << "const " << tapeflow::name_of(value.tensor.dtype()) << value.tensor.shape();
    else
      text_ << '%' << v;
  }
  void print_number(const Tensor& t) {
    switch (t.dtype()) {
      case DType::float32: text_ << *t.data<float>(); break;
      case DType::float64: text_ << *t.data<double>(); break;
      case DType::int32: text_ << *t.data<int32_t>(); break;
      case DType::int64: text_ << *t.data<int64_t>(); break;
      default: text_ << "const " << tapeflow::name_of(t.dtype()); break;
    }
  }

  void print_node(int i, const char* indent) {
    const Node& n = ir_.node(i);
    text_ << indent;
    for (uint32_t k = 0; k < n.outputs; ++k) {
      if (k > 0) text_ << ", ";
      define(n.first_output + k);
      print_memory(n.first_output + k);
    }
    text_ << (n.outputs ? " = " : "") << n.op->name << '(';
    for (size_t k = 0; k < n.inputs.size(); ++k) {
      if (k > 0) text_ << ", ";
      print_operand(n.inputs[k]);
    }
    text_ << ')';
    if (ir_.inlined.contains(i)) text_ << " inlined";
    if (ir_.fused_loops.contains(i)) text_ << " fused-loop";
    text_ << '\n';
  }

  // After the memory pass: the buffer of a value, by order of first use.
  void print_memory(ValueId v) {
    if (ir_.values.empty() || ir_.code.bodies.empty() || !ir_.computed(v)) return;
    const ValueInfo& info = ir_.values[v];
    if (!info.body || !info.body.body()->buffer) return;
    const auto [it, fresh] = buffers_.try_emplace(info.body.body()->buffer, int(buffers_.size()));
    text_ << " @buffer" << it->second;
  }

  void print_graph() {
    for (size_t i = 0; i < ir_.graph->nodes.size(); ++i) {
      if (ir_.graph_break && i == ir_.graph_break->begin) text_ << "graph break:\n";
      if (ir_.graph_break && i == ir_.graph_break->end) text_ << "end of graph break\n";
      print_node(int(i), "  ");
    }
  }

  void print_aliases() {
    for (ValueId v = 0; v < ir_.values.size(); ++v) {
      if (ir_.root(v) == v || ir_.values[v].kind == ValueInfo::Kind::constant) continue;
      text_ << "alias ";
      define(v);
      text_ << " = %" << ir_.root(v);
      if (ir_.values[v].offset) text_ << " + " << ir_.values[v].offset << " bytes";
      text_ << '\n';
    }
  }

  void print_steps() {
    for (size_t s = 0; s < ir_.steps.size(); ++s) {
      const Step& step = ir_.steps[s];
      print_region(s);
      text_ << "step " << s << ": ";
      if (step.is_fusion())
        text_ << "fusion of " << ir_.elements_of(step) << " elements\n";
      else
        print_node(step.kernel, "kernel ");
      if (!step.is_fusion() && !step.fused.empty()) text_ << "  epilogue\n";
      for (int i : step.fused) print_node(i, "    ");
      for (int i : step.reductions) print_node(i, "    reduction ");
    }
  }

  void print_region(size_t s) {
    for (const ParallelRegion& region : ir_.regions) {
      if (s == region.first)
        text_ << (region.pipelined ? "pipelined region of " : "parallel region of ") << region.ends.size()
              << " lanes\n";
      const bool begins = s == region.first ||
                          std::ranges::find(region.ends.begin(), region.ends.end() - 1, s) != region.ends.end() - 1;
      if (begins) text_ << "lane " << ir_.steps[s].lane << '\n';
      if (s == region.ends.back()) text_ << "end of region\n";
    }
  }

  const PlanCode::Store* placed_store(const VariableBody& variable) const {
    const auto found = std::ranges::find(ir_.code.stores, &variable, &PlanCode::Store::variable);
    return found == ir_.code.stores.end() ? nullptr : &*found;
  }

  const PlanIR& ir_;
  std::ostringstream text_;
  std::map<const Buffer*, int> buffers_;
};

}  // namespace

std::string to_text(const PlanIR& ir) { return Printer(ir).print(); }

}  // namespace tapeflow::plan
