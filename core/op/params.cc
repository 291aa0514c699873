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
  for (int i = 0; i < int(rest.size()); ++i) all.mutable_at(i + 1) = rest[i];
  return all;
}

Params Params::without_first() const {
  Params rest = sized(size() - 1);
  for (int i = 1; i < int(size()); ++i) rest.mutable_at(i - 1) = (*this)[i];
  return rest;
}

Param::Param(Tensor symbolic, int argument_kind)
    : kind(Kind::tensor), integer(argument_kind), object(std::make_shared<Tensor>(std::move(symbolic))) {}

bool Params::has_tensor() const {
  for (size_t i = 0; i < size(); ++i)
    if (block_->values[i].kind == Param::Kind::tensor) return true;
  return false;
}

Shape Params::shape(int i) const {
  const Ints& dims = ints(i);
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
  return {Kind::tensor, name, allowed, group, true, Param(), DType::invalid};
}
Argument tensors(const char* name, DTypes allowed, int group) {
  return {Kind::tensors, name, allowed, group, true, Param(), DType::invalid};
}
Argument index_tensor(const char* name) {
  return {Kind::tensor, name, DTypes(DType::int32) | DType::int64, -1, true, Param(), DType::int32};
}
Argument flag(const char* name, bool fallback) {
  return {Kind::flag, name, {}, -1, false, Param(fallback), DType::invalid};
}
Argument integer(const char* name) { return {Kind::integer, name, {}, -1, true, Param(), DType::invalid}; }
Argument integer(const char* name, int64_t fallback) {
  return {Kind::integer, name, {}, -1, false, Param(fallback), DType::invalid};
}
Argument real(const char* name, double fallback) {
  return {Kind::real, name, {}, -1, false, Param(fallback), DType::invalid};
}
Argument dtype_argument(const char* name) { return {Kind::dtype, name, {}, -1, false, Param(), DType::invalid}; }
Argument required_dtype(const char* name) { return {Kind::dtype, name, {}, -1, true, Param(), DType::invalid}; }
Argument axes(const char* name) { return {Kind::axes, name, {}, -1, false, Param(), DType::invalid}; }
Argument ints(const char* name) { return {Kind::ints, name, {}, -1, true, Param(), DType::invalid}; }
Argument optional_ints(const char* name) { return {Kind::ints, name, {}, -1, false, Param(), DType::invalid}; }
Argument text(const char* name) { return {Kind::text, name, {}, -1, true, Param(), DType::invalid}; }
Argument text(const char* name, const char* fallback) {
  return {Kind::text, name, {}, -1, false, Param(fallback), DType::invalid};
}

}  // namespace tapeflow
