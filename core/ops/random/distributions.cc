// Distributions with parameters: gamma, Poisson, binomial, bounded normal.
#include <algorithm>
#include <cmath>
#include <numbers>

#include "base/blocks.h"
#include "ops/random/generator.h"

namespace tapeflow {
namespace {

// Samples lie in rows of one number per parameter; the counters go parameter by parameter.
int64_t samples_per_parameter(const Call& call, const Shape& drawn, const Shape& parameters, const char* which) {
  int skip = drawn.rank() - parameters.rank();
  bool fits = skip >= 0;
  for (int i = 0; fits && i < parameters.rank(); ++i) fits = drawn[skip + i] == parameters[i];
  if (!fits)
    fail(ErrorKind::invalid_argument, call.name(), ": Shape passed in must end with broadcasted shape of ", which, ": ",
         parameters, "; got ", drawn);
  return drawn.elements(0, skip);
}

template <class Draw> void per_sample(const Philox& p, int64_t samples, int64_t parameters, Draw draw) {
  parallel_for(samples * parameters, kSampleGrain, [&](int64_t a, int64_t b) {
    for (int64_t i = a; i < b; ++i)
      draw(i / samples, (i % samples) * parameters + i / samples, p.skipped(uint64_t(i) * kBlocksPerSample));
  });
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
          Shape shape = alpha.shape();
          c.set(2, unbroadcast(multiply(c.dy(), gamma_gradient(alpha, y)), shape));
        },
    .jvp =
        [](RuleContext& c) {
          if (c.x_dot(2)) c.set(0, multiply(c.x_dot(2), gamma_gradient(c.x(2), c.y())));
        },
    .keep = keep_input(2) | keep_output(0),
    .stateful = true,
    .random = true,
    .called = "random.gamma",
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
    .arguments = with_generator({dtype_argument(typed_draw_params.dtype), tensor("lam", counts_dtypes, -1)}),
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
    .random = true,
    .called = "random.poisson",
});

const Op& binomial_op = define(Op{
    .name = "PhiloxBinomial",
    .arguments = with_generator({dtype_argument(typed_draw_params.dtype), tensor("counts", counts_dtypes, -1),
                                 tensor("probs", counts_dtypes, -1)}),
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
    .random = true,
    .called = "random.binomial",
});

Tensor normal_cdf(const Tensor& x) { return scaled(erfc(scaled(x, -std::numbers::sqrt2 / 2)), 0.5); }

// The derivative of a bounded sample by input `i` of its entry. The mean and the deviation shift and stretch the
// accepted number; a bound moves it by implicit differentiation of the distribution function
// F = (cdf(z) - cdf(a)) / (cdf(b) - cdf(a)): dy/db = F exp((z^2 - b^2) / 2), dy/da = (1 - F) exp((z^2 - a^2) / 2).
Tensor bounded_normal_derivative(const RuleContext& c, int i) {
  const Tensor& y = c.y();
  if (i == 2) return ones_like(y);
  const Tensor &mean = c.x(2), &deviation = c.x(3);
  auto standard = [&](const Tensor& x) { return divide(subtract(x, mean), deviation); };
  Tensor z = standard(y);
  if (i == 3) return z;
  Tensor low = standard(c.x(4)), high = standard(c.x(5)), below = normal_cdf(low);
  Tensor part = divide(subtract(normal_cdf(z), below), subtract(normal_cdf(high), below));
  Tensor bound = i == 4 ? low : high, share = i == 4 ? shifted(negative(part), 1) : part;
  share = maximum(share, zeros_like(share));  // rounding may leave the interval
  return multiply(share, exp(scaled(subtract(square(z), square(bound)), 0.5)));
}

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
              fail(ErrorKind::invalid_argument, call.name(),
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
                fail(ErrorKind::invalid_argument, call.name(),
                     ": Invalid parameters: stddev must be positive, minval below maxval and one of them finite");
          });
        },
    .vjp =
        [](RuleContext& c) {
          for (int i = 2; i < 6; ++i)
            if (c.wants(i)) c.set(i, unbroadcast(multiply(c.dy(), bounded_normal_derivative(c, i)), c.shape(i)));
        },
    .jvp =
        [](RuleContext& c) {
          Tensor sum;
          for (int i = 2; i < 6; ++i)
            if (c.x_dot(i)) {
              Tensor part = multiply(bounded_normal_derivative(c, i), c.x_dot(i));
              sum = sum ? add(sum, part) : part;
            }
          if (sum) c.set(0, sum);
        },
    .keep = keep_input(2) | keep_input(3) | keep_input(4) | keep_input(5) | keep_output(0),
    .stateful = true,
    .random = true,
    .called = "random.stateless_parameterized_truncated_normal",
});

}  // namespace

}  // namespace tapeflow
