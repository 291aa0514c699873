// The error of a tensor for which there is no memory.
#pragma once
#include <new>
#include <string>

namespace tapeflow {

struct OutOfMemory : std::bad_alloc {
  std::string message;
  explicit OutOfMemory(std::string text) : message(std::move(text)) {}
  const char* what() const noexcept override { return message.c_str(); }
};

}  // namespace tapeflow
