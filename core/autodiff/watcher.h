// Which tensors and variables a recorder tracks. A value that is tracked has an index; the tensor itself records
// it in one of two marks, so that asking costs two comparisons. With more recorders than marks a table helps out.
#pragma once
#include <unordered_map>

#include "op/op.h"

namespace tapeflow {

using ValueIndex = uint32_t;
constexpr ValueIndex kUntracked = ~ValueIndex(0);
// Values that are not tracked but known, so that their provenance can be reported, have this bit. With the second bit
// the rest is the index of a record's output, one whose dtype has no gradient.
constexpr ValueIndex kOnlyKnown = ValueIndex(1) << 31, kRecordOutput = ValueIndex(1) << 30;
constexpr bool is_tracked(ValueIndex i) { return i < kOnlyKnown; }

class Watcher {
 public:
  enum class Kind : uint8_t { tape, accumulator };
  explicit Watcher(Kind);
  ~Watcher();
  Watcher(const Watcher&) = delete;

  ValueIndex find(const Tensor& t) const { return find(t.body()->marks, t.body()); }
  ValueIndex find(const VariableBody& v) const { return find(v.marks, &v); }
  void track(const Tensor& t, ValueIndex index) { track(t.body()->marks, t.body(), index, &t); }
  void track(VariableBody& v, ValueIndex index) { track(v.marks, &v, index, nullptr); }
  // Records where a value that is not tracked is known by, if a mark is free: a tracked value may take the mark.
  bool mark_known(Marks&, ValueIndex);
  // The same for a tensor, which is kept alive in the table if no mark is free, up to a number of bytes.
  bool mark_known(const Tensor&, ValueIndex);
  void forget_all();
  uint64_t serial() const { return serial_; }
  Kind kind() const { return kind_; }

  static bool live(uint64_t serial);
  static Watcher* owner(uint64_t serial);  // null if it is not alive

 private:
  ValueIndex find(const Marks& marks, const void* key) const {
    if (marks.slot[0].tape == serial_) return marks.slot[0].value;
    if (marks.slot[1].tape == serial_) return marks.slot[1].value;
    return marks.overflow ? find_in_table(key) : kUntracked;
  }
  ValueIndex find_in_table(const void* key) const;
  void track(Marks& marks, const void* key, ValueIndex index, const Tensor* holder) {
    if (marks.slot[0].tape == 0 && has_place())
      marks.slot[0] = {serial_, index};
    else
      track_beside_others(marks, key, index, holder);
  }
  void track_beside_others(Marks&, const void* key, ValueIndex, const Tensor* holder);

  // A serial's low byte is its place in the table of live watchers; a mark with any other serial is stale and may be
  // overwritten. Watchers beyond 255 have place 255, where nothing is ever live, and use their own table.
  static constexpr uint64_t kPlaces = 256, kNoPlace = 255;
  bool has_place() const { return serial_ % kPlaces != kNoPlace; }
  static uint64_t new_serial(Watcher*);
  static void retire(uint64_t serial);
  static uint64_t live_serial_[kPlaces];
  static Watcher* live_watcher_[kPlaces];

  struct Entry {
    ValueIndex index;
    Tensor holder;  // keeps the key's address from being used again
  };
  Kind kind_;
  uint64_t serial_;
  std::unordered_map<const void*, Entry> table_;
  size_t known_bytes_ = 0;  // of tensors in the table that are only known
};

}  // namespace tapeflow
