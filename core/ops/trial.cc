// Trying out shape rules: what a rule for known dimensions gives when some of them are unknown.
#include "ops/partial_shape.h"

namespace tapeflow {
namespace {

using Specs = SmallVector<Spec, 1>;

// A symbolic argument is tried out with these values.
Ints count_up(int64_t n) {
  Ints result;
  for (int64_t i = 0; i < n; ++i) result.push_back(i);
  return result;
}
Ints repeated(int64_t value, int64_t n) {
  Ints result;
  for (int64_t i = 0; i < n; ++i) result.push_back(value);
  return result;
}
constexpr int kGuesses = 21;
Param guess(Argument::Kind kind, int number) {
  switch (kind) {
    case Argument::Kind::flag: return Param(number % 2 == 1);
    case Argument::Kind::real: return Param(number % 2 ? 0.5 : 1.0);
    case Argument::Kind::integer: return Param(number % 4 == 3 ? -1 : number % 4);
    default: break;
  }
  int64_t length = number / 3 == 6 ? 0 : number / 3 + 1;
  return Param(number % 3 == 0 ? count_up(length) : repeated(number % 3 - 1, length));
}

class Trial {
 public:
  Trial(const Call& call, InferFunction rule) : call_(call), rule_(rule), params_(call.params) {
    for (size_t i = 0; i < call.in.size(); ++i) {
      shapes_.push_back(call.in[i].shape());
      if (!shapes_.back().known_rank()) rankless_.push_back(i);
    }
    for (int i = 0; i < int(call.params.size()); ++i)
      if (call.params.at(i).kind == Param::Kind::tensor) guessed_.push_back(i);
    if (!guessed_.empty()) {
      params_ = Params::sized(call.params.size());
      for (int i = 0; i < int(call.params.size()); ++i) params_.mutable_at(i) = call.params.at(i);
    }
  }

  void run(Specs& result) {
    for (int g = 0; g < (guessed_.empty() ? 1 : kGuesses); ++g) {
      for (int i : guessed_) params_.mutable_at(i) = guess(Argument::Kind(call_.params.at(i).argument_kind()), g);
      try_ranks();
    }
    if (successes_ == 0) throw Error(kind_, message_);
    result = found_;
    if (!guessed_.empty() && successes_ == 1)
      for (Spec& spec : result) spec.shape = Shape::unknown();
  }

 private:
  static constexpr int kRanks = 6, kMostRankings = kRanks * kRanks * kRanks;

  void try_ranks() {
    if (rankless_.empty()) return try_dimensions();
    if (rankless_.size() == 1)
      for (int rank = 0; rank < kRanks; ++rank) try_ranks({rank});
    else
      for (int first = 0; first < kRanks; ++first)
        for (int others = 0; others < kRanks; ++others) try_ranks({first, others});
    if (rankless_.size() > 2 && successes_ == 0)
      for (int number = 0; number < kMostRankings; ++number)
        try_ranks({number % kRanks, number / kRanks % kRanks, number / kRanks / kRanks});
    if (rankless_.size() > 2)
      for (Spec& spec : found_) spec.shape = Shape::unknown();
  }
  // The last rank stands for all inputs from there on.
  void try_ranks(std::initializer_list<int> ranks) {
    for (size_t k = 0; k < rankless_.size(); ++k)
      shapes_[rankless_[k]] = unknown_dims(ranks.begin()[std::min(k, ranks.size() - 1)]);
    try_dimensions();
  }

  // Every open dimension with two numbers, alone and together, from numbers on that the rule takes.
  void try_dimensions() {
    open_.clear();
    std::vector<int64_t> bases = {kBase, 1};
    for (size_t i = 0; i < shapes_.size(); ++i)
      for (int d = 0; d < shapes_[i].rank(); ++d) {
        if (shapes_[i][d] < 0)
          open_.push_back({i, d});
        else
          bases.push_back(shapes_[i][d]);
      }
    SmallVector<int64_t, 8> base;
    Specs first, merged;
    if (!find_base(bases, base, first)) return;
    merged = first;
    SmallVector<bool, 8> varied;
    for (size_t k = 0; k < open_.size(); ++k) varied.push_back(false);
    auto vary = [&](size_t from, size_t to,
                    bool down) {  // these two dimensions, or one, or all: to the double, or down to 1
      SmallVector<int64_t, 8> numbers = base;
      bool all = from > to;
      for (size_t k = 0; k < numbers.size(); ++k)
        if (all || k == from || k == to) numbers[k] = down ? 1 : 2 * base[k] + 2 * (base[k] == 0);
      Specs other;
      if (numbers == base || !specs(numbers, other)) return;  // a dimension has no choice, or goes with another one
      merge(merged, other);
      for (size_t k = 0; k < numbers.size(); ++k)
        if (all || k == from || k == to) varied[k] = true;
    };
    for (bool down : {false, true}) {
      if (!open_.empty()) vary(1, 0, down);
      for (size_t i = 0; open_.size() > 1 && i < open_.size(); ++i) vary(i, i, down);
    }
    for (size_t i = 0; i < open_.size() && open_.size() <= kMostPaired; ++i)
      for (size_t k = i + 1; k < open_.size() && !(varied[i] && varied[k]); ++k) vary(i, k, false);
    // A dimension like one that could not be changed may follow it.
    for (Spec& spec : merged)
      for (int d = 0; d < spec.shape.rank(); ++d)
        for (size_t k = 0; k < open_.size(); ++k)
          if (spec.shape[d] == base[k] && (!varied[k] || base[k] == kBase)) spec.shape[d] = -1;
    if (successes_++ == 0)
      found_ = merged;
    else
      merge(found_, merged);
  }

  // Numbers for the open dimensions that the rule takes: one for all, what other inputs have in the same place, or any
  // combination of the known ones.
  bool find_base(std::vector<int64_t>& known, SmallVector<int64_t, 8>& base, Specs& result) {
    base.resize(open_.size());
    std::vector<int64_t> different;
    for (int64_t n : {2, 3, 4}) known.push_back(n);
    for (int64_t n : known)
      if (!std::count(different.begin(), different.end(), n)) different.push_back(n);
    for (int64_t n : different) {
      std::fill(base.begin(), base.end(), n);
      if (specs(base, result)) return true;
      if (open_.empty()) return false;
    }
    for (bool from_left : {false, true}) {
      for (size_t k = 0; k < open_.size(); ++k) base[k] = number_in_same_place(open_[k], from_left);
      if (specs(base, result)) return true;
    }
    size_t combinations = 1;
    for (size_t k = 0; k < open_.size(); ++k)
      combinations =
          std::min(combinations * different.size(), rankless_.empty() ? kMostCombinations : kFewCombinations);
    for (size_t c = 0; c < combinations; ++c) {
      for (size_t k = 0, rest = c; k < open_.size(); ++k, rest /= different.size())
        base[k] = different[rest % different.size()];
      if (specs(base, result)) return true;
    }
    return false;
  }
  int64_t number_in_same_place(std::pair<size_t, int> open, bool from_left) const {
    int right = shapes_[open.first].rank() - open.second;
    for (size_t i = 0; i < shapes_.size(); ++i) {
      int d = from_left ? open.second : shapes_[i].rank() - right;
      if (i != open.first && d >= 0 && d < shapes_[i].rank() && shapes_[i][d] >= 0) return shapes_[i][d];
    }
    return kBase;
  }

  void merge(Specs& into, const Specs& other) const {
    if (into.size() != other.size())
      fail(ErrorKind::value, call_.name(),
           ": the number of results must be known while tracing, but it depends on a dimension that is not known");
    for (size_t i = 0; i < into.size(); ++i) {
      Shape& shape = into[i].shape;
      if (shape.rank() != other[i].shape.rank()) shape = Shape::unknown();
      for (int d = 0; d < shape.rank(); ++d)
        if (shape[d] != other[i].shape[d]) shape[d] = -1;
    }
  }

  // What the rule says for these dimensions; false if it refuses them.
  bool specs(std::span<const int64_t> numbers, Specs& result) {
    SmallVector<Shape, 4> shapes = shapes_;
    for (size_t k = 0; k < open_.size(); ++k) shapes[open_[k].first][open_[k].second] = numbers[k];
    SmallVector<Tensor, 4> in;
    for (size_t i = 0; i < shapes.size(); ++i)
      in.push_back(call_.in[i].symbolic() ? Tensor::symbolic_value(call_.in[i].dtype(), shapes[i], {nullptr, 0})
                                          : call_.in[i]);
    Call trial(call_.op, in, params_);
    try {
      rule_(trial);
    } catch (const Error& e) {
      if (message_.empty()) message_ = e.what(), kind_ = e.kind;
      return false;
    }
    result = trial.specs;
    return true;
  }

  static constexpr int64_t kBase = 840;
  static constexpr size_t kMostCombinations = 8000, kFewCombinations = 40, kMostPaired = 8;
  const Call& call_;
  InferFunction rule_;
  Params params_;
  SmallVector<Shape, 4> shapes_;
  SmallVector<size_t, 4> rankless_;
  SmallVector<int, 4> guessed_;
  SmallVector<std::pair<size_t, int>, 4> open_;
  Specs found_;
  int successes_ = 0;
  std::string message_;
  ErrorKind kind_ = ErrorKind::runtime;
};

}  // namespace

void try_out(Call& call, InferFunction rule) {
  bool open = call.params.has_tensor();
  for (const Tensor& t : call.in) open |= t.size() < 0;
  if (!open) return rule(call);
  Trial(call, rule).run(call.specs);
}

}  // namespace tapeflow
