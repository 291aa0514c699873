// Members of a group that run as one loop: an arithmetic operation together with those that make its operands, where
// nobody else reads these.
#include <algorithm>

#include "plan/planner.h"

namespace tapeflow {

// Fewest elements for which setting up a combined loop pays.
constexpr int64_t kWorthCombining = 2048;

static Arithmetic arithmetic_of(const Node& n) { return n.op->planning.arithmetic; }

// How often each value is read, by a node, as a result or for a variable.
std::vector<int> Planner::count_uses() {
  std::vector<int> uses(info_.size(), 0);
  for (int i : nodes_)
    for (ValueId v : graph().nodes[size_t(i)].inputs) ++uses[meant(v)];
  for (ValueId v : graph().outputs) ++uses[meant(v)];
  for (auto& [variable, v] : stores_) ++uses[meant(v)];
  return uses;
}

// Finds the combinations of a group. What they take in goes to the place of the one that takes it in, where it is read.
void Planner::combine(Scheduled& s, const std::vector<int>& uses) {
  const int64_t size = spec(graph().nodes[size_t(s.group[0])].first_output).shape.elements();
  if (size < kWorthCombining) return;
  std::set<int> members(s.group.begin(), s.group.end()), taken;
  // The member that makes an operand for nobody else.
  auto maker = [&](const Node& n, ValueId v) {
    const int i = info_[meant(v)].node;
    if (i == kNone || !members.contains(i) || taken.contains(i) || uses[meant(v)] != 1 || info_[v].offset != 0)
      return kNone;
    const Node& m = graph().nodes[size_t(i)];
    if (arithmetic_of(m) == Arithmetic::none || spec(v).dtype != spec(n.first_output).dtype ||
        spec(v).shape.elements() != size)
      return kNone;
    return i;
  };
  for (auto f = s.group.rbegin(); f != s.group.rend(); ++f) {
    const Node& n = graph().nodes[size_t(*f)];
    const Arithmetic outer = arithmetic_of(n);
    const DType dtype = spec(n.first_output).dtype;
    if (taken.contains(*f) || n.inputs.size() != 2 || outer == Arithmetic::none || !wide_floating.has(dtype)) continue;
    auto attempt = [&](int left, int right) {
      auto inner = [&](int i) { return i == kNone ? Arithmetic::first : arithmetic_of(graph().nodes[size_t(i)]); };
      Combined found{{}, left, right, commutes(outer) && inner(left) < inner(right)};
      if (found.swapped) std::swap(left, right);
      found.kernel = find_combination(dtype == DType::float64, outer, inner(left), inner(right));
      if (!found.kernel.loop) return false;
      combined_[*f] = found;
      for (int i : {left, right})
        if (i != kNone) taken.insert(i);
      return true;
    };
    const int left = maker(n, n.inputs[0]), right = maker(n, n.inputs[1]);
    attempt(left, right) || attempt(left, kNone) || attempt(kNone, right);
  }
  if (taken.empty()) return;
  std::vector<int> ordered;
  for (int i : s.group) {
    if (taken.contains(i)) continue;
    if (auto it = combined_.find(i); it != combined_.end())
      for (int inner : {it->second.left, it->second.right})
        if (inner != kNone) ordered.push_back(inner);
    ordered.push_back(i);
  }
  s.group = std::move(ordered);
  taken_in_.insert(taken.begin(), taken.end());
}

}  // namespace tapeflow
