// The operations of TensorFlow 1's graphs that other graphs do not need: where values come from, and doing nothing.
#include "graph/graph.h"
#include "ops/ops.h"

namespace tapeflow {

constexpr struct : Keys {
  Key<Boxed<const Tensor>> value = next("value");
} constant_params;
const Tensor& constant_in(const Param& p) { return *static_cast<const Tensor*>(p.object.get()); }
const Tensor& constant_in(const Params& params) { return params[constant_params.value]; }

namespace {

const Op& constant_entry = define_inner(Op{
    .name = "Const",
    .arguments = {},
    .infer =
        [](Call& call) {
          const Tensor& value = constant_in(call.params);
          call.returns(value.dtype(), value.shape());
        },
    .kernel = [](Call& call) { call.out.push_back(constant_in(call.params)); },
    .makes_outputs = true,
    .gradient = Gradient::none,
});

struct Missing {
  Spec spec;
  std::string name;
};
constexpr struct : Keys {
  Key<Boxed<const Missing>> placeholder = next("placeholder");
} placeholder_params;
const Missing& missing_in(const Params& params) { return params[placeholder_params.placeholder]; }

std::string shape_text(const Shape& shape) {
  if (!shape.known_rank()) return "<unknown>";
  std::string text = "[";
  for (int i = 0; i < shape.rank(); ++i)
    text += (i ? "," : "") + (shape[i] < 0 ? std::string("?") : std::to_string(shape[i]));
  return text + "]";
}

// It runs only if no value was fed for it.
const Op& placeholder_op = define_inner(Op{
    .name = "Placeholder",
    .arguments = {},
    .infer_staged =
        [](Call& call) {
          const Spec& spec = missing_in(call.params).spec;
          call.returns(spec.dtype, spec.shape);
        },
    .kernel =
        [](Call& call) {
          const Missing& m = missing_in(call.params);
          std::string shape = m.spec.shape.known_rank() ? " and shape " + shape_text(m.spec.shape) : "";
          fail(ErrorKind::invalid_argument, "You must feed a value for placeholder tensor '", m.name, "' with dtype ",
               legacy_name_of(m.spec.dtype), shape, "\n\t [[{{node ", m.name, "}}]]");
        },
    .makes_outputs = true,
    .gradient = Gradient::none,
    .stateful = true,
});

constexpr struct : Keys {
  Key<Boxed<const Spec>> spec = next("spec");
} default_params;
const Op& default_op = define_inner(Op{
    .name = "PlaceholderWithDefault",
    .arguments = {tensor("input", any_dtype)},
    .infer_staged = [](Call& call) { call.returns(call.in[0].dtype(), call.params[default_params.spec].shape); },
    .kernel = [](Call& call) { call.out.push_back(call.in[0].view(call.in[0].shape())); },
    .makes_outputs = true,
    .vjp = [](RuleContext& c) { c.set(0, c.dy()); },
    .stateful = true,  // a session may feed it: shapes must not follow from the default
    .python_rule = true,
});

const Op& no_op = define_inner(Op{
    .name = "NoOp",
    .arguments = {},
    .infer_staged = [](Call&) {},
    .kernel = [](Call&) {},
    .makes_outputs = true,
    .gradient = Gradient::none,
});

const Op& is_initialized_entry = define_inner(Op{
    .name = "VarIsInitializedOp",
    .arguments = {},
    .infer = [](Call& call) { call.returns(DType::boolean, Shape()); },
    .kernel = [](Call& call) { *call.out[0].mutable_data<bool>() = bool(variable_in(call.params).value); },
    .gradient = Gradient::none,
    .stateful = true,
});

}  // namespace

const Op& constant_op() { return constant_entry; }
const Op& is_initialized_op() { return is_initialized_entry; }

Tensor add_constant(const Tensor& value) {
  return run(constant_entry, std::span<const Tensor>(),
             {Param(std::static_pointer_cast<void>(std::make_shared<Tensor>(value)))});
}

Tensor add_placeholder(Graph& graph, const Spec& spec, std::string name) {
  auto missing = std::make_shared<Missing>(spec, name);
  Tensor result = run(placeholder_op, std::span<const Tensor>(), {Param(std::static_pointer_cast<void>(missing))});
  missing->name = graph.nodes.back().name;
  return result;
}

Tensor placeholder_with_default(const Tensor& value, const Shape& shape) {
  return run(default_op, {value},
             {Param(std::static_pointer_cast<void>(std::make_shared<Spec>(value.dtype(), shape)))});
}

int add_no_op(Graph& graph) {
  Params params;
  Call call(no_op, {}, params);
  graph.add(call);
  return int(graph.nodes.size()) - 1;
}

Tensor is_initialized(VariableBody& v) {
  return run(is_initialized_entry, std::span<const Tensor>(), {variable_param(v)});
}

}  // namespace tapeflow
