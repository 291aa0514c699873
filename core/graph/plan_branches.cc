// Running the sections of a plan: parts at the same time, each on one thread.
#include "base/parallel.h"
#include "graph/branches.h"
#include "graph/plan.h"
#include "tensor/shared_memory.h"

namespace tapeflow {

std::vector<Plan::Parts> Plan::sections() const {
  std::vector<Parts> found;
  for (const Branches& b : branches_) {
    Parts& parts = found.emplace_back();
    for (const auto& part : b.parts) {
      auto& nodes = parts.emplace_back();
      for (int i : part.nodes) nodes.push_back(&graph_->nodes[size_t(i)]);
    }
  }
  return found;
}

// An error ends the part alone: one that comes first in the program may be in another part.
void Plan::run_part(Branches& b, size_t part) {
  size_t s = part == 0 ? b.first : b.parts[part - 1].end;
  try {
    for (; s < b.parts[part].end; ++s) run_step(steps_[s]);
  } catch (...) {
    b.parts[part].error = std::current_exception();
    b.parts[part].failed_at = steps_[s].program_order;
  }
}

void Plan::run_branches(Branches& b) {
  for (Guest& g : b.guests) {
    g.own->data = g.host->data;
    g.own->buffer = g.host->buffer ? &g.shown : nullptr;
  }
  auto run_parts = [&](int64_t begin, int64_t end) {
    bool& in_kernel = thread_state().in_kernel;
    const bool before = std::exchange(in_kernel, true);
    for (int64_t part = begin; part < end; ++part) run_part(b, size_t(part));
    in_kernel = before;
  };
  const int64_t parts = int64_t(b.parts.size()), limit = branch_limit();
  {
    ShareMemory shared;
    parallel_for(parts, limit < thread_count() ? (parts + limit - 1) / limit : 1, run_parts);
  }
  for (Guest& g : b.guests) {
    g.own->buffer = nullptr;
    g.own->data = g.own->small;
  }
  Branches::Part* failed = nullptr;
  for (auto& part : b.parts)
    if (part.error && (!failed || part.failed_at < failed->failed_at)) failed = &part;
  if (!failed) return;
  const std::exception_ptr error = failed->error;
  for (auto& part : b.parts) part.error = nullptr;
  std::rethrow_exception(error);
}

}  // namespace tapeflow
