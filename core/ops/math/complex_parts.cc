// Complex numbers: conjugates, their parts, and numbers made of parts.
#include <cmath>

#include "ops/family.h"

namespace tapeflow {
namespace {

// Complex parts. The gradient convention is TensorFlow's: the gradient of a real loss points along its conjugate
// derivative.
const Op& conj_op =
    unary<complexes>("Conj", [](auto z) { return std::conj(z); }, Cheap{}, [](Dy dy) { return conj(dy); }, {{}, ""});
constexpr auto real_of = [](auto z) { return z.real(); };
constexpr auto imag_of = [](auto z) { return z.imag(); };
const Op& real_op = define(Op{
    .name = "Real",
    .arguments = {tensor("input", complexes)},
    .infer = family::infer_unary<complexes, decltype(real_of)>,
    .kernel = family::unary_kernel<complexes, decltype(real_of), Cheap>,
    .vjp = [](RuleContext& c) { c.set(0, complex_number(c.dy(), zeros_like(c.dy()))); },
    .jvp = [](RuleContext& c) { c.set(0, real_part(c.x_dot(0))); },
    .element_loops = family::unary_loops<complexes, decltype(real_of), Cheap>,
    .elementwise = true,
    .batch = batch_leading,
});
const Op& imag_op = define(Op{
    .name = "Imag",
    .arguments = {tensor("input", complexes)},
    .infer = family::infer_unary<complexes, decltype(imag_of)>,
    .kernel = family::unary_kernel<complexes, decltype(imag_of), Cheap>,
    .vjp = [](RuleContext& c) { c.set(0, complex_number(zeros_like(c.dy()), c.dy())); },
    .jvp = [](RuleContext& c) { c.set(0, imaginary_part(c.x_dot(0))); },
    .element_loops = family::unary_loops<complexes, decltype(imag_of), Cheap>,
    .elementwise = true,
    .batch = batch_leading,
});
constexpr auto make_complex = [](auto re, auto im) { return std::complex<decltype(re)>(re, im); };
const Op& complex_op = define(Op{
    .name = "Complex",
    .arguments = {tensor("real", any_dtype), tensor("imag", any_dtype)},
    .infer =
        [](Call& call) {
          DType re = call.in[0].dtype(), im = call.in[1].dtype();
          if (re != im || !wide_floating.has(re))
            fail(ErrorKind::type, call.name(), ": The `real` and `imag` components have incorrect types: ", name_of(re),
                 " ", name_of(im), ". They must be consistent, and one of [tf.float32, tf.float64]");
          family::infer_binary<wide_floating, decltype(make_complex)>(call);
        },
    .kernel = family::binary_kernel<wide_floating, decltype(make_complex), Cheap, kCheapGrain>,
    .vjp =
        [](RuleContext& c) {
          if (c.wants(0)) c.set(0, unbroadcast(real_part(c.dy()), c.shape(0)));
          if (c.wants(1)) c.set(1, unbroadcast(imaginary_part(c.dy()), c.shape(1)));
        },
    .element_loops = family::binary_loops<wide_floating, decltype(make_complex), Cheap>,
    .elementwise = true,
    .batch = batch_broadcasting,
    .names = {"dtypes.complex", "complex"},
    .doc = R"(Complex numbers from their real and imaginary parts.

Args:
  real: The real parts.
  imag: The imaginary parts, of the same shape and dtype.

Returns: A tensor of complex64 for float32 parts, complex128 for float64.

Gradient: The real and the imaginary part of `dy`.

>>> tf.complex([1.], [2.])
<tf.Tensor: shape=(1,), dtype=complex64, numpy=array([1.+2.j], dtype=complex64)>)",
});

}  // namespace

Tensor conj(const Tensor& x) { return complexes.has(x.dtype()) ? run(conj_op, {x}) : x; }
Tensor real_part(const Tensor& x) { return complexes.has(x.dtype()) ? run(real_op, {x}) : x; }
Tensor imaginary_part(const Tensor& x) { return complexes.has(x.dtype()) ? run(imag_op, {x}) : zeros_like(x); }
Tensor complex_number(const Tensor& re, const Tensor& im) { return run(complex_op, {re, im}); }

}  // namespace tapeflow
