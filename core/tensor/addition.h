// Sums that another thread adds to while the caller goes on, such as the gradient of a weight that is used many times.
// Whoever reads such a tensor waits for the additions first.
#pragma once
#include "base/parallel.h"
#include "tensor/tensor.h"

namespace tapeflow {

// Whether nobody but this handle sees the tensor's elements, now or when all additions are done.
inline bool may_be_added_to(const Tensor& total) {
  return total.unique() || (total.body()->added_in_background && total.body()->references == 1);
}

// The address of a total's elements; they are only for those who add to them in turn.
void* address_of_total(const Tensor& total);

namespace addition {
bool give(const Tensor& total, const Tensor& a, const Tensor& b, const BackgroundWork&);
}

// Lets a thread do `work()`, which adds something made of a and b to the elements at the total's address; a and b must
// have their elements. False if no thread is free.
template <class Work> bool add_in_background(const Tensor& total, const Tensor& a, const Tensor& b, Work work) {
  static_assert(sizeof(Work) <= sizeof(BackgroundWork::arguments) && std::is_trivially_copyable_v<Work>);
  BackgroundWork background{[](const void* arguments) { (*static_cast<const Work*>(arguments))(); }, {}};
  __builtin_memcpy(background.arguments, &work, sizeof work);
  return addition::give(total, a, b, background);
}

}  // namespace tapeflow
