// Serial numbers of live watchers, and the marks on tensors.
#include "autodiff/watcher.h"

namespace tapeflow {
namespace {
constexpr size_t kMostKnownBytes = size_t(1) << 26;
}  // namespace

uint64_t Watcher::live_serial_[kPlaces];
Watcher* Watcher::live_watcher_[kPlaces];

uint64_t Watcher::new_serial(Watcher* watcher) {
  static uint64_t generation = 0;
  ++generation;
  for (uint64_t place = 0; place < kNoPlace; ++place)
    if (live_serial_[place] == 0) {
      live_watcher_[place] = watcher;
      return live_serial_[place] = generation * kPlaces + place;
    }
  return generation * kPlaces + kNoPlace;
}

void Watcher::retire(uint64_t serial) {
  if (live(serial)) live_serial_[serial % kPlaces] = 0;
}

bool Watcher::live(uint64_t serial) { return serial != 0 && live_serial_[serial % kPlaces] == serial; }
Watcher* Watcher::owner(uint64_t serial) { return live(serial) ? live_watcher_[serial % kPlaces] : nullptr; }

Watcher::Watcher(Kind kind) : kind_(kind), serial_(new_serial(this)) {}
Watcher::~Watcher() { retire(serial_); }

void Watcher::forget_all() {
  retire(serial_);
  serial_ = new_serial(this);
  table_.clear();
  known_bytes_ = 0;
}

ValueIndex Watcher::find_in_table(const void* key) const {
  auto it = table_.find(key);
  return it == table_.end() ? kUntracked : it->second.index;
}

void Watcher::track_beside_others(Marks& marks, const void* key, ValueIndex index, const Tensor* holder) {
  for (Mark& mark : marks.slot)
    if (mark.tape == serial_) {
      mark.value = index;
      return;
    }
  if (has_place())
    for (Mark& mark : marks.slot)
      if (!live(mark.tape)) {
        mark = {serial_, index};
        return;
      }
  if (has_place())
    for (Mark& mark : marks.slot)
      if (!is_tracked(mark.value)) {
        mark = {serial_, index};
        return;
      }
  marks.overflow = true;
  table_[key] = {index, holder ? *holder : Tensor()};
}

bool Watcher::mark_known(Marks& marks, ValueIndex index) {
  if (!has_place()) return false;
  Mark* place = nullptr;
  for (Mark& mark : marks.slot)
    if (mark.tape == serial_ || (!place && !live(mark.tape))) place = &mark;
  if (place) *place = {serial_, index};
  return place;
}

bool Watcher::mark_known(const Tensor& t, ValueIndex index) {
  Marks& marks = t.body()->marks;
  if (mark_known(marks, index)) return true;
  const size_t bytes = sizeof(Entry) + (t.symbolic() ? 0 : t.bytes());
  if (known_bytes_ + bytes > kMostKnownBytes) return false;
  known_bytes_ += bytes;
  marks.overflow = true;
  table_.insert_or_assign(t.body(), Entry{index, t});
  return true;
}

}  // namespace tapeflow
