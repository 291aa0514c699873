// Control flow as operations. All graphs of one operation take the same inputs. Its last output holds the saved tensors
// of the run: what the gradient needs, if one is asked for.
#pragma once
#include "graph/graph.h"

namespace tapeflow {

class Loop;

// Runs the branch with the given number (true is 1); the last one if there is none with it.
Tensors add_case(const Tensor& index, std::span<const std::shared_ptr<Graph>> branches, std::span<const Tensor> inputs);

// Runs `body` on the first `loop_variables` inputs while `condition` holds, at most `limit` times (negative: no limit).
// The inputs after them are the same in every iteration.
Tensors add_while(std::shared_ptr<Graph> condition, std::shared_ptr<Graph> body, std::span<const Tensor> inputs,
                  int64_t loop_variables, int64_t limit);

// Whether an operation holds graphs, and which.
bool is_control_op(const Op&);
std::vector<std::shared_ptr<Graph>> graphs_of(const Params&);
inline std::vector<std::shared_ptr<Graph>> graphs_of(const Node& node) { return graphs_of(node.params); }
// Whether a node may assign to a variable: it does, a graph that it holds does, or it runs Python.
bool may_assign(const Node&, const VariableBody&);
// The loop of a While; null for a Case.
const Loop* loop_of(const Params&);
inline const Loop* loop_of(const Node& node) { return loop_of(node.params); }

}  // namespace tapeflow
