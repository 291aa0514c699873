// Graphs: operations that were traced instead of run. A graph is the Stage of the program that builds it; the nodes are
// in program order. A value is a constant (an ordinary tensor), an input, or an output of a node; a symbolic tensor
// stands for a value. What a graph inside another one uses of the outer graph becomes an input of its own, a capture.
#pragma once
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "autodiff/tape.h"

namespace tapeflow {

using ValueId = uint32_t;

struct Node {
  const Op* op;
  Params params;
  SmallVector<ValueId, 4> inputs;
  ValueId first_output;
  uint32_t outputs;
  Location location;
  std::string name;  // as TensorFlow names it, "add_1"; unique in the graph
};

// Calls use(value) for every value that a node uses, as an input or as a parameter.
template <class Use> void for_each_operand(const Node& node, Use use) {
  for (ValueId v : node.inputs) use(v);
  for (int p = 0; p < int(node.params.size()); ++p)
    if (node.params.at(p).kind == Param::Kind::tensor) use(node.params.at(p).tensor().body()->symbol().value);
}

struct Value {
  static constexpr int kConstant = -1, kInput = -2;
  Tensor tensor;  // the constant, or the symbolic tensor
  int node;
};

class Graph final : public Stage {
 public:
  // `graph_mode`: operations on constants become nodes too, as in TensorFlow 1; otherwise they run while tracing.
  explicit Graph(Graph* outer = nullptr, bool graph_mode = false);
  ~Graph();
  Graph(const Graph&) = delete;

  bool takes(const Call&) const override;
  void add(Call&) override;
  const Tensor& read(VariableBody&) override;

  Tensor add_input(const Spec&);
  // From now on `other`, a tensor of another graph, means `own` here.
  void import(const Tensor& other, Tensor own);
  // The value that a tensor is in this graph: its own, a constant, an imported or a captured one.
  ValueId id_of(const Tensor&);
  // The captures are these tensors in this order from now on; the graph may use more of them than before, not fewer.
  void take(std::span<const Tensor> outer_tensors);
  // Constants that somebody outside still holds become captures: a tape may track them.
  void capture_held_constants();
  // What was read of the variable in the outer graph is read each time this graph runs: it is the body of a loop.
  void read_itself(VariableBody&);
  // The variables whose value was captured.
  std::vector<VariableBody*> captured_variables() const;
  bool owns(const Tensor& t) const { return t.symbolic() && t.body()->symbol().graph == this; }
  bool graph_mode() const { return graph_mode_; }
  Graph* outer() const { return outer_; }
  // Removes the nodes from `count` on; nobody may hold their outputs.
  void cut_back(size_t count);
  void set_name(size_t node, std::string name) { nodes[node].name = std::move(name); }
  // A name that no node has yet. As in TensorFlow, names that differ in capitals alone count as one.
  std::string unique_name(std::string wanted);

  std::vector<Node> nodes;
  std::vector<Value> values;
  std::vector<ValueId> inputs, outputs;
  std::vector<Tensor> captures;  // the outer tensors behind the last inputs
  // Variables that the graph assigns to. A graph inside another one reads them itself; the values of others are
  // captured.
  std::vector<VariableBody*> changing;
  bool is_function = false;  // the graph of a function: it reads variables itself, and captures only tensors
  // While it is traced: recorders outside, whose values count as not known; what is done to them becomes nodes, which
  // those recorders see when the graph runs.
  std::vector<const Recorder*> attached;
  // The program that is traced may have got values from outside, which a recorder may come to track: what is done to
  // them becomes nodes.
  bool is_of_program = false;
  uint32_t trace;  // the number of the trace: graphs inside others have that of the outermost one
  // For a plan: additions to variables become a sum and an assignment; work on half types that is done in float32
  // becomes casts and that work.
  bool lowers = false;
  bool unrolls = false;               // for a plan: the iterations of short loops become nodes
  std::string scope;                  // in front of the names of new nodes, "layer/"
  const char* wanted_name = nullptr;  // of the next node; see NameNode
  bool names_nodes = true;            // new nodes get names at once
  bool frozen = false;                // no node may be added any more
  int cuts = 0;                       // after so many cuts it is the rest of another graph (graph/partition.h)
  // TensorFlow 1: the nodes that run before a node, if it runs, though it does not use their outputs.
  std::unordered_map<int, std::vector<int>> controls;
  std::vector<int> control_scope;  // of the nodes that are made now
  void enter_controls(std::vector<int> nodes);
  // Operations that stand behind nodes when this graph is differentiated as a whole, by node: each takes the node's
  // outputs, its inputs and more values of the graph, gives the outputs, and has another rule.
  struct Override {
    const Op* op;
    Params params;
    std::vector<ValueId> more;
  };
  std::unordered_map<int, Override> overrides;
  // The value of a variable after the node `update` has run.
  Tensor read_after(VariableBody&, int update);
  const ValueId* find_read(const VariableBody&) const;
  void* wrapper = nullptr;              // the Python object; borrowed
  std::shared_ptr<void> derivative;     // see transforms/differentiate.cc
  mutable std::shared_ptr<void> plans;  // see graph/run.cc

 private:
  void infer(Call&);
  void name_constants(const Call&, Node&);
  ValueId capture(const Tensor& outer_tensor);

  Graph* outer_;
  bool graph_mode_;
  std::unordered_map<const TensorBody*, ValueId> constant_ids_;
  std::unordered_map<const TensorBody*, Tensor> imported_;
  std::vector<Tensor> imported_keys_;  // keep the keys' addresses from being used again
  std::unordered_map<const VariableBody*, ValueId> reads_;
  std::unordered_map<VariableBody*, ValueId> captured_reads_;
  std::unordered_map<std::string, int> name_counts_;
};

// The number of the trace that goes on in this thread; 0 if there is none.
inline uint32_t current_trace() {
  const Stage* stage = thread_state().stage;
  return stage ? static_cast<const Graph*>(stage)->trace : 0;
}
// The trace in which the program first saw the tensor, 0 for one that it saw while nothing was traced.
extern uint32_t (*first_seen_in)(const TensorBody&);

// While it lives, the next node of the graph that is being built gets this name, if the graph has names.
class NameNode {
 public:
  explicit NameNode(const char* name) : graph_(name ? static_cast<Graph*>(thread_state().stage) : nullptr) {
    if (graph_) graph_->wanted_name = name;
  }
  ~NameNode() {
    if (graph_) graph_->wanted_name = nullptr;
  }
  NameNode(const NameNode&) = delete;

 private:
  Graph* graph_;
};

// The elements of an integer tensor of a graph as far as they are known while tracing (from shapes and constants);
// kUnknownInt where they cannot, kUnknownCount alone if not even their number is known (ops/partial_shape.h).
Ints known_elements(const Graph&, const Tensor&);
// A small tensor of any dtype, if all of it follows from constants and known shapes.
std::optional<Tensor> known_value(const Graph&, const Tensor&);
// What is known of a symbolic argument: an integer or a flag if it is, else its elements as known_elements() gives
// them.
Param known_param(const Graph&, const Param&);
// The argument itself, if all of it is known.
std::optional<Param> settled_param(const Graph&, const Param&);

// Runs the graph through dispatch, node by node: concretely, or into another graph, if that is the stage. Recorders
// see every node. Gives the outputs.
Tensors interpret(const Graph&, std::span<const Tensor> inputs);

// The same for any values of the graph, from any values that are given. `see` receives every value.
struct Subgraph {
  std::span<const ValueId> given;
  std::span<const Tensor> tensors;
  std::span<const ValueId> wanted;
  bool effects;                     // all of them
  std::span<const int> nodes = {};  // these run whether or not somebody needs their outputs
};
Tensors interpret(const Graph&, const Subgraph&, FunctionRef<void(ValueId, const Tensor&)> see);
// Builds an empty graph from part of another one: `given` become its inputs, `wanted` its outputs.
void build_subgraph(Graph& part, const Graph& from, std::span<const ValueId> given, std::span<const ValueId> wanted,
                    bool effects, std::span<const int> nodes = {});

// Operations that the graph layer itself needs.
const Op& read_variable_op();
const Op& assign_op();  // params: the variable, the kind of update
// Operations of TensorFlow 1's graphs: Const, Placeholder, PlaceholderWithDefault, NoOp, VarIsInitializedOp.
Tensor add_constant(const Tensor&);
const Op& constant_op();
const Tensor& constant_in(const Param&);
const Tensor& constant_in(const Params&);
Tensor add_placeholder(Graph&, const Spec&, std::string name);
Tensor placeholder_with_default(const Tensor& value, const Shape&);
int add_no_op(Graph&);
Tensor is_initialized(VariableBody&);
const Op& is_initialized_op();
enum class Update : int { assign, add, subtract };
void apply_update(VariableBody&, const Tensor&, Update);
Param variable_param(VariableBody&);
VariableBody& variable_in(const Param&);
VariableBody& variable_in(const Params&);
// The parameters of the operations that read a variable or write it; only those that write say how.
inline constexpr struct : Keys {
  Key<Boxed<VariableBody>> variable = next("variable");
  Key<int64_t> update = next("update");
} variable_params;

}  // namespace tapeflow
