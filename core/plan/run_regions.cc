// Running the parallel regions of a plan: lanes at the same time, each on one thread.
#include <thread>

#include "base/parallel.h"
#include "plan/parallel_regions.h"
#include "plan/plan.h"
#include "tensor/shared_memory.h"

namespace tapeflow {

std::vector<RegionNodes> Plan::parallel_regions() const {
  std::vector<RegionNodes> found;
  for (const Region& region : code_.regions) {
    RegionNodes& list = found.emplace_back(RegionNodes{region.pipelined, {}});
    for (const auto& lane : region.lanes) {
      auto& nodes = list.lanes.emplace_back();
      for (int i : lane.nodes) nodes.push_back(&code_.graph->nodes[size_t(i)]);
    }
  }
  return found;
}

// Waits for the step of the first lane that a step needs. False if that has failed: what comes first in the program
// still runs.
bool Plan::may_run(const Region& region, const Step& step) const {
  int reached = region.reached.load(std::memory_order_acquire);
  for (int looks = 0; reached < step.after; ++looks) {
    if (looks > 200) std::this_thread::yield();
    reached = region.reached.load(std::memory_order_acquire);
  }
  return reached != Region::kFailed || step.program_order < region.lanes[0].failed_at;
}

// An error ends the lane alone: one that comes first in the program may be in another lane.
void Plan::run_lane(Region& region, size_t lane) {
  const bool leads = region.pipelined && lane == 0, follows = region.pipelined && lane == 1;
  size_t s = lane == 0 ? region.first : region.lanes[lane - 1].end;
  try {
    for (; s < region.lanes[lane].end; ++s) {
      if (follows && !may_run(region, code_.steps[s])) break;
      run_step(code_.steps[s]);
      if (leads) region.reached.store(int(s), std::memory_order_release);
    }
  } catch (...) {
    region.lanes[lane].error = std::current_exception();
    region.lanes[lane].failed_at = code_.steps[s].program_order;
    if (leads) region.reached.store(Region::kFailed, std::memory_order_release);
  }
}

void Plan::run_region(Region& region) {
  for (PlanCode::BorrowedView& view : region.views) {
    view.own->data = view.source->data;
    view.own->buffer = view.source->buffer ? &view.borrowed : nullptr;
  }
  region.reached.store(-1, std::memory_order_relaxed);
  auto run_lanes = [&](int64_t begin, int64_t end) {
    bool& in_kernel = thread_state().in_kernel;
    const bool before = std::exchange(in_kernel, true);
    for (int64_t lane = begin; lane < end; ++lane) run_lane(region, size_t(lane));
    in_kernel = before;
  };
  const int64_t lanes = int64_t(region.lanes.size()), limit = lane_limit();
  {
    ShareMemory shared;
    parallel_for(lanes, limit < thread_count() ? (lanes + limit - 1) / limit : 1, run_lanes);
  }
  for (PlanCode::BorrowedView& view : region.views) {
    view.own->buffer = nullptr;
    view.own->data = view.own->small;
  }
  Region::Lane* failed = nullptr;
  for (auto& lane : region.lanes)
    if (lane.error && (!failed || lane.failed_at < failed->failed_at)) failed = &lane;
  if (!failed) return;
  const std::exception_ptr error = failed->error;
  for (auto& lane : region.lanes) lane.error = nullptr;
  std::rethrow_exception(error);
}

}  // namespace tapeflow
