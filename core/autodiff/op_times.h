// How long operations take, by the line of the program and the operation, forward and backward.
#pragma once
#include <chrono>
#include <map>

#include "autodiff/trace.h"

namespace tapeflow {

// Owned by the check that sees every operation. An operation is charged with the time since the last one, so that what
// Python does for it counts as well; `mark` leaves out what lies between.
class OpTimes {
 public:
  struct Key {
    const Op* op;
    void* code;  // retained
    int instruction;
    bool backward;
    auto operator<=>(const Key&) const = default;
  };
  struct Sum {
    int64_t nanoseconds = 0, calls = 0, bytes = 0;  // the bytes of all results
    double largest = 0;                             // element of the results of a rule, without its sign
  };

  OpTimes() { mark(); }
  OpTimes(const OpTimes&) = delete;
  ~OpTimes();
  void add(const Call&);
  void mark() { last_ = std::chrono::steady_clock::now(); }
  const std::map<Key, Sum>& sums() const { return sums_; }

 private:
  std::chrono::steady_clock::time_point last_;
  std::map<Key, Sum> sums_;
};

}  // namespace tapeflow
