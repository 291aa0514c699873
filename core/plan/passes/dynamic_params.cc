// Parameters that are known only when a plan runs, such as the place in x[i]: they become inputs of their node, as long
// as the shapes of its results are known without them.
#include <string_view>

#include "control_flow/dynamic_rows.h"
#include "graph/run.h"
#include "plan/planner.h"

namespace tapeflow {
namespace {

// What stands behind a node whose last inputs are parameters.
struct OpenCall {
  const Op* op;
  Params params;  // tensors where the inputs give them
  size_t open;    // so many
};

const Op& open_call_op = define_inner(Op{
    .name = "OpenCall",
    .arguments = {},
    .kernel =
        [](Call& call) {
          const auto& open = *static_cast<const OpenCall*>(call.params[0].object.get());
          const size_t inputs = call.in.size() - open.open;
          size_t next = inputs;
          Params params = resolved_params(open.params, [&](int) { return call.in[next++]; });
          call.out = run_all(*open.op, call.in.subspan(0, inputs), params);
        },
    .makes_outputs = true,
});

}  // namespace

void Planner::read_parameters() {
  for (Node& n : graph().nodes) {
    if (!n.op || !n.params.has_tensor() || n.op->stateful || n.op->effect) continue;
    if (std::string_view(n.op->name) == "GetItem") {
      if (const Tensor place = place_in_key(graph(), n.params[0].tensor())) {
        n.op = &row_op();
        n.params = Params();
        n.inputs.push_back(place.body()->symbol().value);
        continue;
      }
    }
    auto open = std::make_shared<OpenCall>(OpenCall{n.op, n.params, 0});
    for (int p = 0; p < int(n.params.size()); ++p) {
      if (n.params[p].kind != Param::Kind::tensor) continue;
      ++open->open;
      n.inputs.push_back(n.params[p].tensor().body()->symbol().value);
    }
    n.op = &open_call_op;
    n.params = {Param(std::static_pointer_cast<void>(open))};
  }
}

}  // namespace tapeflow
