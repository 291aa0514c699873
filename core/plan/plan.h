// Plans: a graph made ready to run for inputs of certain shapes. Everything that can be known is done beforehand:
// shapes, order, memory, groups of elementwise operations, updates of variables in place. Running a plan allocates its
// outputs and nothing else.
#pragma once
#include <atomic>
#include <deque>
#include <exception>
#include <limits>

#include "graph/partition.h"
#include "graph/run.h"
#include "tensor/elementwise_program.h"

namespace tapeflow {

class Plan {
 public:
  bool running() const { return running_; }
  bool fits(std::span<const Tensor> inputs) const;
  // False, and nothing done, if it is running already or a variable has another shape than before.
  bool run(std::span<const Tensor> inputs, Tensors& outputs);

  std::vector<NodesAtOnce> sections() const;

 private:
  friend class Planner;
  struct Step {
    KernelFunction kernel = nullptr;
    std::unique_ptr<Call> call;       // of a kernel; its tensors stay the same
    SmallVector<TensorBody*, 2> out;  // they are these, also if the kernel gives others
    std::unique_ptr<SmallVector<Tensor, 4>> in;
    int made = -1;  // of a kernel that makes its outputs: which of `made_`
    const ElementwiseProgram* program =
        nullptr;            // a group, which follows the kernel element by element if there is one
    int program_order = 0;  // of steps that are in sections
    int after = -1;         // the step of the part it follows that must be done
  };
  // The body of a value whose elements lie at an offset in those of another one.
  struct Alias {
    TensorBody *body, *root;
    size_t offset;  // bytes
  };
  // Outputs of a kernel that makes them: they stay alive until the run ends.
  struct Made {
    std::vector<TensorBody*> bodies;
    std::vector<Alias> aliases;
    Tensors held;
  };
  // What a kernel in a part of a section reads, but the part does not compute. Counts of holders belong to one thread,
  // so each part has a body of its own for it, and a buffer that only shows the memory.
  struct Guest {
    Guest(TensorBody* from, TensorBody* body) : host(from), own(body) {}
    TensorBody *host, *own;
    Buffer shown{1, 0, nullptr, nullptr, nullptr, 0, false, false};
  };
  // A section: steps that run at the same time, in parts. A part begins where the one before ends. Threads take the
  // parts in this order, or from the end; one that waits holds a later part than the one it waits for, so nobody waits
  // for ever.
  struct Branches {
    struct Part {
      size_t end;
      std::vector<int> nodes;    // in program order
      std::exception_ptr error;  // of this run
      int failed_at = 0;         // in the order of the program
    };
    size_t first;
    std::vector<Part> parts;
    std::deque<Guest> guests;
    bool follows = false;           // steps of the second part wait for steps of the first
    std::atomic<int> reached = -1;  // the last step of the first part that is done, or kFailed
    static constexpr int kFailed = std::numeric_limits<int>::max();
  };
  struct VariableUse {
    VariableBody* variable;
    TensorBody* body;  // of the value it has when the run begins; null if it is not read
    Spec spec;
  };
  // A value that a variable has at the end of the run.
  struct Store {
    VariableBody* variable;
    TensorBody* body;
    Spec spec;
    bool computed;  // by a step, straight into the variable's memory; otherwise it is copied
    bool in_place;  // over the old value
    Tensor fresh;
  };
  struct Result {
    enum class Kind : uint8_t { computed, input, variable, constant, copied, stored } kind;
    TensorBody* body;
    Spec spec;
    int which;      // of an input, of the variables whose value at the beginning it is, of a store
    Tensor tensor;  // the constant, or the tensor of this run
  };
  struct Input {
    TensorBody* body;
    Spec spec;
  };

  std::shared_ptr<Graph> graph_;  // specialised; owns the constants and parameters
  std::vector<Tensor> bodies_;    // keeps all bodies alive
  std::vector<Input> inputs_;
  std::vector<VariableUse> variables_;
  std::vector<Alias> aliases_;
  std::vector<Step> steps_;
  std::deque<Branches> branches_;
  std::deque<ElementwiseProgram> programs_;
  std::deque<Made> made_;
  std::vector<Store> stores_;
  std::vector<Result> results_;
  bool running_ = false, flushes_ = true;

  void run_kernel(Step&);
  void run_step(Step&);
  void run_steps();
  void run_branches(Branches&);
  void run_part(Branches&, size_t part);
  bool may_run(const Branches&, const Step&) const;
};

// A graph made ready for inputs of certain shapes: planned, or cut where it cannot be. Neither if it is to run node by
// node.
struct Prepared {
  std::unique_ptr<Plan> plan;
  std::unique_ptr<Split> split;
};
Prepared prepare(const Graph&, std::span<const Tensor> inputs);

}  // namespace tapeflow
