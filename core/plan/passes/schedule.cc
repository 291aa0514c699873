// The order of a plan's steps: kernels and groups of elementwise nodes, and sections of steps that run at the same
// time.
#include <algorithm>
#include <numeric>

#include "base/parallel.h"
#include "plan/planner.h"

namespace tapeflow {

// Elements of a group that is quicker together with any other of its size. Larger ones stay apart if nothing connects
// them: each can follow a kernel of its own, and be in a branch of its own.
constexpr int64_t kSmallGroup = 1024;
// Elements of a reduction that is worth joining a group that happens to read the same; fewer of a table may rather
// follow a long chain on another thread.
constexpr int64_t kWorthJoining = 1 << 14;

// The loops of the elementwise nodes.
void Planner::find_loops() {
  loops_.assign(graph().nodes.size(), {});
  for (int i : nodes_) {
    const Node& n = graph().nodes[size_t(i)];
    if (!n.op->element_loops || n.outputs != 1 || spec(n.first_output).shape.elements() == 0) continue;
    loops_[size_t(i)] = n.op->element_loops(spec(n.inputs[n.inputs.size() - 1]).dtype, spec(n.first_output).dtype);
  }
}

// Whether a node fits into a group whose rows have some length or none yet, and how its operands lie.
bool Planner::fits_group(int i, int64_t size, int64_t* row_length, Placement& placement) {
  const Node& n = graph().nodes[size_t(i)];
  const ElementLoops& loops = loops_[size_t(i)];
  if (!loops || spec(n.first_output).shape.elements() != size) return false;
  const Shape result = spec(n.first_output).shape;
  placement.row_length = *row_length;
  if (loops.unary) return true;
  // A constant that is the same number everywhere lies as one number does.
  auto shape_of = [&](ValueId v) { return uniform(v) ? Shape{} : spec(v).shape; };
  const size_t a = loops.choice ? 1 : 0;
  const bool varies = placement.find(shape_of(n.inputs[a]), shape_of(n.inputs[a + 1]), result);
  if (loops.choice)
    placement.find_condition(spec(n.inputs[0]).shape, result);
  else if (!varies)
    return false;
  *row_length = placement.row_length;
  return true;
}

// Values of one size that elementwise nodes connect: the first of them stands for all.
std::vector<ValueId> Planner::find_families() {
  std::vector<ValueId> family(info_.size());
  std::iota(family.begin(), family.end(), ValueId(0));
  auto first_of = [&](ValueId v) {
    while (family[v] != v) v = family[v] = family[family[v]];
    return v;
  };
  for (int i : nodes_) {
    const Node& n = graph().nodes[size_t(i)];
    if (!loops_[size_t(i)]) continue;
    for (ValueId v : n.inputs)
      if (spec(meant(v)).shape.elements() == spec(n.first_output).shape.elements()) {
        const ValueId a = first_of(meant(v)), b = first_of(n.first_output);
        family[std::max(a, b)] = std::min(a, b);
      }
  }
  for (ValueId v = 0; v < family.size(); ++v) family[v] = first_of(v);
  return family;
}

void Planner::schedule() {
  find_loops();
  const std::vector<ValueId> family = find_families();
  Walk walk = begin_walk();
  Placement placement;
  while (!walk.ready.empty()) {
    int next = next_of(walk);
    if (int reader = first_reader(next, walk.ready); reader != kNone) next = reader;
    const Node& n = graph().nodes[size_t(next)];
    Scheduled s;
    walk.done(next);
    if (!fits_group(next, n.outputs ? spec(n.first_output).shape.elements() : 0, &s.row_length, placement)) {
      s.kernel = next;
      if (!join_group(next)) add(std::move(s));
      continue;
    }
    s.group.push_back(next);
    grow(s, family, walk);
    defer(s, walk);
    for (int i : s.group) {
      info_[graph().nodes[size_t(i)].first_output].grouped = true;
      walk.inside[size_t(i)] = false;
    }
    combine(s, walk.uses);
    if (int at = followed(s); at != kNone) {
      s.kernel = scheduled_[size_t(at)].kernel;
      number(scheduled_[size_t(at)] = std::move(s), at);
    } else {
      take_reductions(s, walk);
      add(std::move(s));
    }
  }
}

// Adds to a group what is ready and fits, and what is ready then.
void Planner::grow(Scheduled& s, const std::vector<ValueId>& family, Walk& walk) {
  const Node& first = graph().nodes[size_t(s.group[0])];
  const int64_t size = spec(first.first_output).shape.elements();
  Placement placement;
  // What the group itself makes is read element by element, as it is made: a part that is repeated must be there
  // before.
  auto reads_in_step = [&](const Node& n) {
    return std::ranges::all_of(n.inputs, [&](ValueId v) {
      const int maker = info_[meant(v)].node;
      return maker == kNone || !walk.inside[size_t(maker)] || spec(v).shape.elements() == size;
    });
  };
  auto joins = [&](int candidate) {
    const Node& n = graph().nodes[size_t(candidate)];
    if (size >= kSmallGroup && family[n.first_output] != family[first.first_output]) return false;
    return reads_in_step(n) && fits_group(candidate, size, &s.row_length, placement);
  };
  walk.inside[size_t(s.group[0])] = true;
  while (s.group.size() < 96) {
    const auto found = std::ranges::find_if(walk.ready, joins);
    if (found == walk.ready.end()) return;
    const int member = *found;
    s.group.push_back(member);
    walk.inside[size_t(member)] = true;
    walk.done(member);
  }
}

// Takes reductions of what a group reads into it.
void Planner::take_reductions(Scheduled& s, Walk& walk) {
  const int64_t size = spec(graph().nodes[size_t(s.group[0])].first_output).shape.elements();
  if (size < kWorthJoining) return;
  std::vector<int> taken;
  for (int candidate : walk.ready) {
    const Node& n = graph().nodes[size_t(candidate)];
    if (n.inputs.size() != 1 || info_[meant(n.inputs[0])].grouped || spec(n.inputs[0]).shape.elements() != size ||
        !may_join(n, s))
      continue;
    if (std::ranges::none_of(s.group,
                             [&](int i) { return reads_in_full(graph().nodes[size_t(i)], n.inputs[0], size); }))
      continue;
    if (const int64_t length = reduced_table(n).length; length != size) s.table_length = length;
    s.reductions.push_back(candidate);
    taken.push_back(candidate);
  }
  for (int i : taken) walk.done(i);
}

void Planner::add(Scheduled s) {
  number(s, int(scheduled_.size()));
  scheduled_.push_back(std::move(s));
}
void Planner::number(const Scheduled& s, int step) {
  s.each_node([&](int i) {
    for (uint32_t k = 0; k < graph().nodes[size_t(i)].outputs; ++k)
      info_[graph().nodes[size_t(i)].first_output + k].step = step;
  });
}

// Whether a node is a sum, mean, maximum or minimum that a step can make beside those it makes already.
bool Planner::may_join(const Node& n, const Scheduled& s) {
  if (n.op->planning.reduction == ReductionKind::none) return false;
  const auto [dtype, shape] = spec(n.inputs[0]);
  if (!wide_floating.has(dtype) || info_[n.inputs[0]].offset != 0 ||
      spec(meant(n.inputs[0])).shape.elements() != shape.elements())
    return false;
  if (!s.reductions.empty() && spec(graph().nodes[size_t(s.reductions[0])].first_output).dtype != dtype) return false;
  const int64_t length = reduced_table(n).length;
  return length != 0 && (length == shape.elements() || s.table_length == 0 || s.table_length == length);
}

// Lets the group that computes the input of a reduction make it, over all elements or over neighbouring axes.
bool Planner::join_group(int i) {
  const Node& n = graph().nodes[size_t(i)];
  if (n.inputs.size() != 1) return false;
  const Info& x = info_[meant(n.inputs[0])];
  if (!x.grouped || scheduled_[size_t(x.step)].kernel != kNone) return false;
  Scheduled& s = scheduled_[size_t(x.step)];
  if (!may_join(n, s)) return false;
  if (const int64_t length = reduced_table(n).length; length != spec(n.inputs[0]).shape.elements())
    s.table_length = length;
  s.reductions.push_back(i);
  info_[n.first_output].step = x.step;
  return true;
}

bool Planner::reads_in_full(const Node& n, ValueId v, int64_t size) {
  return std::ranges::any_of(n.inputs, [&](ValueId x) {
    return meant(x) == meant(v) && info_[x].offset == 0 && spec(x).shape.elements() == size;
  });
}

// The elementwise node that is ready and reads what a large reduction reads: both can be done in one pass.
int Planner::first_reader(int reduction, const std::set<int>& ready) {
  const Node& n = graph().nodes[size_t(reduction)];
  const int64_t size = n.inputs.size() == 1 ? spec(n.inputs[0]).shape.elements() : 0;
  if (size < kWorthJoining || !may_join(n, {})) return kNone;
  Placement placement;
  for (int i : ready)
    if (int64_t rows = 0;
        fits_group(i, size, &rows, placement) && reads_in_full(graph().nodes[size_t(i)], n.inputs[0], size))
      return i;
  return kNone;
}

Planner::Table Planner::reduced_table(const Node& n) {
  constexpr int64_t kMostColumns = 1 << 14, kLongTable = 1 << 16;
  const Shape shape = spec(n.inputs[0]).shape;
  const Param& axes = n.params[0];
  if (axes.kind == Param::Kind::none) return {shape.elements(), 1};
  if (axes.kind != Param::Kind::ints) return {0, 0};
  bool reduced[kMaxRank] = {};
  for (int64_t a : axes.ints) reduced[a < 0 ? a + shape.rank() : a] = true;
  int first = 0, last = shape.rank();  // axes of 1 may count as either
  while (first < last && (!reduced[first] || shape[first] == 1)) ++first;
  while (last > first && (!reduced[last - 1] || shape[last - 1] == 1)) --last;
  for (int i = first; i < last; ++i)
    if (!reduced[i] && shape[i] != 1) return {0, 0};
  const Table table{shape.elements(first, shape.rank()), shape.elements(last, shape.rank())};
  if (table.columns > 1 && shape.elements() < kWorthJoining) return {0, 0};
  if (table.columns == 1 || table.length == shape.elements())
    return table.columns <= kMostColumns ? table : Table{0, 0};
  return table.length <= kLongTable && table.columns <= kMostColumns ? table : Table{0, 0};
}

// The step whose kernel a group can follow: the last one that the group waits for, if the kernel says when elements of
// its result are ready and the group reads that result element by element.
int Planner::followed(const Scheduled& s) {
  Graph& g = graph();
  int last = kNone;
  for (int i : s.group)
    for (ValueId v : g.nodes[size_t(i)].inputs)
      if (info_[meant(v)].kind == Info::Kind::computed) last = std::max(last, info_[meant(v)].step);
  if (last == kNone || scheduled_[size_t(last)].kernel == kNone || !scheduled_[size_t(last)].group.empty())
    return kNone;
  const Node& kernel = g.nodes[size_t(scheduled_[size_t(last)].kernel)];
  if (!kernel.op->finishes || spec(kernel.first_output).dtype != DType::float32) return kNone;
  int64_t size = spec(g.nodes[size_t(s.group[0])].first_output).shape.elements();
  for (int i : s.group)
    for (ValueId v : g.nodes[size_t(i)].inputs)
      if (meant(v) == kernel.first_output && (info_[v].offset != 0 || spec(v).shape.elements() != size)) return kNone;
  return spec(kernel.first_output).shape.elements() == size ? last : kNone;
}

// ---- sections

// Whether a kernel may run beside others: it has no effect, keeps no state and calls neither graphs nor Python.
static bool may_run_beside(const Graph& g, const Node& n) {
  if (n.op->stateful || n.op->effect || find_op(n.op->name) != n.op) return false;
  return std::ranges::none_of(n.inputs, [&](ValueId v) { return g.values[v].tensor.dtype() == DType::variant; });
}

void Planner::find_sections() {
  std::vector<BranchStep> steps(scheduled_.size());
  for (size_t s = 0; s < steps.size(); ++s) {
    const Scheduled& step = scheduled_[s];
    if (step.kernel != kNone) {
      const Node& n = graph().nodes[size_t(step.kernel)];
      steps[s].cost = cost_of(graph(), n, thread_count());
      steps[s].apart = !may_run_beside(graph(), n);
      steps[s].may_fail = may_fail(graph(), n);
      steps[s].can_be_followed = !made(n);
    }
    if (!step.group.empty()) {
      const int64_t elements = spec(graph().nodes[size_t(step.group[0])].first_output).shape.elements();
      steps[s].cost += cost_of_fusion(elements, step.group.size() + step.reductions.size(), thread_count());
    }
  }
  const int threads = branch_limit();
  if (threads < 2 || !worth_arranging(steps)) return;
  find_order(steps);
  Arrangement found = arrange_branches(steps, threads);
  if (found.sections.empty()) return;
  std::vector<Scheduled> ordered;
  std::vector<int> place(steps.size());
  for (int s : found.order) {
    place[size_t(s)] = int(ordered.size());
    ordered.push_back(std::move(scheduled_[size_t(s)]));
    ordered.back().program_order = s;
  }
  scheduled_ = std::move(ordered);
  for (size_t s = 0; s < scheduled_.size(); ++s) number(scheduled_[s], int(s));
  for (const Section& section : found.sections) {
    number_parts(section);
    for (size_t s = section.ends[0]; section.follows && s < section.ends[1]; ++s)
      for (int b : steps[size_t(scheduled_[s].program_order)].before)
        if (const int at = place[size_t(b)]; at >= int(section.first) && at < int(section.ends[0]))
          scheduled_[s].after = std::max(scheduled_[s].after, at);
  }
  sections_ = std::move(found.sections);
}

void Planner::number_parts(const Section& section) {
  bool fails = false;
  size_t s = section.first;
  for (size_t end : section.ends) {
    for (; s < end; ++s) {
      scheduled_[s].part = int(parts_.size());
      if (const int kernel = scheduled_[s].kernel; kernel != kNone)
        fails |= may_fail(graph(), graph().nodes[size_t(kernel)]);
    }
    parts_.push_back(false);
  }
  std::fill(parts_.end() - std::ptrdiff_t(section.ends.size()), parts_.end(), fails);
}

// Which steps wait for which: for what they read, for those that read a variable before they write over it, and one
// that runs apart for the one before.
void Planner::find_order(std::vector<BranchStep>& steps) {
  std::map<ValueId, std::vector<ValueId>>
      shown;  // the variables that a value shows: what a kernel makes may lie in its inputs
  std::map<ValueId, std::vector<int>> readers;
  for (ValueId v : variable_values_) shown[v].push_back(v);
  int last_apart = kNone;
  for (int s = 0; s < int(steps.size()); ++s) {
    BranchStep& step = steps[size_t(s)];
    if (step.apart && last_apart != kNone) step.before.push_back(last_apart);
    if (step.apart) last_apart = s;
    scheduled_[size_t(s)].each_node([&](int i) {
      const Node& n = graph().nodes[size_t(i)];
      std::vector<ValueId> seen;
      for (ValueId v : n.inputs) {
        const Info& read = info_[meant(v)];
        if (read.kind == Info::Kind::computed && read.step != s) step.before.push_back(read.step);
        if (auto it = shown.find(meant(v)); it != shown.end())
          for (ValueId variable : it->second)
            if (std::ranges::find(seen, variable) == seen.end()) seen.push_back(variable);
      }
      for (ValueId variable : seen) readers[variable].push_back(s);
      for (uint32_t k = 0; made(n) && !seen.empty() && k < n.outputs; ++k) shown[n.first_output + k] = seen;
    });
  }
  for (auto& [variable, v] : stores_) {
    const int writer = info_[meant(v)].step;
    const auto use = std::ranges::find(plan_->variables_, variable, &Plan::VariableUse::variable);
    if (writer == kNone || use == plan_->variables_.end()) continue;
    for (int reader : readers[variable_values_[size_t(use - plan_->variables_.begin())]])
      if (reader != writer) steps[size_t(std::max(reader, writer))].before.push_back(std::min(reader, writer));
  }
}

}  // namespace tapeflow
