// Operations: an entry defines one once; dispatch() runs it, or hands it to the graph that is traced, and notifies the
// recorders.
#pragma once
#include <initializer_list>
#include <span>
#include <vector>

#include "base/error.h"
#include "kernels/elementwise.h"
#include "kernels/epilogue.h"
#include "kernels/simd/fused_loops.h"
#include "op/params.h"
#include "op/rule_context.h"
#include "op/thread_state.h"

namespace tapeflow {

struct Op;

// One run of an operation.
struct Call {
  const Op& op;
  std::span<const Tensor> in;
  const Params& params;
  SmallVector<Spec, 1> specs;          // set by the shape rule
  Tensors out;                         // allocated by dispatch, or set by a kernel that makes its own
  const Epilogue* epilogue = nullptr;  // for output 0; a kernel that calls it sets it to null

  Call(const Op& o, std::span<const Tensor> i, const Params& p) : op(o), in(i), params(p) {}
  void returns(DType dtype, const Shape& shape) {
    Spec& spec = specs.emplace_back();
    spec.dtype = dtype;
    spec.shape = shape;
  }
  const char* name() const;  // the public name, for messages
};

struct BatchCall;

using InferFunction = void (*)(Call&);
using KernelFunction = void (*)(Call&);
using VjpFunction = void (*)(RuleContext&);
using JvpFunction = void (*)(RuleContext&);
using BatchRule = bool (*)(BatchCall&);  // see op/batching.h

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
inline constexpr struct : Keys {
  Key<Ints> axis = next("axis");
  Key<bool> keepdims = next("keepdims");
} reduction_params;  // of all reductions
constexpr uint8_t kLeftOperand = 1, kRightOperand = 2;

// For operations that move parts along one axis, as stacks and slices do: where the parts of the results come from.
struct AxisMovement {
  static constexpr int kNone = -1;
  static constexpr int64_t kMostParts = 16;  // of a tensor; with more there is no movement
  struct Source {
    int input = kNone;  // none: zeros
    int64_t part = 0;
  };
  int in_axis = kNone, out_axis = kNone;  // none: each input, or result, is one part
  std::vector<std::vector<Source>> results = {};
};
using MovementRule = bool (*)(const Call&, AxisMovement&);

// What a planner may know of an operation besides its kernel and rules. Every property is optional.
struct PlanProperties {
  CostModel cost = {};
  bool cannot_fail = false;  // if shapes and dtypes are right
  ViewKind view = ViewKind::none;
  bool is_broadcast = false;                      // repeats its input, as broadcasting does
  Arithmetic arithmetic = Arithmetic::none;       // may be part of a fused loop
  ReductionKind reduction = ReductionKind::none;  // may be part of a fusion
  uint8_t unit_operands = 0;                      // where ones make the result equal to the other operand
  const Op* product = nullptr;                    // of powers: gives x * x, which x ** 2 is
  bool graph_break = false;                       // calls Python: no plan can have it
  DTypes rounded_once = {};                       // of its floating inputs: computed in float32, and rounded once
  MovementRule movement = nullptr;                // false: it moves more than few parts along one axis
};

// What is known of the elements of an integer result while tracing, before anything runs: sizes and axes come from
// them.
enum class Elements : uint8_t {
  unknown,
  of_input,  // those of the first input
  moved,     // the operation moves elements: it is run on what is known
  computed,  // the operation is run, if all elements are known
  shape,     // the dimensions of the first input
};

// Of inputs that are by row, which are zero but for some neighbouring rows along their first dimension. Separate: row i
// of the result depends on row i alone, and rows of zeros give rows of zeros. Summed: the result is the sum over i of
// the result for row i alone, cut from these inputs and from others, which the rule marks.
enum class RowStructure : uint8_t { mixed, separate, summed };
using RowRule = RowStructure (*)(const Call&, std::span<const bool> by_row, std::span<bool> also_cut);

// What to do about infinities and NaNs that an operation makes, and that its gradient makes.
struct NonFiniteAdvice {
  const char* result = nullptr;
  const char* gradient = nullptr;
};

// An entry: everything that is known about an operation. What is not said is not so.
struct Op {
  const char* name;  // TensorFlow's operation name, "MatMul"; also its name under raw_ops
  PlanProperties planning = {};
  std::vector<Argument> arguments = {};

  // ---- running
  InferFunction infer = nullptr;
  // The same while tracing, when dimensions may be unknown (-1); null: `infer`, tried out.
  InferFunction infer_staged = nullptr;
  KernelFunction kernel = nullptr;
  bool makes_outputs = false;  // the kernel sets call.out itself (it shares buffers, or the shape depends on values)
  bool runs_epilogue = false;  // the kernel may call call.epilogue
  // The result is the first input, changed in places: a plan may put it in that one's memory.
  bool updates_in_place = false;
  // For a result that is mostly zeros: adds it to `total`, which has the result's shape and dtype, float32 or float64.
  void (*scatter_add)(const Call&, const Tensor& total) = nullptr;

  // ---- derivatives
  VjpFunction vjp = nullptr;
  JvpFunction jvp = nullptr;  // null: derived from vjp
  Keep keep = keep_nothing;   // for the gradient of any input
  Keep keep_for[2] = {0, 0};  // for the gradient of input 0, input 1 alone; used when `keep_by_input`
  bool keep_by_input = false;
  Gradient gradient = Gradient::rule;
  bool adds_in_place = false;  // its rule asks for total(): worth looking up before it runs

  // ---- what kind of operation it is
  UnaryLoop float_unary = nullptr;  // elementwise on float32: the result may be lazy, see tensor/lazy.h
  const BinaryLoops* float_binary = nullptr;
  ElementLoops (*element_loops)(DType last_operand, DType result) = nullptr;  // elementwise: a plan may fuse it
  bool stateful = false;         // random numbers, variables: never folded or merged
  bool effect = false;           // changes something besides its outputs: kept in a graph though nobody uses them
  bool random = false;           // draws numbers from a key and a counter
  bool is_program = false;       // its kernel runs operations that tracing can look into
  bool calls_python = false;     // its kernel is a Python function
  bool custom_gradient = false;  // gives its first inputs; only its rule does something
  bool copies_elements = false;  // a NaN in its result was in an input
  bool elementwise = false;      // each element of its result depends on the elements in that place alone

  // ---- transformations
  // While tracing: replaces the call by other operations, once the shapes that they need are known, and sets call.out.
  // False: the call stays one operation.
  bool (*expand)(Call&) = nullptr;
  // The parameters of a run that recorders watch: they say for which inputs residuals are saved.
  Params (*watched_params)(const Params&, std::span<const Tensor> inputs) = nullptr;
  bool rule_needs_values = false;  // its rule reads elements: in a graph it is deferred until they are there
  // Whether its rule asks for no shape that may be unknown while tracing; null: it does ask.
  bool (*rule_needs_no_shapes)(const RuleContext&) = nullptr;
  bool keeps_params = false;   // its records keep their parameters, which explanations read: graphs, functions
  bool keeps_sparse = false;   // a copy: a gradient that consists of a few rows goes on as it is
  bool python_rule = false;    // its rule is a program (tf.custom_gradient) that is traced, whatever is known
  BatchRule batch = nullptr;   // vmap: does the work of all rows; null: it runs once per row
  RowRule row_rule = nullptr;  // op/row_structure.h; null: what follows from the other properties
  Elements elements = Elements::unknown;

  // ---- the public function
  std::vector<const char*> names = {};  // public paths, "math.sin"
  const char* doc = "";
  const char* called = nullptr;     // what messages call it, if it has no public path
  const char* node_name = nullptr;  // what TensorFlow's function calls its nodes, if not as the operation
  const char* advice = nullptr;     // what to do if a gradient stops here, for tape.explain
  NonFiniteAdvice non_finite = {};  // for tf.experimental.FirstNan and the doctor
  const char* symbol = nullptr;     // what messages call its operator, "division"
  bool returns_list = false;        // the public function gives a list, however many outputs there are
  bool mixed_dtypes = false;        // operands of unlike dtypes are left to the shape rule

  const char* family = nullptr;         // set by family.h
  const char* shortest_name = nullptr;  // set by define(): the public path that messages use

  const char* public_name() const { return shortest_name; }
};

// Registers an entry; the reference stays valid.
const Op& define(Op);
// An entry that no program calls by name: it is not in the registry.
const Op& define_inner(Op);
const std::vector<const Op*>& registry();
const Op* find_op(const char* name);

void dispatch(Call&);
Tensor run(const Op&, std::span<const Tensor> in, const Params& = Params());
inline Tensor run(const Op& op, std::initializer_list<Tensor> in, const Params& params = Params()) {
  return run(op, std::span<const Tensor>(in.begin(), in.size()), params);
}
Tensors run_all(const Op&, std::span<const Tensor> in, const Params& = Params());

}  // namespace tapeflow
