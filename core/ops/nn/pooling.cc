// Pools over channels-last data with one to three spatial dimensions.
#include "base/blocks.h"
#include "kernels/nn/pool.h"

#include "op/row_structure.h"
#include "ops/nn/windows.h"
#include "ops/one_dtype.h"
#include "ops/partial_shape.h"

namespace tapeflow {
namespace {

constexpr struct PoolParams : Keys {
  Key<Ints> ksize = next("ksize"), strides = next("strides");
  Key<std::string> padding = next("padding");
  Key<Ints> explicit_paddings = next("explicit_paddings"), dilations = next("dilations");
} pool_params;
constexpr struct : PoolParams {
  Key<Ints> input_sizes = next("input_sizes");
} avg_pool_grad_params;
constexpr struct ArgmaxParams : PoolParams {
  Key<bool> include_batch_in_index = next("include_batch_in_index");
} argmax_params;
constexpr struct : ArgmaxParams {
  Key<Ints> input_sizes = next("input_sizes");
} argmax_grad_params;

// Cells of the window that lie outside of the input wherever the window stands are left out: a window may be far larger
// than its input.
void leave_out_padding(PoolGeometry& g, int d) {
  const int64_t step = g.dilation[d], last_start = (g.out[d] - 1) * g.stride[d] - g.pad_before[d];
  const int64_t before = last_start < 0 ? std::min((step - 1 - last_start) / step, g.window[d] - 1) : 0;
  const int64_t reached = (g.in[d] + g.pad_before[d] + step - 1) / step;
  g.window[d] = std::max<int64_t>(1, std::min(g.window[d], reached) - before);
  g.pad_before[d] -= before * step;
}

PoolGeometry pool_geometry(const char* who, const Shape& x, const Params& p) {
  int rank = x.rank() - 2;
  if (rank < 1 || rank > 3) fail(ErrorKind::invalid_argument, who, ": the input must have rank 3 to 5; got ", x);
  check_padding(who, p[pool_params.padding]);
  check_lengths(who, rank, {&p[pool_params.ksize], &p[pool_params.strides], &p[pool_params.dilations]},
                p[pool_params.padding], p[pool_params.explicit_paddings]);
  PoolGeometry g{};
  g.rank = rank;
  g.batch = x[0];
  g.channels = x.back();
  for (int d = 0; d < 3; ++d) {
    g.in[d] = g.window[d] = g.out[d] = g.stride[d] = g.dilation[d] = 1;
    g.pad_before[d] = 0;
  }
  for (int d = 0; d < rank; ++d) {
    g.in[d] = x[d + 1];
    g.window[d] = p[pool_params.ksize][size_t(d)];
    g.stride[d] = p[pool_params.strides][size_t(d)];
    g.dilation[d] = p[pool_params.dilations][size_t(d)];
    if (g.window[d] < 1) fail(ErrorKind::invalid_argument, who, ": ksize must be positive; got ", g.window[d]);
    Window w = place_window(who, g.in[d], g.window[d], g.stride[d], g.dilation[d], p[pool_params.padding],
                            p[pool_params.explicit_paddings], d);
    g.out[d] = w.out;
    g.pad_before[d] = w.pad_before;
    leave_out_padding(g, d);
  }
  return g;
}
Shape output_shape(const PoolGeometry& g) {
  Shape y{g.batch};
  for (int d = 0; d < g.rank; ++d) y.append(g.out[d]);
  y.append(g.channels);
  return y;
}

std::vector<Argument> pool_arguments(std::vector<Argument> tensors) {
  for (Argument a : {ints(pool_params.ksize), ints(pool_params.strides), text(pool_params.padding),
                     ints(pool_params.explicit_paddings), ints(pool_params.dilations)})
    tensors.push_back(a);
  return tensors;
}

bool batch_pool(BatchCall& c) {
  if (c.in.size() == 1) return fold_and_run(c, {folded(c.in[0])}, c.params);
  return fold_and_run(c, {folded(c.with_rows(0)), folded(c.with_rows(1))}, c.params);
}
// Positions that count the images before theirs are not the same in a larger batch.
bool batch_pool_with_argmax(BatchCall& c) { return !c.params[argmax_params.include_batch_in_index] && batch_pool(c); }

// The pooled shape of input 0.
void infer_pool(Call& call, const char* who) {
  call.returns(call.in[0].dtype(), output_shape(pool_geometry(who, call.in[0].shape(), call.params)));
}
void infer_max_pool(Call& call) { infer_pool(call, "nn.max_pool"); }
void infer_max_pool_with_argmax(Call& call) { infer_pool(call, "nn.max_pool_with_argmax"); }
void infer_avg_pool(Call& call) { infer_pool(call, "nn.avg_pool"); }

Tensor max_pool_to_input(const Tensor& x, const Tensor& dy, const Params& p);
Tensor max_pool_pick(const Tensor& x, const Tensor& v, const Params& p);

const Op& max_pool_op = define(Op{
    .name = "MaxPool",
    .arguments = pool_arguments({tensor("input", real_numbers)}),
    .infer = infer_max_pool,
    .kernel =
        [](Call& call) {
          const Tensor& x = call.in[0];
          PoolGeometry g = pool_geometry("nn.max_pool", x.shape(), call.params);
          if (floating.has(x.dtype()))
            return in_wide_floats(call, x, x,
                                  [&]<class T>(const T* a, const T*, T* y) { max_pool_forward<T>(g, a, y, nullptr); });
          visit<integers.bits>(x.dtype(), [&](auto* p) {
            using T = Pointee<decltype(p)>;
            max_pool_forward<T>(g, x.data<T>(), call.out[0].mutable_data<T>(), nullptr);
          });
        },
    .vjp = [](RuleContext& c) { c.set(0, max_pool_to_input(c.x(0), c.dy(), c.params)); },
    .jvp = [](RuleContext& c) { c.set(0, max_pool_pick(c.x(0), c.x_dot(0), c.params)); },
    .keep = keep_input(0),
    .batch = batch_pool,
});

const Op& max_pool_grad_op = define(Op{
    .name = "MaxPoolGrad",
    .arguments = pool_arguments({tensor("input", floating), tensor("dy", floating)}),
    .infer =
        [](Call& call) {
          family::check_dtype(call, 1);
          same_as_input(call);
        },
    .kernel =
        [](Call& call) {
          PoolGeometry g = pool_geometry("nn.max_pool", call.in[0].shape(), call.params);
          in_wide_floats(call, call.in[0], call.in[1], [&]<class T>(const T* x, const T* dy, T* dx) {
            if (max_pool_backward<T>(g, x, dy, dx, call.epilogue)) call.epilogue = nullptr;
          });
        },
    .runs_epilogue = true,
    .vjp =
        [](RuleContext& c) {
          if (c.wants(0)) c.set(0, zeros(c.dtype(0), c.shape(0)));
          if (c.wants(1)) c.set(1, max_pool_pick(c.x(0), c.dy(), c.params));
        },
    .keep = keep_input(0),
    .batch = batch_pool,
    .row_rule = separate_rows<2>,
});

const Op& max_pool_pick_op = define(Op{
    .name = "MaxPoolGradGrad",
    .arguments = pool_arguments({tensor("input", floating), tensor("v", floating)}),
    .infer =
        [](Call& call) {
          family::check_dtype(call, 1);
          infer_max_pool(call);
        },
    .kernel =
        [](Call& call) {
          PoolGeometry g = pool_geometry("nn.max_pool", call.in[0].shape(), call.params);
          in_wide_floats(call, call.in[0], call.in[1],
                         [&]<class T>(const T* x, const T* v, T* y) { max_pool_gather<T>(g, x, v, y); });
        },
    .vjp =
        [](RuleContext& c) {
          if (c.wants(0)) c.set(0, zeros(c.dtype(0), c.shape(0)));
          if (c.wants(1)) c.set(1, max_pool_to_input(c.x(0), c.dy(), c.params));
        },
    .keep = keep_input(0),
    .batch = batch_pool,
});
Tensor max_pool_to_input(const Tensor& x, const Tensor& dy, const Params& p) {
  return run(max_pool_grad_op, {x, dy}, p);
}
Tensor max_pool_pick(const Tensor& x, const Tensor& v, const Params& p) { return run(max_pool_pick_op, {x, v}, p); }

// ---- the same pool with the places of its maxima: int64, the position inside the image, or inside the batch.

std::vector<Argument> places_arguments(std::vector<Argument> first) {
  first = pool_arguments(std::move(first));
  first.push_back(flag(argmax_params.include_batch_in_index));
  return first;
}
// The positions inside their images.
BlockVector<int64_t> places_in_image(const Tensor& argmax, int64_t image, const Params& p) {
  if (argmax.dtype() != DType::int64) return places_in_image(cast(argmax, DType::int64), image, p);
  BlockVector<int64_t> places(argmax.data<int64_t>(), argmax.data<int64_t>() + argmax.size());
  for (int64_t& place : places) {
    if (p[argmax_params.include_batch_in_index] && image > 0 && place >= 0) place %= image;
    if (place < 0 || place >= image)
      fail(ErrorKind::invalid_argument, "nn.max_pool_with_argmax: argmax must be a position inside the image of ",
           image, " elements; got ", place);
  }
  return places;
}
Tensor max_pool_argmax_grad(const Tensor& dy, const Tensor& argmax, const Shape& x, const Params& p);
Tensor pool_places_pick(const Tensor& v, const Tensor& argmax, const Params& p);

const Op& max_pool_with_argmax_op = define(Op{
    .name = "MaxPoolWithArgmax",
    .arguments = places_arguments({tensor("input", real_numbers)}),
    .infer =
        [](Call& call) {
          infer_max_pool_with_argmax(call);
          call.returns(DType::int64, call.specs[0].shape);
        },
    .kernel =
        [](Call& call) {
          const Tensor& x = call.in[0];
          PoolGeometry g = pool_geometry("nn.max_pool_with_argmax", x.shape(), call.params);
          Shape shape = output_shape(g);
          int64_t* places = call.out[1].mutable_data<int64_t>();
          if (floating.has(x.dtype())) {
            in_wide_floats(call, x, x,
                           [&]<class T>(const T* a, const T*, T* y) { max_pool_forward<T>(g, a, y, places); });
          } else {
            visit<integers.bits>(x.dtype(), [&](auto* p) {
              using T = Pointee<decltype(p)>;
              max_pool_forward<T>(g, x.data<T>(), call.out[0].mutable_data<T>(), places);
            });
          }
          int64_t image = x.shape().elements(1, x.rank()), cells = shape.elements(1, shape.rank());
          if (call.params[argmax_params.include_batch_in_index])
            for (int64_t i = 0; i < call.out[1].size(); ++i) places[i] += i / cells * image;
        },
    .vjp = [](RuleContext& c) { c.set(0, max_pool_argmax_grad(c.dy(0), c.y(1), c.shape(0), c.params)); },
    .jvp = [](RuleContext& c) { c.set(0, pool_places_pick(c.x_dot(0), c.y(1), c.params)); },
    .keep = keep_output(1),
    .batch = batch_pool_with_argmax,
    .returns_list = true,
});

std::vector<Argument> max_pool_argmax_grad_arguments() {
  std::vector<Argument> arguments = places_arguments({tensor("dy", floating), index_tensor("argmax")});
  arguments.push_back(ints(argmax_grad_params.input_sizes));
  return arguments;
}
const Op& max_pool_argmax_grad_op = define(Op{
    .name = "MaxPoolGradWithArgmax",
    .arguments = max_pool_argmax_grad_arguments(),
    .infer = [](Call& call) { call.returns(call.in[0].dtype(), call.params.shape(argmax_grad_params.input_sizes)); },
    .infer_staged =
        [](Call& call) {
          call.returns(call.in[0].dtype(), known_shape(call.params.value(argmax_grad_params.input_sizes)));
        },
    .kernel =
        [](Call& call) {
          const Tensor& dy = call.in[0];
          Shape shape = call.params.shape(argmax_grad_params.input_sizes);
          PoolGeometry g = pool_geometry("nn.max_pool_with_argmax", shape, call.params);
          BlockVector<int64_t> places = places_in_image(call.in[1], shape.elements(1, shape.rank()), call.params);
          in_wide_floats(call, dy, dy, [&]<class T>(const T* d, const T*, T* dx) {
            max_pool_backward_at<T>(g, places.data(), d, dx);
          });
        },
    .vjp =
        [](RuleContext& c) {
          if (c.wants(0)) c.set(0, pool_places_pick(c.dy(), c.x(1), c.params));
        },
    .keep = keep_input(1),
    .batch =
        [](BatchCall& c) {
          if (c.params[argmax_params.include_batch_in_index]) return false;
          return fold_and_run(c, {folded(c.with_rows(0)), folded(c.with_rows(1))},
                              with_larger_batch(c, argmax_grad_params.input_sizes));
        },
});
const Op& pool_places_pick_op = define(Op{
    .name = "MaxPoolGradGradWithArgmax",
    .arguments = places_arguments({tensor("v", floating), index_tensor("argmax")}),
    .infer = infer_max_pool_with_argmax,
    .kernel =
        [](Call& call) {
          const Tensor& v = call.in[0];
          PoolGeometry g = pool_geometry("nn.max_pool_with_argmax", v.shape(), call.params);
          BlockVector<int64_t> places = places_in_image(call.in[1], v.shape().elements(1, v.rank()), call.params);
          in_wide_floats(call, v, v, [&]<class T>(const T* from, const T*, T* y) {
            max_pool_gather_at<T>(g, places.data(), from, y);
          });
        },
    .vjp =
        [](RuleContext& c) {
          if (c.wants(0)) c.set(0, max_pool_argmax_grad(c.dy(), c.x(1), c.shape(0), c.params));
        },
    .keep = keep_input(1),
    .batch = batch_pool_with_argmax,
});
Tensor max_pool_argmax_grad(const Tensor& dy, const Tensor& argmax, const Shape& x, const Params& p) {
  return run(max_pool_argmax_grad_op, {dy, argmax}, p.first(argmax_params.count).appended(Param(x)));
}
Tensor pool_places_pick(const Tensor& v, const Tensor& argmax, const Params& p) {
  return run(pool_places_pick_op, {v, argmax}, p.first(argmax_params.count));
}

Tensor avg_pool_to_input(const Tensor& dy, const Params& with_shape);
const Op& avg_pool_op = define(Op{
    .name = "AvgPool",
    .arguments = pool_arguments({tensor("input", floating)}),
    .infer = infer_avg_pool,
    .kernel =
        [](Call& call) {
          const Tensor& x = call.in[0];
          PoolGeometry g = pool_geometry("nn.avg_pool", x.shape(), call.params);
          in_wide_floats(call, x, x, [&]<class T>(const T* a, const T*, T* y) { avg_pool_forward<T>(g, a, y); });
        },
    .vjp = [](RuleContext& c) { c.set(0, avg_pool_to_input(c.dy(), c.params.appended(Param(c.shape(0))))); },
    .jvp = [](RuleContext& c) { c.set(0, run(c.op, {c.x_dot(0)}, c.params)); },
    .batch = batch_pool,
});

std::vector<Argument> avg_pool_grad_arguments() {
  std::vector<Argument> arguments = pool_arguments({tensor("dy", floating)});
  arguments.push_back(ints(avg_pool_grad_params.input_sizes));
  return arguments;
}
const Op& avg_pool_grad_op = define(Op{
    .name = "AvgPoolGrad",
    .arguments = avg_pool_grad_arguments(),
    .infer = [](Call& call) { call.returns(call.in[0].dtype(), call.params.shape(avg_pool_grad_params.input_sizes)); },
    .infer_staged =
        [](Call& call) {
          call.returns(call.in[0].dtype(), known_shape(call.params.value(avg_pool_grad_params.input_sizes)));
        },
    .kernel =
        [](Call& call) {
          const Tensor& dy = call.in[0];
          PoolGeometry g =
              pool_geometry("nn.avg_pool", call.params.shape(avg_pool_grad_params.input_sizes), call.params);
          in_wide_floats(call, dy, dy, [&]<class T>(const T* d, const T*, T* dx) {
            if (avg_pool_backward<T>(g, d, dx, call.epilogue)) call.epilogue = nullptr;
          });
        },
    .runs_epilogue = true,
    .vjp = [](RuleContext& c) { c.set(0, run(avg_pool_op, {c.dy()}, c.params.first(pool_params.count))); },
    .jvp = [](RuleContext& c) { c.set(0, run(c.op, {c.x_dot(0)}, c.params)); },
    .batch =
        [](BatchCall& c) {
          return fold_and_run(c, {folded(c.in[0])}, with_larger_batch(c, avg_pool_grad_params.input_sizes));
        },
    .row_rule = separate_rows<2>,
});
Tensor avg_pool_to_input(const Tensor& dy, const Params& with_shape) { return run(avg_pool_grad_op, {dy}, with_shape); }

}  // namespace
}  // namespace tapeflow
