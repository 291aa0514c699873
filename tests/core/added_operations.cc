// Two operations as docs/adding_an_op.md describes them: one of a family, one with its own shape rule and gradient.
// tests/core/test_entries.py compiles this file, links it with the core and looks for the operations everywhere.
#include "ops/family.h"

namespace tapeflow {
namespace {

const Op& thrice_op = unary<floating>("AddedThrice", [](auto x) { return decltype(x)(3 * x); }, NoFast{},
                                      [](Dy dy) { return scaled(dy, 3); },
                                      {{"math.added_thrice"}, "Three times `x`.\n\n>>> tf.math.added_thrice(2.)"});

constexpr struct : Keys {
  Key<double> factor = next("factor");
} weighted_params;
const Op& weighted_square_op = define(Op{
    .name = "AddedWeightedSquare",
    .arguments = {tensor("x", wide_floating), real(weighted_params.factor, 1)},
    .infer = [](Call& call) { call.returns(call.in[0].dtype(), call.in[0].shape()); },
    .kernel =
        [](Call& call) {
          visit<wide_floating.bits>(call.in[0].dtype(), [&](auto* p) {
            using T = Pointee<decltype(p)>;
            const T *x = call.in[0].data<T>(), factor = T(call.params[weighted_params.factor]);
            for (int64_t i = 0; i < call.in[0].size(); ++i) call.out[0].mutable_data<T>()[i] = factor * x[i] * x[i];
          });
        },
    .vjp =
        [](RuleContext& c) {
          c.set(0, multiply(c.dy(), scaled(c.x(0), 2 * c.params[weighted_params.factor])));
        },
    .keep = keep_input(0),
    .batch = batch_leading,
    .names = {"math.added_weighted_square", "added_weighted_square"},
    .doc = "`factor * x * x`.\n\n>>> tf.added_weighted_square(3., factor=2.)",
});

}  // namespace
}  // namespace tapeflow
