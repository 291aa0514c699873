// Sequences of numbers whose length is only known when they are made.
#include <algorithm>
#include <cmath>

#include "ops/family.h"
#include "ops/partial_shape.h"

namespace tapeflow {
namespace {

template <class T> int64_t range_length(T first, T last, T step) {
  if (step == T(0)) fail(ErrorKind::invalid_argument, "range: Requires delta != 0: ", step);
  if (step > T(0) && first > last)
    fail(ErrorKind::invalid_argument, "range: Requires start <= limit when delta > 0: ", first, "/", last);
  if (step < T(0) && first < last)
    fail(ErrorKind::invalid_argument, "range: Requires start >= limit when delta < 0: ", first, "/", last);
  if constexpr (std::is_integral_v<T>) {
    uint64_t span = step > 0 ? uint64_t(last) - uint64_t(first) : uint64_t(first) - uint64_t(last);
    uint64_t size = step > 0 ? uint64_t(step) : uint64_t(0) - uint64_t(step);
    return int64_t(span / size + (span % size != 0));
  } else {
    T length = std::ceil(std::abs((last - first) / step));
    if (!(length < T(9e15)))
      fail(ErrorKind::invalid_argument, "range: Requires ((limit - start) / delta) to be a size; got ", length);
    return int64_t(length);
  }
}

template <class T> using Wide = std::conditional_t<std::is_integral_v<T>, int64_t, Compute<T>>;
template <class T> Wide<T> number_in(const Call& call, size_t i) { return Wide<T>(load(call.in[i].data<T>())); }

// Integers wrap in their own type, which has the bits of the wide one; places of up to 31 bits are quick to convert.
template <class T> [[gnu::always_inline]] inline void write_range(Wide<T> first, Wide<T> step, int64_t length, T* to) {
  if constexpr (std::is_integral_v<T>) {
    using U = std::make_unsigned_t<T>;
    const U start = U(first), each = U(step);
    for (int64_t i = 0; i < length; ++i) to[i] = T(U(start + U(each * U(i))));
  } else if (length <= std::numeric_limits<int32_t>::max()) {
    for (int32_t i = 0; i < int32_t(length); ++i) store(to + i, Compute<T>(first + step * Wide<T>(i)));
  } else {
    for (int64_t i = 0; i < length; ++i) store(to + i, Compute<T>(first + step * Wide<T>(i)));
  }
}

void check_range(const Call& call) {
  for (const Tensor& t : call.in) {
    if (t.rank() > 0)
      fail(ErrorKind::invalid_argument, "range: start, limit and delta must be scalars; got shape ", t.shape());
    if (t.dtype() != call.in[0].dtype()) family::fail_dtypes(call);
  }
}

// The length is known while tracing if the three numbers are.
void infer_range(Call& call) {
  int64_t length = -1;
  if (std::none_of(call.in.begin(), call.in.end(), [](const Tensor& t) { return t.symbolic(); })) {
    check_range(call);
    visit<real_numbers.bits>(call.in[0].dtype(), [&](auto* p) {
      using T = Pointee<decltype(p)>;
      length = range_length(number_in<T>(call, 0), number_in<T>(call, 1), number_in<T>(call, 2));
    });
  }
  call.returns(call.in[0].dtype(), {length});
}

const Op& range_op = define(Op{
    .name = "Range",
    .arguments = {tensor("start", real_numbers), tensor("limit", real_numbers), tensor("delta", real_numbers)},
    .infer_staged = infer_range,
    .kernel =
        [](Call& call) {
          check_range(call);
          visit<real_numbers.bits>(call.in[0].dtype(), [&](auto* p) {
            using T = Pointee<decltype(p)>;
            Wide<T> first = number_in<T>(call, 0), step = number_in<T>(call, 2);
            int64_t length = range_length(first, number_in<T>(call, 1), step);
            call.out.push_back(Tensor::allocate(call.in[0].dtype(), {length}));
            T* to = call.out[0].mutable_data<T>();
            run_vectorized([first, step, length, to]() TAPEFLOW_LOOP { write_range(first, step, length, to); });
          });
        },
    .makes_outputs = true,
    .gradient = Gradient::none,
    .node_name = "range",
});

}  // namespace
}  // namespace tapeflow
