// Forward mode: a recorder that computes the tangent of every result as soon as the operation has run.
#pragma once
#include <vector>

#include "autodiff/watcher.h"

namespace tapeflow {

// The tangents of an operation's outputs from those of its inputs, for one direction; and for many directions at once,
// which vmap/directions.cc knows.
using TangentRule = SmallVector<Tensor, 4> (*)(const Call&, std::span<const Tensor> x_dot);
extern SmallVector<Tensor, 4> (*tangents_for_rows)(const Call&, std::span<const Tensor> x_dot, int64_t rows,
                                                   TangentRule);

class ForwardAccumulator final : public Recorder, public Watcher {
 public:
  ForwardAccumulator() : Watcher(Kind::accumulator) {}
  // From now on tangents have a leading batch dimension of this size, one row for each direction.
  void track_directions(int64_t rows) { rows_ = rows; }
  int64_t directions() const { return rows_; }  // negative: one, without a dimension of its own
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
  bool watches(const Tensor& t) const override { return find(t) != kUntracked; }
  bool forward() const override { return true; }

 private:
  BlockVector<Tensor> tangents_;  // by value index
  int64_t rows_ = -1;
  bool recording_ = false;
};

}  // namespace tapeflow
