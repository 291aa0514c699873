// Parameter blocks (recycled through a free list) and the constructors of signature rows.
#include "op/params.h"

#include "base/error.h"
#include "tensor/shared_memory.h"

namespace tapeflow {
namespace {
constexpr int kFreeLimit = 256;
void* free_blocks[kFreeLimit];
int free_count = 0;

void* free_block() {
  LockMemory lock;
  return free_count ? free_blocks[--free_count] : nullptr;
}
}  // namespace

Params Params::sized(size_t count) {
  Params p;
  void* free = free_block();
  p.block_ = free ? static_cast<Block*>(free) : new Block;
  p.block_->references = 1;
  p.block_->values.resize(count);
  return p;
}

Params Params::joined(Param first, const Params& rest) {
  Params all = sized(rest.size() + 1);
  all.mutable_at(0) = std::move(first);
  for (int i = 0; i < int(rest.size()); ++i) all.mutable_at(i + 1) = rest.at(i);
  return all;
}

Params Params::without_first() const {
  Params rest = sized(size() - 1);
  for (int i = 1; i < int(size()); ++i) rest.mutable_at(i - 1) = at(i);
  return rest;
}

Param::Param(Tensor symbolic, int argument_kind)
    : kind(Kind::tensor), integer(argument_kind), object(std::make_shared<Tensor>(std::move(symbolic))) {}

Params Params::first(int count) const {
  Params result = sized(size_t(count));
  for (int i = 0; i < count; ++i) result.mutable_at(i) = at(i);
  return result;
}

Params Params::appended(Param last) const {
  Params result = sized(size() + 1);
  for (int i = 0; i < int(size()); ++i) result.mutable_at(i) = at(i);
  result.mutable_at(int(size())) = std::move(last);
  return result;
}

Params Params::with(int i, Param changed) const {
  Params result = sized(size());
  for (int k = 0; k < int(size()); ++k)
    if (k != i) result.mutable_at(k) = at(k);
  result.mutable_at(i) = std::move(changed);
  return result;
}

bool Params::has_tensor() const {
  for (size_t i = 0; i < size(); ++i)
    if (block_->values[i].kind == Param::Kind::tensor) return true;
  return false;
}

Shape Params::shape(Key<Ints> key) const {
  const Ints& dims = (*this)[key];
  if (dims.size() > size_t(kMaxRank))
    fail(ErrorKind::invalid_argument, "a shape has at most ", kMaxRank, " dimensions; got ", dims.size());
  return Shape(dims.data(), int(dims.size()));
}

void Params::recycle(Block* block) {
  block->values.clear();
  LockMemory lock;
  if (free_count < kFreeLimit)
    free_blocks[free_count++] = block;
  else
    delete block;
}

using Kind = Argument::Kind;

Argument tensor(const char* name, DTypes allowed, int group) {
  return {Kind::tensor, name, allowed, group, true, Param(), DType::invalid, -1, Argument::Whole::tensor};
}
Argument tensors(const char* name, DTypes allowed, int group) {
  return {Kind::tensors, name, allowed, group, true, Param(), DType::invalid, -1, Argument::Whole::tensor};
}
Argument index_tensor(const char* name) {
  return {Kind::tensor,           name, DTypes(DType::int32) | DType::int64, -1, true, Param(), DType::int32, -1,
          Argument::Whole::tensor};
}
Argument Argument::or_array() const {
  Argument a = *this;
  a.whole = Whole::array;
  return a;
}
Argument Argument::or_numbers() const {
  Argument a = *this;
  a.whole = Whole::numbers;
  return a;
}

namespace {
Argument parameter(Kind kind, const auto& key, bool required, Param fallback = Param()) {
  return {kind, key.name, {}, -1, required, std::move(fallback), DType::invalid, key.index, Argument::Whole::tensor};
}
}  // namespace

Argument flag(Key<bool> key, bool fallback) { return parameter(Kind::flag, key, false, Param(fallback)); }
Argument integer(Key<int64_t> key) { return parameter(Kind::integer, key, true); }
Argument integer(Key<int64_t> key, int64_t fallback) { return parameter(Kind::integer, key, false, Param(fallback)); }
Argument real(Key<double> key, double fallback) { return parameter(Kind::real, key, false, Param(fallback)); }
Argument dtype_argument(Key<DType> key) { return parameter(Kind::dtype, key, false); }
Argument required_dtype(Key<DType> key) { return parameter(Kind::dtype, key, true); }
Argument axes(Key<Ints> key) { return parameter(Kind::axes, key, false); }
Argument ints(Key<Ints> key) { return parameter(Kind::ints, key, true); }
Argument optional_ints(Key<Ints> key) { return parameter(Kind::ints, key, false); }
Argument text(Key<std::string> key) { return parameter(Kind::text, key, true); }
Argument text(Key<std::string> key, const char* fallback) { return parameter(Kind::text, key, false, Param(fallback)); }

}  // namespace tapeflow
