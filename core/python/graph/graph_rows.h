// Records and nodes of graphs as rows of plain Python data, which the diagnostics read.
#pragma once
#include <functional>
#include <unordered_map>

#include "autodiff/tape.h"
#include "graph/graph.h"
#include "python/common.h"

namespace tapeflow::python {

// The indices as Python numbers; what is not known is left out.
Ref index_list(std::span<const ValueIndex>);

// Writes the nodes of graphs as rows: the operation's public name, the code object and instruction it came from, the
// bytes it keeps, the numbers of its inputs, those of its outputs, whether its gradient stops, the dtypes of the
// outputs, the shapes of all inputs, those of the outputs, and the number of the record. What a graph holds inside of
// nodes (branches, loops, called graphs) is written in place of the node: a loop as its body, whose results go back to
// its inputs.
class GraphRows {
 public:
  // The number of a variable, or kUntracked.
  using VariableNumber = std::function<ValueIndex(VariableBody&)>;
  GraphRows(PyObject* list, ValueIndex first_free, VariableNumber number)
      : list_(list), next_(first_free), variable_(std::move(number)) {}

  // Instead of the row of a record or node that holds graphs; false if it holds none.
  bool expand(const Op&, const Params&, const Location&, std::span<const ValueIndex> inputs,
              std::span<const ValueIndex> outputs);
  // All nodes; `at` has the numbers of the inputs, and of all values afterwards.
  void add(const Graph&, std::vector<ValueIndex>& at);
  void add_row(const char* name, const Location&, size_t kept, std::span<const ValueIndex> inputs,
               std::span<const ValueIndex> outputs, bool stops, std::span<const Spec> input_specs,
               std::span<const Spec> output_specs);
  void set_record(uint32_t number) { record_ = number; }
  static constexpr ValueIndex kFirst = ValueIndex(1) << 29;  // numbers of values inside of graphs

 private:
  void add_node(const Graph&, const Node&, std::vector<ValueIndex>& at);
  ValueIndex number_of(VariableBody&);
  void pass(const Location&, ValueIndex from, ValueIndex to, const Tensor& like);
  std::vector<ValueIndex> add_inside(const Graph&, std::span<const ValueIndex> inputs);

  PyObject* list_;
  ValueIndex next_;
  uint32_t record_ = 0;
  VariableNumber variable_;
  std::unordered_map<VariableBody*, ValueIndex> own_numbers_;  // of variables that the tape does not know
};

// Whether a record or node runs a Python function that has no gradient, such as tf.numpy_function.
bool is_opaque_call(const Op&, const Params&);

}  // namespace tapeflow::python
