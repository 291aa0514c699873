// Convolutions and pools over channels-last data with one to three spatial dimensions. The public functions in Python
// bring other layouts and argument forms to these.
#include "base/blocks.h"
#include "kernels/nn/convolve.h"

#include "base/subnormals.h"
#include "kernels/nn/pool.h"
#include "op/cost.h"
#include "op/row_structure.h"
#include "ops/family.h"
#include "ops/partial_shape.h"

namespace tapeflow {
namespace {

// ---- geometry

struct Window {
  int64_t out, pad_before;
};
// How a window of `size` cells (spread by `dilation`) moves over `in` cells.
Window place_window(const char* who, int64_t in, int64_t size, int64_t stride, int64_t dilation,
                    const std::string& padding, const Ints& explicit_pads, int d) {
  if (stride < 1) fail(ErrorKind::invalid_argument, who, ": strides must be positive; got ", stride);
  if (dilation < 1) fail(ErrorKind::invalid_argument, who, ": dilations must be positive; got ", dilation);
  int64_t reach = (size - 1) * dilation + 1;
  if (padding == "SAME") {
    int64_t out = (in + stride - 1) / stride, pad = std::max<int64_t>(0, (out - 1) * stride + reach - in);
    return {out, pad / 2};
  }
  int64_t before = 0, after = 0;
  if (padding == "EXPLICIT") before = explicit_pads[size_t(2 * d)], after = explicit_pads[size_t(2 * d) + 1];
  int64_t room = in + before + after - reach;
  int64_t out = (room + stride) / stride;
  if (out < 0)
    fail(ErrorKind::invalid_argument, who, ": Computed output size would be negative: ", out,
         " [input_size: ", in + before + after, ", effective_filter_size: ", reach, ", stride: ", stride, "]");
  return {room < 0 ? 0 : out, before};
}

void check_padding(const char* who, const std::string& padding) {
  if (padding != "SAME" && padding != "VALID" && padding != "EXPLICIT")
    fail(ErrorKind::value, who, ": padding must be 'SAME', 'VALID' or a list; got '", padding, "'");
}

// One number per spatial dimension, and a pair of explicit paddings.
void check_lengths(const char* who, int rank, std::initializer_list<const Ints*> lists, const std::string& padding,
                   const Ints& pads) {
  for (const Ints* list : lists)
    if (int(list->size()) != rank)
      fail(ErrorKind::invalid_argument, who, ": ", rank, " numbers are needed, one per spatial dimension; got ",
           list->size());
  if (padding == "EXPLICIT" && int(pads.size()) != 2 * rank)
    fail(ErrorKind::invalid_argument, who, ": ", rank, " pairs of explicit paddings are needed; got ", pads.size(),
         " numbers");
}

// Params of all convolutions: strides, padding, explicit paddings, dilations; one number per spatial dimension.
ConvGeometry conv_geometry(const char* who, const Shape& x, const Shape& filter, const Params& p, bool depthwise) {
  int rank = x.rank() - 2;
  if (rank < 1 || rank > 3 || filter.rank() != x.rank())
    fail(ErrorKind::invalid_argument, who, ": input and filter must have the same rank, 3 to 5; got ", x, " and ",
         filter);
  check_padding(who, p.text(1));
  check_lengths(who, rank, {&p.ints(0), &p.ints(3)}, p.text(1), p.ints(2));
  ConvGeometry g{};
  g.rank = rank;
  g.batch = x[0];
  g.in_channels = x.back();
  int64_t filter_in = filter.back(2);
  if (depthwise) {
    if (filter_in != g.in_channels)
      fail(ErrorKind::invalid_argument, who, ": input and filter must have the same depth: ", g.in_channels, " vs ",
           filter_in);
    g.out_channels = g.in_channels * filter.back();
    g.groups = g.in_channels;
  } else {
    if (filter_in == 0 || g.in_channels % filter_in != 0)
      fail(ErrorKind::invalid_argument, who, ": input depth must be evenly divisible by filter depth: ", g.in_channels,
           " vs ", filter_in);
    g.out_channels = filter.back();
    g.groups = g.in_channels / filter_in;
    if (g.groups == 0 || g.out_channels % g.groups != 0)
      fail(ErrorKind::invalid_argument, who,
           ": output depth must be evenly divisible by number of groups: ", g.out_channels, " vs ", g.groups);
  }
  for (int d = 0; d < 3; ++d) {
    g.in[d] = g.filter[d] = g.out[d] = g.stride[d] = g.dilation[d] = 1;
    g.pad_before[d] = 0;
  }
  for (int d = 0; d < rank; ++d) {
    g.in[d] = x[d + 1];
    g.filter[d] = filter[d];
    g.stride[d] = p.ints(0)[size_t(d)];
    g.dilation[d] = p.ints(3)[size_t(d)];
    Window w = place_window(who, g.in[d], g.filter[d], g.stride[d], g.dilation[d], p.text(1), p.ints(2), d);
    g.out[d] = w.out;
    g.pad_before[d] = w.pad_before;
  }
  return g;
}
Shape output_shape(const ConvGeometry& g) {
  Shape y{g.batch};
  for (int d = 0; d < g.rank; ++d) y.append(g.out[d]);
  y.append(g.out_channels);
  return y;
}

// Runs a kernel that makes output 0 of a and b on float or double; the small float types are widened and narrowed
// again.
template <class Kernel> void in_wide_floats(Call& call, const Tensor& a, const Tensor& b, Kernel kernel) {
  Tensor& y = call.out[0];
  if (a.dtype() == DType::float64) return kernel(a.data<double>(), b.data<double>(), y.mutable_data<double>());
  FlushSubnormals flush;
  if (a.dtype() == DType::float32) return kernel(a.data<float>(), b.data<float>(), y.mutable_data<float>());
  PauseRecording paused;
  Tensor wide_a = cast(a, DType::float32), wide_b = cast(b, DType::float32),
         wide_y = Tensor::allocate(DType::float32, y.shape());
  kernel(wide_a.data<float>(), wide_b.data<float>(), wide_y.mutable_data<float>());
  y = cast(wide_y, a.dtype());
}

void require_one_dtype(const Call& call) {
  if (call.in[0].dtype() != call.in[1].dtype()) family::fail_dtypes(call);
}

std::vector<Argument> conv_arguments(const char* first, const char* second) {
  return {tensor(first, floating), tensor(second, floating),  ints("strides"),
          text("padding"),         ints("explicit_paddings"), ints("dilations")};
}

// ---- the three forms of one bilinear map: (x, filter) -> y, (filter, y) -> x, (x, y) -> filter.
// The gradient of each is made of the other two.

template <bool Depthwise> struct Forms {
  static Tensor forward(const Tensor& x, const Tensor& filter, const Params& p);
  static Tensor to_input(const Tensor& filter, const Tensor& dy, const Shape& x, const Params& p);
  static Tensor to_filter(const Tensor& x, const Tensor& dy, const Shape& filter, const Params& p);
};

Params with_shape(const Params& p, const Shape& shape) { return {p[0], p[1], p[2], p[3], Param(shape)}; }
Params without_shape(const Params& p) { return {p[0], p[1], p[2], p[3]}; }

template <bool Depthwise> struct ConvOps {
  static constexpr const char* who = Depthwise ? "nn.depthwise_conv2d" : "nn.conv2d";
  using F = Forms<Depthwise>;

  static void check_gradient(const ConvGeometry& g, const Shape& dy) {
    if (!(output_shape(g) == dy))
      fail(ErrorKind::invalid_argument, who, ": the gradient must have the shape of the output, ", output_shape(g),
           "; got ", dy);
  }

  static const Op& define_forward(const char* name) {
    return define(Op{
        .name = name,
        .planning = {.cost = Depthwise ? CostModel{} : CostModel{cost::convolutions, 0.02}},
        .arguments = conv_arguments("input", "filter"),
        .infer =
            [](Call& call) {
              require_one_dtype(call);
              call.returns(call.in[0].dtype(), output_shape(conv_geometry(who, call.in[0].shape(), call.in[1].shape(),
                                                                          call.params, Depthwise)));
            },
        .kernel =
            [](Call& call) {
              const Tensor &x = call.in[0], &filter = call.in[1];
              ConvGeometry g = conv_geometry(who, x.shape(), filter.shape(), call.params, Depthwise);
              in_wide_floats(call, x, filter, [&]<class T>(const T* a, const T* b, T* y) {
                if (Depthwise ? depthwise_forward(g, a, b, y, call.finish) : conv_forward(g, a, b, y, call.finish))
                  call.finish = nullptr;
              });
            },
        .finishes = true,
        .vjp =
            [](RuleContext& c) {
              if (c.wants(0)) c.set(0, F::to_input(c.x(1), c.dy(), c.shape(0), c.params));
              if (c.wants(1)) c.set(1, F::to_filter(c.x(0), c.dy(), c.shape(1), c.params));
            },
        .keep = keep_input(0) | keep_input(1),
        .keep_for = {keep_input(1), keep_input(0)},
        .keep_by_input = true,
    });
  }

  static const Op& define_to_input(const char* name) {
    std::vector<Argument> arguments = conv_arguments("filter", "out_backprop");
    arguments.push_back(ints("input_sizes"));
    return define(Op{
        .name = name,
        .planning = {.cost = Depthwise ? CostModel{} : CostModel{cost::convolutions, 0.02}},
        .arguments = std::move(arguments),
        .infer =
            [](Call& call) {
              require_one_dtype(call);
              check_gradient(conv_geometry(who, call.params.shape(4), call.in[0].shape(), call.params, Depthwise),
                             call.in[1].shape());
              call.returns(call.in[1].dtype(), call.params.shape(4));
            },
        .infer_staged = [](Call& call) { call.returns(call.in[1].dtype(), known_shape(call.params[4])); },
        .kernel =
            [](Call& call) {
              const Tensor &filter = call.in[0], &dy = call.in[1];
              ConvGeometry g = conv_geometry(who, call.params.shape(4), filter.shape(), call.params, Depthwise);
              in_wide_floats(call, dy, filter, [&]<class T>(const T* d, const T* f, T* x) {
                if constexpr (Depthwise)
                  depthwise_backward_input(g, d, f, x);
                else if (conv_backward_input(g, d, f, x, call.finish))
                  call.finish = nullptr;
              });
            },
        .finishes = !Depthwise,
        .vjp =
            [](RuleContext& c) {
              if (c.wants(0)) c.set(0, F::to_filter(c.dy(), c.x(1), c.shape(0), c.params));
              if (c.wants(1)) c.set(1, F::forward(c.dy(), c.x(0), c.params));
            },
        .keep = keep_input(0) | keep_input(1),
        .keep_for = {keep_input(1), keep_input(0)},
        .keep_by_input = true,
    });
  }

  static const Op& define_to_filter(const char* name) {
    std::vector<Argument> arguments = conv_arguments("input", "out_backprop");
    arguments.push_back(ints("filter_sizes"));
    return define(Op{
        .name = name,
        .planning = {.cost = Depthwise ? CostModel{} : CostModel{cost::convolutions, 0.02}},
        .arguments = std::move(arguments),
        .infer =
            [](Call& call) {
              require_one_dtype(call);
              check_gradient(conv_geometry(who, call.in[0].shape(), call.params.shape(4), call.params, Depthwise),
                             call.in[1].shape());
              call.returns(call.in[0].dtype(), call.params.shape(4));
            },
        .infer_staged = [](Call& call) { call.returns(call.in[0].dtype(), known_shape(call.params[4])); },
        .kernel =
            [](Call& call) {
              const Tensor &x = call.in[0], &dy = call.in[1];
              ConvGeometry g = conv_geometry(who, x.shape(), call.params.shape(4), call.params, Depthwise);
              in_wide_floats(call, x, dy, [&]<class T>(const T* a, const T* d, T* f) {
                if constexpr (Depthwise)
                  depthwise_backward_filter(g, a, d, f);
                else
                  conv_backward_filter(g, a, d, f);
              });
            },
        .vjp =
            [](RuleContext& c) {
              if (c.wants(0)) c.set(0, F::to_input(c.dy(), c.x(1), c.shape(0), c.params));
              if (c.wants(1)) c.set(1, F::forward(c.x(0), c.dy(), c.params));
            },
        .keep = keep_input(0) | keep_input(1),
        .keep_for = {keep_input(1), keep_input(0)},
        .keep_by_input = true,
    });
  }
};

const Op& conv_op = ConvOps<false>::define_forward("Conv");
const Op& conv_to_input_op = ConvOps<false>::define_to_input("ConvBackpropInput");
const Op& conv_to_filter_op = ConvOps<false>::define_to_filter("ConvBackpropFilter");
const Op& depthwise_op = ConvOps<true>::define_forward("DepthwiseConv");
const Op& depthwise_to_input_op = ConvOps<true>::define_to_input("DepthwiseConvBackpropInput");
const Op& depthwise_to_filter_op = ConvOps<true>::define_to_filter("DepthwiseConvBackpropFilter");

// The images of a batch are separate, if the filter, the other input, is not by row.
template <int Images> RowStructure rows_of_images(const Call&, std::span<const bool> by_row, std::span<bool>) {
  return by_row[1 - Images] ? RowStructure::mixed : RowStructure::separate;
}
RowStructure rows_of_filter_gradient(const Call&, std::span<const bool>, std::span<bool> also_cut) {
  also_cut[0] = also_cut[1] = true;
  return RowStructure::summed;
}
const bool conv_rows = set_row_rule(conv_op, rows_of_images<0>) && set_row_rule(conv_to_input_op, rows_of_images<1>) &&
                       set_row_rule(conv_to_filter_op, rows_of_filter_gradient);
const bool depthwise_rows = set_row_rule(depthwise_op, rows_of_images<0>) &&
                            set_row_rule(depthwise_to_input_op, rows_of_images<1>) &&
                            set_row_rule(depthwise_to_filter_op, rows_of_filter_gradient);

template <bool D> Tensor Forms<D>::forward(const Tensor& x, const Tensor& filter, const Params& p) {
  return run(D ? depthwise_op : conv_op, {x, filter}, without_shape(p));
}
template <bool D> Tensor Forms<D>::to_input(const Tensor& filter, const Tensor& dy, const Shape& x, const Params& p) {
  return run(D ? depthwise_to_input_op : conv_to_input_op, {filter, dy}, with_shape(p, x));
}
template <bool D> Tensor Forms<D>::to_filter(const Tensor& x, const Tensor& dy, const Shape& filter, const Params& p) {
  return run(D ? depthwise_to_filter_op : conv_to_filter_op, {x, dy}, with_shape(p, filter));
}

// ---- pools. Params: window, strides, padding, explicit paddings, dilations.

PoolGeometry pool_geometry(const char* who, const Shape& x, const Params& p) {
  int rank = x.rank() - 2;
  if (rank < 1 || rank > 3) fail(ErrorKind::invalid_argument, who, ": the input must have rank 3 to 5; got ", x);
  check_padding(who, p.text(2));
  check_lengths(who, rank, {&p.ints(0), &p.ints(1), &p.ints(4)}, p.text(2), p.ints(3));
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
    g.window[d] = p.ints(0)[size_t(d)];
    g.stride[d] = p.ints(1)[size_t(d)];
    g.dilation[d] = p.ints(4)[size_t(d)];
    if (g.window[d] < 1) fail(ErrorKind::invalid_argument, who, ": ksize must be positive; got ", g.window[d]);
    Window w = place_window(who, g.in[d], g.window[d], g.stride[d], g.dilation[d], p.text(2), p.ints(3), d);
    g.out[d] = w.out;
    g.pad_before[d] = w.pad_before;
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
  for (Argument a : {ints("ksize"), ints("strides"), text("padding"), ints("explicit_paddings"), ints("dilations")})
    tensors.push_back(a);
  return tensors;
}

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
});

const Op& max_pool_grad_op = define(Op{
    .name = "MaxPoolGrad",
    .arguments = pool_arguments({tensor("input", floating), tensor("dy", floating)}),
    .infer = same_as_input,
    .kernel =
        [](Call& call) {
          PoolGeometry g = pool_geometry("nn.max_pool", call.in[0].shape(), call.params);
          in_wide_floats(call, call.in[0], call.in[1], [&]<class T>(const T* x, const T* dy, T* dx) {
            if (max_pool_backward<T>(g, x, dy, dx, call.finish)) call.finish = nullptr;
          });
        },
    .finishes = true,
    .vjp =
        [](RuleContext& c) {
          if (c.wants(0)) c.set(0, zeros(c.dtype(0), c.shape(0)));
          if (c.wants(1)) c.set(1, max_pool_pick(c.x(0), c.dy(), c.params));
        },
    .keep = keep_input(0),
});
const bool max_pool_grad_rows = set_row_rule(max_pool_grad_op, separate_rows<2>);

const Op& max_pool_pick_op = define(Op{
    .name = "MaxPoolGradGrad",
    .arguments = pool_arguments({tensor("input", floating), tensor("v", floating)}),
    .infer = infer_max_pool,
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
});
Tensor max_pool_to_input(const Tensor& x, const Tensor& dy, const Params& p) {
  return run(max_pool_grad_op, {x, dy}, p);
}
Tensor max_pool_pick(const Tensor& x, const Tensor& v, const Params& p) { return run(max_pool_pick_op, {x, v}, p); }

// ---- the same pool with the places of its maxima: int64, the position inside the image, or inside the batch.

std::vector<Argument> places_arguments(std::vector<Argument> first) {
  first = pool_arguments(std::move(first));
  first.push_back(flag("include_batch_in_index"));
  return first;
}
// The positions inside their images.
BlockVector<int64_t> places_in_image(const Tensor& argmax, int64_t image, const Params& p) {
  if (argmax.dtype() != DType::int64) return places_in_image(cast(argmax, DType::int64), image, p);
  BlockVector<int64_t> places(argmax.data<int64_t>(), argmax.data<int64_t>() + argmax.size());
  for (int64_t& place : places) {
    if (p.flag(5) && image > 0 && place >= 0) place %= image;
    if (place < 0 || place >= image)
      fail(ErrorKind::invalid_argument, "nn.max_pool_with_argmax: argmax must be a position inside the image of ",
           image, " elements; got ", place);
  }
  return places;
}
Tensor pool_places_spread(const Tensor& dy, const Tensor& argmax, const Shape& x, const Params& p);
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
          if (call.params.flag(5))
            for (int64_t i = 0; i < call.out[1].size(); ++i) places[i] += i / cells * image;
        },
    .vjp = [](RuleContext& c) { c.set(0, pool_places_spread(c.dy(0), c.y(1), c.shape(0), c.params)); },
    .jvp = [](RuleContext& c) { c.set(0, pool_places_pick(c.x_dot(0), c.y(1), c.params)); },
    .keep = keep_output(1),
    .returns_list = true,
});

std::vector<Argument> places_spread_arguments() {
  std::vector<Argument> arguments = places_arguments({tensor("dy", floating), index_tensor("argmax")});
  arguments.push_back(ints("input_sizes"));
  return arguments;
}
const Op& pool_places_spread_op = define(Op{
    .name = "MaxPoolGradWithArgmax",
    .arguments = places_spread_arguments(),
    .infer = [](Call& call) { call.returns(call.in[0].dtype(), call.params.shape(6)); },
    .infer_staged = [](Call& call) { call.returns(call.in[0].dtype(), known_shape(call.params[6])); },
    .kernel =
        [](Call& call) {
          const Tensor& dy = call.in[0];
          Shape shape = call.params.shape(6);
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
          if (c.wants(0)) c.set(0, pool_places_spread(c.dy(), c.x(1), c.shape(0), c.params));
        },
    .keep = keep_input(1),
});
Tensor pool_places_spread(const Tensor& dy, const Tensor& argmax, const Shape& x, const Params& p) {
  return run(pool_places_spread_op, {dy, argmax}, {p[0], p[1], p[2], p[3], p[4], p[5], Param(x)});
}
Tensor pool_places_pick(const Tensor& v, const Tensor& argmax, const Params& p) {
  return run(pool_places_pick_op, {v, argmax}, {p[0], p[1], p[2], p[3], p[4], p[5]});
}

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
    .vjp =
        [](RuleContext& c) {
          static const Op& grad = *find_op("AvgPoolGrad");
          const Params& p = c.params;
          c.set(0, run(grad, {c.dy()}, {p[0], p[1], p[2], p[3], p[4], Param(c.shape(0))}));
        },
    .jvp = [](RuleContext& c) { c.set(0, run(c.op, {c.x_dot(0)}, c.params)); },
});

std::vector<Argument> avg_pool_grad_arguments() {
  std::vector<Argument> arguments = pool_arguments({tensor("dy", floating)});
  arguments.push_back(ints("input_sizes"));
  return arguments;
}
const Op& avg_pool_grad_op = define(Op{
    .name = "AvgPoolGrad",
    .arguments = avg_pool_grad_arguments(),
    .infer = [](Call& call) { call.returns(call.in[0].dtype(), call.params.shape(5)); },
    .infer_staged = [](Call& call) { call.returns(call.in[0].dtype(), known_shape(call.params[5])); },
    .kernel =
        [](Call& call) {
          const Tensor& dy = call.in[0];
          PoolGeometry g = pool_geometry("nn.avg_pool", call.params.shape(5), call.params);
          in_wide_floats(call, dy, dy, [&]<class T>(const T* d, const T*, T* dx) {
            if (avg_pool_backward<T>(g, d, dx, call.finish)) call.finish = nullptr;
          });
        },
    .finishes = true,
    .vjp =
        [](RuleContext& c) {
          const Params& p = c.params;
          c.set(0, run(avg_pool_op, {c.dy()}, {p[0], p[1], p[2], p[3], p[4]}));
        },
    .jvp = [](RuleContext& c) { c.set(0, run(c.op, {c.x_dot(0)}, c.params)); },
});
const bool avg_pool_grad_rows = set_row_rule(avg_pool_grad_op, separate_rows<2>);

}  // namespace
}  // namespace tapeflow
