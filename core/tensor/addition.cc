// Totals while additions are under way: the body has no elements, and its Addition keeps them.
#include "tensor/addition.h"

#include <deque>

namespace tapeflow {
namespace {

struct Addition {
  Buffer* buffer;
  void* data;
  struct Part {
    BackgroundTicket number;
    Tensor a, b;
  };
  std::deque<Part> parts;  // those that may not be done yet
};

Addition*& addition_of(TensorBody* body) { return *reinterpret_cast<Addition**>(body->small); }

}  // namespace

void* address_of_total(const Tensor& total) {
  return total.body()->added_in_background ? addition_of(total.body())->data : total.mutable_raw();
}

bool addition::give(const Tensor& total, const Tensor& a, const Tensor& b, const BackgroundWork& work) {
  TensorBody* body = total.body();
  if (!body->added_in_background && !body->buffer) return false;  // few elements, in the body itself
  const BackgroundTicket number = start_background(work);
  if (!number.pool) return false;
  if (!body->added_in_background) {
    auto* addition = new Addition{body->buffer, body->data, {}};
    body->buffer = nullptr;
    body->data = nullptr;
    body->added_in_background = true;
    addition_of(body) = addition;
  }
  auto& parts = addition_of(body)->parts;
  while (!parts.empty() && background_is_done(parts.front().number)) parts.pop_front();
  parts.push_back({number, a, b});
  return true;
}

void finish_additions(TensorBody* body) {
  Addition* addition = addition_of(body);
  finish_background(addition->parts.back().number);
  body->buffer = addition->buffer;
  body->data = addition->data;
  body->added_in_background = false;
  delete addition;
}

}  // namespace tapeflow
