// How a plan is made. The graph is traced once more with the shapes of the inputs, so that every rule that waited is
// there; parameters that are still open become inputs (planner_parameters.cc), equal nodes are merged, nodes that only
// show elements under another shape become aliases (planner.cc), chains of some kinds become one node
// (planner_joins.cc), elementwise nodes are put into groups (planner_schedule.cc), some of them later than they could
// (planner_deferral.cc) and some to run as one loop (planner_combinations.cc), and steps that can run at the same time
// into sections (planner_schedule.cc), memory is given out by lifetime (planner_memory.cc), and the steps are written
// down (planner_steps.cc).
#pragma once
#include <map>
#include <set>

#include "kernels/simd/fused_loops.h"
#include "plan/parallel_regions.h"
#include "plan/plan.h"

namespace tapeflow {

class Planner {
 public:
  explicit Planner(const Graph& from) : from_(from), plan_(new Plan) {}
  Prepared make(std::span<const Tensor> inputs);

 private:
  static constexpr int kNone = -1;
  struct Info {
    enum class Kind : uint8_t { constant, input, variable, computed } kind = Kind::computed;
    ValueId same;          // the value that is meant: another one if this one is equal to it or lies in it
    size_t offset = 0;     // bytes, inside it
    int node = kNone;      // that computes it
    int step = kNone;      // of the schedule
    int last_use = kNone;  // step
    bool is_result = false, stored = false;
    bool grouped = false;  // computed by a group
    bool kept = false;     // elements outlive that group
    bool lent = false;     // what a kernel made of it, and is read later, may lie in it
    int member = kNone;    // place in the group
    int uniform = kNone;   // of a constant: whether all elements are the same number, once somebody asked
    Tensor body;
  };

  Graph& graph() { return *plan_->graph_; }
  const Spec spec(ValueId v) { return {graph().values[v].tensor.dtype(), graph().values[v].tensor.shape()}; }
  ValueId meant(ValueId v) const { return info_[v].same; }
  bool made(const Node& n) const { return n.op->makes_outputs; }
  int part_of(ValueId computed) const { return scheduled_[size_t(info_[computed].step)].part; }

  // ---- which values there are
  bool specialise(std::span<const Tensor> inputs);
  void trace(std::span<const Tensor> inputs);
  void read_parameters();
  static bool has_state(const Graph&);
  static bool has_only_pure_graphs(const Node&);
  bool stands_in_the_way(const Node&);
  bool has_no_shape(const Node&);
  void choose_flushing();
  bool uniform(ValueId v);
  int simplified(const Node&);
  void find_values();
  void read_before_broadcast(Node&);
  void drop_unused();
  void join_chains();
  bool adds_alike(const Node&);
  Node* maker_for_one(ValueId v, std::span<const int> uses);
  bool join_spreads(Node& last, std::span<const int> uses, std::vector<bool>& joined);
  bool join_pieces(Node& last, std::span<const int> uses, std::vector<bool>& joined);
  void lie(ValueId v, ValueId in, size_t offset);
  bool show(const Node&);
  bool merge(const Node&, size_t i, std::multimap<size_t, size_t>& equal_nodes);

  // ---- in which order, in which groups, and what at the same time

  // A kernel, or a group of elementwise nodes and reductions of what it makes or reads, or a kernel and the group that
  // follows it element by element.
  struct Scheduled {
    int kernel = kNone;
    std::vector<int> group, reductions;
    int64_t row_length = 0;    // 0: no operand of the group needs rows
    int64_t table_length = 0;  // of those reductions that are not of all elements
    int part = kNone;          // of a section: which of all parts
    int program_order = 0;     // its place before steps were put into sections
    int after = kNone;         // of a part that follows: the last step of the first part that it waits for

    template <class Visit> void each_node(Visit visit) const {
      if (kernel != kNone) visit(kernel);
      for (int i : group) visit(i);
      for (int i : reductions) visit(i);
    }
  };
  // A member of a group together with those that make its operands, or one of them. If swapped, its right side comes
  // first.
  struct Combined {
    Combination kernel;
    int left, right;
    bool swapped;
  };
  // Where putting nodes into steps has come to.
  struct Walk {
    std::vector<int> waiting;               // by node: for how many others
    std::vector<std::vector<int>> readers;  // by node
    std::set<int> ready, deferred;
    std::vector<bool> inside;  // by node: whether it is in the group that is being made
    std::vector<int> uses;     // by value

    void done(int i);
    void undo(int i);
  };
  Walk begin_walk();
  int next_of(const Walk&);
  void grow(Scheduled&, const std::vector<ValueId>& family, Walk&);
  bool can_wait(int i, int64_t size, const Walk&);
  void defer(Scheduled&, Walk&);
  void find_loops();
  std::vector<int> count_uses();
  void combine(Scheduled&, const std::vector<int>& uses);
  bool fits_group(int i, int64_t size, int64_t* row_length, Placement&);
  std::vector<ValueId> find_families();
  void schedule();
  void add(Scheduled);
  void number(const Scheduled&, int step);
  bool join_group(int i);
  bool may_join(const Node&, const Scheduled&);
  bool reads_in_full(const Node&, ValueId v, int64_t size);
  void take_reductions(Scheduled&, Walk&);
  int first_reader(int reduction, const std::set<int>& ready);
  // What a reduction goes over: the columns of tables of `length` neighbouring elements each; 0 if there are no such
  // tables.
  struct Table {
    int64_t length, columns;
  };
  Table reduced_table(const Node&);
  int followed(const Scheduled&);
  void find_sections();
  void find_order(std::vector<BranchStep>&);
  void number_parts(const Section&);

  // ---- where values live
  struct Place {
    ValueId value;
    size_t bytes;
    Buffer* buffer;
  };
  void find_lifetimes();
  TensorBody* body_of(ValueId v);
  bool own_memory(ValueId v);
  void place_values();
  bool over_old_value(VariableBody*, ValueId v);
  bool read_element_by_element(ValueId old, ValueId v);
  void place_in_arena();
  Place take_over(std::vector<Place>& dying, ValueId v, size_t bytes);

  // ---- the steps
  void alias(ValueId v);
  void make_steps();
  const ElementwiseProgram* make_program(const Scheduled&);
  template <class T> void add_reduction(int i, const Scheduled&, ElementwiseProgram&);
  ElementwiseProgram::Step make_member(int i, const Scheduled&, ElementwiseProgram&);
  ElementwiseProgram::Step make_combined(const ElementwiseProgram::Step& outer, const Combined&, const Scheduled&,
                                         ElementwiseProgram&);
  void make_call(const Scheduled&, Plan::Step&);
  TensorBody* body_for(ValueId v, int part);
  void make_section(const Section&);

  const Graph& from_;
  std::unique_ptr<Plan> plan_;
  std::vector<Info> info_;
  std::vector<int> nodes_;           // that become steps, in program order
  std::vector<ElementLoops> loops_;  // by node; none if it is not elementwise
  std::map<int, Combined> combined_;
  std::set<int> taken_in_;  // by a combination
  std::vector<ValueId> variable_values_;
  std::set<VariableBody*> assigned_;
  std::vector<std::pair<VariableBody*, ValueId>> stores_;
  std::vector<Scheduled> scheduled_;
  std::vector<Section> sections_;
  std::vector<bool> parts_;  // of all sections: whether a step of the section may fail
  std::set<ValueId> aliased_;
  std::map<int, std::vector<Plan::Alias>> made_aliases_;
  std::map<std::pair<int, ValueId>, TensorBody*> guests_;
};

}  // namespace tapeflow
