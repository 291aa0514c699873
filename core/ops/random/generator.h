// What random operations share: the generator made from a key and a counter, the shape drawn, the loops.
#pragma once
#include <algorithm>
#include <map>
#include <string_view>

#include "base/parallel.h"
#include "kernels/random.h"
#include "ops/family.h"
#include "ops/partial_shape.h"

namespace tapeflow {

// What the user called, for messages.
inline const char* called(const Call& call) {
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
inline std::vector<Argument> with_generator(std::vector<Argument> rest) {
  std::vector<Argument> all = {ints("shape"), tensor("key", DType::uint64, -1), tensor("counter", DType::uint64, -1),
                               integer("alg", 3)};
  for (Argument& a : rest) all.push_back(std::move(a));
  return all;
}

inline Philox generator(const Call& call) {
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

inline Shape drawn_shape(const Call& call) {
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

inline double element(const Tensor& t, int64_t i) {
  double value = 0;
  visit<real_numbers.bits>(t.dtype(), [&]<class T>(T*) { value = double(Compute<T>(t.data<T>()[i])); });
  return value;
}

}  // namespace tapeflow
