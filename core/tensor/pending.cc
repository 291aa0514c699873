// Computing pending tensors. The expression becomes a list of steps, which runs over blocks of elements that stay in
// the first-level cache. A step whose result nobody sees outside of the expression leaves it in a slot of scratch
// memory; the others also store it, so that nothing is computed twice. A stored result takes over the memory of an
// operand that dies with the expression, if the expression does not read that operand any more.
#include "tensor/pending.h"

#include <algorithm>

#include "base/error.h"
#include "base/parallel.h"
#include "base/subnormals.h"

namespace tapeflow {
namespace {

constexpr int kMostOperations = 24;
constexpr int64_t kBlock = 1024;                 // elements
constexpr size_t kMostHeld = size_t(128) << 20;  // bytes in operands of all pending tensors
constexpr int64_t kGrain = 1 << 16;              // elements of one cheap step that are worth a thread
size_t held_bytes = 0;

Pending* pending_of(const TensorBody* body) {
  return body->data ? nullptr : *reinterpret_cast<Pending* const*>(body->small);
}

struct Operand {
  TensorBody* body = nullptr;
  int step = -1;  // the step that computes it; -1 for a tensor that has its elements
};

struct Step {
  TensorBody* body;
  Pending* pending;
  Operand a, b;
  int uses = 0;       // by later steps
  int last_use = -1;  // the last step that reads the result
  int slot = -1;      // of scratch memory; -1: the result is stored in the body's own memory
};

struct Leaf {
  TensorBody* body;
  int64_t uses;
  int last_use;
  bool taken;
};

class Program {
 public:
  explicit Program(TensorBody* root) : size_(root->size) { add(root); }

  // Gives memory to every result that is seen from outside, and slots to the others.
  void place() {
    bool slot_used[kMostOperations] = {};
    for (int i = 0; i < count_; ++i) {
      Step& s = steps_[i];
      // Operands are free when the last step that reads them runs: loops may write over what they read.
      for (const Operand& o : {s.a, s.b})
        if (o.step >= 0 && steps_[o.step].last_use == i && steps_[o.step].slot >= 0) slot_used[steps_[o.step].slot] = false;
      if (i + 1 == count_ || (s.body->references > s.uses && !s.pending->dying)) {
        buffers_[i] = take_over(i);
        if (!buffers_[i]) buffers_[i] = allocate_buffer(size_t(size_) * sizeof(float));
      } else {
        s.slot = int(std::find(slot_used, slot_used + kMostOperations, false) - slot_used);
        slot_used[s.slot] = true;
      }
    }
  }

  void run() const {
    FlushSubnormals flush;
    parallel_for(size_, std::max<int64_t>(4 * kBlock, kGrain / count_), [&](int64_t begin, int64_t end) {
      alignas(64) float scratch[kMostOperations * kBlock];
      for (int64_t at = begin; at < end; at += kBlock) run_block(scratch, at, std::min(kBlock, end - at));
    });
  }

  // The stored results are tensors like others from now on.
  void finish() {
    Pending* done[kMostOperations];
    int stored = 0;
    for (int i = 0; i < count_; ++i) {
      TensorBody* body = steps_[i].body;
      steps_[i].pending->place = -1;
      if (!buffers_[i]) continue;
      body->buffer = buffers_[i];
      body->data = body->buffer->data;
      done[stored++] = steps_[i].pending;
    }
    for (int i = 0; i < stored; ++i) delete done[i];
  }

  void undo() {
    for (int i = 0; i < count_; ++i) {
      steps_[i].pending->place = -1;
      if (buffers_[i]) buffers_[i]->drop();
    }
  }

 private:
  Operand add(TensorBody* body) {
    Pending* p = pending_of(body);
    if (!p) return {body, -1};
    if (p->place < 0) {
      Operand a = add(p->a.body()), b = p->binary ? add(p->b.body()) : Operand();
      p->place = count_;
      steps_[count_] = {body, p, a, b};
      use(a);
      if (p->binary) use(b);
      ++count_;
    }
    return {body, p->place};
  }

  void use(const Operand& o) {
    if (o.step >= 0) {
      ++steps_[o.step].uses;
      steps_[o.step].last_use = count_;
      return;
    }
    Leaf* end = leaves_ + leaf_count_;
    Leaf* leaf = std::find_if(leaves_, end, [&](const Leaf& l) { return l.body == o.body; });
    if (leaf == end) leaves_[leaf_count_++] = {o.body, 0, 0, false};
    ++leaf->uses;
    leaf->last_use = count_;
  }

  // The memory of an operand that is held by this expression alone and not read after step i.
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

  const void* source(const Operand& o, const float* scratch, int64_t at) const {
    if (o.step < 0) return static_cast<const float*>(o.body->data) + (o.body->size == 1 ? 0 : at);
    return target(o.step, const_cast<float*>(scratch), at);
  }
  float* target(int i, float* scratch, int64_t at) const {
    return buffers_[i] ? static_cast<float*>(buffers_[i]->data) + at : scratch + steps_[i].slot * kBlock;
  }
  void run_block(float* scratch, int64_t at, int64_t n) const {
    for (int i = 0; i < count_; ++i) {
      const Step& s = steps_[i];
      const void* a = source(s.a, scratch, at);
      if (s.pending->binary)
        s.pending->binary(a, source(s.b, scratch, at), target(i, scratch, at), n);
      else
        s.pending->unary(a, target(i, scratch, at), n);
    }
  }

  int64_t size_;
  int count_ = 0, leaf_count_ = 0;
  Step steps_[kMostOperations];
  Buffer* buffers_[kMostOperations] = {};
  Leaf leaves_[2 * kMostOperations];
};

size_t held_by(const Tensor& t) { return t && t.computed() ? t.bytes() : 0; }
int operations_of(const Tensor& t) { return t && !t.computed() ? pending_of(t.body())->operations : 0; }

}  // namespace

Pending::~Pending() { held_bytes -= held; }

void drop_pending(TensorBody* body) { delete pending_of(body); }

void let_die(const Tensor& t) {
  if (!t.computed()) pending_of(t.body())->dying = true;
}

void compute(TensorBody* root) {
  if (root->symbolic)
    fail(ErrorKind::needs_value, "a symbolic tf.Tensor has no value yet: its elements are asked for while tracing");
  Program program(root);
  try {
    program.place();
  } catch (...) {
    program.undo();
    throw;
  }
  program.run();
  program.finish();
}

bool make_pending(const Shape& shape, Tensor a, Tensor b, PendingUnary unary, PendingBinary binary, Tensor* result) {
  while (1 + operations_of(a) + operations_of(b) > kMostOperations) compute((operations_of(a) >= operations_of(b) ? a : b).body());
  size_t held = held_by(a) + held_by(b);
  if (held_bytes + held > kMostHeld) return false;
  int operations = 1 + operations_of(a) + operations_of(b);
  int64_t size = std::max(a.size(), b ? b.size() : 0);
  auto* pending = new Pending{std::move(a), std::move(b), unary, binary, operations, held};
  held_bytes += held;
  TensorBody* body = TensorBody::create();
  body->dtype = DType::float32;
  body->shape = shape;
  body->size = size;
  body->data = nullptr;
  *reinterpret_cast<Pending**>(body->small) = pending;
  *result = Tensor(body);
  return true;
}

}  // namespace tapeflow
