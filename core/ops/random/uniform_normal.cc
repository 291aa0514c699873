// Uniform and normal numbers as operations: a key and a counter come in as tensors, so that the numbers are a function
// of them. The streams, and who advances them, are in tapeflow/_src/ops/random/.
#include "ops/random/generator.h"

namespace tapeflow {
namespace {

// An op that fills a tensor from a generator: Fill(generator, begin, end, elements).
template <DTypes Set, class Fill> const Op& define_drawn(const char* name, const char* called, Fill) {
  return define(Op{
      .name = name,
      .arguments = with_generator({dtype_argument(typed_draw_params.dtype)}),
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
      .random = true,
      .called = called,
  });
}

const Op& uniform_op =
    define_drawn<floating>("StatelessRandomUniformV2", "random.uniform",
                           [](Philox p, int64_t from, int64_t to, auto* y) { fill_uniform(p, from, to, y); });
const Op& normal_op =
    define_drawn<floating>("StatelessRandomNormalV2", "random.normal",
                           [](Philox p, int64_t from, int64_t to, auto* y) { fill_normal(p, from, to, y); });
const Op& truncated_normal_op =
    define_drawn<floating>("StatelessTruncatedNormalV2", "random.truncated_normal",
                           [](Philox p, int64_t from, int64_t to, auto* y) { fill_truncated_normal(p, from, to, y); });
const Op& full_int_op =
    define_drawn<word_integers>("StatelessRandomUniformFullIntV2", "random.uniform",
                                [](Philox p, int64_t from, int64_t to, auto* y) { fill_bits(p, from, to, y); });

constexpr DTypes indices = DTypes(DType::int32) | DType::int64;

const Op& uniform_int_op = define(Op{
    .name = "StatelessRandomUniformIntV2",
    .arguments = with_generator({tensor("minval", indices), tensor("maxval", indices)}),
    .infer =
        [](Call& call) {
          const Tensor &low = call.in[2], &high = call.in[3];
          if (low.rank() != 0 || high.rank() != 0)
            fail(ErrorKind::invalid_argument, call.name(), ": ", low.rank() ? "minval" : "maxval",
                 " must be a scalar; got a tensor of shape ", (low.rank() ? low : high).shape());
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
              fail(ErrorKind::invalid_argument, call.name(), ": Need minval < maxval, got ", low, " >= ", high);
            using U = std::make_unsigned_t<T>;
            in_fours(y.size(), [&](int64_t a, int64_t b) {
              fill_integers(p, low, uint64_t(U(U(high) - U(low))), a, b, y.mutable_data<T>());
            });
          });
        },
    .gradient = Gradient::none,
    .stateful = true,
    .random = true,
    .called = "random.uniform",
});

// ---- keys and counters

const Op& key_counter_op = define(Op{
    .name = "StatelessRandomGetKeyCounter",
    .arguments = {tensor("seed", indices)},
    .infer =
        [](Call& call) {
          if (call.in[0].shape() != Shape{2})
            fail(ErrorKind::invalid_argument, call.name(), ": seed must have shape [2], not ", call.in[0].shape());
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
    .random = true,
    .called = "random.stateless",
    .returns_list = true,
});

Argument int64_tensor(const char* name) {
  Argument a = tensor(name, DTypes(DType::int64) | DType::uint64, -1);
  a.preferred = DType::int64;
  return a;
}

// A generator's state is counter (two words) and key. Gives its key and counter, and the state `blocks` further on.
const Op& advance_entry = define(Op{
    .name = "PhiloxAdvance",
    .arguments = {tensor("state", DType::int64, -1), int64_tensor("blocks")},
    .infer =
        [](Call& call) {
          if (call.in[0].shape() != Shape{3})
            fail(ErrorKind::invalid_argument, call.name(),
                 ": The size of the state must be 3 for the Philox algorithm; got shape ", call.in[0].shape());
          if (call.in[1].size() != 1)
            fail(ErrorKind::invalid_argument, call.name(), ": delta must be a scalar; got shape ", call.in[1].shape());
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
    .random = true,
    .called = "random.Generator",
    .returns_list = true,
});

}  // namespace

const Op& advance_op() { return advance_entry; }

}  // namespace tapeflow
