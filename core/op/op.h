// Operations: an entry defines one once (kernel, shape rule, derivative, names, doc); dispatch() is the one door
// through which every operation passes. Recorders listen at the door.
#pragma once
#include <initializer_list>
#include <span>
#include <vector>

#include "base/error.h"
#include "kernels/elementwise.h"
#include "kernels/epilogue.h"
#include "kernels/simd/fused_loops.h"
#include "op/params.h"
#include "tensor/variable.h"

namespace tapeflow {

struct Op;

// One run of an operation, on its way through the door.
struct Call {
  const Op& op;
  std::span<const Tensor> in;
  const Params& params;
  SmallVector<Spec, 1> specs;      // set by the shape rule
  Tensors out;                     // allocated by the door, or set by a kernel that makes its own
  const Finish* finish = nullptr;  // for output 0; a kernel that calls it sets it to null

  Call(const Op& o, std::span<const Tensor> i, const Params& p) : op(o), in(i), params(p) {}
  void returns(DType dtype, const Shape& shape) {
    Spec& spec = specs.emplace_back();
    spec.dtype = dtype;
    spec.shape = shape;
  }
  const char* name() const;  // the public name, for messages
};

struct RuleContext;

using InferFunction = void (*)(Call&);
using KernelFunction = void (*)(Call&);
using VjpFunction = void (*)(RuleContext&);
using JvpFunction = void (*)(RuleContext&);

// Which tensors the rule of an op looks at: inputs in the low half, outputs in the high half.
using Keep = uint32_t;
constexpr Keep keep_nothing = 0, keep_all_inputs = 0xffffu;
constexpr Keep keep_everything = ~Keep(0);
constexpr Keep keep_input(int i) { return Keep(1) << i; }
constexpr Keep keep_output(int i) { return Keep(1) << (16 + i); }
constexpr bool keeps_input(Keep keep, size_t i) { return (keep & 0xffffu) == 0xffffu || (i < 16 && (keep >> i & 1)); }
constexpr bool keeps_output(Keep keep, size_t i) { return keep >> 16 == 0xffffu || (i < 16 && (keep >> (16 + i) & 1)); }

enum class Gradient : uint8_t {
  rule,     // has a derivative
  none,     // none by nature: the gradient stops here (floor, argmax, comparisons)
  missing,  // could have one but has not: asking for it is an error
};

// The work of one run, in units of the model, and how many pieces of it the kernel can give to different threads.
struct Work {
  double amount;
  int64_t pieces;
};
// What a run costs in float32 on one core. Null: once over all elements. The models are in op/cost.h.
struct CostModel {
  Work (*work)(const Call&) = nullptr;
  double nanoseconds = 0.15;  // for one unit of the work
};

// Whether results are views: result k of input k, always; or of the first input, for some parameters.
enum class ViewKind : uint8_t { none, always, sometimes };
enum class ReductionKind : uint8_t { none, sum, mean, max, min };
constexpr uint8_t kLeftOperand = 1, kRightOperand = 2;

// What a planner may know of an operation besides its kernel and rules. Every property is optional.
struct PlanProperties {
  CostModel cost = {};
  bool cannot_fail = false;  // if shapes and dtypes are right
  ViewKind view = ViewKind::none;
  bool is_broadcast = false;                      // repeats its input, as broadcasting does
  Arithmetic arithmetic = Arithmetic::none;       // may be part of a fused loop
  ReductionKind reduction = ReductionKind::none;  // may be part of a fusion
  uint8_t unit_operands = 0;                      // where ones make the result equal to the other operand
  bool graph_break = false;                       // calls Python: no plan can have it
};

struct Op {
  const char* name;  // TensorFlow's operation name, "MatMul"; also its name under raw_ops
  PlanProperties planning = {};
  std::vector<Argument> arguments = {};
  InferFunction infer = nullptr;
  InferFunction infer_staged =
      nullptr;  // the same while tracing, when dimensions may be unknown (-1); null: `infer`, tried out
  KernelFunction kernel = nullptr;
  bool makes_outputs = false;  // the kernel sets call.out itself (it shares buffers, or the shape depends on values)
  bool finishes = false;       // the kernel may call call.finish
  bool changes_first =
      false;  // the result is the first input, changed in places: a plan may put it in that one's memory
  // For a result that is mostly zeros: adds it to `total`, which has the result's shape and dtype, float32 or float64.
  void (*add_to)(const Call&, const Tensor& total) = nullptr;
  VjpFunction vjp = nullptr;
  JvpFunction jvp = nullptr;  // null: derived from vjp
  Keep keep = keep_nothing;   // for the gradient of any input
  Keep keep_for[2] = {0, 0};  // for the gradient of input 0, input 1 alone; used when `keep_by_input`
  bool keep_by_input = false;
  Gradient gradient = Gradient::rule;
  bool adds_in_place = false;  // its rule asks for total(): worth looking up before it runs
  void (*float_unary)(const void* x, void* y,
                      int64_t n) = nullptr;  // elementwise on float32: may wait, see tensor/pending.h
  const BinaryLoops* float_binary = nullptr;
  ElementLoops (*element_loops)(DType last_operand, DType result) = nullptr;  // elementwise: may join a group of a plan
  bool stateful = false;  // random numbers, variables: never folded or merged
  bool effect = false;    // changes something besides its outputs: kept in a graph though nobody uses them
  // While tracing: replaces the call by other operations, once the shapes that they need are known, and sets call.out.
  // False: the call stays one operation.
  bool (*expand)(Call&) = nullptr;
  // The parameters of a run that recorders watch: they say for which inputs residuals are saved.
  Params (*watched_params)(const Params&, std::span<const Tensor> inputs) = nullptr;
  bool rule_needs_values = false;       // its rule looks at elements: in a graph it waits until they are there
  bool keeps_params = false;            // its records keep their parameters, which explanations read: graphs, functions
  bool passes_rows = false;             // a copy: a gradient that consists of a few rows goes on as it is
  bool rule_of_its_own = false;         // its rule is a program (tf.custom_gradient) that is traced, whatever is known
  std::vector<const char*> names = {};  // public paths, "math.sin"
  const char* doc = "";
  bool returns_list = false;            // the public function gives a list, however many outputs there are
  const char* family = nullptr;         // set by family.h, for tests
  const char* shortest_name = nullptr;  // set by define(): the public path that messages use

  const char* public_name() const { return shortest_name; }
};

// Registers an entry; the reference stays valid.
const Op& define(Op);
// An entry that no program calls by name: it is not in the registry.
const Op& define_inner(Op);
const std::vector<const Op*>& registry();
const Op* find_op(const char* name);

// What stands behind a rule while it runs: the kept tensors, the shapes of the inputs, the cotangents (VJP) or
// tangents (JVP), and the place for the results.
// The dtype and rank of a recorded tensor; its dimensions lie apart. kLikeOutput in place of the rank: as output 0.
struct Form {
  DType dtype;
  int8_t rank;
};
constexpr int8_t kLikeOutput = -1;

struct RuleContext {
  const Op& op;
  const Params& params;
  std::span<const Tensor> kept_inputs;  // empty handles where the tensor was not kept
  std::span<const Tensor> kept_outputs;
  std::span<const Form> forms;                // of the inputs, then of the outputs; empty if all tensors are kept
  const int64_t* dims;                        // the dimensions of all forms that have a rank, one after the other
  std::span<const Tensor> given;              // VJP: dy per output; JVP: x_dot per input; empty handle = zero
  std::span<const bool> wanted;               // VJP: which inputs' gradients are asked for
  SmallVector<Tensor, 4> result;              // VJP: dx per input; JVP: y_dot per output
  SmallVector<Tensor, 1> sparse_indices;      // VJP: with result[i], an IndexedSlices gradient for input i
  SmallVector<const Tensor*, 4> totals = {};  // VJP: see total()

  const Tensor& x(int i) const;
  const Tensor& y(int i = 0) const;
  Tensor dy(int i = 0) const;  // zeros where nothing flows
  bool has_dy(int i) const { return bool(given[size_t(i)]); }
  const Tensor& x_dot(int i) const { return given[size_t(i)]; }
  Shape shape(int i) const;  // of input i
  DType dtype(int i) const { return forms.empty() ? kept_inputs[size_t(i)].dtype() : forms[size_t(i)].dtype; }
  bool like_output(int i) const { return !forms.empty() && forms[size_t(i)].rank == kLikeOutput; }
  Spec output_spec(int i) const;
  bool wants(int i) const { return wanted[size_t(i)]; }
  // The gradient of input i so far, if nobody else sees it: a rule may add to it in place instead of giving a result.
  const Tensor* total(int i) const { return totals.empty() ? nullptr : totals[size_t(i)]; }
  int inputs() const { return int(kept_inputs.size()); }
  int outputs() const { return int(kept_outputs.size()); }
  void set(int i, Tensor t) { result[size_t(i)] = std::move(t); }
  // The gradient of input i is what an op with `add_to` makes of `in`; it is added to the total so far if there is one.
  void set_spread(int i, const Op&, std::span<const Tensor> in, const Params&);
  // The gradient of input i is zero but for the rows `indices`, which get `values` (repeated rows add up).
  void set_rows(int i, Tensor values, Tensor indices);
};

// Hears of every operation that was run while it is open on this thread.
struct Recorder {
  virtual void record(const Call&) = 0;
  virtual void read(VariableBody&, const Tensor& value) = 0;  // before its value takes part in an operation
  virtual bool forward() const { return false; }              // works beside the operation (forward mode), not after it
  virtual bool asked_once() const { return false; }           // gives gradients once, after it stopped listening
  virtual bool only_notes() const { return false; }           // what it hears changes no gradient
  virtual bool follows(const Tensor&) const = 0;

 protected:
  ~Recorder() = default;
};

// Where operations go while a program is traced: instead of running, they become nodes of a graph.
struct Stage {
  virtual bool takes(const Call&) const = 0;      // whether this call becomes a node; if not, it runs at once
  virtual void add(Call&) = 0;                    // sets call.out to tensors that stand for the results
  virtual const Tensor& read(VariableBody&) = 0;  // the tensor that stands for a variable's value at this point

 protected:
  ~Stage() = default;
};

struct ThreadState {
  SmallVector<Recorder*, 4> recorders;  // outermost first
  Stage* stage = nullptr;
  bool in_kernel = false;  // the results of operations that a kernel calls do not wait
};
ThreadState& begin_thread();
extern constinit thread_local ThreadState* state_of_thread __attribute__((tls_model("initial-exec")));  // null at first
inline ThreadState& thread_state() { return state_of_thread ? *state_of_thread : begin_thread(); }
void stop_recorder(const Recorder*);  // takes it off this thread's list, wherever it stands

// Hides recorders while it lives: all of them, those from `first` on, or those that do not work in forward mode.
class PauseRecording {
 public:
  explicit PauseRecording(size_t first = 0);
  static PauseRecording tapes() { return PauseRecording(TapesOnly()); }
  ~PauseRecording();
  PauseRecording(const PauseRecording&) = delete;

 private:
  struct TapesOnly {};
  explicit PauseRecording(TapesOnly);
  SmallVector<Recorder*, 4> saved_;
};

// Puts another stage in place, or none, while it lives.
class EnterStage {
 public:
  explicit EnterStage(Stage* stage) : outer_(thread_state().stage) { thread_state().stage = stage; }
  ~EnterStage() { thread_state().stage = outer_; }
  EnterStage(const EnterStage&) = delete;

 private:
  Stage* outer_;
};

// The value of a variable, for an operation; the recorders hear of it.
const Tensor& read_variable(VariableBody&);

// The door.
void dispatch(Call&);
Tensor run(const Op&, std::span<const Tensor> in, const Params& = Params());
inline Tensor run(const Op& op, std::initializer_list<Tensor> in, const Params& params = Params()) {
  return run(op, std::span<const Tensor>(in.begin(), in.size()), params);
}
Tensors run_all(const Op&, std::span<const Tensor> in, const Params& = Params());

}  // namespace tapeflow
