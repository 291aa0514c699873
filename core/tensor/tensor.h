// Tensors: immutable, dense, row-major values, held through a counted handle.
#pragma once
#include <cassert>
#include <utility>

#include "base/dtype.h"
#include "base/shape.h"
#include "base/small_vector.h"
#include "tensor/buffer.h"

namespace tapeflow {

// Says that a value stands on a tape: the tape's serial number and the value's index there. See autodiff/tape.h.
struct Mark {
  uint64_t tape = 0;
  uint32_t value = 0;
};

struct Marks {
  Mark slot[2];
  bool overflow = false;  // some tape keeps a mark for this value in its own table
};

// The place in a graph of a tensor that has no elements yet. See graph/graph.h.
struct Symbol {
  void* graph;  // null once the graph is gone
  uint32_t value;
};

struct TensorBody {
  int64_t references;
  DType dtype;
  bool symbolic;             // stands for a value of a graph: no elements, and its Symbol in `small`
  bool added_in_background;  // another thread adds to its elements; see tensor/addition.h
  int64_t size;              // number of elements; -1 if a dimension is not known
  void* data;      // into `buffer`, or `small`; null while lazy (then `small` points to a Lazy), while added to, and
                   // if symbolic
  Buffer* buffer;  // null when the elements are in `small`, and where `data` is
  Marks marks;
  void* wrapper;  // the Python object that wraps this tensor, if there is one; borrowed
  alignas(16) unsigned char small[16];
  Shape shape;

  static TensorBody* create();
  void destroy();
  Symbol& symbol() { return *reinterpret_cast<Symbol*>(small); }
};

void compute(TensorBody* lazy);      // gives it its elements; see tensor/lazy.h
void drop_lazy(TensorBody* lazy);    // lets go of the expression
void finish_additions(TensorBody*);  // waits until nobody adds to its elements any more

class Tensor {
 public:
  Tensor() : body_(nullptr) {}
  explicit Tensor(TensorBody* adopted) : body_(adopted) {}
  Tensor(const Tensor& other) : body_(other.body_) {
    if (body_) ++body_->references;
  }
  Tensor(Tensor&& other) noexcept : body_(std::exchange(other.body_, nullptr)) {}
  Tensor& operator=(Tensor other) noexcept {
    std::swap(body_, other.body_);
    return *this;
  }
  ~Tensor() {
    if (body_ && --body_->references == 0) body_->destroy();
  }
  static Tensor borrow(TensorBody* body) {
    ++body->references;
    return Tensor(body);
  }

  // Uninitialised elements (string elements are empty).
  // Throws if a dimension is negative or the bytes of such a tensor cannot be counted.
  static void check_size(DType dtype, const Shape& shape);
  static Tensor allocate(DType, const Shape&);
  static Tensor allocate_like(const Tensor&);
  template <class T> static Tensor scalar(T value) {
    Tensor t = allocate(dtype_of<T>, Shape());
    *static_cast<T*>(t.body_->data) = value;
    return t;
  }
  // A tensor that stands for a value of a graph.
  static Tensor symbolic_value(DType, const Shape&, Symbol);
  // A scalar of the given dtype with a small number as its value.
  static Tensor number(DType, double);
  // The same elements under another shape (or a run of them, from `offset` on): shares the buffer.
  Tensor view(const Shape&, int64_t offset = 0) const;

  explicit operator bool() const { return body_ != nullptr; }
  TensorBody* body() const { return body_; }
  bool symbolic() const { return body_->symbolic; }
  TensorBody* release() { return std::exchange(body_, nullptr); }
  DType dtype() const { return body_->dtype; }
  const Shape& shape() const { return body_->shape; }
  int rank() const { return body_->shape.rank(); }
  int64_t dim(int i) const { return body_->shape[i]; }
  int64_t size() const { return body_->size; }
  size_t bytes() const { return size_t(body_->size) * size_of(body_->dtype); }
  bool computed() const { return body_->data != nullptr; }
  const void* raw() const { return mutable_raw(); }
  template <class T> const T* data() const {
    assert(dtype_of<T> == body_->dtype);
    return static_cast<const T*>(mutable_raw());
  }
  // Only for the kernel that fills a fresh tensor, and for a variable whose value nobody else holds.
  template <class T> T* mutable_data() const { return static_cast<T*>(mutable_raw()); }
  void* mutable_raw() const {
    if (!body_->data) [[unlikely]]
      compute(body_);
    return body_->data;
  }
  // Nobody but this handle sees these elements, and they may be overwritten.
  bool unique() const {
    return body_->references == 1 && body_->data &&
           (!body_->buffer || (body_->buffer->references == 1 && body_->buffer->writable));
  }

 private:
  static Tensor allocate_sized(DType, const Shape&, int64_t size);
  TensorBody* body_;
};

// What an operation gives.
using Tensors = SmallVector<Tensor, 4>;

// What is known of a tensor before it exists.
struct Spec {
  DType dtype;
  Shape shape;
};

}  // namespace tapeflow
