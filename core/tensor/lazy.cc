// Computing lazy tensors. The expression becomes an elementwise program. A result that nobody sees outside of the
// expression stays in scratch memory; the others are stored, so that nothing is computed twice. A stored result takes
// over the memory of an operand that dies with the expression, if the expression does not read that operand any more.
#include "tensor/lazy.h"

#include <unistd.h>

#include <algorithm>

#include "base/blocks.h"
#include "base/error.h"
#include "base/subnormals.h"

namespace tapeflow {
namespace {

constexpr int kMostOperations = 24;
size_t held_bytes = 0;

// The most bytes in operands of all lazy tensors: a sixteenth of the machine's memory.
size_t most_held() {
  static const size_t bytes =
      std::max<size_t>(size_t(128) << 20, size_t(sysconf(_SC_PHYS_PAGES)) / 16 * size_t(sysconf(_SC_PAGESIZE)));
  return bytes;
}

Lazy* lazy_of(const TensorBody* body) {
  return body->data || body->added_in_background ? nullptr : *reinterpret_cast<Lazy* const*>(body->small);
}

// An expression while it is computed.
class Expression {
 public:
  explicit Expression(TensorBody* root) : size_(root->size), program_(size_, lazy_of(root)->row_length) { add(root); }
  ~Expression() {
    for (int i = 0; i < count_; ++i) {
      operations_[i].lazy->place = -1;
      if (operations_[i].buffer) operations_[i].buffer->drop();
    }
  }

  void compute() {
    for (int i = 0; i < count_; ++i) {
      Member& m = operations_[i];
      if (i + 1 < count_ && (m.body->references <= m.uses || m.lazy->temporary)) continue;
      m.buffer = take_over(i);
      if (!m.buffer) m.buffer = allocate_buffer(size_t(size_) * sizeof(float));
    }
    for (int i = 0; i < count_; ++i) {
      const Member& m = operations_[i];
      const ElementwiseOperation& last = m.lazy->last;
      program_.add({.unary = last.unary,
                    .binary = last.binary,
                    .a = m.a,
                    .b = m.b,
                    .target = m.buffer ? m.body : nullptr,
                    .arithmetic = last.arithmetic});
    }
    program_.finish(true);
    // The stored results are tensors like others from now on.
    Lazy* done[kMostOperations];
    int stored = 0;
    for (int i = 0; i < count_; ++i) {
      Member& m = operations_[i];
      if (!m.buffer) continue;
      done[stored++] = m.lazy;
      m.body->buffer = std::exchange(m.buffer, nullptr);
      m.body->data = m.body->buffer->data;
    }
    FlushSubnormals flush;
    program_.run();
    for (int i = 0; i < count_; ++i) operations_[i].lazy->place = -1;
    count_ = 0;
    for (int i = 0; i < stored; ++i) delete_in_block(done[i]);
  }

 private:
  struct Member {
    TensorBody* body;
    Lazy* lazy;
    ElementwiseProgram::Operand a, b;
    int uses = 0;              // by later operations
    Buffer* buffer = nullptr;  // for a result that is seen from outside
  };
  struct Leaf {
    TensorBody* body;
    int64_t uses;
    int last_use;
    bool taken;
  };

  ElementwiseProgram::Operand add(TensorBody* body) {
    Lazy* p = lazy_of(body);
    if (!p) return {body};
    if (p->place < 0) {
      const ElementwiseOperation& last = p->last;
      ElementwiseProgram::Operand a = add(last.a.body()), b;
      if (last.binary) b = add(last.b.body());
      for (auto [operand, layout] : {std::pair(&a, last.placement.a), std::pair(&b, last.placement.b)})
        if (layout == Layout::broadcast)
          *operand = program_.broadcast(operand->body, body->shape);
        else
          operand->layout = layout;
      p->place = count_;
      use(a);
      if (last.binary) use(b);
      operations_[count_++] = {body, p, a, b};
    }
    return {nullptr, p->place};
  }

  void use(const ElementwiseProgram::Operand& o) {
    if (o.step >= 0) {
      ++operations_[o.step].uses;
      return;
    }
    Leaf* end = leaves_ + leaf_count_;
    Leaf* leaf = std::find_if(leaves_, end, [&](const Leaf& l) { return l.body == o.body; });
    if (leaf == end) leaves_[leaf_count_++] = {o.body, 0, 0, false};
    ++leaf->uses;
    leaf->last_use = count_;
  }

  // The memory of an operand that is held by this expression alone and not read after operation i.
  Buffer* take_over(int i) {
    for (int l = 0; l < leaf_count_; ++l) {
      Leaf& leaf = leaves_[l];
      TensorBody* body = leaf.body;
      Buffer* buffer = body->buffer;
      if (leaf.taken || leaf.last_use > i || body->references != leaf.uses || body->size != size_) continue;
      if (!buffer || buffer->references != 1 || !buffer->writable || body->data != buffer->data) continue;
      leaf.taken = true;
      buffer->retain();
      return buffer;
    }
    return nullptr;
  }

  int64_t size_;
  ElementwiseProgram program_;
  int count_ = 0, leaf_count_ = 0;
  Member operations_[kMostOperations];
  Leaf leaves_[2 * kMostOperations];
};

size_t held_by(const Tensor& t) { return t && t.computed() ? t.bytes() : 0; }
int operations_of(const Tensor& t) { return t && !t.computed() ? lazy_of(t.body())->operations : 0; }

}  // namespace

Lazy::~Lazy() { held_bytes -= held; }

void drop_lazy(TensorBody* body) {
  if (!body->added_in_background) {
    delete_in_block(lazy_of(body));
    return;
  }
  finish_additions(body);
  body->buffer->drop();
}

void mark_temporary(const Tensor& t) {
  if (Lazy* p = lazy_of(t.body())) p->temporary = true;
}

void compute(TensorBody* root) {
  if (root->symbolic)
    fail(ErrorKind::needs_value, "a symbolic tf.Tensor has no value yet: its elements are needed while tracing");
  if (root->added_in_background) return finish_additions(root);
  Expression(root).compute();
}

bool make_lazy(const Shape& shape, ElementwiseOperation operation, Tensor* result) {
  // What is lazy becomes a part of this expression if it lies along it element by element, with the same rows.
  auto& [a, b, unary, binary, placement, arithmetic] = operation;
  int64_t rows = placement.row_length;
  for (auto [operand, layout] : {std::pair(&a, placement.a), std::pair(&b, placement.b)}) {
    if (*operand && operand->body()->added_in_background) operand->raw();
    if (!*operand || operand->computed()) continue;
    int64_t its_rows = lazy_of(operand->body())->row_length;
    if (layout != Layout::full || (its_rows && rows && its_rows != rows))
      compute(operand->body());
    else if (its_rows)
      rows = its_rows;
  }
  while (1 + operations_of(a) + operations_of(b) > kMostOperations)
    compute((operations_of(a) >= operations_of(b) ? a : b).body());
  size_t held = held_by(a) + held_by(b);
  if (held_bytes + held > most_held()) return false;
  int operations = 1 + operations_of(a) + operations_of(b);
  auto* lazy = new (take_block(sizeof(Lazy))) Lazy{std::move(operation), rows, operations, held};
  held_bytes += held;
  TensorBody* body = TensorBody::create();
  body->dtype = DType::float32;
  body->shape = shape;
  body->size = shape.elements();
  body->data = nullptr;
  *reinterpret_cast<Lazy**>(body->small) = lazy;
  *result = Tensor(body);
  return true;
}

}  // namespace tapeflow
