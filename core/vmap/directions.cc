// Forward mode in many directions at once: the rule of each operation is traced for one direction, and run for all.
#include "autodiff/forward.h"
#include "base/forget_error.h"
#include "ops/ops.h"
#include "vmap/vmap.h"

namespace tapeflow {
namespace {

SmallVector<Tensor, 4> find_rows_of_tangents(const Call& call, std::span<const Tensor> x_dot, int64_t rows,
                                             TangentRule rule) {
  Graph graph(static_cast<Graph*>(thread_state().stage), is_recording());
  graph.names_nodes = false;
  BatchedValues given;
  SmallVector<bool, 8> flows;
  bool traced = true;
  {
    EnterStage stage(&graph);
    PauseRecording unrecorded;
    SmallVector<Tensor, 4> one;
    for (const Tensor& t : x_dot) {
      one.push_back(t ? graph.add_input({t.dtype(), t.shape().slice(1, t.rank())}) : Tensor());
      if (t) given.tensors.push_back(t), given.batched.push_back(true);
    }
    try {
      for (const Tensor& t : rule(call, one)) {
        flows.push_back(bool(t));
        if (t) graph.outputs.push_back(graph.id_of(t));
      }
    } catch (const Error&) {
      forget_error();
      traced = false;
    }
  }
  SmallVector<Tensor, 4> result;
  if (traced) {
    for (const Tensor& t : graph.captures) given.tensors.push_back(t), given.batched.push_back(false);
    Tensors found = rows_of(run_batched(graph, given, rows), rows);
    size_t next = 0;
    for (bool yes : flows) result.push_back(yes ? found[next++] : Tensor());
    return result;
  }
  std::vector<SmallVector<Tensor, 8>> parts(call.out.size());
  for (int64_t row = 0; row < rows; ++row) {
    SmallVector<Tensor, 4> one;
    for (const Tensor& t : x_dot) one.push_back(t ? unstack(t, 0)[size_t(row)] : Tensor());
    SmallVector<Tensor, 4> y_dot = rule(call, one);
    for (size_t j = 0; j < parts.size(); ++j)
      if (y_dot[j]) parts[j].push_back(y_dot[j]);
  }
  for (auto& p : parts) result.push_back(p.empty() ? Tensor() : stack(p, 0));
  return result;
}

[[maybe_unused]] const bool serves_forward_mode = [] {
  tangents_for_rows = find_rows_of_tangents;
  return true;
}();

}  // namespace
}  // namespace tapeflow
