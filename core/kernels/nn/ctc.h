// Connectionist temporal classification of one sequence: the loss with its derivatives, and beam search. Knows no
// Tensor.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <memory>

#include "base/blocks.h"
#include "kernels/simd/vector.h"

namespace tapeflow {

// A number with its derivative along one direction: the loss run on duals gives the Hessian times that direction.
struct Dual {
  double value, derivative;
  Dual(double v = 0, double s = 0) : value(v), derivative(s) {}
};

namespace ctc {

constexpr double kLogZero = -std::numeric_limits<double>::infinity();

inline double value_of(double x) { return x; }
inline double value_of(Dual x) { return x.value; }

inline double plus(double a, double b) { return a + b; }
inline Dual plus(Dual a, Dual b) { return {a.value + b.value, a.derivative + b.derivative}; }
inline double minus(double a, double b) { return a - b; }
inline Dual minus(Dual a, Dual b) { return {a.value - b.value, a.derivative - b.derivative}; }
inline double exponential(double a) { return std::exp(a); }
inline Dual exponential(Dual a) { return {std::exp(a.value), std::exp(a.value) * a.derivative}; }

// log(exp(a) + exp(b))
inline double log_add(double a, double b) {
  double high = std::max(a, b), low = std::min(a, b);
  return low == kLogZero ? high : high + std::log1p(std::exp(low - high));
}
inline Dual log_add(Dual a, Dual b) {
  if (a.value == kLogZero) return b;
  if (b.value == kLogZero) return a;
  double sum = log_add(a.value, b.value);
  return {sum, a.derivative * std::exp(a.value - sum) + b.derivative * std::exp(b.value - sum)};
}

// Makes logits (times x classes) into log probabilities, in place.
template <class Number> void log_normalize(BlockVector<Number>& y, int64_t times, int64_t classes) {
  for (int64_t t = 0; t < times; ++t) {
    Number* row = y.data() + t * classes;
    Number sum(kLogZero);
    for (int64_t c = 0; c < classes; ++c) sum = log_add(sum, row[c]);
    for (int64_t c = 0; c < classes; ++c) row[c] = minus(row[c], sum);
  }
}

// The loss of one sequence, and its derivative by the logits. `y` holds the logits (times x classes) and is used up.
// The states are blank, label, blank, label, ..., blank; a step stays, goes one state on, or skips a blank between two
// different labels. Without `merge_repeated`, each time step of a label stands for itself: no step stays at a label,
// and equal labels follow one another like different ones. Where no path fits, the loss is infinite and the derivative
// 0.
template <class Number> Number loss(BlockVector<Number> y, int64_t times, int64_t classes,
                                    const BlockVector<int64_t>& labels, int64_t blank, bool merge_repeated,
                                    BlockVector<Number>& derivative) {
  derivative.assign(size_t(times * classes), Number(0));
  if (times == 0) return Number(labels.empty() ? 0 : -kLogZero);
  log_normalize(y, times, classes);
  int64_t states = 2 * int64_t(labels.size()) + 1;
  auto symbol = [&](int64_t s) { return s % 2 ? labels[size_t(s / 2)] : blank; };
  auto stays = [&](int64_t s) { return merge_repeated || s % 2 == 0; };
  auto skips = [&](int64_t s) { return s % 2 == 1 && s >= 2 && (!merge_repeated || symbol(s) != symbol(s - 2)); };
  auto emit = [&](int64_t t, int64_t s) { return y[size_t(t * classes + symbol(s))]; };
  BlockVector<Number> forward(size_t(times * states), Number(kLogZero));
  auto at = [&](int64_t t, int64_t s) -> Number& { return forward[size_t(t * states + s)]; };
  for (int64_t s = 0; s < std::min<int64_t>(2, states); ++s) at(0, s) = emit(0, s);
  for (int64_t t = 1; t < times; ++t)
    for (int64_t s = 0; s < states; ++s) {
      Number sum = stays(s) ? at(t - 1, s) : Number(kLogZero);
      if (s >= 1) sum = log_add(sum, at(t - 1, s - 1));
      if (skips(s)) sum = log_add(sum, at(t - 1, s - 2));
      at(t, s) = plus(sum, emit(t, s));
    }
  Number total = at(times - 1, states - 1);
  if (states > 1) total = log_add(total, at(times - 1, states - 2));
  if (!(value_of(total) > kLogZero)) return Number(value_of(total) == kLogZero ? -kLogZero : value_of(total));
  // backward[s]: log probability of everything after time t, from state s.
  const size_t count = size_t(states), symbols = size_t(classes);
  BlockVector<Number> backward(count, Number(kLogZero)), later(count), share(symbols);
  for (int64_t s = std::max<int64_t>(0, states - 2); s < states; ++s) backward[size_t(s)] = Number(0);
  for (int64_t t = times - 1; t >= 0; --t) {
    std::fill(share.begin(), share.end(), Number(kLogZero));
    for (int64_t s = 0; s < states; ++s) {
      Number& sum = share[size_t(symbol(s))];
      sum = log_add(sum, plus(at(t, s), backward[size_t(s)]));
    }
    for (int64_t c = 0; c < classes; ++c) {
      Number softmax = exponential(y[size_t(t * classes + c)]);
      Number posterior =
          value_of(share[size_t(c)]) == kLogZero ? Number(0) : exponential(minus(share[size_t(c)], total));
      derivative[size_t(t * classes + c)] = minus(softmax, posterior);
    }
    if (t == 0) break;
    for (int64_t s = 0; s < states; ++s) later[size_t(s)] = plus(backward[size_t(s)], emit(t, s));
    for (int64_t s = 0; s < states; ++s) {
      Number sum = stays(s) ? later[size_t(s)] : Number(kLogZero);
      if (s + 1 < states) sum = log_add(sum, later[size_t(s + 1)]);
      if (s + 2 < states && skips(s + 2)) sum = log_add(sum, later[size_t(s + 2)]);
      backward[size_t(s)] = sum;
    }
  }
  return minus(Number(0), total);
}

// The same by probabilities instead of their logarithms, each time step scaled to a sum of 1: no logarithm and no
// exponential for each state. False where the range of double does not suffice, or no path fits; the caller then takes
// the logarithms. States below kSmallest are dropped. What a drop at time t may lose is at most kSmallest times the
// scales so far for each state, for what comes after has a probability of at most 1; this must be nothing beside the
// probability of all paths.
inline bool scaled_loss(const BlockVector<double>& logits, int64_t times, int64_t classes,
                        const BlockVector<int64_t>& labels, int64_t blank, bool merge_repeated,
                        BlockVector<double>& derivative, double& loss) {
  constexpr double kSmallest = 1e-200, kSmallestSum = 1e-100, kLargestGap = 400;
  if (times == 0) return false;
  const int64_t states = 2 * int64_t(labels.size()) + 1, width = states + 2;  // two states of 0 at the edge
  BlockVector<int64_t> symbol(static_cast<size_t>(states), blank);
  BlockVector<double> stay(size_t(width), 1.0), skip(size_t(width), 0.0);  // skip[s + 2]: from s to s + 2
  for (int64_t s = 1; s < states; s += 2) {
    symbol[size_t(s)] = labels[size_t(s / 2)];
    stay[size_t(s)] = merge_repeated;
    if (s >= 2) skip[size_t(s)] = !merge_repeated || symbol[size_t(s)] != symbol[size_t(s - 2)];
  }
  derivative.resize(size_t(times * classes));
  for (int64_t t = 0; t < times; ++t)
    vector_kernels<double>().softmax_row(&logits[size_t(t * classes)], &derivative[size_t(t * classes)], classes);
  BlockVector<double> emitted(static_cast<size_t>(states));
  bool fits = true;
  // The logarithm of the scales when a state was first dropped.
  double log_scale = 0, first_drop = kLogZero;
  auto emit = [&](int64_t t) {
    const double* p = &derivative[size_t(t * classes)];
    bool small = false;
    for (int64_t s = 0; s < states; ++s) {
      emitted[size_t(s)] = p[symbol[size_t(s)]];
      small |= !(emitted[size_t(s)] >= kSmallestSum);
    }
    if (small) first_drop = std::max(first_drop, log_scale);
  };
  auto scale = [&](double* row) {
    double sums[4] = {};
    for (int64_t s = 0; s < states; ++s) sums[s % 4] += row[s];
    const double sum = (sums[0] + sums[1]) + (sums[2] + sums[3]), factor = 1 / sum;
    fits &= sum >= kSmallestSum;
    bool dropped = false;
    for (int64_t s = 0; s < states; ++s) {
      const double scaled = row[s] * factor;
      dropped |= scaled > 0 && scaled < kSmallest;
      row[s] = scaled < kSmallest ? 0 : scaled;
    }
    log_scale += std::log(sum);
    if (dropped) first_drop = std::max(first_drop, log_scale);
  };
  BlockVector<double> forward(size_t(times * width), 0.0);  // state s of time t at t * width + 2 + s
  for (int64_t t = 0; t < times && fits; ++t) {
    double* now = &forward[size_t(t * width + 2)];
    emit(t);
    if (t == 0) {
      for (int64_t s = 0; s < std::min<int64_t>(2, states); ++s) now[s] = emitted[size_t(s)];
    } else {
      const double* before = now - width;
      for (int64_t s = 0; s < states; ++s)
        now[s] = (stay[size_t(s)] * before[s] + before[s - 1] + skip[size_t(s)] * before[s - 2]) * emitted[size_t(s)];
    }
    scale(now);
  }
  if (!fits) return false;
  const double* last = &forward[size_t((times - 1) * width + 2)];
  const double total = last[states - 1] + (states > 1 ? last[states - 2] : 0);
  loss = -(std::log(total) + log_scale);
  if (!(total >= kSmallestSum) || !(first_drop + loss < kLargestGap)) return false;
  BlockVector<double> backward(size_t(width), 0.0), later(size_t(width), 0.0), share(static_cast<size_t>(classes));
  for (int64_t s = std::max<int64_t>(0, states - 2); s < states; ++s) backward[size_t(s)] = 1;
  log_scale = 0, first_drop = kLogZero;
  for (int64_t t = times - 1; t >= 0 && fits; --t) {
    const double* now = &forward[size_t(t * width + 2)];
    if (t > 0) emit(t);  // before the probabilities become derivatives
    std::fill(share.begin(), share.end(), 0.0);
    for (int64_t s = 0; s < states; ++s) share[size_t(symbol[size_t(s)])] += now[s] * backward[size_t(s)];
    double sum = 0;
    for (double part : share) sum += part;
    fits &= sum >= kSmallestSum;
    for (int64_t c = 0; c < classes; ++c) derivative[size_t(t * classes + c)] -= share[size_t(c)] / sum;
    if (t == 0) break;
    for (int64_t s = 0; s < states; ++s) later[size_t(s)] = backward[size_t(s)] * emitted[size_t(s)];
    for (int64_t s = 0; s < states; ++s)
      backward[size_t(s)] =
          stay[size_t(s)] * later[size_t(s)] + later[size_t(s + 1)] + skip[size_t(s + 2)] * later[size_t(s + 2)];
    scale(backward.data());
  }
  return fits && first_drop + loss < kLargestGap;
}

struct Path {
  BlockVector<int64_t> labels;
  double log_probability;
};

// The `top` best label sequences by prefix beam search with `width` prefixes. `y` holds logits (times x classes); the
// blank is the last class.
inline BlockVector<Path> beam_search(BlockVector<double> y, int64_t times, int64_t classes, int64_t width,
                                     int64_t top) {
  struct Prefix {
    Prefix* parent;
    int64_t label;
    double blank = kLogZero, labelled = kLogZero, old_blank = kLogZero, old_labelled = kLogZero;
    bool alive = false;
    BlockVector<Prefix*> children = {};
    double total() const { return log_add(blank, labelled); }
    double old_total() const { return log_add(old_blank, old_labelled); }
    double before(int64_t next) const { return next == label ? old_blank : old_total(); }
  };
  log_normalize(y, times, classes);
  BlockVector<std::unique_ptr<Prefix>> all;
  auto make = [&](Prefix* parent, int64_t label) {
    all.push_back(std::make_unique<Prefix>(Prefix{parent, label}));
    return all.back().get();
  };
  BlockVector<Prefix*> beam{make(nullptr, -1)}, candidates;
  beam[0]->blank = 0;
  beam[0]->alive = true;
  auto better = [](const Prefix* a, const Prefix* b) { return a->total() > b->total(); };
  for (int64_t t = 0; t < times; ++t) {
    const double* row = y.data() + t * classes;
    for (Prefix* p : beam) {
      p->old_blank = p->blank;
      p->old_labelled = p->labelled;
    }
    for (Prefix* p : beam) {
      p->blank = p->old_total() + row[classes - 1];
      p->labelled = kLogZero;
      if (!p->parent) continue;
      p->labelled = p->old_labelled + row[p->label];
      if (p->parent->alive) p->labelled = log_add(p->labelled, p->parent->before(p->label) + row[p->label]);
    }
    candidates = beam;
    for (Prefix* p : beam) {
      if (p->children.empty()) p->children.assign(size_t(classes - 1), nullptr);
      for (int64_t c = 0; c < classes - 1; ++c) {
        Prefix*& child = p->children[size_t(c)];
        if (child && child->alive) continue;
        double probability = p->before(c) + row[c];
        if (probability == kLogZero) continue;
        if (!child) child = make(p, c);
        child->blank = kLogZero;
        child->labelled = probability;
        candidates.push_back(child);
      }
    }
    for (Prefix* p : beam) p->alive = false;
    size_t kept = std::min(size_t(width), candidates.size());
    std::partial_sort(candidates.begin(), candidates.begin() + int64_t(kept), candidates.end(), better);
    candidates.resize(kept);
    beam = candidates;
    for (Prefix* p : beam) p->alive = true;
  }
  std::sort(beam.begin(), beam.end(), better);
  BlockVector<Path> paths;
  for (size_t i = 0; i < std::min(size_t(top), beam.size()); ++i) {
    Path path{{}, beam[i]->total()};
    for (const Prefix* p = beam[i]; p->parent; p = p->parent) path.labels.push_back(p->label);
    std::reverse(path.labels.begin(), path.labels.end());
    paths.push_back(std::move(path));
  }
  return paths;
}

}  // namespace ctc
}  // namespace tapeflow
