// Iterations of a loop, forward and back.
#include "control_flow/loop.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <ranges>
#include <string_view>

#include "autodiff/numerics.h"
#include "control_flow/dynamic_rows.h"
#include "control_flow/list_ops.h"
#include "graph/run.h"
#include "ops/arrays/slicing.h"
#include "ops/ops.h"

namespace tapeflow {

Trimmed trimmed(const Graph& from, std::span<const ValueId> wanted) {
  Graph whole;
  build_subgraph(whole, from, from.inputs, wanted, true);
  std::vector<uint8_t> used(whole.values.size(), 0);
  for (const Node& n : whole.nodes) for_each_operand(n, [&](ValueId v) { used[v] = 1; });
  for (ValueId v : whole.outputs) used[v] = 1;
  Trimmed result{std::make_shared<Graph>(), {}};
  std::vector<ValueId> given;
  for (size_t i = 0; i < whole.inputs.size(); ++i)
    if (used[whole.inputs[i]]) given.push_back(whole.inputs[i]), result.inputs.push_back(int(i));
  build_subgraph(*result.graph, whole, given, whole.outputs, true);
  return result;
}

namespace {

// An iteration and then the condition for the next one, which is the last output; it does not look at loop variables in
// `unseen`.
void build_with_condition(Graph& whole, const Graph& body, std::span<const ValueId> wanted, const Graph& condition,
                          std::span<const uint8_t> unseen) {
  Tensors in;
  for (ValueId v : body.inputs)
    in.push_back(whole.add_input({body.values[v].tensor.dtype(), body.values[v].tensor.shape()}));
  EnterStage stage(&whole);
  PauseRecording unrecorded;
  std::vector<ValueId> results(wanted.begin(), wanted.end());
  for (size_t k = 0; k < unseen.size(); ++k)
    if (!unseen[k]) results.push_back(body.outputs[k]);
  Tensors out = interpret(body, {body.inputs, in, results, true}, [](ValueId, const Tensor&) {});
  for (size_t k = 0, next = wanted.size(); k < unseen.size(); ++k)
    if (!unseen[k]) in[k] = out[next++];
  for (size_t i = 0; i < wanted.size(); ++i) whole.outputs.push_back(whole.id_of(out[i]));
  whole.outputs.push_back(whole.id_of(interpret(condition, in)[0]));
}

// Whether a graph only computes and compares element by element, without integers that are divided: it cannot fail, and
// nobody notices whether it runs.
bool only_compares(const Graph& graph) {
  return std::ranges::all_of(graph.nodes, [&](const Node& n) {
    const std::string_view family = n.op && n.op->family ? n.op->family : "";
    if (family != "unary" && family != "binary") return false;
    const DType dtype = graph.values[n.first_output].tensor.dtype();
    return dtype == DType::boolean || differentiable.has(dtype);
  });
}

bool is_true(const Tensor& t) {
  if (t.size() != 1)
    fail(ErrorKind::invalid_argument, "while_loop: the condition must be one value; got shape ", t.shape());
  return t.dtype() == DType::boolean ? *t.data<bool>() : read_ints(t)[0] != 0;
}

// Cotangents that add up; rows are collected and put together at the end.
class Sum {
 public:
  void add(Tensor values, Tensor indices) {
    if (!indices) return accumulate(dense_, {std::move(values), Tensor()}, Shape());
    indices_.push_back(indices.dtype() == DType::int64 ? std::move(indices) : cast(indices, DType::int64));
    values_.push_back(std::move(values));
  }
  Tensor total(const Shape& shape) {
    if (!values_.empty())
      add(densified({values_.size() == 1 ? values_[0] : concat(values_, 0),
                     indices_.size() == 1 ? indices_[0] : concat(indices_, 0)},
                    shape),
          Tensor());
    return dense_.values;
  }

 private:
  Cotangent dense_;
  Tensors values_, indices_;
};

// While it lives, an iteration of a loop is differentiated.
struct DifferentiateIteration {
  bool before = std::exchange(thread_locals.differentiating_iteration, true);
  ~DifferentiateIteration() { thread_locals.differentiating_iteration = before; }
};

constexpr int kMostChanges = 4;
void run_iteration(const Graph& graph, std::span<const Tensor> arguments, bool planned, Tensors& outputs) {
  if (planned) return run_graph(graph, arguments, outputs);
  EnterStage nowhere(nullptr);
  PauseRecording unrecorded;
  if (NumericsCheck::current()) NumericsCheck::attach_again();
  outputs = interpret(graph, arguments);
}

const Shape& input_shape(const Graph& graph, size_t i) { return graph.values[graph.inputs[i]].tensor.shape(); }

}  // namespace

void (*between_iterations)() = nullptr;

struct Loop::Lists {
  SmallVector<std::optional<RowBuffer>, 4> at;  // per variable
};

Loop::Loop(std::shared_ptr<Graph> condition, std::shared_ptr<Graph> body, int64_t variables, int64_t limit)
    : condition_(std::move(condition)), body_(std::move(body)), variables_(size_t(variables)), limit_(limit) {
  find_writes();
}

void Loop::find_writes() {
  const Graph& body = *body_;
  std::vector<int> uses(body.values.size(), 0);
  for (const Node& n : body.nodes)
    if (n.op) for_each_operand(n, [&](ValueId v) { ++uses[v]; });
  for (ValueId v : body.outputs) ++uses[v];
  std::vector<ValueId> wanted;
  for (size_t k = 0; k < variables_; ++k) {
    std::vector<const Node*> chain;
    ValueId v = body.outputs[k];
    while (uses[v] == 1 && body.values[v].node >= 0 && is_list_write(*body.nodes[size_t(body.values[v].node)].op)) {
      chain.push_back(&body.nodes[size_t(body.values[v].node)]);
      v = chain.back()->inputs[0];
    }
    first_output_.push_back(wanted.size());
    auto& writes = writes_.emplace_back();
    if (v != body.inputs[k] || chain.empty() || body.values[v].tensor.dtype() == DType::string) {
      lists_grow_ |= !chain.empty() && !body.values[body.inputs[k]].tensor.shape().fully_known();
      wanted.push_back(body.outputs[k]);
      continue;
    }
    for (const Node* n : chain | std::views::reverse) {
      wanted.push_back(n->inputs[1]);
      wanted.push_back(n->inputs[2]);
      writes.push_back(list_grows(n->params));
    }
  }
  holds_ = trimmed(*condition_, condition_->outputs);
  std::vector<uint8_t> unseen(variables_, 1);
  for (int i : holds_.inputs)
    if (size_t(i) < variables_) unseen[size_t(i)] = 0;
  bool sees_lists = false;
  for (size_t k = 0; k < variables_; ++k) sees_lists |= !unseen[k] && !writes_[k].empty();
  condition_in_iteration_ = !sees_lists && (limit_ < 0 || only_compares(*holds_.graph));
  if (condition_in_iteration_) {
    Graph whole;
    build_with_condition(whole, body, wanted, *condition_, unseen);
    iteration_ = trimmed(whole, whole.outputs);
  } else {
    iteration_ = trimmed(body, wanted);
  }
  for (const Trimmed* part : {&holds_, &iteration_})
    for (int i : part->inputs)
      if (size_t(i) < variables_ && std::ranges::find(writes_[size_t(i)], true) != writes_[size_t(i)].end())
        lists_grow_ = true;
}

// The inputs that a gradient has to track: loop variables also if one of the others gets into them in some iteration.
SmallVector<uint8_t, 16> Loop::reachable_inputs(const Sources& sources) const {
  const Graph& iteration = *iteration_.graph;
  SmallVector<uint8_t, 16> tracked = sources.inputs;
  for (bool more = true; more;) {
    more = false;
    SmallVector<ValueId, 16> from;
    for (size_t i = 0; i < iteration_.inputs.size(); ++i)
      if (tracked[size_t(iteration_.inputs[i])]) from.push_back(iteration.inputs[i]);
    for (const Node& n : iteration.nodes)
      if (n.op == &read_variable_op() &&
          std::ranges::find(sources.variables, &variable_in(n.params)) != sources.variables.end())
        from.push_back(n.first_output);
    const SmallVector<uint8_t, 64> depends = dependents(iteration, from);
    for (size_t k = 0; k < variables_; ++k) {
      if (tracked[k] || !differentiable_variable(k)) continue;
      bool reached = writes_[k].empty() && depends[iteration.outputs[first_output_[k]]];
      for (size_t w = 0; w < writes_[k].size(); ++w)
        reached |= depends[iteration.outputs[first_output_[k] + 2 * w + 1]];
      if (reached) tracked[k] = more = true;
    }
  }
  return tracked;
}

void Loop::find_arguments(const Trimmed& part, std::span<const Tensor> state, const Lists& lists,
                          Tensors& arguments) const {
  arguments.clear();
  for (int i : part.inputs)
    arguments.push_back(size_t(i) < variables_ && lists.at[size_t(i)] ? lists.at[size_t(i)]->list() : state[size_t(i)]);
}

std::shared_ptr<JointParts> Loop::joint_parts_for(const Sources& sources, std::span<const Tensor> arguments) const {
  std::shared_ptr<Graph> iteration = iteration_.graph;
  if (!lists_grow_) {
    // With all shapes known no rule needs to be deferred, provided that they stay the same from iteration to iteration.
    std::shared_ptr<Graph> special = specialised(iteration, arguments);
    bool stays = true;
    for (size_t i = 0; i < iteration_.inputs.size(); ++i) {
      size_t k = size_t(iteration_.inputs[i]);
      if (k < variables_ && writes_[k].empty())
        stays &= special->values[special->outputs[first_output_[k]]].tensor.shape() == input_shape(*special, i);
    }
    if (stays) iteration = special;
  }
  DifferentiateIteration here;
  return joint_parts_of(*iteration, {},
                        tracked_sources(*iteration, iteration_.inputs, reachable_inputs(sources), sources));
}

bool item_as_rows(RuleContext& c) {
  if (!thread_locals.differentiating_iteration || &c.op != &get_item_op() || !c.params.has_tensor()) return false;
  const Tensor& key = c.params.value(get_item_params.key).tensor();
  auto* graph = static_cast<Graph*>(key.body()->symbol().graph);
  const Tensor place = graph && c.x(0).size() >= 0 ? place_in_key(*graph, key) : Tensor();
  if (!place) return false;
  Shape row{1};
  for (int64_t d : c.dy().shape()) row.append(d);
  c.set_rows(0, reshape(c.dy(), row), row_number(place, c.x(0).dim(0)));
  return true;
}

SmallVector<size_t, 4> Loop::unreached_variables(const JointParts& parts) const {
  SmallVector<size_t, 4> result;
  for (size_t k = 0; k < variables_; ++k) {
    if (!writes_[k].empty() || std::ranges::find(parts.flowing, int(first_output_[k])) == parts.flowing.end()) continue;
    auto reaches = [&](int source) {
      return size_t(source) < iteration_.inputs.size() && iteration_.inputs[size_t(source)] == int(k);
    };
    if (std::ranges::none_of(parts.reached, reaches)) result.push_back(k);
  }
  return result;
}

Tensors Loop::run_recorded(std::span<const Tensor> in, bool reads_tracked) const {
  Tensors state(in.subspan(0, body_->inputs.size()));
  for (int64_t i = 0; limit_ < 0 || i < limit_; ++i) {
    {
      PauseRecording unrecorded;
      if (!is_true(call_graph(condition_, state)[0])) break;
    }
    Tensors next = reads_tracked ? interpret(*body_, state) : call_graph(body_, state);
    std::move(next.begin(), next.end(), state.begin());
    if (between_iterations) between_iterations();
  }
  state.resize(variables_);
  return state;
}

// The rest of a run whose state can stay in the memory of the plan of an iteration. `out` gets the last values.
bool Loop::run_in_place(std::span<const Tensor> arguments, Lists& lists, Tensors& out) const {
  if (!condition_in_iteration_) return false;
  SmallVector<int, 16> feedback;
  feedback.resize(iteration_.graph->outputs.size() - 1);
  std::ranges::fill(feedback, -1);
  for (size_t j = 0; j < iteration_.inputs.size(); ++j) {
    const size_t k = size_t(iteration_.inputs[j]);
    if (k >= variables_) continue;
    if (!writes_[k].empty()) return false;  // the iteration reads the list
    feedback[first_output_[k]] = int(j);
  }
  auto after = [&](std::span<const Tensor> results) {
    if (between_iterations) between_iterations();
    for (size_t k = 0; k < variables_; ++k)
      for (size_t w = 0; w < writes_[k].size(); ++w) {
        const Tensor& position = results[first_output_[k] + 2 * w];
        lists.at[k]->write(position.dtype() == DType::int32 ? *position.data<int32_t>() : read_ints(position)[0],
                           results[first_output_[k] + 2 * w + 1], writes_[k][w]);
      }
  };
  return iterate_graph(*iteration_.graph, arguments, feedback, limit_, after, out);
}

Tensors Loop::run(std::span<const Tensor> in, SavedTensors* saved) const {
  Tensors state(in.subspan(0, body_->inputs.size()));
  Lists lists;
  lists.at.resize(variables_);
  for (size_t k = 0; k < variables_; ++k) {
    if (!writes_[k].empty())
      lists.at[k].emplace(in[k]);
    else if (saved)
      state[k] = copy_of(in[k]);
  }
  BorrowedBuffers borrowed(in);
  SmallVector<size_t, 4> unreached;
  // A plan is made for certain shapes: it does not pay if they go on changing.
  int changes = lists_grow_ ? kMostChanges : 0;
  Tensors given, out;
  bool known = false, goes_on = true;  // of the next iteration
  for (int64_t i = 0; limit_ < 0 || i < limit_; ++i) {
    if (!known) {
      find_arguments(holds_, state, lists, given);
      run_iteration(*holds_.graph, given, changes < kMostChanges, out);
      goes_on = is_true(out[0]);
    }
    if (!goes_on) break;
    find_arguments(iteration_, state, lists, given);
    if (!saved && i == 0 && changes == 0 && run_in_place(given, lists, out)) {
      for (size_t k = 0; k < variables_; ++k)
        if (writes_[k].empty()) state[k] = std::move(out[first_output_[k]]);
      break;
    }
    if (saved && !saved->parts) {
      saved->parts = joint_parts_for(saved->sources, given);
      unreached = unreached_variables(*saved->parts);
    }
    run_iteration(saved ? *saved->parts->forward : *iteration_.graph, given, changes < kMostChanges, out);
    given.clear();
    if (between_iterations) between_iterations();
    if (condition_in_iteration_) {
      known = true;
      goes_on = is_true(out[iteration_.graph->outputs.size() - 1]);
    }
    if (saved) {
      const JointParts& parts = *saved->parts;
      ++saved->iterations;
      for (size_t r = 0; r < parts.residual_inputs.size(); ++r) {
        int input = parts.residual_inputs[r];
        bool same = input >= 0 && size_t(iteration_.inputs[size_t(input)]) >= variables_;
        saved->residuals.push_back(same ? Tensor() : borrowed.kept(out[parts.outputs + r]));
      }
      for (size_t k : unreached) saved->unreached.push_back(out[first_output_[k]].shape());
    }
    for (size_t k = 0; k < variables_; ++k) {
      if (writes_[k].empty()) {
        changes += !(out[first_output_[k]].shape() == state[k].shape());
        state[k] = std::move(out[first_output_[k]]);
      }
      for (size_t w = 0; w < writes_[k].size(); ++w) {
        int64_t position = read_ints(out[first_output_[k] + 2 * w])[0];
        lists.at[k]->write(position, out[first_output_[k] + 2 * w + 1], writes_[k][w]);
        if (saved) saved->positions.push_back(position);
      }
    }
  }
  if (saved) saved->shapes_change = changes >= kMostChanges;
  for (size_t k = 0; k < variables_; ++k)
    if (lists.at[k]) state[k] = lists.at[k]->list();
  state.resize(variables_);
  return state;
}

// Propagates cotangents from the last iteration to the first.
class Loop::BackwardPass {
 public:
  BackwardPass(const Loop& loop, const SavedTensors& saved, std::span<const Tensor> in, std::span<const Tensor> dy,
               std::span<const Tensor> y)
      : loop_(loop),
        saved_(saved),
        parts_(*saved.parts),
        in_(in),
        y_(y),
        flow_(dy),
        unreached_(loop.unreached_variables(parts_)) {
    lists_.resize(loop.variables_);
    sums_.resize(in.size());
    variable_sums_.resize(saved.sources.variables.size());
    for (size_t k = 0; k < loop.variables_; ++k) {
      writes_ += loop.writes_[k].size();
      if (loop.writes_[k].empty() || !loop.differentiable_variable(k)) continue;
      lists_[k].emplace(flow_[k] ? flow_[k] : zeros_like(y[k]), saved.unrolled);
      flow_[k] = Tensor();
    }
  }

  void go_back(int64_t iteration) {
    arguments_.clear();
    size_t residuals = parts_.residual_inputs.size();
    for (size_t r = 0; r < residuals; ++r) {
      const Tensor& kept = saved_.residuals[size_t(iteration) * residuals + r];
      arguments_.push_back(kept ? kept : in_[size_t(loop_.iteration_.inputs[size_t(parts_.residual_inputs[r])])]);
    }
    take_rows(iteration);
    for (int output : parts_.flowing)
      arguments_.push_back(rows_[size_t(output)] ? rows_[size_t(output)] : cotangent(size_t(output), iteration));
    if (saved_.unrolled)
      dx_ = interpret(*parts_.backward, arguments_);
    else
      run_iteration(*parts_.backward, arguments_, !saved_.shapes_change, dx_);
    std::ranges::fill(flow_, Tensor());
    for (size_t q = 0, next = 0; q < parts_.reached.size(); ++q, ++next) {
      Tensor values = std::move(dx_[next]), indices = parts_.by_rows[q] ? std::move(dx_[++next]) : Tensor();
      pass(size_t(parts_.reached[q]), std::move(values), std::move(indices));
    }
  }

  Tensors results() {
    Tensors result;
    for (size_t i = 0; i < in_.size(); ++i) {
      if (i >= loop_.variables_)
        result.push_back(sums_[i].total(in_[i].shape()));
      else
        result.push_back(lists_[i] ? first_rows(lists_[i]->list(), in_[i]) : flow_[i]);
    }
    for (size_t v = 0; v < variable_sums_.size(); ++v)
      result.push_back(variable_sums_[v].total(saved_.sources.variables[v]->value.shape()));
    return result;
  }

 private:
  void take_rows(int64_t iteration) {
    rows_.clear();
    rows_.resize(parts_.outputs);
    size_t at = size_t(iteration + 1) * writes_;
    for (size_t k = loop_.variables_; k-- > 0;)
      for (size_t w = loop_.writes_[k].size(); w-- > 0;) {
        --at;
        if (lists_[k]) rows_[loop_.first_output_[k] + 2 * w + 1] = lists_[k]->take(saved_.positions[at]);
      }
  }

  Tensor cotangent(size_t output, int64_t iteration) {
    size_t k = size_t(std::ranges::find(loop_.first_output_, output) - loop_.first_output_.begin());
    if (flow_[k]) return flow_[k];
    if (iteration + 1 == saved_.iterations) return zeros_like(y_[k]);
    size_t at = size_t(std::ranges::find(unreached_, k) - unreached_.begin());
    return zeros(y_[k].dtype(), saved_.unreached[size_t(iteration) * unreached_.size() + at]);
  }

  void pass(size_t source, Tensor values, Tensor indices) {
    const auto& inputs = loop_.iteration_.inputs;
    if (source >= inputs.size()) {
      const auto& wanted = saved_.sources.variables;
      size_t v = size_t(std::ranges::find(wanted, parts_.variables[source - inputs.size()]) - wanted.begin());
      return variable_sums_[v].add(std::move(values), std::move(indices));
    }
    size_t i = size_t(inputs[source]);
    if (i >= loop_.variables_) return sums_[i].add(std::move(values), std::move(indices));
    if (!lists_[i]) {
      flow_[i] = densified({std::move(values), std::move(indices)}, input_shape(*parts_.forward, source));
    } else {
      // All rows of a list that was shorter then are its first rows now.
      Ints places = indices ? read_ints(indices) : Ints();
      Tensors rows = unstack(values, 0);
      for (size_t r = 0; r < rows.size(); ++r) {
        int64_t place = indices ? places[r] : int64_t(r);
        lists_[i]->write(place, add(lists_[i]->take(place), rows[r]), false);
      }
    }
  }

  // A list may have been longer after the loop than before it, or have had no rows yet.
  static Tensor first_rows(Tensor rows, const Tensor& list) {
    if (list.size() == 0) return zeros_like(list);
    if (rows.dim(0) == list.dim(0)) return rows;
    Ints begin;
    for (int i = 0; i < list.rank(); ++i) begin.push_back(0);
    return slice(rows, begin, Param(list.shape()).ints);
  }

  const Loop& loop_;
  const SavedTensors& saved_;
  const JointParts& parts_;
  std::span<const Tensor> in_, y_;
  Tensors flow_;                                    // per loop variable that is no list of its own
  SmallVector<std::optional<RowBuffer>, 4> lists_;  // per loop variable
  SmallVector<Sum, 2> sums_, variable_sums_;
  Tensors arguments_, dx_;  // of the graph of an iteration
  Tensors rows_;            // per output of that graph: the cotangent of a row that the iteration wrote
  SmallVector<size_t, 4> unreached_;
  size_t writes_ = 0;  // in an iteration
};

Tensors Loop::backpropagate(const SavedTensors& saved, std::span<const Tensor> in, std::span<const Tensor> dy,
                            std::span<const Tensor> y) const {
  in = in.subspan(0, body_->inputs.size());
  if (saved.iterations == 0) {
    Tensors result(dy);
    result.resize(in.size() + saved.sources.variables.size());
    return result;
  }
  BackwardPass pass(*this, saved, in, dy.subspan(0, variables_), y);
  for (int64_t iteration = saved.iterations; iteration-- > 0;) pass.go_back(iteration);
  return pass.results();
}

}  // namespace tapeflow
