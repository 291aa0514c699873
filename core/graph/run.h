// Running a graph on values, without recorders and without Python between its nodes.
#pragma once
#include "graph/graph.h"

namespace tapeflow {

Tensors run_graph(const Graph&, std::span<const Tensor> inputs);
void run_graph(const Graph&, std::span<const Tensor> inputs,
               Tensors& outputs);  // into a list whose memory is used again

// The bytes that a plan of the graph may use for intermediate results; what was computed may be computed again for it.
inline constexpr size_t kUnlimited = size_t(-1);
void set_memory_budget(const Graph&, size_t bytes);
size_t memory_budget_of(const Graph&);

// Runs a graph on its own results, until its last output, a bool, is false, or `limit` times (negative: no limit).
// Output k becomes input feedback[k], or none if that is negative; `after` sees the outputs of each iteration. Gives
// the last outputs but for the condition. False, and nothing done, if no plan of the graph can do so.
bool iterate_graph(const Graph&, std::span<const Tensor> inputs, std::span<const int> feedback, int64_t limit,
                   FunctionRef<void(std::span<const Tensor>)> after, Tensors& outputs);

// A parallel region of a plan: the nodes of its lanes, in the order of the program. The lanes run at the same time; in
// a pipelined region the second one waits for steps of the first.
struct RegionNodes {
  bool pipelined;
  std::vector<std::vector<const Node*>> lanes;
};
// Those of the last plan of a graph; if it has none, of one for the shapes it was traced with, if these are known.
std::vector<RegionNodes> parallel_regions_of(const Graph&);

// The passes of the planner in order, "specialise" first.
std::vector<std::string> pass_names();
// The planner's IR as text, after this pass, for inputs of these shapes.
std::string ir_after(const Graph&, std::span<const Tensor> inputs, std::string_view pass);

// What a run over the nodes has to know: which of them run, and which one uses a value last.
struct Needs {
  SmallVector<uint8_t, 64> nodes;
  SmallVector<int, 64> last_use;
};
// `at` has the values that are given; `nodes` run in any case, and so do all that have an effect, if `effects`.
Needs find_needs(const Graph&, std::span<const ValueId> wanted, bool effects, std::span<const int> nodes,
                 std::span<const Tensor> at);

// A parameter that was a tensor while tracing: its elements, if they are there now; otherwise the tensor that it is
// now.
Param resolved_param(const Param&, Tensor now);
// All parameters, with `at(p)` for a tensor in place p.
template <class At> Params resolved_params(const Params& params, At at) {
  Params result = Params::sized(params.size());
  for (int p = 0; p < int(params.size()); ++p)
    result.mutable_at(p) =
        params.at(p).kind == Param::Kind::tensor ? resolved_param(params.at(p), at(p)) : params.at(p);
  return result;
}

}  // namespace tapeflow
