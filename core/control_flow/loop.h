// Running loops. A run that is to be differentiated saves what its gradient needs, so that nothing runs again; the
// backward pass goes over the iterations, last first.
#pragma once
#include <optional>

#include "control_flow/residuals.h"

namespace tapeflow {

// Called between iterations, by the thread that called the loop: what it throws ends the loop. Null: nothing can.
extern void (*between_iterations)();

// A graph that takes only those inputs of another one that it uses.
struct Trimmed {
  std::shared_ptr<Graph> graph;
  std::vector<int> inputs;
};
Trimmed trimmed(const Graph& from, std::span<const ValueId> wanted);

// `body` on the first `variables` inputs while `condition` holds, at most `limit` times (negative: no limit). Condition
// and body take all inputs of the loop; those after the loop variables are the same in every iteration.
class Loop {
 public:
  Loop(std::shared_ptr<Graph> condition, std::shared_ptr<Graph> body, int64_t variables, int64_t limit);

  const std::shared_ptr<Graph>& condition() const { return condition_; }
  const std::shared_ptr<Graph>& body() const { return body_; }
  size_t variables() const { return variables_; }
  int64_t limit() const { return limit_; }

  // What the iterations leave behind, one after the other.
  struct SavedTensors {
    Sources sources;
    std::shared_ptr<JointParts> parts;
    int64_t iterations = 0;
    bool shapes_change = false;         // from iteration to iteration: no plans are made
    bool unrolled = false;              // the tensors are values of a graph that is being traced
    Tensors residuals;                  // an empty handle stands for an input that is the same in every iteration
    SmallVector<int64_t, 4> positions;  // where lists were written
    Tensors variables;                  // their values before the run, for one that is repeated
    SmallVector<Shape, 1> unreached;    // shapes of variables that have a cotangent which goes no further
  };
  // The last values of the loop variables; no recorder sees the iterations. `SavedTensors` has its sources set.
  Tensors run(std::span<const Tensor> in, SavedTensors* = nullptr) const;
  // While a plan is made: how many iterations there are, if the loop is short and cheap and their number is known.
  std::optional<int64_t> worth_unrolling(std::span<const Tensor> in) const;
  // The same as run(); the iterations become nodes of the graph that is being traced.
  Tensors unroll(std::span<const Tensor> in, int64_t iterations, SavedTensors*) const;
  // The same as run(); recorders see every iteration and the readings of variables that they track (Replay).
  Tensors run_recorded(std::span<const Tensor> in, bool reads_tracked) const;
  // The cotangents of the inputs and then of the variables among the sources, from those of the loop variables' last
  // values, which are `y`. Empty handles where nothing flows.
  Tensors backpropagate(const SavedTensors&, std::span<const Tensor> in, std::span<const Tensor> dy,
                        std::span<const Tensor> y) const;

 private:
  struct Lists;
  class BackwardPass;
  void find_writes();
  std::optional<int64_t> known_iterations(std::span<const Tensor> in, int64_t most) const;
  SmallVector<uint8_t, 16> reachable_inputs(const Sources&) const;
  bool run_in_place(std::span<const Tensor> arguments, Lists&, Tensors& out) const;
  void find_arguments(const Trimmed&, std::span<const Tensor> state, const Lists&, Tensors& arguments) const;
  std::shared_ptr<JointParts> joint_parts_for(const Sources&, std::span<const Tensor> arguments) const;
  SmallVector<size_t, 4> unreached_variables(const JointParts&) const;
  bool differentiable_variable(size_t k) const {
    return differentiable.has(body_->values[body_->inputs[k]].tensor.dtype());
  }

  std::shared_ptr<Graph> condition_, body_;
  size_t variables_;
  int64_t limit_;
  // A loop variable that is a list to which an iteration only adds rows does not go through the graph of an iteration:
  // position and row of each write are its outputs, and the loop puts them in place.
  Trimmed holds_, iteration_;
  bool condition_in_iteration_ = false;    // the last output of `iteration_` is the condition for the next one
  std::vector<std::vector<bool>> writes_;  // per variable, per write in an iteration: whether the list may grow
  std::vector<size_t> first_output_;       // per variable, of `iteration_`
  bool lists_grow_ = false;  // a list that grows goes through the graph of an iteration: no plan fits two iterations
};

// In an iteration, the gradient of x[i] is one row: sets it, if the rule in question is that.
bool item_as_rows(RuleContext&);

}  // namespace tapeflow
