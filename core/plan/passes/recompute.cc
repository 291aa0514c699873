// Members that leave their group: what only later groups read is made there, from what is in memory anyway, so that it
// is not written and read back.
#include <algorithm>

#include "plan/planner.h"

namespace tapeflow {

// Fewest elements whose way to memory and back is worth avoiding.
constexpr int64_t kWorthDeferring = 1 << 16;

void Planner::Walk::done(int i) {
  ready.erase(i);
  for (int r : readers[size_t(i)])
    if (--waiting[size_t(r)] == 0) ready.insert(r);
}

void Planner::Walk::undo(int i) {
  for (int r : readers[size_t(i)])
    if (waiting[size_t(r)]++ == 0) ready.erase(r);
  ready.insert(i);
  inside[size_t(i)] = false;
}

Planner::Walk Planner::begin_walk() {
  Walk walk;
  walk.waiting.assign(graph().nodes.size(), 0);
  walk.readers.resize(graph().nodes.size());
  walk.inside.assign(graph().nodes.size(), false);
  for (int i : nodes_) {
    std::set<int> before;
    for (ValueId v : graph().nodes[size_t(i)].inputs)
      if (info_[meant(v)].kind == Info::Kind::computed) before.insert(info_[meant(v)].node);
    walk.waiting[size_t(i)] = int(before.size());
    for (int b : before) walk.readers[size_t(b)].push_back(i);
    if (before.empty()) walk.ready.insert(i);
  }
  walk.uses = count_uses();
  return walk;
}

// The first node in program order that is ready and was not put off, or whose time has come: one of its readers waits
// for nothing but nodes that are ready.
int Planner::next_of(const Walk& walk) {
  auto is_due = [&](int i) {
    return std::ranges::any_of(walk.readers[size_t(i)], [&](int r) {
      std::set<int> before;
      for (ValueId v : graph().nodes[size_t(r)].inputs)
        if (info_[meant(v)].kind == Info::Kind::computed && walk.ready.contains(info_[meant(v)].node))
          before.insert(info_[meant(v)].node);
      return int(before.size()) == walk.waiting[size_t(r)];
    });
  };
  for (int i : walk.ready)
    if (!walk.deferred.contains(i) || is_due(i)) return i;
  return *walk.ready.begin();
}

// Whether all that read a member are elementwise nodes of other groups, and what it reads is in memory for them.
bool Planner::can_wait(int i, int64_t size, const Walk& walk) {
  const Node& n = graph().nodes[size_t(i)];
  const auto& readers = walk.readers[size_t(i)];
  auto reads_of = [&](int r) {
    return std::ranges::count_if(graph().nodes[size_t(r)].inputs,
                                 [&](ValueId v) { return meant(v) == n.first_output; });
  };
  int64_t uses = 0;
  for (int r : readers) {
    if (walk.inside[size_t(r)] || !loops_[size_t(r)] ||
        spec(graph().nodes[size_t(r)].first_output).shape.elements() != size)
      return false;
    if (!reads_in_full(graph().nodes[size_t(r)], n.first_output, size)) return false;
    uses += reads_of(r);
  }
  if (readers.empty() || uses != walk.uses[n.first_output]) return false;
  return std::ranges::all_of(n.inputs, [&](ValueId v) {
    const int maker = info_[meant(v)].node;
    if (maker == kNone || !walk.inside[size_t(maker)]) return true;
    return std::ranges::any_of(walk.readers[size_t(maker)], [&](int r) { return r != i && !walk.inside[size_t(r)]; });
  });
}

void Planner::defer(Scheduled& s, Walk& walk) {
  const int64_t size = spec(graph().nodes[size_t(s.group[0])].first_output).shape.elements();
  if (size < kWorthDeferring) return;
  std::vector<int> kept, left;
  for (auto i = s.group.rbegin(); i != s.group.rend(); ++i) {
    const bool waits = can_wait(*i, size, walk);
    (waits ? left : kept).push_back(*i);
    if (waits) walk.inside[size_t(*i)] = false;
  }
  if (left.empty() || kept.empty()) {
    for (int i : left) walk.inside[size_t(i)] = true;
    return;
  }
  for (int i : left) {
    walk.undo(i);
    walk.deferred.insert(i);
  }
  s.group.assign(kept.rbegin(), kept.rend());
  s.row_length = 0;
  Placement placement;
  for (int i : s.group) fits_group(i, size, &s.row_length, placement);
}

}  // namespace tapeflow
