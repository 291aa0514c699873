// Cutting graphs, and running the parts.
#include "graph/partition.h"

#include <algorithm>

#include "graph/run.h"

namespace tapeflow {
namespace {

constexpr int kWorthPlanning = 4;  // nodes
constexpr int kMostCuts = 16;      // one after the other: each looks at all the rest

int nodes_between(const Graph& graph, size_t begin, size_t end) {
  int count = 0;
  for (size_t i = begin; i < end; ++i) count += graph.nodes[i].op != &read_variable_op();
  return count;
}

}  // namespace

class Split::Cutter {
 public:
  Cutter(const Graph& from, size_t begin, size_t end, MayAssign may_assign)
      : from_(from), begin_(begin), end_(end), places_(from.values.size(), -1), read_until_(from.values.size(), 0) {
    for (ValueId v : from.inputs) places_[v] = next_++;
    find_readings(may_assign);
  }

  // Makes a part of the nodes from `begin` to `end`. The last part gives the outputs of the graph.
  void cut(Part& part, size_t begin, size_t end) {
    const bool last = end == from_.nodes.size();
    auto inside = [&](ValueId v) { return from_.values[v].node >= int(begin) && from_.values[v].node < int(end); };
    std::vector<ValueId> given, wanted;
    std::vector<uint8_t> seen(from_.values.size(), 0);
    auto take = [&](ValueId v) {
      if (inside(v) || can_read(v, begin) || from_.values[v].node == Value::kConstant || std::exchange(seen[v], 1))
        return;
      given.push_back(v);
      part.inputs.push_back(places_[v]);
    };
    auto give = [&](ValueId v, size_t to) {
      if (inside(v) && !can_read(v, to) && !std::exchange(seen[v], 1)) wanted.push_back(v);
    };
    std::vector<int> effects;
    for (size_t i = begin; i < end; ++i) {
      for_each_operand(from_.nodes[i], take);
      if (from_.nodes[i].op->effect) effects.push_back(int(i));
    }
    if (last) {
      for (ValueId v : from_.outputs) take(v);
      wanted = from_.outputs;
    } else {
      for (size_t i = end; i < from_.nodes.size(); ++i)
        for_each_operand(from_.nodes[i], [&](ValueId v) { give(v, i < end_ ? begin_ : end_); });
      for (ValueId v : from_.outputs) give(v, end_ < from_.nodes.size() ? end_ : begin_);
      for (ValueId v : wanted) places_[v] = next_++;
    }
    build_subgraph(part.graph, from_, given, wanted, false, effects);
  }

 private:
  // Until which node the variables that are read keep their values.
  void find_readings(MayAssign may_assign) {
    const std::vector<Node>& nodes = from_.nodes;
    std::vector<size_t> changes;
    for (size_t i = 0; i < nodes.size(); ++i)
      if (nodes[i].op->effect) changes.push_back(i);
    for (size_t i = 0; i < end_; ++i) {
      if (nodes[i].op != &read_variable_op()) continue;
      auto change = std::ranges::upper_bound(changes, i);
      while (change != changes.end() && !may_assign(nodes[*change], variable_in(nodes[i].params))) ++change;
      read_until_[nodes[i].first_output] = change == changes.end() ? nodes.size() : *change;
    }
  }
  // Whether the part that begins there can read the variable itself: a value that it is given has a holder, and would
  // be copied before the variable is updated.
  bool can_read(ValueId v, size_t begin) const {
    return read_until_[v] >= begin && read_until_[v] > 0 && from_.values[v].node < int(begin);
  }

  const Graph& from_;
  size_t begin_, end_;  // of the graph break
  std::vector<int> places_;
  std::vector<size_t> read_until_;  // by value; 0 if it is no reading
  int next_ = 0;
};

std::unique_ptr<Split> Split::make(const Graph& graph, size_t begin, size_t end, MayAssign may_assign) {
  const size_t count = graph.nodes.size();
  if (graph.cuts == kMostCuts) return nullptr;
  if (nodes_between(graph, 0, begin) < kWorthPlanning) begin = 0;
  if (nodes_between(graph, end, count) < kWorthPlanning) end = count;
  if (begin == 0 && end == count) return nullptr;
  auto split = std::make_unique<Split>();
  for (ValueId v : graph.inputs)
    split->inputs_.push_back({graph.values[v].tensor.dtype(), graph.values[v].tensor.shape()});
  Cutter cutter(graph, begin, end, may_assign);
  if (begin > 0) cutter.cut(split->head_.emplace(), 0, begin);
  cutter.cut(split->middle_, begin, end);
  if (end < count) {
    cutter.cut(split->rest_.emplace(), end, count);
    split->rest_->graph.cuts = graph.cuts + 1;
  }
  return split;
}

bool Split::fits(std::span<const Tensor> inputs) const {
  for (size_t i = 0; i < inputs.size(); ++i)
    if (inputs[i].dtype() != inputs_[i].dtype || !(inputs[i].shape() == inputs_[i].shape)) return false;
  return true;
}

void Split::run(std::span<const Tensor> inputs, Tensors& outputs) {
  struct Running {
    int& runs;
    ~Running() { --runs; }
  } running{++runs_};
  Tensors known(inputs), given;
  auto take_inputs = [&](const Part& part) {
    given.clear();
    for (int place : part.inputs) given.push_back(known[size_t(place)]);
  };
  if (head_) {
    take_inputs(*head_);
    run_graph(head_->graph, given, outputs);
    known.append(outputs);
  }
  take_inputs(middle_);
  outputs = interpret(middle_.graph, given);
  if (!rest_) return;
  known.append(outputs);
  take_inputs(*rest_);
  known.clear();
  run_graph(rest_->graph, given, outputs);
}

}  // namespace tapeflow
