// Rematerialise: values of the forward pass are computed a second time instead of being kept for the backward pass.
//
// Input:     `nodes` in program order, a memory budget, and how much may be computed again (`rematerialisation`).
// Output:    nodes after the point where most bytes are alive read copies of what was computed before it. A copy
//            stands in front of its first reader, and `not_before` says after which node it runs.
// Invariant: a copy has the operation, the parameters and the values of its original, so that it gives the same
//            elements. Operations with effects, state or random numbers, and those whose results the plan does not
//            place, have no copies.
//
// Without a budget, the pass changes nothing. The planner tries more and more until a plan is within the budget.
#include <algorithm>
#include <array>
#include <map>

#include "plan/cost.h"
#include "plan/passes.h"

namespace tapeflow::plan {
namespace {

// The parts that the forward pass is divided into, by `rematerialisation`: what is alive between them is kept, and a
// part is computed again when the backward pass arrives at it. At first nothing is computed again, then values that
// cost little.
constexpr int kNothing = 1, kCheapValues = 2;
constexpr std::array<int, 14> kParts{0, 0, 0, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64};

class Rematerialisation {
 public:
  explicit Rematerialisation(PlanIR& ir)
      : ir_(ir), values_(ir.values.size()), live_(ir.graph->nodes.size(), false), copy_of_(ir.values.size(), kNone) {
    for (int i : ir.nodes) live_[size_t(i)] = true;
    find_uses();
    find_peak();
  }

  void run(int level) {
    if (peak_ == kNone) return;
    level == kCheapValues ? keep_what_costs() : keep_between_parts(kParts[size_t(level)]);
    rewrite();
  }

 private:
  static constexpr size_t kLittle = 1 << 10;  // bytes that are kept in any case
  static constexpr double kCheap = 1e-3;      // microseconds for a byte

  struct Use {
    int made = kNone;          // by the node in this place of the program
    int last_forward = kNone;  // the last place up to the peak that reads the value
    int last = kNone;          // the last place that does
    size_t bytes = 0;
    bool kept = true;  // is not computed again
  };

  // ---- lifetimes, by root

  void find_uses() {
    for (size_t place = 0; place < ir_.nodes.size(); ++place) {
      const Node& n = ir_.node(ir_.nodes[place]);
      for (ValueId v : n.inputs) values_[ir_.root(v)].last = int(place);
      for (uint32_t k = 0; k < n.outputs; ++k) {
        Use& use = values_[n.first_output + k];
        use.made = use.last = int(place);
        use.bytes = size_t(ir_.elements(n.first_output + k)) * size_of(ir_.dtype(n.first_output + k));
        use.kept = use.bytes <= kLittle || !can_run_again(n) || !fixed_size.has(ir_.dtype(n.first_output + k));
      }
    }
    auto hold = [&](ValueId v) {
      values_[ir_.root(v)].last = int(ir_.nodes.size());
      values_[ir_.root(v)].kept = true;
    };
    for (ValueId v : ir_.graph->outputs) hold(v);
    for (const auto* list : {&ir_.stores, &ir_.between})
      for (const auto& [variable, v] : *list) hold(v);
  }

  static bool can_run_again(const Node& n) {
    const Op& op = *n.op;
    return !(op.stateful || op.effect || op.random || op.is_program || op.calls_python || op.makes_outputs);
  }

  // The place after which most bytes are alive, if a value that could be computed again is alive there.
  void find_peak() {
    std::vector<int64_t> change(ir_.nodes.size() + 2, 0);
    for (const Use& use : values_)
      if (use.made != kNone) {
        change[size_t(use.made)] += int64_t(use.bytes);
        change[size_t(use.last) + 1] -= int64_t(use.bytes);
      }
    int64_t bytes = 0, most = 0;
    for (size_t place = 0; place < ir_.nodes.size(); ++place)
      if ((bytes += change[place]) > most) {
        most = bytes;
        peak_ = int(place);
      }
    for (size_t place = 0; int(place) <= peak_; ++place)
      for (ValueId v : ir_.node(ir_.nodes[place]).inputs) values_[ir_.root(v)].last_forward = int(place);
    if (std::ranges::none_of(values_, [&](const Use& use) { return crosses_peak(use) && !use.kept; })) peak_ = kNone;
  }
  bool crosses_peak(const Use& use) const { return use.made != kNone && use.made <= peak_ && use.last > peak_; }
  bool is_forward(const Use& use) const { return use.made != kNone && use.made <= peak_; }

  // ---- what is kept

  // All values but those that cost little and whose operands are there anyway.
  void keep_what_costs() {
    for (size_t place = 0; int(place) <= peak_; ++place) {
      const Node& n = ir_.node(ir_.nodes[place]);
      const bool again = is_cheap(n) && std::ranges::all_of(n.inputs, [&](ValueId v) {
                           const Use& use = values_[ir_.root(v)];
                           return use.made == kNone || crosses_peak(use) || use.bytes <= kLittle;
                         });
      for (uint32_t k = 0; k < n.outputs; ++k) values_[n.first_output + k].kept |= !again;
    }
  }
  bool is_cheap(const Node& n) const {
    size_t bytes = 0;
    for (uint32_t k = 0; k < n.outputs; ++k) bytes += values_[n.first_output + k].bytes;
    return cost_of(*ir_.graph, n, 1).alone <= kCheap * double(bytes);
  }

  // What the forward pass reads after the end of the part that computes it, and all of the last part.
  void keep_between_parts(int parts) {
    const std::vector<int> ends = ends_of_parts(parts);
    for (Use& use : values_)
      if (is_forward(use)) {
        const auto end = std::ranges::lower_bound(ends, use.made);
        use.kept |= end == ends.end() || *end < use.last_forward;
      }
  }

  // After which places the parts but the last end: where the forward pass needs few bytes later on, so that all parts
  // have about as many bytes that the backward pass reads.
  std::vector<int> ends_of_parts(int parts) const {
    std::vector<int64_t> needed(size_t(peak_) + 2, 0), read_later(size_t(peak_) + 2, 0);
    for (const Use& use : values_) {
      if (!is_forward(use)) continue;
      if (crosses_peak(use)) read_later[size_t(use.made)] += int64_t(use.bytes);
      if (use.last_forward <= use.made) continue;
      needed[size_t(use.made)] += int64_t(use.bytes);
      needed[size_t(use.last_forward)] -= int64_t(use.bytes);
    }
    for (size_t place = 1; place < needed.size(); ++place) {
      needed[place] += needed[place - 1];
      read_later[place] += read_later[place - 1];
    }
    std::vector<int> ends;
    const int64_t share = read_later.back() / parts;
    for (int64_t part = 1; part < parts; ++part) {
      const auto from = std::ranges::lower_bound(read_later, part * share - share / 2);
      const auto to = std::ranges::upper_bound(read_later, part * share + share / 2);
      const auto first = needed.begin() + (from - read_later.begin());
      const auto last = std::min(needed.begin() + (to - read_later.begin()), needed.begin() + peak_);
      if (first >= last) continue;
      const int end = int(std::ranges::min_element(first, last) - needed.begin());
      if (ends.empty() || end > ends.back()) ends.push_back(end);
    }
    return ends;
  }

  // ---- the copies

  void rewrite() {
    const std::vector<Node> before = std::exchange(ir_.graph->nodes, {});
    original_ = &before;
    const int last_forward = ir_.nodes[size_t(peak_)];
    ir_.nodes.clear();
    for (size_t i = 0; i < before.size(); ++i) {
      Node n = before[i];
      if (live_[i] && int(i) > last_forward) read_copies(n);
      add(std::move(n), live_[i]);
      if (live_[i]) last_original_ = ir_.nodes.back();
    }
    ir_.remove_dead_nodes();
  }
  void add(Node n, bool live) {
    const int i = int(ir_.graph->nodes.size());
    for (uint32_t k = 0; k < n.outputs; ++k) ir_.graph->values[n.first_output + k].node = i;
    for (uint32_t k = 0; k < n.outputs; ++k)
      if (ir_.values[n.first_output + k].node != kNone) ir_.values[n.first_output + k].node = i;
    if (live) ir_.nodes.push_back(i);
    ir_.graph->nodes.push_back(std::move(n));
  }
  void read_copies(Node& n) {
    for (ValueId& v : n.inputs) {
      const Use& use = values_[ir_.root(v)];
      if (is_forward(use) && !use.kept) v = copy_of(v);
    }
  }

  // The copy of a value, or the same view of its root's copy.
  ValueId copy_of(ValueId v) {
    if (copy_of_[v] != kNone) return ValueId(copy_of_[v]);
    if (const ValueId root = ir_.root(v); root != v) {
      const ValueId whole = copy_of(root), view = add_value(v);
      ir_.alias(view, whole, ir_.values[v].offset);
      copy_of_[v] = int(view);
      return view;
    }
    Node n = (*original_)[size_t(original_node(v))];
    read_copies(n);
    const ValueId first = n.first_output;
    for (uint32_t k = 0; k < n.outputs; ++k) copy_of_[first + k] = int(add_value(first + k));
    n.first_output = ValueId(copy_of_[first]);
    if (n.location.code) location_source.retain(n.location.code);
    add(std::move(n), true);
    ir_.not_before[ir_.nodes.back()] = last_original_;
    return ValueId(copy_of_[v]);
  }
  ValueId add_value(ValueId like) {
    const ValueId v = ValueId(ir_.values.size());
    ir_.graph->values.push_back(Value(ir_.graph->values[like]));
    ir_.values.push_back(ValueInfo(ir_.values[like]));
    ir_.values[v].root = v;
    return v;
  }
  // Nodes before the peak keep their order, so that of a value is the one in its place of the program.
  int original_node(ValueId v) const { return place_to_node_[size_t(values_[v].made)]; }

  PlanIR& ir_;
  std::vector<Use> values_;
  std::vector<bool> live_;    // by node
  std::vector<int> copy_of_;  // by value
  const std::vector<int> place_to_node_ = ir_.nodes;
  const std::vector<Node>* original_ = nullptr;
  int peak_ = kNone, last_original_ = kNone;
};

}  // namespace

const int most_rematerialisation = int(kParts.size()) - 1;

void rematerialise(PlanIR& ir) {
  if (ir.rematerialisation > kNothing) Rematerialisation(ir).run(ir.rematerialisation);
}

}  // namespace tapeflow::plan
