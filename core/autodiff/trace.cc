// Keeps the provenance log of a tape within bounds.
#include "autodiff/trace.h"

#include <algorithm>
#include <cstring>

namespace tapeflow {
namespace {
constexpr size_t kPartLimit = 1 << 13;
}  // namespace

LocationSource location_source;

Location place_of_origin(bool of_forward) {
  if (!location_source.current) return {};
  const Origin& origin = *thread_locals.origin;
  if (!origin.location.code || (origin.backward && !of_forward)) return location_source.current();
  location_source.retain(origin.location.code);
  return origin.location;
}

void Place::set_here() {
  forget();
  at_ = here();
}
void Place::forget() {
  if (at_.code) location_source.release(at_.code);
  at_ = {};
}

void Trace::Part::clear() {
  for (LoggedEvent& n : events)
    if (n.location.code) location_source.release(n.location.code);
  events.clear();
  inputs.clear();
  leaves.clear();
}

void Trace::clear() {
  for (Part& part : part_) part.clear();
}

void Trace::make_room() {
  std::swap(part_[0], part_[1]);
  part_[0].clear();
}

LoggedEvent& Trace::add(Event event, Moment moment, const Op* op, size_t records) {
  if (part_[0].events.size() >= kPartLimit || part_[0].inputs.size() >= 8 * kPartLimit) make_room();
  Part& part = part_[0];
  LoggedEvent& n = part.events.emplace_back();
  n.op = op;
  n.location = here();
  n.records = uint32_t(records);
  n.first_input = uint32_t(part.inputs.size());
  n.event = event;
  n.moment = moment;
  return n;
}

Leaf describe(ValueIndex index, const Tensor& t) {
  Leaf leaf{index, t.dtype(), !t.body()->wrapper, t.size(), 0, 0};
  if (t.symbolic()) return leaf;
  if (t.dtype() == DType::float32 && t.size() == 1) {
    std::memcpy(&leaf.first, t.raw(), sizeof(float));
    leaf.last = leaf.first;
  } else if (t.dtype() != DType::string) {
    size_t bytes = t.bytes(), part = std::min<size_t>(bytes, 8);
    std::memcpy(&leaf.first, t.raw(), part);
    std::memcpy(&leaf.last, static_cast<const char*>(t.raw()) + (bytes - part), part);
  }
  return leaf;
}

void Trace::add_leaf(ValueIndex index, const Tensor& t) {
  if (part_[0].leaves.size() >= kPartLimit) make_room();
  part_[0].leaves.push_back(describe(index, t));
}

}  // namespace tapeflow
