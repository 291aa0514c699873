// Random choices: categories, shuffles, permutations, candidate classes.
#include <algorithm>
#include <cmath>
#include <numeric>
#include <unordered_set>

#include "base/blocks.h"
#include "ops/arrays/elements.h"
#include "ops/random/generator.h"

namespace tapeflow {
namespace {

constexpr struct : Keys {
  Key<int64_t> num_samples = next("num_samples");
  Key<DType> output_dtype = next("output_dtype");
} multinomial_params;
// Rows of logits follow each other on one stream of uniform numbers, two words each.
const Op& multinomial_op = define(Op{
    .name = "PhiloxMultinomial",
    .arguments = {tensor("logits", real_numbers, 0), integer(multinomial_params.num_samples),
                  tensor("key", DType::uint64, -1), tensor("counter", DType::uint64, -1),
                  dtype_argument(multinomial_params.output_dtype)},
    .infer =
        [](Call& call) {
          const Tensor& logits = call.in[0];
          int64_t samples = call.params[multinomial_params.num_samples];
          if (logits.rank() != 2)
            fail(ErrorKind::invalid_argument, call.name(), ": logits should be a matrix, got shape ", logits.shape());
          if (samples < 0)
            fail(ErrorKind::invalid_argument, call.name(), ": num_samples should be non-negative, got ", samples);
          if (logits.dim(1) <= 0)
            fail(ErrorKind::invalid_argument, call.name(), ": num_classes should be positive, got ", logits.dim(1));
          call.returns(call.params[multinomial_params.output_dtype], {logits.dim(0), samples});
        },
    .kernel =
        [](Call& call) {
          const Tensor &logits = call.in[0], &y = call.out[0];
          Philox p{call.in[1].data<uint64_t>()[0], call.in[2].data<uint64_t>()[0], call.in[2].data<uint64_t>()[1]};
          int64_t rows = logits.dim(0), classes = logits.dim(1), samples = y.dim(1);
          parallel_for(rows, std::max<int64_t>(1, kDrawGrain / (samples + classes)), [&](int64_t begin, int64_t end) {
            PhiloxWords next(p.skipped(uint64_t(begin * samples / 2)));
            if (begin * samples % 2) next.uniform();
            BlockVector<double> cumulative(static_cast<size_t>(classes));
            for (int64_t r = begin; r < end; ++r) {
              double most = -std::numeric_limits<double>::infinity(), total = 0;
              for (int64_t j = 0; j < classes; ++j)
                if (double v = element(logits, r * classes + j); std::isfinite(v)) most = std::max(most, v);
              for (int64_t j = 0; j < classes; ++j) {
                double v = element(logits, r * classes + j);
                if (std::isfinite(v)) total += std::exp(v - most);
                cumulative[size_t(j)] = total;
              }
              for (int64_t s = 0; s < samples; ++s) {
                int64_t found =
                    std::upper_bound(cumulative.begin(), cumulative.end(), next.uniform() * total) - cumulative.begin();
                if (y.dtype() == DType::int32)
                  y.mutable_data<int32_t>()[r * samples + s] = int32_t(found);
                else
                  y.mutable_data<int64_t>()[r * samples + s] = found;
              }
            }
          });
        },
    .gradient = Gradient::none,
    .stateful = true,
    .random = true,
    .called = "random.categorical",
});

// Rows of `value` in a random order: each position swaps with one at or behind it.
const Op& shuffle_op = define(Op{
    .name = "PhiloxShuffle",
    .arguments = {tensor("value", any_dtype), tensor("key", DType::uint64, -1), tensor("counter", DType::uint64, -1)},
    .infer = [](Call& call) { call.returns(call.in[0].dtype(), call.in[0].shape()); },
    .kernel =
        [](Call& call) {
          const Tensor &x = call.in[0], &y = call.out[0];
          int64_t rows = x.rank() ? x.dim(0) : 1;
          if (x.size() == 0) return;
          int64_t length = x.size() / rows;
          BlockVector<int64_t> order(static_cast<size_t>(rows));
          std::iota(order.begin(), order.end(), int64_t(0));
          PhiloxWords next(
              Philox{call.in[1].data<uint64_t>()[0], call.in[2].data<uint64_t>()[0], call.in[2].data<uint64_t>()[1]});
          for (int64_t i = 0; i + 1 < rows; ++i)
            std::swap(order[size_t(i)], order[size_t(i + next() % uint32_t(rows - i))]);
          by_size(x.dtype(), [&]<class T>(T*) {
            const T* from = static_cast<const T*>(x.raw());
            T* to = y.mutable_data<T>();
            for (int64_t r = 0; r < rows; ++r) std::copy_n(from + order[size_t(r)] * length, length, to + r * length);
          });
        },
    .gradient = Gradient::none,
    .stateful = true,
});

constexpr struct : Keys {
  Key<int64_t> rounds = next("rounds");
} index_shuffle_params;
const Op& index_shuffle_op = define(Op{
    .name = "RandomIndexShuffle",
    .arguments = {tensor("index", seeds, -1), tensor("seed", seeds, -1), tensor("max_index", seeds, -1),
                  integer(index_shuffle_params.rounds, 4)},
    .infer =
        [](Call& call) {
          const Tensor &index = call.in[0], &seed = call.in[1], &last = call.in[2];
          int64_t rounds = call.params[index_shuffle_params.rounds];
          if (index.rank() > 1)
            fail(ErrorKind::invalid_argument, call.name(), ": Index must be a scalar or vector; got shape ",
                 index.shape());
          if (seed.rank() < 1 || seed.rank() > 2 || seed.shape().back() != 3)
            fail(ErrorKind::invalid_argument, call.name(),
                 ": Seed must be a vector of length 3 or a matrix with 3 columns; got shape ", seed.shape());
          if (last.rank() > 1)
            fail(ErrorKind::invalid_argument, call.name(), ": Maxval must be a scalar or vector; got shape ",
                 last.shape());
          if (rounds < 4 || rounds % 2)
            fail(ErrorKind::invalid_argument, call.name(), ": rounds must be an even number of at least 4; got ",
                 rounds);
          int64_t n = 1;
          for (int64_t m : {index.size(), seed.size() / 3, last.size()}) {
            if (m != 1 && n != 1 && m != n)
              fail(ErrorKind::invalid_argument, call.name(),
                   ": index, seed and max_index must have equal lengths or 1; got ", n, " and ", m);
            if (m != 1) n = m;
          }
          bool scalar = index.rank() == 0 && seed.rank() == 1 && last.rank() == 0;
          call.returns(index.dtype(), scalar ? Shape() : Shape{n});
        },
    .kernel =
        [](Call& call) {
          Ints index = read_ints(call.in[0]), seed = read_ints(call.in[1]), last = read_ints(call.in[2]);
          visit<seeds.bits>(call.out[0].dtype(), [&]<class T>(T*) {
            for (int64_t i = 0; i < call.out[0].size(); ++i) {
              size_t s = seed.size() == 3 ? 0 : size_t(3 * i);
              uint32_t key[3] = {uint32_t(seed[s]), uint32_t(seed[s + 1]), uint32_t(seed[s + 2])};
              uint64_t at = uint64_t(index[index.size() == 1 ? 0 : size_t(i)]),
                       end = uint64_t(last[last.size() == 1 ? 0 : size_t(i)]);
              if (at > end)
                fail(ErrorKind::invalid_argument, call.name(),
                     ": index must be >= 0 and max_index must be >= index; got ", int64_t(at), " and ", int64_t(end));
              call.out[0].mutable_data<T>()[i] =
                  T(shuffled_index(at, key, end, int(call.params[index_shuffle_params.rounds])));
            }
          });
        },
    .gradient = Gradient::none,
    .called = "random.experimental.index_shuffle",
});

// Classes drawn by weight. kind: 0 uniform, 1 log-uniform, 2 by the alias method, 3 by the sums of whole weights. Gives
// the classes and how often the true and the drawn ones are expected.
struct CandidateSampler {
  int64_t kind, range;
  BlockVector<float> weights, threshold;
  BlockVector<int> alias;
  BlockVector<uint64_t> sums;
  float total = 0;

  CandidateSampler(int64_t k, int64_t r, const Tensor& w) : kind(k), range(r) {
    for (int64_t i = 0; kind >= 2 && i < w.size(); ++i) weights.push_back(w.data<float>()[i]), total += weights.back();
    uint64_t sum = 0;
    for (float v : weights) sums.push_back(sum += uint64_t(v));
    if (kind == 2) build_alias();
  }
  void build_alias() {
    size_t n = weights.size();
    BlockVector<double> p(n);
    BlockVector<int> high, low;
    double sum = std::accumulate(weights.begin(), weights.end(), 0.0);
    alias.assign(n, -1);
    for (size_t i = 0; i < n; ++i) {
      p[i] = double(weights[i] * float(n)) / sum;
      (p[i] < 1.0 ? low : high).push_back(int(i));
    }
    while (!high.empty() && !low.empty()) {
      int l = low.back(), h = high.back();
      low.pop_back(), high.pop_back();
      alias[size_t(l)] = h;
      p[size_t(h)] -= 1.0 - p[size_t(l)];
      (p[size_t(h)] < 1.0 ? low : high).push_back(h);
    }
    for (auto* rest : {&high, &low})
      for (int i : *rest) p[size_t(i)] = 1.0, alias[size_t(i)] = i;
    for (double v : p) threshold.push_back(float(v));
  }
  // A number below n; words that would make the small ones likelier are thrown away.
  template <class U, class Next> static U below(U n, Next&& next) {
    if ((n & (n - 1)) == 0) return U(next() & (n - 1));
    const U unfair = U(std::numeric_limits<U>::max() % n + 1);
    U word;
    do word = next();
    while (word < unfair);
    return word % n;
  }
  int64_t sample(PhiloxWords& next) const {
    if (kind == 0) {
      return int64_t(below<uint64_t>(uint64_t(range), [&] {
        uint64_t low = next();
        return low | uint64_t(next()) << 32;
      }));
    }
    if (kind == 1) return (int64_t(std::exp(next.uniform() * std::log1p(double(range)))) - 1) % range;
    if (kind == 2) {
      float r = std::bit_cast<float>((next() & 0x7fffffu) | 0x3f800000u) - 1.0f;
      auto i = size_t(below<uint32_t>(uint32_t(range), next));
      return r < threshold[i] ? int64_t(i) : alias[i];
    }
    uint64_t r = below<uint32_t>(uint32_t(sums.back()), next);
    return std::upper_bound(sums.begin(), sums.end(), r) - sums.begin();
  }
  float probability(int64_t value) const {
    if (kind == 0) return float(1.0 / double(range));
    if (kind == 1) return float(std::log((double(value) + 2.0) / (double(value) + 1.0)) / std::log1p(double(range)));
    return value < 0 || value >= int64_t(weights.size()) ? 0.0f : weights[size_t(value)] / total;
  }
};

constexpr struct : Keys {
  Key<int64_t> kind = next("kind"), num_sampled = next("num_sampled");
  Key<bool> unique = next("unique");
  Key<int64_t> range_max = next("range_max");
} candidates_params;
const Op& candidates_op = define(Op{
    .name = "PhiloxCandidates",
    .arguments = {tensor("true_classes", DType::int64, -1), tensor("key", DType::uint64, -1),
                  tensor("counter", DType::uint64, -1), tensor("weights", DType::float32, -1),
                  integer(candidates_params.kind), integer(candidates_params.num_sampled),
                  flag(candidates_params.unique), integer(candidates_params.range_max)},
    .infer =
        [](Call& call) {
          int64_t sampled = call.params[candidates_params.num_sampled];
          if (sampled < 0)
            fail(ErrorKind::invalid_argument, call.name(), ": num_sampled must not be negative; got ", sampled);
          if (call.params[candidates_params.range_max] < 1)
            fail(ErrorKind::invalid_argument, call.name(), ": range_max must be positive; got ",
                 call.params[candidates_params.range_max]);
          if (call.params[candidates_params.kind] >= 2 && call.in[3].size() != call.params[candidates_params.range_max])
            fail(ErrorKind::invalid_argument, call.name(), ": range is ", call.params[candidates_params.range_max],
                 " must be equal to weights size  ", call.in[3].size());
          if (call.params[candidates_params.unique] && sampled > call.params[candidates_params.range_max])
            fail(ErrorKind::invalid_argument, call.name(), ": Sampler's range is too small: ", sampled,
                 " different classes of ", call.params[candidates_params.range_max]);
          call.returns(DType::int64, {sampled});
          call.returns(DType::float32, call.in[0].shape());
          call.returns(DType::float32, {sampled});
        },
    .kernel =
        [](Call& call) {
          CandidateSampler sampler(call.params[candidates_params.kind], call.params[candidates_params.range_max],
                                   call.in[3]);
          PhiloxWords next(
              Philox{call.in[1].data<uint64_t>()[0], call.in[2].data<uint64_t>()[0], call.in[2].data<uint64_t>()[1]});
          int64_t wanted = call.params[candidates_params.num_sampled], tries = 0, picked = 0;
          int64_t* drawn = call.out[0].mutable_data<int64_t>();
          if (sampler.kind >= 2) {
            int64_t possible =
                std::count_if(sampler.weights.begin(), sampler.weights.end(), [](float w) { return w > 0; });
            if (wanted > 0 && (possible == 0 || (call.params[candidates_params.unique] && possible < wanted)))
              fail(ErrorKind::invalid_argument, call.name(), ": only ", possible, " classes have a weight, of which ",
                   wanted, " are to be drawn");
          }
          std::unordered_set<int64_t> used;
          while (picked < wanted) {
            ++tries;
            int64_t value = sampler.sample(next);
            if (call.params[candidates_params.unique] && !used.insert(value).second) continue;
            drawn[picked++] = value;
          }
          auto expected = [&](int64_t value) {
            float p = sampler.probability(value);
            return tries == wanted ? p * float(wanted) : -std::expm1(float(tries) * std::log1p(-p));
          };
          const Tensor& classes = call.in[0];
          for (int64_t i = 0; i < classes.size(); ++i)
            call.out[1].mutable_data<float>()[i] = expected(classes.data<int64_t>()[i]);
          for (int64_t i = 0; i < wanted; ++i) call.out[2].mutable_data<float>()[i] = expected(drawn[i]);
        },
    .gradient = Gradient::none,
    .stateful = true,
    .random = true,
    .called = "candidate_sampler",
    .returns_list = true,
});

}  // namespace

}  // namespace tapeflow
