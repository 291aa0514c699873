// Running the sections of a plan: parts at the same time, each on one thread.
#include <thread>

#include "base/parallel.h"
#include "plan/parallel_regions.h"
#include "plan/plan.h"
#include "tensor/shared_memory.h"

namespace tapeflow {

std::vector<NodesAtOnce> Plan::sections() const {
  std::vector<NodesAtOnce> found;
  for (const Branches& b : branches_) {
    NodesAtOnce& section = found.emplace_back(NodesAtOnce{b.follows, {}});
    for (const auto& part : b.parts) {
      auto& nodes = section.parts.emplace_back();
      for (int i : part.nodes) nodes.push_back(&graph_->nodes[size_t(i)]);
    }
  }
  return found;
}

// Waits for what a step follows. False if that has failed: what comes first in the program still runs.
bool Plan::may_run(const Branches& b, const Step& step) const {
  int reached = b.reached.load(std::memory_order_acquire);
  for (int looks = 0; reached < step.after; ++looks) {
    if (looks > 200) std::this_thread::yield();
    reached = b.reached.load(std::memory_order_acquire);
  }
  return reached != Branches::kFailed || step.program_order < b.parts[0].failed_at;
}

// An error ends the part alone: one that comes first in the program may be in another part.
void Plan::run_part(Branches& b, size_t part) {
  const bool leads = b.follows && part == 0, follows = b.follows && part == 1;
  size_t s = part == 0 ? b.first : b.parts[part - 1].end;
  try {
    for (; s < b.parts[part].end; ++s) {
      if (follows && !may_run(b, steps_[s])) break;
      run_step(steps_[s]);
      if (leads) b.reached.store(int(s), std::memory_order_release);
    }
  } catch (...) {
    b.parts[part].error = std::current_exception();
    b.parts[part].failed_at = steps_[s].program_order;
    if (leads) b.reached.store(Branches::kFailed, std::memory_order_release);
  }
}

void Plan::run_branches(Branches& b) {
  for (Guest& g : b.guests) {
    g.own->data = g.host->data;
    g.own->buffer = g.host->buffer ? &g.shown : nullptr;
  }
  b.reached.store(-1, std::memory_order_relaxed);
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
