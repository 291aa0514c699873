// Where the values of a plan live: in memory of their own, in a variable's, or in memory that others have done with.
#include <algorithm>

#include "plan/borrowed_memory.h"
#include "plan/planner.h"

namespace tapeflow {

void Planner::find_lifetimes() {
  Graph& g = graph();
  int end = int(scheduled_.size());
  for (ValueId v : g.outputs) {
    info_[meant(v)].kept = true;
    info_[meant(v)].last_use = end;
    info_[meant(v)].is_result = true;
  }
  for (auto& [variable, v] : stores_) {
    info_[meant(v)].kept = true;
    info_[meant(v)].last_use = end;
  }
  for (int s = end; s-- > 0;) {
    scheduled_[size_t(s)].each_node([&](int i) {
      const Node& n = g.nodes[size_t(i)];
      // What a kernel makes may lie in its inputs.
      int until = s;
      if (n.op->makes_outputs)
        for (uint32_t k = 0; k < n.outputs; ++k) until = std::max(until, info_[n.first_output + k].last_use);
      for (ValueId v : n.inputs) {
        Info& used = info_[meant(v)];
        used.last_use = std::max(used.last_use, until);
        used.lent |= until > s;
        bool inside = used.step == s && used.grouped && info_[v].offset == 0 &&
                      spec(v).shape.elements() == spec(meant(v)).shape.elements();
        if (!inside) used.kept = true;
      }
    });
  }
  for (ValueId v = 0; v < info_.size(); ++v)
    if (meant(v) != v && info_[meant(v)].kind == Info::Kind::computed &&
        (info_[v].offset || spec(v).shape.elements() != spec(meant(v)).shape.elements()))
      info_[meant(v)].kept = true;
}

TensorBody* Planner::body_of(ValueId v) {
  Info& info = info_[v];
  if (!info.body) {
    const Tensor& t = graph().values[v].tensor;
    if (info.kind == Info::Kind::constant && meant(v) == v) {
      t.raw();
      info.body = t;
    } else {
      info.body = bare_body(t.dtype(), t.shape());
    }
    plan_->bodies_.push_back(info.body);
  }
  return info.body.body();
}

// A value that is computed by a step straight into memory of its own: it can be an output or a variable's new value.
bool Planner::own_memory(ValueId v) {
  const Info& info = info_[v];
  return meant(v) == v && info.kind == Info::Kind::computed && !made(graph().nodes[size_t(info.node)]);
}

void Planner::place_values() {
  Graph& g = graph();
  for (size_t i = 0; i < g.inputs.size(); ++i) plan_->inputs_.push_back({body_of(g.inputs[i]), spec(g.inputs[i])});
  for (size_t i = 0; i < variable_values_.size(); ++i) plan_->variables_[i].body = body_of(variable_values_[i]);
  std::map<ValueId, int> store_of;
  for (auto& [variable, v] : stores_) {
    bool computed = own_memory(v) && !store_of.contains(v) && spec(v).shape == variable->shape;
    if (computed) store_of[v] = int(plan_->stores_.size()), info_[v].stored = true;
    plan_->stores_.push_back(
        {variable, body_of(v), spec(v), computed, computed && over_old_value(variable, v), Tensor()});
  }
  std::set<ValueId> fresh;
  for (ValueId v : g.outputs) {
    using Kind = Plan::Result::Kind;
    ValueId m = meant(v);
    if (m == v && info_[v].kind == Info::Kind::input) {
      int at = int(std::find(g.inputs.begin(), g.inputs.end(), v) - g.inputs.begin());
      plan_->results_.push_back({Kind::input, nullptr, spec(v), at, Tensor()});
    } else if (info_[m].kind == Info::Kind::variable && info_[v].offset == 0 &&
               spec(v).shape.elements() == spec(m).shape.elements()) {
      int at = int(std::ranges::find(variable_values_, m) - variable_values_.begin());
      plan_->results_.push_back({Kind::variable, nullptr, spec(v), at, Tensor()});
    } else if (m == v && info_[v].kind == Info::Kind::constant) {
      plan_->results_.push_back({Kind::constant, nullptr, spec(v), 0, g.values[v].tensor});
    } else if (auto it = store_of.find(m);
               it != store_of.end() && info_[v].offset == 0 && spec(v).shape.elements() == spec(m).shape.elements()) {
      plan_->results_.push_back({Kind::stored, nullptr, spec(v), it->second, Tensor()});
    } else if (own_memory(v) && fresh.insert(v).second) {
      plan_->results_.push_back({Kind::computed, body_of(v), spec(v), 0, Tensor()});
      info_[v].stored = true;
    } else {
      plan_->results_.push_back({Kind::copied, body_of(v), spec(v), 0, Tensor()});
    }
  }
  place_in_arena();
}

// Whether a variable's new value may be written over the old one, element by element: everyone who reads the old one
// has done so, or reads in the same group the same element.
bool Planner::over_old_value(VariableBody* variable, ValueId v) {
  const Info& info = info_[v];
  // If another part fails, whose steps come first in the program, the variable must be as it was.
  if (const int part = scheduled_[size_t(info.step)].part; part != kNone && parts_[size_t(part)]) return false;
  size_t at = 0;
  while (at < variable_values_.size() && plan_->variables_[at].variable != variable) ++at;
  if (at == variable_values_.size()) return true;
  ValueId old = variable_values_[at];
  if (info_[old].last_use > info.step || info_[old].is_result) return false;
  if (info_[old].last_use < info.step) return true;
  return read_element_by_element(old, v);
}

// Whether the step that computes `v` may write it over `old`. A group may if its members read `old` itself, element by
// element, none does so after the one that makes `v`, and neither the kernel that they follow nor a reduction reads it.
bool Planner::read_element_by_element(ValueId old, ValueId v) {
  if (info_[old].lent) return false;
  const Scheduled& s = scheduled_[size_t(info_[v].step)];
  if (!info_[v].grouped) {
    const Node& n = graph().nodes[size_t(info_[v].node)];
    if (!n.op->changes_first || meant(n.inputs[0]) != old || info_[n.inputs[0]].offset != 0) return false;
    return meant(n.inputs[1]) != old && meant(n.inputs[2]) != old;
  }
  if (size_of(spec(old).dtype) != size_of(spec(v).dtype)) return false;
  if (s.kernel != kNone)
    for (ValueId x : graph().nodes[size_t(s.kernel)].inputs)
      if (meant(x) == old) return false;
  for (int i : s.reductions)
    if (meant(graph().nodes[size_t(i)].inputs[0]) == old) return false;
  bool written = false;
  for (int i : s.group) {
    const Node& n = graph().nodes[size_t(i)];
    for (ValueId x : n.inputs)
      if (meant(x) == old &&
          (written || info_[x].offset != 0 || spec(x).shape.elements() != spec(n.first_output).shape.elements()))
        return false;
    written |= n.first_output == v;
  }
  return true;
}

// Parts of a section take memory from those before it, but not from each other, and give theirs back to themselves
// alone until the section ends.
void Planner::place_in_arena() {
  std::multimap<size_t, Buffer*> unused, of_this_part, of_other_parts;
  std::vector<std::vector<Place>> ends(scheduled_.size() + 1);  // what is free after each step
  std::vector<Buffer*> all;
  size_t section_end = 0;
  for (size_t s = 0; s < scheduled_.size(); ++s) {
    const int part = scheduled_[s].part;
    if (s > 0 && part != scheduled_[s - 1].part) of_other_parts.merge(of_this_part);
    if (s == section_end) unused.merge(of_other_parts);
    if (const auto section = std::ranges::find(sections_, s, &Section::first); section != sections_.end())
      section_end = section->ends.back();
    scheduled_[s].each_node([&](int i) {
      const Node& n = graph().nodes[size_t(i)];
      if (made(n)) return;
      for (uint32_t k = 0; k < n.outputs; ++k) {
        ValueId v = n.first_output + k;
        Info& info = info_[v];
        if (info.stored || (info.grouped && !info.kept)) continue;
        TensorBody* body = body_of(v);
        size_t bytes = size_t(body->size) * size_of(body->dtype);
        if (bytes <= sizeof body->small) continue;
        Place place = take_over(ends[s], v, bytes);
        for (auto* free : {&of_this_part, &unused}) {
          auto found = free->lower_bound(bytes);
          if (place.buffer || found == free->end() || found->first > 2 * bytes) continue;
          place = {v, found->first, found->second};
          free->erase(found);
        }
        if (!place.buffer) {
          place = {v, bytes, allocate_buffer(bytes)};
          all.push_back(place.buffer);
        }
        place.buffer->retain();
        body->buffer = place.buffer;
        body->data = place.buffer->data;
        ends[info.last_use == kNone ? s : size_t(info.last_use)].push_back(place);
      }
    });
    for (const Place& p : ends[s])
      if (p.buffer)
        (part == kNone ? unused : part == part_of(p.value) ? of_this_part : of_other_parts).emplace(p.bytes, p.buffer);
  }
  for (Buffer* b : all) b->drop();
}

// The memory of a value that the group which computes `v` reads for the last time, if `v` may be written over it.
Planner::Place Planner::take_over(std::vector<Place>& dying, ValueId v, size_t bytes) {
  for (Place& p : dying)
    if (p.buffer && p.bytes >= bytes && p.bytes <= 2 * bytes &&
        (part_of(v) == kNone || part_of(v) == part_of(p.value)) &&
        (!info_[p.value].grouped || info_[p.value].step < info_[v].step) && read_element_by_element(p.value, v))
      return {v, p.bytes, std::exchange(p.buffer, nullptr)};
  return {v, 0, nullptr};
}

}  // namespace tapeflow
