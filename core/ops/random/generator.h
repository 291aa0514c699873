// What random operations share: the generator made from a key and a counter, the shape drawn, the loops.
#pragma once
#include <algorithm>

#include "base/parallel.h"
#include "kernels/random.h"
#include "ops/family.h"
#include "ops/partial_shape.h"

namespace tapeflow {

constexpr DTypes seeds = DTypes(DType::int32) | DType::int64 | DType::uint32 | DType::uint64;
constexpr DTypes word_integers = seeds;
constexpr int64_t kDrawGrain = 1 << 14, kSampleGrain = 256;

// The parameters of all draws: the shape and, after key and counter, the algorithm.
constexpr struct DrawParams : Keys {
  Key<Ints> shape = next("shape");
  Key<int64_t> alg = next("alg");
} draw_params;
constexpr struct TypedDrawParams : DrawParams {
  Key<DType> dtype = next("dtype");
} typed_draw_params;

inline std::vector<Argument> with_generator(std::vector<Argument> rest) {
  std::vector<Argument> all = {ints(draw_params.shape), tensor("key", DType::uint64, -1),
                               tensor("counter", DType::uint64, -1), integer(draw_params.alg, 3)};
  for (Argument& a : rest) all.push_back(std::move(a));
  return all;
}

inline Philox generator(const Call& call) {
  const Tensor &key = call.in[0], &counter = call.in[1];
  int64_t alg = call.params[draw_params.alg];
  if (alg == 2)
    fail(ErrorKind::unimplemented, call.name(), ": the ThreeFry algorithm has no kernel on a CPU; use alg='philox'");
  if (alg != 1 && alg != 3) fail(ErrorKind::invalid_argument, call.name(), ": Unsupported algorithm id: ", alg);
  if (key.size() != 1 || key.rank() != 1)
    fail(ErrorKind::invalid_argument, call.name(), ": key must have shape [1], not ", key.shape());
  if (counter.size() < 2 || counter.rank() != 1)
    fail(ErrorKind::invalid_argument, call.name(), ": counter must be a vector with length at least 2; got shape ",
         counter.shape());
  return Philox{key.data<uint64_t>()[0], counter.data<uint64_t>()[0], counter.data<uint64_t>()[1]};
}

inline Shape drawn_shape(const Call& call) {
  if (!count_known(call.params.value(draw_params.shape))) return Shape::unknown();
  Shape shape = call.params.shape(draw_params.shape);
  for (int64_t& d : std::span(shape.rank() ? &shape[0] : nullptr, size_t(shape.rank()))) {
    if (d <= kUnknownCount)
      d = -1;  // while tracing
    else if (d < 0)
      fail(ErrorKind::invalid_argument, call.name(), ": Dimension ", d, " must be >= 0; got shape ", shape);
  }
  return shape;
}

template <DTypes Set> void infer_drawn(Call& call) {
  if (!Set.has(call.params[typed_draw_params.dtype]))
    fail(ErrorKind::type, call.name(), ": dtype must be a kind of number this distribution has; got ",
         name_of(call.params[typed_draw_params.dtype]));
  call.returns(call.params[typed_draw_params.dtype], drawn_shape(call));
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
