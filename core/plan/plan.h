// Plans: a graph compiled for inputs of certain shapes. Shapes, order, memory, fusions and updates of variables in
// place are decided beforehand (plan/passes.h). Running a plan allocates its outputs and nothing else.
#pragma once
#include <atomic>
#include <deque>
#include <exception>
#include <limits>
#include <string>
#include <string_view>

#include "graph/partition.h"
#include "graph/run.h"
#include "tensor/elementwise_program.h"

namespace tapeflow {

// What a plan runs, as the passes memory and emit write it.
struct PlanCode {
  struct Step {
    KernelFunction kernel = nullptr;
    std::unique_ptr<Call> call;       // of a kernel; its tensors stay the same
    SmallVector<TensorBody*, 2> out;  // they are these, also if the kernel gives others
    std::unique_ptr<SmallVector<Tensor, 4>> in;
    int results = -1;                             // of a kernel that makes its outputs: which of `kernel_results`
    const ElementwiseProgram* program = nullptr;  // a fusion; beside a kernel, its epilogue
    int program_order = 0;                        // of steps in parallel regions
    int after = -1;                               // the step of the first lane that must be done
    bool needs_lock = false;                      // of the interpreter: it touches more than its tensors
  };
  // The body of a value that is a view of another one.
  struct Alias {
    TensorBody *body, *root;
    size_t offset;  // bytes
  };
  // Outputs of a kernel that makes them: they stay alive until the run ends.
  struct KernelResults {
    std::vector<TensorBody*> bodies;
    std::vector<Alias> aliases;
    Tensors held;
  };
  // A value that a kernel in a lane reads but the lane does not compute. Reference counts belong to one thread, so each
  // lane has a body of its own for it, and a buffer that borrows the memory.
  struct BorrowedView {
    BorrowedView(TensorBody* from, TensorBody* body) : source(from), own(body) {}
    TensorBody *source, *own;
    Buffer borrowed{1, 0, nullptr, nullptr, nullptr, 0, false, false};
  };
  // Steps that run at the same time, in lanes. A lane begins where the one before ends. Threads take the lanes in this
  // order, or from the end; one that waits holds a later lane than the one it waits for, so nobody waits for ever.
  struct Region {
    struct Lane {
      size_t end;
      std::vector<int> nodes;    // in program order
      std::exception_ptr error;  // of this run
      int failed_at = 0;         // in the order of the program
    };
    size_t first;
    std::vector<Lane> lanes;
    std::deque<BorrowedView> views;
    bool pipelined = false;         // steps of the second lane wait for steps of the first
    std::atomic<int> reached = -1;  // the last step of the first lane that is done, or kFailed
    static constexpr int kFailed = std::numeric_limits<int>::max();
  };
  // Memory of the program for one run, through a buffer of the plan's own: the counts of holders that kernels change
  // then belong to the thread that runs the plan, which may run without the interpreter lock.
  struct Lent {
    Tensor holder;
    Buffer own{1, 0, nullptr, nullptr, nullptr, 0, false, false};
  };
  struct VariableUse {
    VariableBody* variable;
    TensorBody* body;  // of the value it has when the run begins
    Spec spec;
    Lent lent = {};
  };
  // A value that a variable has at the end of the run.
  struct Store {
    VariableBody* variable;
    TensorBody* body;
    Spec spec;
    bool computed;  // by a step, straight into the variable's memory; otherwise it is copied
    bool in_place;  // over the old value
    Tensor fresh;
    Lent lent = {};
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
    Lent lent = {};
  };

  std::shared_ptr<Graph> graph;  // specialised; owns the constants and parameters
  std::vector<Tensor> bodies;    // keeps all bodies alive
  std::vector<Input> inputs;
  std::vector<VariableUse> variables;
  std::vector<Alias> aliases;
  std::vector<Step> steps;
  std::deque<Region> regions;
  std::deque<ElementwiseProgram> programs;
  std::deque<KernelResults> kernel_results;
  std::vector<Store> stores;
  std::vector<Result> results;
  bool flush_subnormals = true;
  double microseconds = 0;  // that the steps are estimated to take
  size_t bytes = 0;         // of the buffers that values share, which the plan keeps
};

class Plan {
 public:
  explicit Plan(PlanCode code) : code_(std::move(code)) {}

  bool running() const { return running_; }
  size_t bytes() const { return code_.bytes; }
  bool fits(std::span<const Tensor> inputs) const;
  // False, and nothing done, if it is running already or a variable has another shape than before.
  bool run(std::span<const Tensor> inputs, Tensors& outputs);

  // Whether the plan can run on its own results, which are all but the last: result k becomes input feedback[k], or
  // none if that is negative. The last result is the condition.
  bool can_iterate(std::span<const int> feedback) const;
  // Runs until the condition is false, or `limit` times (negative: no limit), and calls `after` with the results of
  // each iteration. Gives the last results but for the condition.
  void iterate(std::span<const Tensor> inputs, std::span<const int> feedback, int64_t limit,
               FunctionRef<void(std::span<const Tensor>)> after, Tensors& outputs);

  std::vector<RegionNodes> parallel_regions() const;

 private:
  using Step = PlanCode::Step;
  using Region = PlanCode::Region;
  class Iteration;

  void run_kernel(Step&);
  void run_step(Step&);
  void run_steps();
  void run_region(Region&);
  void run_lane(Region&, size_t lane);
  bool may_run(const Region&, const Step&) const;

  PlanCode code_;
  bool running_ = false;
};

// A graph made ready for inputs of certain shapes: planned, or partitioned at a graph break. Neither if it is to run
// node by node.
struct Prepared {
  std::unique_ptr<Plan> plan;
  std::unique_ptr<Split> split;
  int64_t last_run = 0;  // which of the graph's
};
Prepared prepare(const Graph&, std::span<const Tensor> inputs);

}  // namespace tapeflow
