// Rounding to integers: down, up and to the nearest.
#include <cmath>

#include "ops/family.h"

namespace tapeflow {
namespace {

template <class T> constexpr bool real_float = std::is_floating_point_v<T>;

const Op& floor_op = unary<real_numbers>(
    [](auto x) {
      if constexpr (real_float<decltype(x)>)
        return std::floor(x);
      else
        return x;
    },
    [](auto& v) { return v.floor; }, NoGradient{},
    Op{.name = "Floor",
       .names = {"math.floor", "floor"},
       .doc = R"(Largest integer not above `x`.

Gradient: None: the function is piecewise constant.

>>> tf.floor([1.7, -1.2])
<tf.Tensor: shape=(2,), dtype=float32, numpy=array([ 1., -2.], dtype=float32)>)",
       .advice = "Use tf.grad_pass_through(tf.floor) for a straight-through gradient."});
const Op& ceil_op = unary<real_numbers>(
    "Ceil",
    [](auto x) {
      if constexpr (real_float<decltype(x)>)
        return std::ceil(x);
      else
        return x;
    },
    [](auto& v) { return v.ceil; }, NoGradient{}, {{"math.ceil"}, R"(Smallest integer not below `x`.

Gradient: None: the function is piecewise constant.

>>> tf.math.ceil([1.2, -1.7])
<tf.Tensor: shape=(2,), dtype=float32, numpy=array([ 2., -1.], dtype=float32)>)"});
const Op& rint_op = unary<floating>(
    "Rint", [](auto x) { return std::rint(x); }, [](auto& v) { return v.rint; }, NoGradient{},
    {{"math.rint"}, R"(Nearest integer, ties to even.

Gradient: None: the function is piecewise constant.

>>> tf.math.rint([1.5, 2.5])
<tf.Tensor: shape=(2,), dtype=float32, numpy=array([2., 2.], dtype=float32)>)"});
const Op& round_op = unary<numbers>(
    [](auto x) {
      if constexpr (real_float<decltype(x)>)
        return std::rint(x);
      else if constexpr (is_complex<decltype(x)>)
        return decltype(x)(std::rint(x.real()), std::rint(x.imag()));
      else
        return x;
    },
    [](auto& v) { return v.rint; }, NoGradient{},
    Op{.name = "Round",
       .names = {"math.round", "round"},
       .doc = R"(Nearest integer, ties to even.

Gradient: None: the function is piecewise constant.

>>> tf.round([0.5, 1.5])
<tf.Tensor: shape=(2,), dtype=float32, numpy=array([0., 2.], dtype=float32)>)",
       .advice = "Use tf.grad_pass_through(tf.round) for a straight-through gradient."});

}  // namespace

}  // namespace tapeflow
