// The nodes of graphs, and of the graphs inside of them, as rows for the diagnostics.
#include "python/graph/graph_rows.h"

#include "control_flow/control_ops.h"
#include "control_flow/loop.h"
#include "python/graph/graph.h"
#include "transforms/differentiate.h"

namespace tapeflow::python {

Ref index_list(std::span<const ValueIndex> indices) {
  Ref list = checked(PyList_New(0));
  for (ValueIndex i : indices) {
    if (i == kUntracked) continue;
    Ref index = checked(PyLong_FromUnsignedLong(i));
    if (PyList_Append(list.get(), index.get()) < 0) throw_python_error();
  }
  return list;
}

namespace {

// The dimensions as a tuple, -1 for those that are unknown; None if the rank is.
Ref dimensions(const Shape& shape) {
  if (!shape.known_rank()) return Ref::share(Py_None);
  Ref tuple = checked(PyTuple_New(shape.rank()));
  for (int i = 0; i < shape.rank(); ++i)
    PyTuple_SET_ITEM(tuple.get(), i, checked(PyLong_FromLongLong(shape[i])).release());
  return tuple;
}
Ref shapes(std::span<const Spec> specs) {
  Ref list = checked(PyList_New(0));
  for (const Spec& spec : specs)
    if (PyList_Append(list.get(), dimensions(spec.shape).get()) < 0) throw_python_error();
  return list;
}

Spec spec_of(const Graph& graph, ValueId v) { return {graph.values[v].tensor.dtype(), graph.values[v].tensor.shape()}; }

}  // namespace

void GraphRows::add_row(const char* name, const Location& location, size_t kept, std::span<const ValueIndex> inputs,
                        std::span<const ValueIndex> outputs, bool stops, std::span<const Spec> input_specs,
                        std::span<const Spec> output_specs) {
  Ref dtypes = checked(PyList_New(0));
  for (const Spec& spec : output_specs) {
    Ref dtype = checked(PyUnicode_FromString(name_of(spec.dtype)));
    if (PyList_Append(dtypes.get(), dtype.get()) < 0) throw_python_error();
  }
  PyObject* code = location.code ? static_cast<PyObject*>(location.code) : Py_None;
  Ref row =
      checked(Py_BuildValue("(sOinNNONNNI)", name, code, location.instruction, Py_ssize_t(kept),
                            index_list(inputs).release(), index_list(outputs).release(), stops ? Py_True : Py_False,
                            dtypes.release(), shapes(input_specs).release(), shapes(output_specs).release(), record_));
  if (PyList_Append(list_, row.get()) < 0) throw_python_error();
}

void GraphRows::pass(const Location& location, ValueIndex from, ValueIndex to, const Tensor& like) {
  if (from == kUntracked || to == kUntracked) return;
  Spec spec{like.dtype(), like.shape()};
  add_row("identity", location, 0, {&from, 1}, {&to, 1}, false, {&spec, 1}, {&spec, 1});
}

std::vector<ValueIndex> GraphRows::add_inside(const Graph& graph, std::span<const ValueIndex> inputs) {
  std::vector<ValueIndex> at(graph.values.size(), kUntracked), outputs;
  for (size_t i = 0; i < graph.inputs.size() && i < inputs.size(); ++i) at[graph.inputs[i]] = inputs[i];
  add(graph, at);
  for (ValueId v : graph.outputs) outputs.push_back(at[v]);
  return outputs;
}

bool GraphRows::expand(const Op& op, const Params& params, const Location& location, std::span<const ValueIndex> inputs,
                       std::span<const ValueIndex> outputs) {
  if (!params.size()) return false;
  if (CalledGraph call = graph_called(op, params); call.graph) {
    std::vector<ValueIndex> results = add_inside(*call.graph, inputs);
    for (size_t k = 0; k < results.size() && k < outputs.size(); ++k)
      pass(location, results[k], outputs[k], call.graph->values[call.graph->outputs[k]].tensor);
    return true;
  }
  if (!is_control_op(op)) return false;
  if (const Loop* loop = loop_of(params)) {
    const Graph& body = *loop->body();
    std::vector<ValueIndex> state(inputs.begin(), inputs.end());
    for (size_t i = 0; i < loop->variables(); ++i) {
      state[i] = next_++;
      pass(location, inputs[i], state[i], body.values[body.inputs[i]].tensor);
    }
    add_inside(*loop->condition(), state);
    std::vector<ValueIndex> results = add_inside(body, state);
    for (size_t i = 0; i < loop->variables() && i < results.size(); ++i) {
      const Tensor& like = body.values[body.outputs[i]].tensor;
      pass(location, results[i], state[i], like);
      pass(location, state[i], outputs[i], like);
    }
    return true;
  }
  for (const auto& branch : graphs_of(params)) {
    std::vector<ValueIndex> results = add_inside(*branch, inputs.subspan(1));
    for (size_t k = 0; k < results.size() && k < outputs.size(); ++k) {
      const Tensor& like = branch->values[branch->outputs[k]].tensor;
      pass(location, results[k], outputs[k], like);
      Spec spec{like.dtype(), like.shape()};
      add_row("cond", location, 0, inputs.subspan(0, 1), outputs.subspan(k, 1), true, {&spec, 1}, {&spec, 1});
    }
  }
  return true;
}

ValueIndex GraphRows::number_of(VariableBody& v) {
  if (ValueIndex known = variable_(v); known != kUntracked) return known;
  auto [it, is_new] = own_numbers_.try_emplace(&v, next_);
  if (is_new) ++next_;
  return it->second;
}

void GraphRows::add_node(const Graph& graph, const Node& node, std::vector<ValueIndex>& at) {
  const Op& op = *node.op;
  if (&op == &read_variable_op()) {
    at[node.first_output] = number_of(variable_in(node.params));
    return;
  }
  SmallVector<ValueIndex, 8> inputs, outputs;
  SmallVector<Spec, 8> input_specs, output_specs;
  for (ValueId v : node.inputs) {
    inputs.push_back(at[v]);
    input_specs.push_back(spec_of(graph, v));
  }
  if (&op == &assign_op()) {
    ValueIndex variable = number_of(variable_in(node.params));
    add_row("assign", node.location, 0, {inputs.begin(), inputs.size()}, {&variable, 1}, true,
            {input_specs.begin(), input_specs.size()}, {input_specs.begin(), input_specs.size()});
    return;
  }
  for (uint32_t k = 0; k < node.outputs; ++k) {
    outputs.push_back(at[node.first_output + k] = next_++);
    output_specs.push_back(spec_of(graph, node.first_output + k));
  }
  if (expand(op, node.params, node.location, {inputs.begin(), inputs.size()}, {outputs.begin(), outputs.size()}))
    return;
  size_t first = 0;
  if (op.custom_gradient) first = node.outputs;  // the outputs, as the program computed them
  add_row(op.public_name() ? op.public_name() : op.name, node.location, 0,
          std::span<const ValueIndex>(inputs.begin(), inputs.size()).subspan(std::min(first, inputs.size())),
          {outputs.begin(), outputs.size()}, op.gradient == Gradient::none || is_opaque_call(op, node.params),
          {input_specs.begin(), input_specs.size()}, {output_specs.begin(), output_specs.size()});
}

void GraphRows::add(const Graph& graph, std::vector<ValueIndex>& at) {
  for (const Node& node : graph.nodes)
    if (node.op) add_node(graph, node, at);
}

}  // namespace tapeflow::python
