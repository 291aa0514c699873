// Random numbers as operations: a key and a counter come in as tensors, so that the numbers are a function of them. The
// streams, and who advances them, are in tapeflow/ops/random*.py.
#include "kernels/random.h"
#include "base/blocks.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <string_view>
#include <unordered_set>

#include "base/parallel.h"
#include "ops/elements.h"
#include "ops/family.h"
#include "ops/partial_shape.h"

namespace tapeflow {
namespace {

// What the user called, for messages.
const char* called(const Call& call) {
  static const std::map<std::string_view, const char*> words = {
      {"StatelessRandomUniformV2", "random.uniform"},
      {"StatelessRandomNormalV2", "random.normal"},
      {"StatelessTruncatedNormalV2", "random.truncated_normal"},
      {"StatelessRandomUniformFullIntV2", "random.uniform"},
      {"StatelessRandomUniformIntV2", "random.uniform"},
      {"StatelessRandomGetKeyCounter", "random.stateless"},
      {"PhiloxAdvance", "random.Generator"},
      {"StatelessRandomGammaV3", "random.gamma"},
      {"PhiloxPoisson", "random.poisson"},
      {"PhiloxBinomial", "random.binomial"},
      {"PhiloxMultinomial", "random.categorical"},
      {"PhiloxBoundedNormal", "random.stateless_parameterized_truncated_normal"},
      {"RandomIndexShuffle", "random.experimental.index_shuffle"},
      {"PhiloxCandidates", "candidate_sampler"},
  };
  auto found = words.find(call.op.name);
  return found == words.end() ? call.name() : found->second;
}

constexpr DTypes seeds = DTypes(DType::int32) | DType::int64 | DType::uint32 | DType::uint64;
constexpr DTypes word_integers = seeds;
constexpr int64_t kDrawGrain = 1 << 14, kSampleGrain = 256;

// Parameters of the V2 operations, in TensorFlow's order: shape, key, counter, alg.
std::vector<Argument> with_generator(std::vector<Argument> rest) {
  std::vector<Argument> all = {ints("shape"), tensor("key", DType::uint64, -1), tensor("counter", DType::uint64, -1),
                               integer("alg", 3)};
  for (Argument& a : rest) all.push_back(std::move(a));
  return all;
}

Philox generator(const Call& call) {
  const Tensor &key = call.in[0], &counter = call.in[1];
  int64_t alg = call.params.integer(1);
  if (alg == 2)
    fail(ErrorKind::unimplemented, called(call), ": the ThreeFry algorithm has no kernel on a CPU; use alg='philox'");
  if (alg != 1 && alg != 3) fail(ErrorKind::invalid_argument, called(call), ": Unsupported algorithm id: ", alg);
  if (key.size() != 1 || key.rank() != 1)
    fail(ErrorKind::invalid_argument, called(call), ": key must have shape [1], not ", key.shape());
  if (counter.size() < 2 || counter.rank() != 1)
    fail(ErrorKind::invalid_argument, called(call), ": counter must be a vector with length at least 2; got shape ",
         counter.shape());
  return Philox{key.data<uint64_t>()[0], counter.data<uint64_t>()[0], counter.data<uint64_t>()[1]};
}

Shape drawn_shape(const Call& call) {
  if (!count_known(call.params[0])) return Shape::unknown();
  Shape shape = call.params.shape(0);
  for (int64_t& d : std::span(shape.rank() ? &shape[0] : nullptr, size_t(shape.rank()))) {
    if (d <= kUnknownCount)
      d = -1;  // while tracing
    else if (d < 0)
      fail(ErrorKind::invalid_argument, called(call), ": Dimension ", d, " must be >= 0; got shape ", shape);
  }
  return shape;
}

template <DTypes Set> void infer_drawn(Call& call) {
  if (!Set.has(call.params.dtype(2)))
    fail(ErrorKind::type, called(call), ": dtype must be a kind of number this distribution has; got ",
         name_of(call.params.dtype(2)));
  call.returns(call.params.dtype(2), drawn_shape(call));
}

// Runs fill(begin, end) over all elements in ranges that begin at multiples of 4.
template <class Fill> void in_fours(int64_t n, Fill fill) {
  parallel_for((n + 3) / 4, kDrawGrain / 4, [&](int64_t a, int64_t b) { fill(4 * a, std::min(4 * b, n)); });
}

// An op that fills a tensor from a generator: Fill(generator, begin, end, elements).
template <DTypes Set, class Fill> const Op& define_drawn(const char* name, Fill) {
  return define(Op{
      .name = name,
      .arguments = with_generator({dtype_argument("dtype")}),
      .infer = infer_drawn<Set>,
      .infer_staged = infer_drawn<Set>,
      .kernel =
          [](Call& call) {
            Philox p = generator(call);
            const Tensor& y = call.out[0];
            visit<Set.bits>(y.dtype(), [&]<class T>(T*) {
              in_fours(y.size(), [&](int64_t from, int64_t to) { Fill{}(p, from, to, y.mutable_data<T>()); });
            });
          },
      .gradient = Gradient::none,
      .stateful = true,
  });
}

const Op& uniform_op = define_drawn<floating>(
    "StatelessRandomUniformV2", [](Philox p, int64_t from, int64_t to, auto* y) { fill_uniform(p, from, to, y); });
const Op& normal_op = define_drawn<floating>(
    "StatelessRandomNormalV2", [](Philox p, int64_t from, int64_t to, auto* y) { fill_normal(p, from, to, y); });
const Op& truncated_normal_op =
    define_drawn<floating>("StatelessTruncatedNormalV2",
                           [](Philox p, int64_t from, int64_t to, auto* y) { fill_truncated_normal(p, from, to, y); });
const Op& full_int_op = define_drawn<word_integers>(
    "StatelessRandomUniformFullIntV2", [](Philox p, int64_t from, int64_t to, auto* y) { fill_bits(p, from, to, y); });

constexpr DTypes indices = DTypes(DType::int32) | DType::int64;

const Op& uniform_int_op = define(Op{
    .name = "StatelessRandomUniformIntV2",
    .arguments = with_generator({tensor("minval", indices), tensor("maxval", indices)}),
    .infer =
        [](Call& call) {
          const Tensor &low = call.in[2], &high = call.in[3];
          if (low.rank() != 0 || high.rank() != 0)
            fail(ErrorKind::invalid_argument, called(call), ": minval and maxval must be scalars (0-D); got shapes ",
                 low.shape(), " and ", high.shape());
          if (low.dtype() != high.dtype()) family::fail_dtypes(call);
          call.returns(low.dtype(), drawn_shape(call));
        },
    .infer_staged = [](Call& call) { call.returns(call.in[2].dtype(), drawn_shape(call)); },
    .kernel =
        [](Call& call) {
          Philox p = generator(call);
          const Tensor& y = call.out[0];
          visit<indices.bits>(y.dtype(), [&]<class T>(T*) {
            T low = call.in[2].data<T>()[0], high = call.in[3].data<T>()[0];
            if (y.size() == 0) return;
            if (low >= high)
              fail(ErrorKind::invalid_argument, called(call), ": Need minval < maxval, got ", low, " >= ", high);
            using U = std::make_unsigned_t<T>;
            in_fours(y.size(), [&](int64_t a, int64_t b) {
              fill_integers(p, low, uint64_t(U(U(high) - U(low))), a, b, y.mutable_data<T>());
            });
          });
        },
    .gradient = Gradient::none,
    .stateful = true,
});

// ---- keys and counters

const Op& key_counter_op = define(Op{
    .name = "StatelessRandomGetKeyCounter",
    .arguments = {tensor("seed", indices)},
    .infer =
        [](Call& call) {
          if (call.in[0].shape() != Shape{2})
            fail(ErrorKind::invalid_argument, called(call), ": seed must have shape [2], not ", call.in[0].shape());
          call.returns(DType::uint64, {1});
          call.returns(DType::uint64, {2});
        },
    .kernel =
        [](Call& call) {
          Ints seed = read_ints(call.in[0]);
          uint32_t mixed[4];
          Philox{0x02461e293ec8f720u, uint64_t(seed[0]), uint64_t(seed[1])}.block(mixed);
          call.out[0].mutable_data<uint64_t>()[0] = uint64_t(mixed[0]) | uint64_t(mixed[1]) << 32;
          call.out[1].mutable_data<uint64_t>()[0] = 0;
          call.out[1].mutable_data<uint64_t>()[1] = uint64_t(mixed[2]) | uint64_t(mixed[3]) << 32;
        },
    .gradient = Gradient::none,
    .returns_list = true,
});

Argument int64_tensor(const char* name) {
  Argument a = tensor(name, DTypes(DType::int64) | DType::uint64, -1);
  a.preferred = DType::int64;
  return a;
}

// A generator's state is counter (two words) and key. Gives its key and counter, and the state `blocks` further on.
const Op& advance_op = define(Op{
    .name = "PhiloxAdvance",
    .arguments = {tensor("state", DType::int64, -1), int64_tensor("blocks")},
    .infer =
        [](Call& call) {
          if (call.in[0].shape() != Shape{3})
            fail(ErrorKind::invalid_argument, called(call),
                 ": The size of the state must be 3 for the Philox algorithm; got shape ", call.in[0].shape());
          if (call.in[1].size() != 1)
            fail(ErrorKind::invalid_argument, called(call), ": delta must be a scalar; got shape ", call.in[1].shape());
          call.returns(DType::uint64, {1});
          call.returns(DType::uint64, {2});
          call.returns(DType::int64, {3});
        },
    .kernel =
        [](Call& call) {
          const int64_t* state = call.in[0].data<int64_t>();
          Philox p{uint64_t(state[2]), uint64_t(state[0]), uint64_t(state[1])};
          Philox next = p.skipped(*static_cast<const uint64_t*>(call.in[1].raw()));
          call.out[0].mutable_data<uint64_t>()[0] = p.key;
          call.out[1].mutable_data<uint64_t>()[0] = p.low;
          call.out[1].mutable_data<uint64_t>()[1] = p.high;
          int64_t* y = call.out[2].mutable_data<int64_t>();
          y[0] = int64_t(next.low), y[1] = int64_t(next.high), y[2] = int64_t(next.key);
        },
    .gradient = Gradient::none,
    .returns_list = true,
});

// ---- distributions with a parameter per element

// Samples lie in rows of one number per parameter; the counters go parameter by parameter.
int64_t samples_per_parameter(const Call& call, const Shape& drawn, const Shape& parameters, const char* which) {
  int skip = drawn.rank() - parameters.rank();
  bool fits = skip >= 0;
  for (int i = 0; fits && i < parameters.rank(); ++i) fits = drawn[skip + i] == parameters[i];
  if (!fits)
    fail(ErrorKind::invalid_argument, called(call), ": Shape passed in must end with broadcasted shape of ", which,
         ": ", parameters, "; got ", drawn);
  return drawn.elements(0, skip);
}

template <class Draw> void per_sample(const Philox& p, int64_t samples, int64_t parameters, Draw draw) {
  parallel_for(samples * parameters, kSampleGrain, [&](int64_t a, int64_t b) {
    for (int64_t i = a; i < b; ++i)
      draw(i / samples, (i % samples) * parameters + i / samples, p.skipped(uint64_t(i) * kBlocksPerSample));
  });
}

double element(const Tensor& t, int64_t i) {
  double value = 0;
  visit<real_numbers.bits>(t.dtype(), [&]<class T>(T*) { value = double(Compute<T>(t.data<T>()[i])); });
  return value;
}

constexpr DTypes gamma_dtypes = DTypes(DType::float16) | DType::float32 | DType::float64;

Tensor gamma_gradient(const Tensor& alpha, const Tensor& sample);

const Op& gamma_op = define(Op{
    .name = "StatelessRandomGammaV3",
    .arguments = with_generator({tensor("alpha", gamma_dtypes, -1)}),
    .infer = [](Call& call) { call.returns(call.in[2].dtype(), drawn_shape(call)); },
    .infer_staged = [](Call& call) { call.returns(call.in[2].dtype(), drawn_shape(call)); },
    .kernel =
        [](Call& call) {
          Philox p = generator(call);
          const Tensor &alpha = call.in[2], &y = call.out[0];
          int64_t samples = samples_per_parameter(call, y.shape(), alpha.shape(), "alpha");
          visit<gamma_dtypes.bits>(y.dtype(), [&]<class T>(T*) {
            per_sample(p, samples, alpha.size(), [&](int64_t parameter, int64_t at, const Philox& start) {
              store(y.mutable_data<T>() + at,
                    Compute<T>(gamma_sample(double(load(alpha.data<T>() + parameter)), PhiloxPairs(start))));
            });
          });
        },
    .vjp =
        [](RuleContext& c) {
          if (!c.wants(2)) return;
          const Tensor &alpha = c.x(2), &y = c.y();
          Shape spread = alpha.shape();
          c.set(2, unbroadcast(multiply(c.dy(), gamma_gradient(alpha, y)), spread));
        },
    .jvp =
        [](RuleContext& c) {
          if (c.x_dot(2)) c.set(0, multiply(c.x_dot(2), gamma_gradient(c.x(2), c.y())));
        },
    .keep = keep_input(2) | keep_output(0),
    .stateful = true,
});

const Op& gamma_gradient_op = define(Op{
    .name = "RandomGammaGrad",
    .arguments = {tensor("alpha", DType::float16 | DTypes(DType::float32) | DType::float64),
                  tensor("sample", gamma_dtypes)},
    .infer =
        [](Call& call) {
          Shape shape;
          if (call.in[0].dtype() != call.in[1].dtype()) family::fail_dtypes(call);
          if (!broadcast(call.in[0].shape(), call.in[1].shape(), &shape)) family::fail_broadcast(call);
          call.returns(call.in[0].dtype(), shape);
        },
    .kernel =
        [](Call& call) {
          const Tensor& y = call.out[0];
          PauseRecording paused;
          Tensor alpha = broadcast_to(call.in[0], y.shape()), sample = broadcast_to(call.in[1], y.shape());
          visit<gamma_dtypes.bits>(y.dtype(), [&]<class T>(T*) {
            parallel_for(y.size(), kSampleGrain, [&](int64_t a, int64_t b) {
              for (int64_t i = a; i < b; ++i)
                store(y.mutable_data<T>() + i, Compute<T>(gamma_sample_derivative(double(load(alpha.data<T>() + i)),
                                                                                  double(load(sample.data<T>() + i)))));
            });
          });
        },
    .gradient = Gradient::missing,
});
Tensor gamma_gradient(const Tensor& alpha, const Tensor& sample) { return run(gamma_gradient_op, {alpha, sample}); }

constexpr DTypes counts_dtypes = gamma_dtypes | DType::int32 | DType::int64;

template <class T> double highest() {
  if constexpr (std::is_same_v<T, half>)
    return 65504.0;
  else
    return double(std::numeric_limits<T>::max());
}
// A count as the wanted type; what is no number becomes NaN, or the integer that the machine makes of NaN.
template <class T> T counted(double k) {
  if constexpr (std::is_integral_v<T>) {
    if (!(k > double(std::numeric_limits<T>::min()) && k < double(std::numeric_limits<T>::max())))
      return std::numeric_limits<T>::min();
    return T(k);
  } else {
    return T(Compute<T>(k));
  }
}

const Op& poisson_op = define(Op{
    .name = "PhiloxPoisson",
    .arguments = with_generator({dtype_argument("dtype"), tensor("lam", counts_dtypes, -1)}),
    .infer = infer_drawn<counts_dtypes>,
    .infer_staged = infer_drawn<counts_dtypes>,
    .kernel =
        [](Call& call) {
          Philox p = generator(call);
          const Tensor &rate = call.in[2], &y = call.out[0];
          int64_t samples = samples_per_parameter(call, y.shape(), rate.shape(), "lam");
          visit<counts_dtypes.bits>(y.dtype(), [&]<class T>(T*) {
            per_sample(p, samples, rate.size(), [&](int64_t parameter, int64_t at, const Philox& start) {
              y.mutable_data<T>()[at] =
                  counted<T>(poisson_sample(element(rate, parameter), highest<T>(), PhiloxPairs(start)));
            });
          });
        },
    .gradient = Gradient::none,
    .stateful = true,
});

const Op& binomial_op = define(Op{
    .name = "PhiloxBinomial",
    .arguments = with_generator(
        {dtype_argument("dtype"), tensor("counts", counts_dtypes, -1), tensor("probs", counts_dtypes, -1)}),
    .infer = infer_drawn<counts_dtypes>,
    .infer_staged = infer_drawn<counts_dtypes>,
    .kernel =
        [](Call& call) {
          Philox p = generator(call);
          const Tensor& y = call.out[0];
          Shape shape;
          if (!broadcast(call.in[2].shape(), call.in[3].shape(), &shape)) family::fail_broadcast(call);
          int64_t samples = samples_per_parameter(call, y.shape(), shape, "counts and probs");
          PauseRecording paused;
          Tensor counts = broadcast_to(call.in[2], shape), probabilities = broadcast_to(call.in[3], shape);
          visit<counts_dtypes.bits>(y.dtype(), [&]<class T>(T*) {
            parallel_for(y.size(), kSampleGrain, [&](int64_t begin, int64_t end) {
              for (int64_t i = begin; i < end; ++i)
                y.mutable_data<T>()[i % samples * counts.size() + i / samples] = counted<T>(
                    binomial_sample(element(counts, i / samples), element(probabilities, i / samples), p, uint64_t(i)));
            });
          });
        },
    .gradient = Gradient::none,
    .stateful = true,
});

// ---- choices

// Rows of logits follow each other on one stream of uniform numbers, two words each.
const Op& multinomial_op = define(Op{
    .name = "PhiloxMultinomial",
    .arguments = {tensor("logits", real_numbers, 0), integer("num_samples"), tensor("key", DType::uint64, -1),
                  tensor("counter", DType::uint64, -1), dtype_argument("output_dtype")},
    .infer =
        [](Call& call) {
          const Tensor& logits = call.in[0];
          int64_t samples = call.params.integer(0);
          if (logits.rank() != 2)
            fail(ErrorKind::invalid_argument, called(call), ": logits should be a matrix, got shape ", logits.shape());
          if (samples < 0)
            fail(ErrorKind::invalid_argument, called(call), ": num_samples should be non-negative, got ", samples);
          if (logits.dim(1) <= 0)
            fail(ErrorKind::invalid_argument, called(call), ": num_classes should be positive, got ", logits.dim(1));
          call.returns(call.params.dtype(1), {logits.dim(0), samples});
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

// ---- bounded normal numbers

// The elements of one parameter lie next to each other on the stream, parameters follow each other.
const Op& bounded_normal_op = define(Op{
    .name = "PhiloxBoundedNormal",
    .arguments = with_generator({tensor("means", gamma_dtypes), tensor("stddevs", gamma_dtypes),
                                 tensor("minvals", gamma_dtypes), tensor("maxvals", gamma_dtypes)}),
    .infer = [](Call& call) { call.returns(call.in[2].dtype(), drawn_shape(call)); },
    .infer_staged = [](Call& call) { call.returns(call.in[2].dtype(), drawn_shape(call)); },
    .kernel =
        [](Call& call) {
          Philox next = generator(call);
          const Tensor& y = call.out[0];
          Shape shape = call.in[2].shape();
          for (int i = 3; i < 6; ++i) {
            Shape both;
            if (call.in[size_t(i)].dtype() != y.dtype()) family::fail_dtypes(call);
            if (!broadcast(shape, call.in[size_t(i)].shape(), &both))
              fail(ErrorKind::invalid_argument, called(call),
                   ": means, stddevs, minvals, maxvals must have compatible batch dimensions: ", shape, " vs. ",
                   call.in[size_t(i)].shape());
            shape = both;
          }
          int64_t samples = samples_per_parameter(call, y.shape(), shape, "means, stddevs, minvals and maxvals"),
                  parameters = shape.elements();
          PauseRecording paused;
          Tensor mean = broadcast_to(call.in[2], shape), deviation = broadcast_to(call.in[3], shape);
          Tensor low = broadcast_to(call.in[4], shape), high = broadcast_to(call.in[5], shape);
          visit<gamma_dtypes.bits>(y.dtype(), [&]<class T>(T*) {
            for (int64_t i = 0; i < parameters; ++i)
              if (!fill_bounded_normal(next, mean.data<T>()[i], deviation.data<T>()[i], low.data<T>()[i],
                                       high.data<T>()[i], samples, y.mutable_data<T>() + i, parameters))
                fail(ErrorKind::invalid_argument, called(call),
                     ": Invalid parameters: stddev must be positive, minval below maxval and one of them finite");
          });
        },
    .gradient = Gradient::none,
    .stateful = true,
});

// ---- permutations and candidates

const Op& index_shuffle_op = define(Op{
    .name = "RandomIndexShuffle",
    .arguments = {tensor("index", seeds, -1), tensor("seed", seeds, -1), tensor("max_index", seeds, -1),
                  integer("rounds", 4)},
    .infer =
        [](Call& call) {
          const Tensor &index = call.in[0], &seed = call.in[1], &last = call.in[2];
          int64_t rounds = call.params.integer(0);
          if (index.rank() > 1)
            fail(ErrorKind::invalid_argument, called(call), ": Index must be a scalar or vector; got shape ",
                 index.shape());
          if (seed.rank() < 1 || seed.rank() > 2 || seed.shape().back() != 3)
            fail(ErrorKind::invalid_argument, called(call),
                 ": Seed must be a vector of length 3 or a matrix with 3 columns; got shape ", seed.shape());
          if (last.rank() > 1)
            fail(ErrorKind::invalid_argument, called(call), ": Maxval must be a scalar or vector; got shape ",
                 last.shape());
          if (rounds < 4 || rounds % 2)
            fail(ErrorKind::invalid_argument, called(call), ": rounds must be an even number of at least 4; got ",
                 rounds);
          int64_t n = 1;
          for (int64_t m : {index.size(), seed.size() / 3, last.size()}) {
            if (m != 1 && n != 1 && m != n)
              fail(ErrorKind::invalid_argument, called(call),
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
                fail(ErrorKind::invalid_argument, called(call), ": index must be in 0..max_index; got ", int64_t(at),
                     " and ", int64_t(end));
              call.out[0].mutable_data<T>()[i] = T(shuffled_index(at, key, end, int(call.params.integer(0))));
            }
          });
        },
    .gradient = Gradient::none,
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

const Op& candidates_op = define(Op{
    .name = "PhiloxCandidates",
    .arguments = {tensor("true_classes", DType::int64, -1), tensor("key", DType::uint64, -1),
                  tensor("counter", DType::uint64, -1), tensor("weights", DType::float32, -1), integer("kind"),
                  integer("num_sampled"), flag("unique"), integer("range_max")},
    .infer =
        [](Call& call) {
          int64_t sampled = call.params.integer(1);
          if (sampled < 0)
            fail(ErrorKind::invalid_argument, called(call), ": num_sampled must not be negative; got ", sampled);
          if (call.params.integer(3) < 1)
            fail(ErrorKind::invalid_argument, called(call), ": range_max must be positive; got ",
                 call.params.integer(3));
          if (call.params.integer(0) >= 2 && call.in[3].size() != call.params.integer(3))
            fail(ErrorKind::invalid_argument, called(call), ": range is ", call.params.integer(3),
                 " must be equal to weights size  ", call.in[3].size());
          if (call.params.flag(2) && sampled > call.params.integer(3))
            fail(ErrorKind::invalid_argument, called(call), ": Sampler's range is too small: ", sampled,
                 " different classes of ", call.params.integer(3));
          call.returns(DType::int64, {sampled});
          call.returns(DType::float32, call.in[0].shape());
          call.returns(DType::float32, {sampled});
        },
    .kernel =
        [](Call& call) {
          CandidateSampler sampler(call.params.integer(0), call.params.integer(3), call.in[3]);
          PhiloxWords next(
              Philox{call.in[1].data<uint64_t>()[0], call.in[2].data<uint64_t>()[0], call.in[2].data<uint64_t>()[1]});
          int64_t wanted = call.params.integer(1), tries = 0, picked = 0;
          int64_t* drawn = call.out[0].mutable_data<int64_t>();
          if (sampler.kind >= 2) {
            int64_t possible =
                std::count_if(sampler.weights.begin(), sampler.weights.end(), [](float w) { return w > 0; });
            if (wanted > 0 && (possible == 0 || (call.params.flag(2) && possible < wanted)))
              fail(ErrorKind::invalid_argument, called(call), ": only ", possible, " classes have a weight, of which ",
                   wanted, " are to be drawn");
          }
          std::unordered_set<int64_t> used;
          while (picked < wanted) {
            ++tries;
            int64_t value = sampler.sample(next);
            if (call.params.flag(2) && !used.insert(value).second) continue;
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
    .returns_list = true,
});

}  // namespace
}  // namespace tapeflow
