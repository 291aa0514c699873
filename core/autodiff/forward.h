// Forward mode: a recorder that computes the tangent of every result as soon as the operation has run.
#pragma once
#include <vector>

#include "autodiff/watcher.h"

namespace tapeflow {

class ForwardAccumulator final : public Recorder, public Watcher {
 public:
  ForwardAccumulator() : Watcher(Kind::accumulator) {}
  ~ForwardAccumulator();

  void start();
  void stop();
  bool recording() const { return recording_; }

  void watch(const Tensor&, Tensor tangent);
  void watch(VariableBody&, Tensor tangent);
  Tensor tangent(const Tensor&) const;  // empty if there is no path from a watched value
  Tensor tangent(const VariableBody&) const;

  void record(const Call&) override;
  void read(VariableBody&, const Tensor& value) override;
  bool follows(const Tensor& t) const override { return find(t) != kNotFollowed; }
  bool forward() const override { return true; }

 private:
  std::vector<Tensor> tangents_;  // by value index
  bool recording_ = false;
};

}  // namespace tapeflow
