// The IR of the planner: a graph with known shapes, facts about its values, steps, and at last the code of a plan. The
// passes of plan/passes.h turn one form into the next; a member names the pass that sets it.
#pragma once
#include <map>
#include <optional>
#include <set>
#include <string>

#include "plan/parallel_regions.h"
#include "plan/plan.h"

namespace tapeflow::plan {

constexpr int kNone = -1;

// Facts about a value of the graph.
struct ValueInfo {
  enum class Kind : uint8_t { constant, input, variable, computed } kind = Kind::computed;
  ValueId root = 0;              // the value it is a view of or equal to; itself if it is neither
  size_t offset = 0;             // bytes, inside the root
  int node = kNone;              // that computes it
  int uniform = kNone;           // of a constant: whether all elements are equal, once somebody asked
  bool fused = false;            // elementwise_fusion: a fusion computes it
  int step = kNone;              // that computes it
  int last_use = kNone;          // memory: a step
  bool is_output = false;        // memory
  bool materialized = false;     // memory: it outlives the fusion that computes it
  bool escapes_in_view = false;  // memory: the result of a kernel, read later, may be a view of it
  bool stored = false;           // memory: it is computed straight into a variable or an output
  Tensor body;                   // memory
  int program_step = kNone;      // emit: its place in the program of its fusion
};

// An arithmetic node of a fusion in one loop with the nodes that compute its operands. If swapped, its right operand
// comes first.
struct FusedLoop {
  Combination kernel;
  int left, right;
  bool swapped;
};

// A kernel; or a fusion: elementwise nodes and reductions of what they compute or read; or a kernel with a fusion as
// its epilogue. Fused nodes are in program order.
struct Step {
  int kernel = kNone;
  std::vector<int> fused, reductions;
  int64_t row_length = 0;    // 0: no operand of the fusion needs rows
  int64_t table_length = 0;  // of those reductions that are not over all elements
  int lane = kNone;          // schedule: of a parallel region, counted over all regions
  int program_order = 0;     // schedule: its place before
  int after = kNone;         // schedule: in a pipelined region, the last step of the first lane that it waits for

  bool is_fusion() const { return kernel == kNone; }
  template <class Visit> void each_node(Visit visit) const {
    if (kernel != kNone) visit(kernel);
    for (int i : fused) visit(i);
    for (int i : reductions) visit(i);
  }
};

struct PlanIR {
  struct VariableValue {
    VariableBody* variable;
    ValueId value;
  };
  struct GraphBreak {
    size_t begin, end;  // nodes that no plan can have
  };

  PlanIR(const Graph& from, std::span<const Tensor> in) : source(from), inputs(in) {}

  const Graph& source;
  std::span<const Tensor> inputs;
  int rematerialisation = 0;  // what saving memory may cost: 0 is nothing, 1 parallel regions, more is work done twice

  std::shared_ptr<Graph> graph;           // specialise
  bool traced = false;                    // specialise: all of it could be traced
  std::optional<GraphBreak> graph_break;  // specialise: the first one

  std::vector<ValueInfo> values;         // cse_and_views, by value
  std::vector<int> nodes;                // cse_and_views: that are left, in program order
  std::vector<VariableValue> variables;  // cse_and_views: that are read, with the value they have at the beginning
  std::vector<VariableValue> stores;     // cse_and_views: that are assigned, with the value they have at the end
  std::vector<VariableValue> between;    // cse_and_views: values that variables have between two assignments

  std::map<int, int> not_before;  // rematerialise: nodes, and after which other node they run

  std::vector<ElementLoops> loops;       // elementwise_fusion, by node; none if it is not elementwise
  std::vector<Step> steps;               // elementwise_fusion
  std::map<int, FusedLoop> fused_loops;  // loop_fusion, by the outer node
  std::set<int> inlined;                 // loop_fusion: nodes that a fused loop computes for the outer node
  std::vector<ParallelRegion> regions;   // schedule
  std::vector<bool> lane_may_fail;       // schedule, by lane: whether a step of its region may
  PlanCode code;                         // memory, emit

  const Node& node(int i) const { return graph->nodes[size_t(i)]; }
  Node& node(int i) { return graph->nodes[size_t(i)]; }
  const Shape& shape(ValueId v) const { return graph->values[v].tensor.shape(); }
  DType dtype(ValueId v) const { return graph->values[v].tensor.dtype(); }
  Spec spec(ValueId v) const { return {dtype(v), shape(v)}; }
  int64_t elements(ValueId v) const { return shape(v).elements(); }
  // Elements of the result of a node; 0 if it has none.
  int64_t elements_of(const Node& n) const { return n.outputs ? elements(n.first_output) : 0; }
  int64_t elements_of(const Step& s) const { return elements_of(node(s.fused[0])); }

  ValueId root(ValueId v) const { return values[v].root; }
  const ValueInfo& root_info(ValueId v) const { return values[root(v)]; }
  void alias(ValueId v, ValueId of, size_t offset);
  bool computed(ValueId v) const { return values[v].kind == ValueInfo::Kind::computed; }
  // The value has all elements of its root, in the same order.
  bool covers_root(ValueId v) const { return values[v].offset == 0 && elements(v) == elements(root(v)); }
  bool uniform(ValueId v);  // a constant whose elements are all equal
  int lane_of(ValueId computed) const { return steps[size_t(values[computed].step)].lane; }

  int runs_after(int i) const;  // the node that must have run before, though this one does not read it, or kNone

  std::vector<int> count_uses() const;  // by value: by nodes, as an output or for a variable
  void remove_dead_nodes();
  void add_step(Step);
  void number(const Step&, int step);  // sets `step` of its values
  void number_steps();
  TensorBody* body_of(ValueId v);
};

// The IR as text: what the passes so far have found out.
std::string to_text(const PlanIR&);

}  // namespace tapeflow::plan
