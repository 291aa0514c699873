// Serial numbers of live watchers, and the marks on tensors.
#include "autodiff/watcher.h"

namespace tapeflow {
namespace {
// A serial's low byte is its place in this table while the watcher lives; a mark with any other serial is stale and may
// be overwritten. Watchers beyond 255 have place 255, where nothing is ever live, and use their own table.
constexpr uint64_t kPlaces = 256, kNoPlace = 255;
uint64_t live_serial[kPlaces];
Watcher* live_watcher[kPlaces];
uint64_t generation = 0;

uint64_t new_serial(Watcher* watcher) {
  ++generation;
  for (uint64_t place = 0; place < kNoPlace; ++place)
    if (live_serial[place] == 0) {
      live_watcher[place] = watcher;
      return live_serial[place] = generation * kPlaces + place;
    }
  return generation * kPlaces + kNoPlace;
}
void retire(uint64_t serial) {
  if (Watcher::live(serial)) live_serial[serial % kPlaces] = 0;
}
}  // namespace

bool Watcher::live(uint64_t serial) { return serial != 0 && live_serial[serial % kPlaces] == serial; }
Watcher* Watcher::owner(uint64_t serial) { return live(serial) ? live_watcher[serial % kPlaces] : nullptr; }

Watcher::Watcher(Kind kind) : kind_(kind), serial_(new_serial(this)) {}
Watcher::~Watcher() { retire(serial_); }

void Watcher::forget_all() {
  retire(serial_);
  serial_ = new_serial(this);
  table_.clear();
}

ValueIndex Watcher::find_in_table(const void* key) const {
  auto it = table_.find(key);
  return it == table_.end() ? kNotFollowed : it->second.index;
}

void Watcher::follow(Marks& marks, const void* key, ValueIndex index, Tensor holder) {
  for (Mark& mark : marks.slot)
    if (mark.tape == serial_) {
      mark.value = index;
      return;
    }
  if (serial_ % kPlaces != kNoPlace)
    for (Mark& mark : marks.slot)
      if (!live(mark.tape)) {
        mark = {serial_, index};
        return;
      }
  if (serial_ % kPlaces != kNoPlace)
    for (Mark& mark : marks.slot)
      if (!is_followed(mark.value)) {
        mark = {serial_, index};
        return;
      }
  marks.overflow = true;
  table_[key] = {index, std::move(holder)};
}

bool Watcher::mark_unfollowed(Marks& marks, ValueIndex index) {
  if (serial_ % kPlaces == kNoPlace) return false;
  Mark* place = nullptr;
  for (Mark& mark : marks.slot)
    if (mark.tape == serial_ || (!place && !live(mark.tape))) place = &mark;
  if (place) *place = {serial_, index};
  return place;
}

}  // namespace tapeflow
