// Creating and destroying tensor bodies; a free list keeps the last few hundred.
#include "tensor/tensor.h"

#include <new>
#include <sstream>
#include <string>

#include "base/error.h"
#include "base/float8.h"
#include "tensor/out_of_memory.h"
#include "tensor/shared_memory.h"

namespace tapeflow {
namespace {
constexpr int kFreeLimit = 1024;
TensorBody* free_bodies[kFreeLimit];
int free_count = 0;
}  // namespace

static TensorBody* free_body() {
  LockMemory lock;
  return free_count ? free_bodies[--free_count] : new TensorBody;
}

TensorBody* TensorBody::create() {
  TensorBody* body = free_body();
  body->references = 1;
  body->symbolic = body->added_in_background = false;
  body->data = body->small;
  body->buffer = nullptr;
  body->marks = Marks();
  body->wrapper = nullptr;
  return body;
}

void TensorBody::destroy() {
  if (buffer)
    buffer->drop();
  else if (!data && !symbolic)
    drop_lazy(this);
  LockMemory lock;
  if (free_count < kFreeLimit)
    free_bodies[free_count++] = this;
  else
    delete this;
}

namespace {
// The number of elements; throws if a dimension is negative or the bytes cannot be counted.
int64_t checked_elements(const Shape& shape, size_t element_size) {
  int64_t n = 1, signs = 0, bytes;
  bool overflow = false;
  for (int64_t d : shape) {
    overflow |= __builtin_mul_overflow(n, d, &n);
    signs |= d;
  }
  overflow |= __builtin_mul_overflow(n, int64_t(element_size), &bytes);
  if (signs < 0) fail(ErrorKind::invalid_argument, "dimensions must not be negative; got shape ", shape);
  if (overflow) fail(ErrorKind::invalid_argument, "too many elements in shape ", shape);
  return n;
}
}  // namespace

void Tensor::check_size(DType dtype, const Shape& shape) { checked_elements(shape, size_of(dtype)); }

Tensor Tensor::allocate(DType dtype, const Shape& shape) {
  return allocate_sized(dtype, shape, checked_elements(shape, size_of(dtype)));
}
Tensor Tensor::allocate_like(const Tensor& t) { return allocate_sized(t.dtype(), t.shape(), t.size()); }

// The buffer of a tensor, or an error that says what did not find room.
static Buffer* buffer_for(size_t bytes, DType dtype, const Shape& shape) {
  try {
    return allocate_buffer(bytes);
  } catch (const std::bad_alloc&) {
    std::ostringstream text;
    text << "OOM when allocating tensor with shape" << shape << " and type " << name_of(dtype)
         << ": the memory does not hold " << bytes << " bytes more.";
    throw OutOfMemory(text.str());
  }
}

Tensor Tensor::allocate_sized(DType dtype, const Shape& shape, int64_t size) {
  size_t bytes = size_t(size) * size_of(dtype);
  const bool inside = bytes <= sizeof TensorBody::small && dtype != DType::string;
  Buffer* buffer = inside ? nullptr : buffer_for(bytes, dtype, shape);
  TensorBody* body = TensorBody::create();
  body->dtype = dtype;
  body->shape = shape;
  body->size = size;
  if (inside) return Tensor(body);
  body->buffer = buffer;
  body->data = buffer->data;
  if (dtype == DType::string) {
    buffer->strings = true;
    buffer->bytes = bytes;
    auto* text = static_cast<std::string*>(body->data);
    for (int64_t i = 0; i < size; ++i) new (text + i) std::string;
  }
  return Tensor(body);
}

Tensor Tensor::symbolic_value(DType dtype, const Shape& shape, Symbol symbol) {
  TensorBody* body = TensorBody::create();
  body->dtype = dtype;
  body->shape = shape;
  body->size = shape.fully_known() ? shape.elements() : -1;
  body->data = nullptr;
  body->symbolic = true;
  body->symbol() = symbol;
  return Tensor(body);
}

Tensor Tensor::number(DType dtype, double value) {
  Tensor t = allocate(dtype, Shape());
  if (float8s.has(dtype)) *static_cast<uint8_t*>(t.mutable_raw()) = float8_from_double(dtype, value);
  visit<fixed_size.bits>(storage_dtype(dtype), [&](auto* p) {
    using T = Pointee<decltype(p)>;
    if constexpr (is_small_float<T>)
      *t.mutable_data<T>() = T(float(value));
    else if constexpr (is_complex<T>)
      *t.mutable_data<T>() = T(typename T::value_type(value));
    else
      *t.mutable_data<T>() = T(value);
  });
  return t;
}

Tensor Tensor::view(const Shape& shape, int64_t offset) const {
  TensorBody* body = TensorBody::create();
  body->dtype = body_->dtype;
  body->shape = shape;
  body->size = shape.elements();
  const char* start = static_cast<const char*>(raw()) + size_t(offset) * size_of(body_->dtype);
  if (body_->buffer) {
    body->buffer = body_->buffer;
    body->buffer->retain();
    body->data = const_cast<char*>(start);
  } else {
    body->data = body->small;
    std::memcpy(body->small, start, size_t(body->size) * size_of(body->dtype));
  }
  return Tensor(body);
}

}  // namespace tapeflow
