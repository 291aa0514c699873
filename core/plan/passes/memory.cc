// Memory: where values live.
//
// Input:     `steps` in their final order.
// Output:    the lifetimes of values, and a body for each value that is materialized: inputs, variables and outputs
//            get memory when the plan runs, other values share buffers by lifetime.
// Invariant: a buffer holds one live value at a time. A new value is written over an old one only if every reader
//            of the old one is done, or reads in the same step the same element first. A variable that is assigned
//            and then updated by rows has both values in its own memory. Lanes of a region share no buffer that one
//            of them writes.
#include <algorithm>
#include <utility>

#include "plan/borrowed_memory.h"
#include "plan/passes.h"

namespace tapeflow::plan {
namespace {

void find_lifetimes(PlanIR& ir) {
  const int end = int(ir.steps.size());
  for (ValueId v : ir.graph->outputs) {
    ValueInfo& info = ir.values[ir.root(v)];
    info.materialized = info.is_output = true;
    info.last_use = end;
  }
  for (const auto& [variable, v] : ir.stores) {
    ValueInfo& info = ir.values[ir.root(v)];
    info.materialized = true;
    info.last_use = end;
  }
  for (int s = end; s-- > 0;) {
    ir.steps[size_t(s)].each_node([&](int i) {
      const Node& n = ir.node(i);
      // The results of a kernel that makes them may be views of its inputs.
      int until = s;
      if (n.op->makes_outputs)
        for (uint32_t k = 0; k < n.outputs; ++k) until = std::max(until, ir.values[n.first_output + k].last_use);
      for (ValueId v : n.inputs) {
        ValueInfo& used = ir.values[ir.root(v)];
        used.last_use = std::max(used.last_use, until);
        used.escapes_in_view |= until > s;
        if (used.step != s || !used.fused || !ir.covers_root(v)) used.materialized = true;
      }
    });
  }
  for (ValueId v = 0; v < ir.values.size(); ++v)
    if (ir.root(v) != v && ir.computed(ir.root(v)) && !ir.covers_root(v)) ir.values[ir.root(v)].materialized = true;
}

// A value that a step computes straight into memory of its own: it can be an output or a variable's new value.
bool has_own_memory(const PlanIR& ir, ValueId v) {
  return ir.root(v) == v && ir.computed(v) && !ir.node(ir.values[v].node).op->makes_outputs;
}

// Whether the step that computes `v` may write it over `old`, whose last reader it is. A fusion may if its nodes read
// `old` itself, element by element, none does so after the one that computes `v`, and neither the kernel it follows nor
// a reduction reads it.
bool can_overwrite(const PlanIR& ir, ValueId old, ValueId v) {
  if (ir.values[old].escapes_in_view) return false;
  const Step& step = ir.steps[size_t(ir.values[v].step)];
  if (!ir.values[v].fused) {
    const Node& n = ir.node(ir.values[v].node);
    if (!n.op->updates_in_place || ir.root(n.inputs[0]) != old || ir.values[n.inputs[0]].offset != 0) return false;
    return ir.root(n.inputs[1]) != old && ir.root(n.inputs[2]) != old;
  }
  if (size_of(ir.dtype(old)) != size_of(ir.dtype(v))) return false;
  if (!step.is_fusion())
    for (ValueId x : ir.node(step.kernel).inputs)
      if (ir.root(x) == old) return false;
  for (int i : step.reductions)
    if (ir.root(ir.node(i).inputs[0]) == old) return false;
  bool written = false;
  for (int i : step.fused) {
    const Node& n = ir.node(i);
    for (ValueId x : n.inputs)
      if (ir.root(x) == old && (written || ir.values[x].offset != 0 || ir.elements(x) != ir.elements_of(n)))
        return false;
    written |= n.first_output == v;
  }
  return true;
}

// Whether a variable's new value may be written over the old one.
bool can_update_in_place(const PlanIR& ir, VariableBody* variable, ValueId v) {
  const ValueInfo& info = ir.values[v];
  // If another lane fails, whose steps come first in the program, the variable must be as it was.
  if (const int lane = ir.lane_of(v); lane != kNone && ir.lane_may_fail[size_t(lane)]) return false;
  const auto read = std::ranges::find(ir.variables, variable, &PlanIR::VariableValue::variable);
  if (read == ir.variables.end()) return true;
  const ValueInfo& old = ir.values[read->value];
  if (old.last_use > info.step || old.is_output) return false;
  return old.last_use < info.step || can_overwrite(ir, read->value, v);
}

// The value from which a kernel makes the variable's new value `v` in place, if the program had assigned it to the
// variable, too, so that it may be seen there if the kernel fails. kNone if there is none.
int updated_value(const PlanIR& ir, VariableBody* variable, ValueId v) {
  const Node& n = ir.node(ir.values[v].node);
  if (ir.values[v].fused || !n.op->updates_in_place) return kNone;
  const ValueId x = ir.root(n.inputs[0]);
  const ValueInfo& old = ir.values[x];
  const bool fits = has_own_memory(ir, x) && !old.is_output && !old.stored && old.last_use == ir.values[v].step &&
                    ir.lane_of(x) == ir.lane_of(v) && ir.covers_root(n.inputs[0]) && can_overwrite(ir, x, v);
  const bool assigned = std::ranges::any_of(ir.between, [&](const PlanIR::VariableValue& value) {
    return value.variable == variable && ir.root(value.value) == x && ir.covers_root(value.value);
  });
  return fits && assigned ? int(x) : kNone;
}

// What the outputs of the plan are, and which of them, and of the new values of variables, are computed in place.
void place_results(PlanIR& ir) {
  PlanCode& code = ir.code;
  const Graph& g = *ir.graph;
  std::map<ValueId, int> store_by_value;
  for (const auto& [variable, v] : ir.stores) {
    const bool computed = has_own_memory(ir, v) && !store_by_value.contains(v) && ir.shape(v) == variable->shape;
    ValueId first = v;  // of those that lie in the memory of the store
    if (computed) {
      store_by_value[v] = int(code.stores.size());
      ir.values[v].stored = true;
      for (int x; (x = updated_value(ir, variable, first)) != kNone; first = ValueId(x)) {
        ir.values[size_t(x)].stored = true;
        code.aliases.push_back({ir.body_of(ValueId(x)), ir.body_of(v), 0});
      }
    }
    const bool in_place = computed && can_update_in_place(ir, variable, first);
    code.stores.push_back({variable, ir.body_of(v), ir.spec(v), computed, in_place, Tensor()});
  }
  std::set<ValueId> fresh;
  for (ValueId v : g.outputs) {
    using Kind = PlanCode::Result::Kind;
    const ValueId root = ir.root(v);
    const ValueInfo::Kind kind = ir.values[root].kind;
    if (root == v && kind == ValueInfo::Kind::input) {
      const int at = int(std::ranges::find(g.inputs, v) - g.inputs.begin());
      code.results.push_back({Kind::input, nullptr, ir.spec(v), at, Tensor()});
    } else if (kind == ValueInfo::Kind::variable && ir.covers_root(v)) {
      const int at = int(std::ranges::find(ir.variables, root, &PlanIR::VariableValue::value) - ir.variables.begin());
      code.results.push_back({Kind::variable, nullptr, ir.spec(v), at, Tensor()});
    } else if (root == v && kind == ValueInfo::Kind::constant) {
      code.results.push_back({Kind::constant, nullptr, ir.spec(v), 0, g.values[v].tensor});
    } else if (auto it = store_by_value.find(root); it != store_by_value.end() && ir.covers_root(v)) {
      code.results.push_back({Kind::stored, nullptr, ir.spec(v), it->second, Tensor()});
    } else if (has_own_memory(ir, v) && fresh.insert(v).second) {
      code.results.push_back({Kind::computed, ir.body_of(v), ir.spec(v), 0, Tensor()});
      ir.values[v].stored = true;
    } else {
      code.results.push_back({Kind::copied, ir.body_of(v), ir.spec(v), 0, Tensor()});
    }
  }
}

// ---- buffers that values share

struct Place {
  ValueId value;
  size_t bytes;
  Buffer* buffer;
};

// The memory of a value that the step which computes `v` reads for the last time, if `v` may be written over it.
Place take_over(const PlanIR& ir, std::vector<Place>& dying, ValueId v, size_t bytes) {
  const int lane = ir.lane_of(v);
  for (Place& p : dying)
    if (p.buffer && p.bytes >= bytes && p.bytes <= 2 * bytes && (lane == kNone || lane == ir.lane_of(p.value)) &&
        (!ir.values[p.value].fused || ir.values[p.value].step < ir.values[v].step) && can_overwrite(ir, p.value, v))
      return {v, p.bytes, std::exchange(p.buffer, nullptr)};
  return {v, 0, nullptr};
}

// Lanes of a region take memory from what is free before it, but not from each other, and give theirs back to
// themselves alone until the region ends.
void assign_buffers(PlanIR& ir) {
  std::multimap<size_t, Buffer*> free, of_this_lane, of_other_lanes;
  std::vector<std::vector<Place>> dying(ir.steps.size() + 1);  // by step: what is free after it
  std::vector<Buffer*> all;
  size_t region_end = 0;
  for (size_t s = 0; s < ir.steps.size(); ++s) {
    const int lane = ir.steps[s].lane;
    if (s > 0 && lane != ir.steps[s - 1].lane) of_other_lanes.merge(of_this_lane);
    if (s == region_end) free.merge(of_other_lanes);
    if (const auto region = std::ranges::find(ir.regions, s, &ParallelRegion::first); region != ir.regions.end())
      region_end = region->ends.back();
    ir.steps[s].each_node([&](int i) {
      const Node& n = ir.node(i);
      if (n.op->makes_outputs) return;
      for (uint32_t k = 0; k < n.outputs; ++k) {
        const ValueId v = n.first_output + k;
        const ValueInfo& info = ir.values[v];
        if (info.stored || (info.fused && !info.materialized)) continue;
        TensorBody* body = ir.body_of(v);
        const size_t bytes = size_t(body->size) * size_of(body->dtype);
        if (bytes <= sizeof body->small) continue;
        Place place = take_over(ir, dying[s], v, bytes);
        for (auto* list : {&of_this_lane, &free}) {
          auto found = list->lower_bound(bytes);
          if (place.buffer || found == list->end() || found->first > 2 * bytes) continue;
          place = {v, found->first, found->second};
          list->erase(found);
        }
        if (!place.buffer) {
          place = {v, bytes, allocate_buffer(bytes)};
          all.push_back(place.buffer);
          ir.code.bytes += bytes;
        }
        place.buffer->retain();
        body->buffer = place.buffer;
        body->data = place.buffer->data;
        dying[info.last_use == kNone ? s : size_t(info.last_use)].push_back(place);
      }
    });
    for (const Place& p : dying[s])
      if (p.buffer)
        (lane == kNone ? free : lane == ir.lane_of(p.value) ? of_this_lane : of_other_lanes).emplace(p.bytes, p.buffer);
  }
  for (Buffer* b : all) b->drop();
}

}  // namespace

void memory(PlanIR& ir) {
  find_lifetimes(ir);
  for (ValueId v : ir.graph->inputs) ir.code.inputs.push_back({ir.body_of(v), ir.spec(v)});
  for (const auto& [variable, v] : ir.variables) ir.code.variables.push_back({variable, ir.body_of(v), ir.spec(v)});
  place_results(ir);
  assign_buffers(ir);
}

}  // namespace tapeflow::plan
