// Finds the first result that is not finite: a recorder that looks at the elements of every floating result.
#pragma once
#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "autodiff/op_times.h"

namespace tapeflow {

// How many elements of a tensor are not finite, and of which kind.
struct NonFinite {
  int64_t negative_infinities = 0, positive_infinities = 0, nans = 0;
  bool any() const { return negative_infinities | positive_infinities | nans; }
};
NonFinite count_non_finite(const Tensor&);  // nothing for tensors that are symbolic or not floating

// An operation that made some.
struct Finding {
  const Op* op;
  const Op* gradient_of;  // the operation whose rule it was run for, or null
  bool in_graph;
  size_t output, outputs;
  Spec spec;
  NonFinite count;
  struct Input {
    Spec spec;
    NonFinite count;
  };
  std::vector<Input> inputs;
  Location location;
  std::span<const Tensor> operands;
  Tensor value;
};

// At most one is attached to a thread. It comes before all tapes, so that what it refuses is not recorded.
class NumericsCheck final : public Recorder {
 public:
  using Found = std::function<void(const Finding&)>;
  // `found` is called with every finding; what it throws ends the operation. `also_handed_on`: also of operations that
  // only hand elements on, and of the gradient of a relu that stops all that is not finite (the count is then 0).
  explicit NumericsCheck(Found found, bool also_handed_on = false)
      : found_(std::move(found)), also_handed_on_(also_handed_on) {}
  NumericsCheck(const NumericsCheck&) = delete;

  void start();
  bool stop();  // on the thread it was started on; on another it can only fall silent: false, and it must stay alive
  static NumericsCheck* current();
  static void attach_again();  // while other recorders are paused

  void measure(bool on);  // adds up the times of operations from now on, or no more; what was added stays
  OpTimes* times() const { return times_.get(); }

  void record(const Call&) override;
  void read(VariableBody&, const Tensor&) override {}
  bool watches(const Tensor&) const override { return false; }
  bool only_events() const override { return true; }

 private:
  Found found_;
  bool also_handed_on_, measuring_ = false, seen_ = false;
  std::unique_ptr<OpTimes> times_;
  void check(const Call&);
  NumericsCheck* outer_ = nullptr;
  bool attached_ = false;
  std::thread::id thread_;
};

}  // namespace tapeflow
