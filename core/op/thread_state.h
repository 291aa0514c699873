// What a thread has open: recorders, the stage, and what the operations it runs belong to.
#pragma once
#include <memory>

#include "base/small_vector.h"
#include "base/thread_locals.h"
#include "tensor/variable.h"

namespace tapeflow {

struct Call;

// Is notified of every operation that runs while it is open on this thread.
struct Recorder {
  virtual void record(const Call&) = 0;
  virtual void read(VariableBody&, const Tensor& value) = 0;  // before its value takes part in an operation
  virtual bool forward() const { return false; }              // works beside the operation (forward mode), not after it
  virtual bool asked_once() const { return false; }           // gives gradients once, after it stopped recording
  virtual bool only_events() const { return false; }          // what it records changes no gradient
  virtual bool watches(const Tensor&) const = 0;

 protected:
  ~Recorder() = default;
};

// Where operations go while a program is traced: instead of running, they become nodes of a graph.
struct Stage {
  virtual bool takes(const Call&) const = 0;      // whether this call becomes a node; if not, it runs at once
  virtual void add(Call&) = 0;                    // sets call.out to tensors that stand for the results
  virtual const Tensor& read(VariableBody&) = 0;  // the tensor that stands for a variable's value at this point

 protected:
  ~Stage() = default;
};

struct ThreadState {
  SmallVector<Recorder*, 4> recorders;  // outermost first
  Stage* stage = nullptr;
  bool in_kernel = false;                 // the results of operations that a kernel calls are not lazy
  std::shared_ptr<Recorder> after_close;  // of autodiff/tape.cc; null before the first use
};
ThreadState& begin_thread();
inline ThreadState& thread_state() { return thread_locals.state ? *thread_locals.state : begin_thread(); }
void stop_recorder(const Recorder*);  // takes it off this thread's list, wherever it stands

// Hides recorders while it lives: all of them, those from `first` on, or those that do not work in forward mode.
class PauseRecording {
 public:
  explicit PauseRecording(size_t first = 0);
  static PauseRecording tapes() { return PauseRecording(TapesOnly()); }
  ~PauseRecording();
  PauseRecording(const PauseRecording&) = delete;

 private:
  struct TapesOnly {};
  explicit PauseRecording(TapesOnly);
  SmallVector<Recorder*, 4> saved_;
};

// Puts another stage in place, or none, while it lives.
class EnterStage {
 public:
  explicit EnterStage(Stage* stage) : outer_(thread_state().stage) { thread_state().stage = stage; }
  ~EnterStage() { thread_state().stage = outer_; }
  EnterStage(const EnterStage&) = delete;

 private:
  Stage* outer_;
};

// The value of a variable, for an operation; the recorders are notified.
const Tensor& read_variable(VariableBody&);

}  // namespace tapeflow
