// Errors of the core: one exception type, and fail() to throw it. core/python/errors.cc maps kinds to Python classes.
#pragma once
#include <sstream>
#include <stdexcept>
#include <string>

namespace tapeflow {

enum class ErrorKind {
  invalid_argument,
  value,
  type,
  lookup,
  runtime,
  unimplemented,
  failed_precondition,
  index,
  needs_value,
  python
};

// `needs_value`: something traced would have to know an element. `python` means that a Python exception is already set
// and only needs to travel.
struct Error : std::runtime_error {
  ErrorKind kind;
  Error(ErrorKind k, const std::string& message) : std::runtime_error(message), kind(k) {}
};

// fail(ErrorKind::value, "reshape", ": the input must ...; got ", shape)
template <class... Parts> [[noreturn]] void fail(ErrorKind kind, const Parts&... parts) {
  std::ostringstream text;
  (text << ... << parts);
  throw Error(kind, text.str());
}

}  // namespace tapeflow
