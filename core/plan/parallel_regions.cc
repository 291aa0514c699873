// Finding parallel regions. From the steps that are done, everything that can be reached without waiting for two of the
// steps that are ready belongs to the lane of one of them. If these lanes are faster side by side, they become a
// region; otherwise the next step of the program runs by itself, and the search begins again behind it.
//
// Where there is one long chain, a second lane can follow it and do what the chain does not need: in the backward pass
// of a recurrent network that is the gradient of the weights.
#include "plan/parallel_regions.h"

#include <algorithm>
#include <atomic>
#include <functional>
#include <limits>
#include <numeric>
#include <utility>

#include "base/parallel.h"

namespace tapeflow {
namespace {

constexpr double kForkCost = 15;     // microseconds: waking a worker, waiting for the last lane
constexpr double kWakeTime = 100;    // until a worker that sleeps has begun
constexpr double kSideBySide = 1.1;  // how much slower a core is while the others are busy too
constexpr int kLanesPerThread = 4;
// So that planning stays fast: the steps that one search looks at, all searches together before they look at fewer,
// and the ends of a chain that are tried.
constexpr size_t kFarthest = 1024, kMostLooks = 200'000, kFewSteps = 64;
constexpr size_t kMostEnds = 48;
// Steps that are taken without a search after many in vain, and between two searches for a pipeline.
constexpr size_t kMostSkipped = 16, kStepsPerPipeline = 64;

std::atomic<int> limit{0};

// Fills `count` bins, the largest item first, each into the bin that holds least.
template <class Put> void pack(std::span<const double> sizes, size_t count, Put put) {
  std::vector<size_t> largest_first(sizes.size());
  std::iota(largest_first.begin(), largest_first.end(), size_t(0));
  std::ranges::stable_sort(largest_first, std::greater(), [&](size_t i) { return sizes[i]; });
  std::vector<double> filled(count, 0);
  for (size_t i : largest_first) {
    const size_t bin = size_t(std::ranges::min_element(filled) - filled.begin());
    filled[bin] += sizes[i];
    put(i, bin, filled[bin]);
  }
}

class RegionFinder {
 public:
  RegionFinder(std::span<const RegionStep> steps, int threads)
      : steps_(steps), threads_(size_t(threads)), done_(steps.size(), false), lane_(steps.size()) {}

  RegionSchedule find() {
    while (next_ < steps_.size()) {
      if (done_[next_]) {
        ++next_;
      } else if (find_lanes(false) || (saw_threaded_ && find_lanes(true))) {
        add_region();
        new_region_ = true;
        searches_in_vain_ = 0;
      } else if (std::exchange(new_region_, false) && find_pipeline()) {
        add_pipeline();
        new_region_ = true;
      } else {
        take_alone();
      }
    }
    return std::move(result_);
  }

 private:
  static constexpr int kNone = -1, kBlocked = -2;
  static constexpr size_t kNoStep = size_t(-1);

  void take(size_t step) {
    result_.order.push_back(int(step));
    done_[step] = true;
  }

  // Takes the next step by itself; after many searches in vain, several before the next search.
  void take_alone() {
    const size_t count = std::min<size_t>(1 + searches_in_vain_++ / 8, kMostSkipped);
    for (size_t i = 0; i < count && next_ < steps_.size(); ++next_) {
      if (done_[next_]) continue;
      new_region_ = steps_[next_].alone || ++since_pipeline_ % kStepsPerPipeline == 0;
      take(next_);
      ++i;
      if (new_region_) break;
    }
  }

  // The lane a step belongs to: kNone if it waits for nobody, kBlocked if for more than one.
  int lane_of(const RegionStep& step) const {
    int found = kNone;
    for (int b : step.before) {
      if (done_[size_t(b)]) continue;
      if (lane_[size_t(b)] == kBlocked || (found != kNone && found != lane_[size_t(b)])) return kBlocked;
      found = lane_[size_t(b)];
    }
    return found;
  }

  // Sets lane_ and sizes_; true if the lanes make a region. Steps that use many threads can be left out.
  bool find_lanes(bool without_threaded) {
    sizes_.clear();
    double one_by_one = 0;
    end_ = std::min(steps_.size(), next_ + (looks_ < kMostLooks ? kFarthest : kFewSteps));
    looks_ += end_ - next_;
    saw_threaded_ = false;
    for (size_t s = next_; s < end_; ++s) {
      if (done_[s]) continue;
      const RegionStep& step = steps_[s];
      const bool threaded = step.cost.alone - step.cost.threaded > kForkCost;
      saw_threaded_ |= threaded;
      int lane = step.alone || (without_threaded && threaded) ? kBlocked : lane_of(step);
      if (lane == kNone) {
        lane = int(sizes_.size());
        sizes_.push_back(0);
      }
      lane_[s] = lane;
      if (lane == kBlocked && step.may_fail) end_ = s;
      if (lane == kBlocked) continue;
      sizes_[size_t(lane)] += step.cost.alone;
      one_by_one += step.cost.threaded;
    }
    if (sizes_.size() < 2 || one_by_one < 2 * kForkCost) return false;
    double longest = 0;
    pack(sizes_, threads_, [&](size_t, size_t, double filled) { longest = std::max(longest, filled); });
    return kSideBySide * longest + kForkCost < one_by_one;
  }

  // Threads begin at both ends of a region: the largest lanes lie there.
  void add_region() {
    const size_t bins = std::min(sizes_.size(), kLanesPerThread * threads_);
    std::vector<size_t> bin_of(sizes_.size());
    pack(sizes_, bins, [&](size_t lane, size_t bin, double) { bin_of[lane] = bin; });
    std::vector<std::vector<size_t>> steps(bins);
    for (size_t s = next_; s < end_; ++s)
      if (!done_[s] && lane_[s] != kBlocked) {
        const size_t bin = bin_of[size_t(lane_[s])];
        steps[bin % 2 == 0 ? bin / 2 : bins - 1 - bin / 2].push_back(s);
      }
    ParallelRegion& region = result_.regions.emplace_back(ParallelRegion{result_.order.size(), {}, false});
    for (const auto& lane : steps) {
      for (size_t s : lane) take(s);
      region.ends.push_back(result_.order.size());
    }
  }

  // Sets in_chain_; true if the rest of the steps, as a lane that follows the chain, makes a region of them.
  bool find_pipeline() {
    end_ = next_;
    double one_by_one = 0;
    for (const size_t farthest = std::min(steps_.size(), next_ + kFarthest); end_ < farthest; ++end_) {
      if (done_[end_]) continue;
      if (steps_[end_].alone) break;
      one_by_one += steps_[end_].cost.threaded;
    }
    if (one_by_one < 4 * kForkCost) return false;
    double best = (one_by_one - kForkCost) / kSideBySide;
    size_t end_of_chain = kNoStep;
    const std::vector<size_t> ends = late_steps();
    for (size_t i = 0; i < ends.size(); i += 1 + ends.size() / kMostEnds) {
      const double duration = pipelined_cost(ends[i]);
      if (duration < best) best = duration, end_of_chain = ends[i];
    }
    if (end_of_chain == kNoStep) return false;
    pipelined_cost(end_of_chain);
    return true;
  }

  template <class Visit> void each_undone(Visit visit) const {
    for (size_t s = next_; s < end_; ++s)
      if (!done_[s]) visit(s);
  }

  // The steps before which there is most to wait for: those a long chain may end with.
  std::vector<size_t> late_steps() const {
    std::vector<double> ready(steps_.size(), 0);
    double last = 0;
    each_undone([&](size_t s) {
      for (int b : steps_[s].before) ready[s] = std::max(ready[s], ready[size_t(b)]);
      last = std::max(last, ready[s] += steps_[s].cost.alone);
    });
    std::vector<size_t> late;
    each_undone([&](size_t s) {
      if (ready[s] > 0.85 * last) late.push_back(s);
    });
    return late;
  }

  // How long the chain that ends with a step takes, everything it waits for included, with the rest following it; for
  // ever if the rest cannot or there is none.
  double pipelined_cost(size_t end_of_chain) {
    in_chain_.assign(steps_.size(), false);
    in_chain_[end_of_chain] = true;
    for (size_t s = end_of_chain + 1; s-- > next_;)
      if (in_chain_[s])
        for (int b : steps_[s].before) in_chain_[size_t(b)] = true;
    std::vector<double> ready(steps_.size(), 0);
    double chain = 0, follower = 0;
    bool possible = true;
    each_undone([&](size_t s) {
      const RegionStep& step = steps_[s];
      if (in_chain_[s]) {
        ready[s] = chain += step.cost.alone;
        return;
      }
      for (int b : step.before) {
        follower = std::max(follower, ready[size_t(b)]);
        possible &= ready[size_t(b)] == 0 || steps_[size_t(b)].fixed_results;
      }
      follower += step.cost.alone;
    });
    return possible && follower > 0 ? std::max(chain, follower) : std::numeric_limits<double>::infinity();
  }

  // What the first step of the second lane waits for stands in front of the region, but for as much as a worker needs
  // to wake up.
  void add_pipeline() {
    size_t begin = next_;
    while (done_[begin] || in_chain_[begin]) ++begin;
    const auto& before = steps_[begin].before;
    const size_t last = before.empty() ? 0 : size_t(std::ranges::max(before));
    double wait = -kWakeTime;
    each_undone([&](size_t s) {
      if (in_chain_[s] && s <= last) wait += steps_[s].cost.alone;
    });
    each_undone([&](size_t s) {
      if (!in_chain_[s] || (wait -= steps_[s].cost.alone) < 0) return;
      take(s);
    });
    ParallelRegion& region = result_.regions.emplace_back(ParallelRegion{result_.order.size(), {}, true});
    for (bool chain : {true, false}) {
      each_undone([&](size_t s) {
        if (in_chain_[s] == chain) take(s);
      });
      region.ends.push_back(result_.order.size());
    }
  }

  std::span<const RegionStep> steps_;
  size_t threads_;
  std::vector<bool> done_;
  std::vector<int> lane_;
  std::vector<double> sizes_;  // of the lanes, in microseconds
  std::vector<bool> in_chain_;
  bool saw_threaded_ = false;
  size_t looks_ = 0;
  bool new_region_ = true;  // no search for a pipeline has looked at the steps from here on
  size_t next_ = 0, end_ = 0, searches_in_vain_ = 0, since_pipeline_ = 0;
  RegionSchedule result_;
};

}  // namespace

bool worth_scheduling(std::span<const RegionStep> steps) {
  double total = 0;
  for (const RegionStep& s : steps) total += s.cost.threaded;
  return steps.size() > 1 && total >= 2 * kForkCost;
}

RegionSchedule find_parallel_regions(std::span<const RegionStep> steps, int threads) {
  return RegionFinder(steps, threads).find();
}

void set_lane_limit(int count) { limit.store(std::max(count, 0), std::memory_order_relaxed); }
int lane_limit() {
  const int set = limit.load(std::memory_order_relaxed), threads = thread_count();
  return set == 0 ? threads : std::min(set, threads);
}

}  // namespace tapeflow
