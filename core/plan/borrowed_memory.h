// Bodies of a plan's tensors: they stay the same from run to run, and point to other memory in each.
#pragma once
#include <cstring>

#include "tensor/tensor.h"

namespace tapeflow {

// A body without memory.
inline Tensor bare_body(DType dtype, const Shape& shape) {
  TensorBody* body = TensorBody::create();
  body->dtype = dtype;
  body->shape = shape;
  body->size = shape.elements();
  return Tensor(body);
}
// A view with a body and a buffer of its own, which keeps the tensor.
inline Tensor lasting_view(const Tensor& t) {
  const void* data = t.raw();
  Tensor view = bare_body(t.dtype(), t.shape());
  if (t.bytes() <= sizeof view.body()->small && t.dtype() != DType::string && t.dtype() != DType::variant) {
    if (t.bytes()) std::memcpy(view.body()->small, data, t.bytes());
    return view;
  }
  view.body()->buffer = wrap_foreign_memory(const_cast<void*>(data), t.bytes(), new Tensor(t),
                                            [](void* kept) { delete static_cast<Tensor*>(kept); });
  view.body()->data = const_cast<void*>(data);
  return view;
}
// Makes a body a view of a tensor, until it is released.
inline void bind(TensorBody* body, const Tensor& t) {
  const void* data = t.raw();
  TensorBody* from = t.body();
  if (from->buffer) {
    from->buffer->retain();
    body->buffer = from->buffer;
    body->data = const_cast<void*>(data);
  } else {
    std::memcpy(body->small, data, t.bytes());
    body->data = body->small;
  }
}
inline void release(TensorBody* body) {
  if (body->buffer) body->buffer->drop();
  body->buffer = nullptr;
  body->data = body->small;
}
// The same for elements inside those of another body.
inline void alias(TensorBody* body, TensorBody* root, size_t offset) {
  if (root->buffer) {
    root->buffer->retain();
    body->buffer = root->buffer;
  }
  body->data = static_cast<char*>(root->data) + offset;
}

}  // namespace tapeflow
