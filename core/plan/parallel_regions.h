// Which steps of a plan run at the same time: an order with parallel regions of lanes. The lanes of a region do not
// wait for each other; or the region is pipelined: it has two lanes, and steps of the second wait for some of the
// first, never the other way.
#pragma once
#include <span>
#include <vector>

#include "plan/cost.h"

namespace tapeflow {

struct RegionStep {
  std::vector<int> before;  // the steps it waits for, which all stand in front of it
  Cost cost;
  bool alone = false;         // it never runs beside other steps
  bool may_fail = false;      // no later step of the program runs before it, unless both are in one region
  bool fixed_results = true;  // the memory of its results is known before it runs, so another lane may read them
};

struct ParallelRegion {
  size_t first;
  std::vector<size_t> ends;  // of its lanes, which lie behind one another in the order
  bool pipelined = false;    // the second lane waits for steps of the first
};

struct RegionSchedule {
  std::vector<int> order;               // all steps; as they were if there is no region
  std::vector<ParallelRegion> regions;  // in order
};

// Whether there is enough to do that a region could pay.
bool worth_scheduling(std::span<const RegionStep>);
// Makes a region wherever that is faster than one step after the other, each with all `threads`. A region has at most
// four lanes for each thread.
RegionSchedule find_parallel_regions(std::span<const RegionStep>, int threads);

// How many lanes of a region may run at the same time: 1 is one after the other, 0 as many as there are threads.
void set_lane_limit(int);
int lane_limit();

}  // namespace tapeflow
