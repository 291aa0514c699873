// Which kernels run without the interpreter lock, and on which tensors.
#include "op/unlocked_kernel.h"

#include "tensor/unlocked.h"

namespace tapeflow {
namespace {

constexpr int64_t kFewElements = 1 << 13;
constexpr double kNanosecondsPerElement = 0.15;

// Tensors with the memory of others.
class BorrowedTensors {
 public:
  explicit BorrowedTensors(std::span<const Tensor> lenders) : lenders_(lenders) {
    buffers_.resize(lenders.size());
    for (size_t i = 0; i < lenders.size(); ++i) {
      const TensorBody& from = *lenders[i].body();
      TensorBody* body = TensorBody::create();
      body->dtype = from.dtype;
      body->shape = from.shape;
      body->size = from.size;
      if (from.buffer) {
        buffers_[i] = Buffer{{2}, from.buffer->bytes, from.buffer->data, nullptr, nullptr, 0, false, false};
        body->buffer = &buffers_[i];
        body->data = from.data;
      } else {
        std::memcpy(body->small, from.data, sizeof body->small);
      }
      tensors_.push_back(Tensor(body));
    }
  }
  std::span<const Tensor> tensors() const { return {tensors_.begin(), tensors_.size()}; }

  // Results that are one of the tensors, or a view of one, become those of the lender.
  void replace_in(Tensors& results) const {
    for (Tensor& t : results)
      for (size_t i = 0; i < lenders_.size(); ++i) {
        if (t.body()->buffer != &buffers_[i]) continue;
        const auto* begin = static_cast<const char*>(lenders_[i].raw());
        const auto offset = static_cast<const char*>(t.raw()) - begin;
        t = lenders_[i].view(t.shape(), offset / int64_t(size_of(t.dtype())));
        break;
      }
  }

 private:
  std::span<const Tensor> lenders_;
  SmallVector<Buffer, 4> buffers_;
  SmallVector<Tensor, 4> tensors_;  // destroyed first
};

}  // namespace

bool worth_unlocking(const Call& call) {
  int64_t elements = 0;
  for (const Tensor& t : call.in) elements += t.size();
  for (const Spec& spec : call.specs) elements += spec.shape.elements();
  if (elements < kFewElements || call.specs.empty()) return false;
  const Op& op = call.op;
  if (op.makes_outputs || op.stateful || op.effect || op.calls_python || op.is_program || op.custom_gradient)
    return false;
  for (const Tensor& t : call.in)
    if (t.dtype() == DType::variant || t.dtype() == DType::string) return false;
  const CostModel& cost = op.planning.cost;
  const double nanoseconds =
      cost.work ? cost.work(call).amount * cost.nanoseconds : double(elements) * kNanosecondsPerElement;
  return nanoseconds >= 1000 * worth_unlocking_from;
}

void run_unlocked(Call& call) {
  const std::span<const Tensor> given = call.in;
  const BorrowedTensors borrowed(given);
  struct Restore {
    Call& call;
    std::span<const Tensor> in;
    ~Restore() { call.in = in; }
  } restore{call, given};
  call.in = borrowed.tensors();
  {
    const Unlocked unlocked;
    call.op.kernel(call);
  }
  borrowed.replace_in(call.out);
}

}  // namespace tapeflow
