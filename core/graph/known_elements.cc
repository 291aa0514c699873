// What is known of the elements of integer tensors while tracing: from constants, from shapes, and from operations that
// run on nothing else.
#include <algorithm>
#include <optional>
#include <unordered_map>

#include "base/forget_error.h"
#include "graph/graph.h"
#include "graph/run.h"
#include "ops/ops.h"
#include "ops/partial_shape.h"

namespace tapeflow {
namespace {

constexpr int64_t kMostElements = 256;
constexpr int kMostNodes = 400;  // so many are looked at for one tensor: graphs may be chains of thousands

bool is_known(int64_t n) { return n > kUnknownCount; }

// One question about one graph. Values that were worked out are kept, as many paths may lead to them.
class Knowledge {
 public:
  explicit Knowledge(const Graph& graph) : graph_(graph) {}

  Ints elements(const Tensor& t);
  std::optional<Tensor> value(const Tensor& t);

 private:
  std::optional<Tensor> computed(const Node& node, size_t output);
  std::optional<Ints> captured(ValueId id);
  void move(const Node& node, Ints& result);
  const Tensor& input(const Node& node, size_t i) const { return graph_.values[node.inputs[i]].tensor; }

  const Graph& graph_;
  std::unordered_map<ValueId, std::optional<Tensor>> value_by_id_;
  int budget_ = kMostNodes;
};

// The elements as an operation that moves them does, known or not.
void Knowledge::move(const Node& node, Ints& result) {
  if (node.params.has_tensor()) return;
  SmallVector<Tensor, 4> in;
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    const Tensor& t = input(node, i);
    if (t.size() < 0) return;
    Ints known = elements(t);
    if (int64_t(known.size()) != t.size()) return;
    in.push_back(int_tensor(known, DType::int64).view(t.shape()));
  }
  EnterStage nowhere(nullptr);
  PauseRecording paused;
  Ints moved = read_ints(run(*node.op, in, node.params));
  if (moved.size() == result.size()) result = moved;
}

// An output of an operation whose inputs are all known. Random numbers, variables and Python are left to the run.
std::optional<Tensor> Knowledge::computed(const Node& node, size_t output) {
  const Op& op = *node.op;
  if (op.stateful || op.effect || op.random || op.calls_python || op.is_program || --budget_ < 0) return std::nullopt;
  SmallVector<Tensor, 4> in;
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    std::optional<Tensor> known = value(input(node, i));
    if (!known) return std::nullopt;
    in.push_back(*known);
  }
  Params params = node.params;
  if (params.has_tensor()) {
    SmallVector<Tensor, 4> at;
    at.resize(params.size());
    for (int p = 0; p < int(params.size()); ++p) {
      if (params.at(p).kind != Param::Kind::tensor) continue;
      std::optional<Tensor> known = value(params.at(p).tensor());
      if (!known) return std::nullopt;
      at[size_t(p)] = *known;
    }
    params = resolved_params(node.params, [&](int p) { return at[size_t(p)]; });
  }
  EnterStage nowhere(nullptr);
  PauseRecording unrecorded;
  try {
    Tensors out = run_all(op, in, params);
    return output < out.size() ? std::optional(out[output]) : std::nullopt;
  } catch (const Error&) {
    forget_error();
    return std::nullopt;  // the error, a division by zero, comes when the graph runs
  }
}

// A small tensor, if all of it is known.
std::optional<Tensor> Knowledge::value(const Tensor& t) {
  if (!t.symbolic()) return t;
  if (t.size() < 0 || t.size() > kMostElements || !graph_.owns(t)) return std::nullopt;
  const ValueId id = t.body()->symbol().value;
  if (auto found = value_by_id_.find(id); found != value_by_id_.end()) return found->second;
  std::optional<Tensor> result;
  const int at = graph_.values[id].node;
  const Node* node = at < 0 ? nullptr : &graph_.nodes[size_t(at)];
  if (node && node->op == &constant_op()) {
    result = constant_in(node->params);
  } else if (integers.has(t.dtype())) {
    Ints known = elements(t);
    if (int64_t(known.size()) == t.size() && std::all_of(known.begin(), known.end(), is_known)) {
      EnterStage nowhere(nullptr);
      PauseRecording paused;
      result = cast(int_tensor(known, DType::int64).view(t.shape()), t.dtype());
    }
  } else if (node && node->op) {
    result = computed(*node, id - node->first_output);
  }
  value_by_id_[id] = result;
  return result;
}

// What is captured is known as far as it is in the graph around.
std::optional<Ints> Knowledge::captured(ValueId id) {
  auto place = std::find(graph_.inputs.begin(), graph_.inputs.end(), id);
  auto first = graph_.inputs.end() - std::ptrdiff_t(graph_.captures.size());
  if (place == graph_.inputs.end() || place < first) return std::nullopt;
  const Tensor& outer = graph_.captures[size_t(place - first)];
  if (!integers.has(outer.dtype())) return std::nullopt;
  if (!outer.symbolic()) return read_ints(outer);
  const auto* owner = static_cast<const Graph*>(outer.body()->symbol().graph);
  return owner ? std::optional(known_elements(*owner, outer)) : std::nullopt;
}

Ints Knowledge::elements(const Tensor& t) {
  if (!t.symbolic()) return read_ints(t);
  Ints result;
  if (t.size() < 0 || t.size() > kMostElements) {
    result.push_back(kUnknownCount);
    return result;
  }
  result.resize(size_t(t.size()));
  std::fill(result.begin(), result.end(), kUnknownInt);
  if (!graph_.owns(t)) return result;
  const ValueId id = t.body()->symbol().value;
  if (graph_.values[id].node < 0) {
    std::optional<Ints> known = captured(id);
    return known && known->size() == result.size() ? *known : result;
  }
  const Node& node = graph_.nodes[size_t(graph_.values[id].node)];
  if (!node.op) return result;
  if (node.op == &constant_op()) return read_ints(constant_in(node.params));
  Elements how = node.op->elements;
  if (how == Elements::of_input && !integers.has(input(node, 0).dtype())) how = Elements::computed;  // a cast
  switch (how) {
    case Elements::shape:
      for (size_t i = 0; i < result.size(); ++i)  // the rank is known, since the size of the result is
        if (input(node, 0).dim(int(i)) >= 0) result[i] = input(node, 0).dim(int(i));
      break;
    case Elements::of_input:
      if (Ints same = elements(input(node, 0)); same.size() == result.size()) result = same;
      break;
    case Elements::moved: move(node, result); break;
    case Elements::computed:
    case Elements::unknown:
      if (!integers.has(t.dtype())) break;
      if (std::optional<Tensor> known = computed(node, id - node.first_output)) {
        Ints folded = read_ints(*known);
        if (folded.size() == result.size()) result = folded;
      }
  }
  return result;
}

}  // namespace

Ints known_elements(const Graph& graph, const Tensor& t) { return Knowledge(graph).elements(t); }
std::optional<Tensor> known_value(const Graph& graph, const Tensor& t) { return Knowledge(graph).value(t); }

Param known_param(const Graph& graph, const Param& p) {
  Ints elements = known_elements(graph, p.tensor());
  bool known = elements.size() == 1 && elements[0] > kUnknownCount;
  auto kind = Argument::Kind(p.argument_kind());
  if (known && kind == Argument::Kind::integer) return Param(elements[0]);
  if (known && kind == Argument::Kind::flag) return Param(elements[0] != 0);
  return Param(std::move(elements));
}
std::optional<Param> settled_param(const Graph& graph, const Param& p) {
  auto kind = Argument::Kind(p.argument_kind());
  if (kind == Argument::Kind::real || kind == Argument::Kind::flag) return std::nullopt;
  Param known = known_param(graph, p);
  bool settled = known.kind == Param::Kind::integer || (kind != Argument::Kind::integer && all_known(known));
  return settled ? std::optional(std::move(known)) : std::nullopt;
}

}  // namespace tapeflow
