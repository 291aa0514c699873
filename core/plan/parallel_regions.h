// Which steps of a plan run at the same time: an order with sections of parts. The parts of a section do not wait for
// each other, or there are two and the second follows the first: its steps wait for some of the first, never the other
// way.
#pragma once
#include <span>
#include <vector>

#include "plan/cost.h"

namespace tapeflow {

struct BranchStep {
  std::vector<int> before;  // the steps it waits for, which all stand in front of it
  Cost cost;
  bool apart = false;           // it is never one of several steps that run at the same time
  bool may_fail = false;        // no step of the program behind it runs before it, unless both are in one section
  bool can_be_followed = true;  // where its results lie is known before it runs, so another part may read them
};

struct Section {
  size_t first;
  std::vector<size_t> ends;  // of its parts, which lie behind one another in the order
  bool follows = false;      // the second part waits for steps of the first
};

struct Arrangement {
  std::vector<int> order;         // all steps; as they were if there is no section
  std::vector<Section> sections;  // in order
};

// Whether there is enough to do that a section could pay.
bool worth_arranging(std::span<const BranchStep>);
// Makes a section wherever that is quicker than one step after the other, each with all `threads`. A section has at
// most four parts for each thread.
Arrangement arrange_branches(std::span<const BranchStep>, int threads);

// How many parts of a section may run at the same time: 1 is one after the other, 0 as many as there are threads.
void set_branch_limit(int);
int branch_limit();

}  // namespace tapeflow
