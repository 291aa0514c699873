// Which tensors and variables a recorder follows. A value that is followed has an index; the tensor itself remembers
// it in one of two marks, so that asking costs two comparisons. With more recorders than marks a table helps out.
#pragma once
#include <unordered_map>

#include "op/op.h"

namespace tapeflow {

using ValueIndex = uint32_t;
constexpr ValueIndex kNotFollowed = ~ValueIndex(0);
// Values that are not followed but known, so that their way can be told, have this bit. With the second bit the rest is
// the index of a record's output, one whose dtype has no gradient.
constexpr ValueIndex kUnfollowed = ValueIndex(1) << 31, kRecordOutput = ValueIndex(1) << 30;
constexpr bool is_followed(ValueIndex i) { return i < kUnfollowed; }

class Watcher {
 public:
  enum class Kind : uint8_t { tape, accumulator };
  explicit Watcher(Kind);
  ~Watcher();
  Watcher(const Watcher&) = delete;

  ValueIndex find(const Tensor& t) const { return find(t.body()->marks, t.body()); }
  ValueIndex find(const VariableBody& v) const { return find(v.marks, &v); }
  void follow(const Tensor& t, ValueIndex index) { follow(t.body()->marks, t.body(), index, t); }
  void follow(VariableBody& v, ValueIndex index) { follow(v.marks, &v, index, Tensor()); }
  // Notes where a value that is not followed is known by, if a mark is free: a followed value may take the mark.
  bool mark_unfollowed(Marks&, ValueIndex);
  void forget_all();
  uint64_t serial() const { return serial_; }
  Kind kind() const { return kind_; }

  static bool live(uint64_t serial);
  static Watcher* owner(uint64_t serial);  // null if it is not alive

 private:
  ValueIndex find(const Marks& marks, const void* key) const {
    if (marks.slot[0].tape == serial_) return marks.slot[0].value;
    if (marks.slot[1].tape == serial_) return marks.slot[1].value;
    return marks.overflow ? find_in_table(key) : kNotFollowed;
  }
  ValueIndex find_in_table(const void* key) const;
  void follow(Marks&, const void* key, ValueIndex, Tensor holder);

  struct Entry {
    ValueIndex index;
    Tensor holder;  // keeps the key's address from being used again
  };
  Kind kind_;
  uint64_t serial_;
  std::unordered_map<const void*, Entry> table_;
};

}  // namespace tapeflow
