// Convolutions over channels-last data with one to three spatial dimensions. The public functions in Python bring other
// layouts and argument forms to these.
#include "kernels/nn/convolve.h"

#include "op/cost.h"
#include "op/row_structure.h"
#include "ops/nn/windows.h"
#include "ops/partial_shape.h"

namespace tapeflow {
namespace {

// One number per spatial dimension.
constexpr struct ConvParams : Keys {
  Key<Ints> strides = next("strides");
  Key<std::string> padding = next("padding");
  Key<Ints> explicit_paddings = next("explicit_paddings"), dilations = next("dilations");
} conv_params;
// Of the derivatives, whose result shape is a parameter.
constexpr struct : ConvParams {
  Key<Ints> input_sizes = next("input_sizes");
} to_input_params;
constexpr struct : ConvParams {
  Key<Ints> filter_sizes = next("filter_sizes");
} to_filter_params;

ConvGeometry conv_geometry(const char* who, const Shape& x, const Shape& filter, const Params& p, bool depthwise) {
  int rank = x.rank() - 2;
  if (rank < 1 || rank > 3 || filter.rank() != x.rank())
    fail(ErrorKind::invalid_argument, who, ": input and filter must have the same rank, 3 to 5; got ", x, " and ",
         filter);
  check_padding(who, p[conv_params.padding]);
  check_lengths(who, rank, {&p[conv_params.strides], &p[conv_params.dilations]}, p[conv_params.padding],
                p[conv_params.explicit_paddings]);
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
    g.stride[d] = p[conv_params.strides][size_t(d)];
    g.dilation[d] = p[conv_params.dilations][size_t(d)];
    Window w = place_window(who, g.in[d], g.filter[d], g.stride[d], g.dilation[d], p[conv_params.padding],
                            p[conv_params.explicit_paddings], d);
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

void require_one_dtype(const Call& call) {
  if (call.in[0].dtype() != call.in[1].dtype()) family::fail_dtypes(call);
}

std::vector<Argument> conv_arguments(const char* first, const char* second) {
  return {tensor(first, floating),
          tensor(second, floating),
          ints(conv_params.strides),
          text(conv_params.padding),
          ints(conv_params.explicit_paddings),
          ints(conv_params.dilations)};
}

// ---- the three forms of one bilinear map: (x, filter) -> y, (filter, y) -> x, (x, y) -> filter.
// The gradient of each is made of the other two.

template <bool Depthwise> struct Forms {
  static Tensor forward(const Tensor& x, const Tensor& filter, const Params& p);
  static Tensor to_input(const Tensor& filter, const Tensor& dy, const Shape& x, const Params& p);
  static Tensor to_filter(const Tensor& x, const Tensor& dy, const Shape& filter, const Params& p);
};

// The rows as channels: [rows, ..., groups * n] to [..., groups * rows * n], and back.
Tensor rows_as_channels(const Tensor& x, int64_t groups) {
  int64_t rows = x.dim(0), channels = x.shape().back();
  Shape apart = x.shape();
  apart[apart.rank() - 1] = groups;
  apart.append(channels / groups);
  Shape joined = x.shape().slice(1, x.rank());
  joined[joined.rank() - 1] *= rows;
  return reshape(move_dimension(reshape(x, apart), 0, apart.rank() - 2), joined);
}
Tensor channels_as_rows(const Tensor& x, int64_t rows, int64_t groups) {
  int64_t each = x.shape().back() / rows / groups;
  Shape apart = x.shape().slice(0, x.rank() - 1);
  for (int64_t n : {groups, rows, each}) apart.append(n);
  Tensor prepended = move_dimension(reshape(x, apart), apart.rank() - 2, 0);
  Shape joined = prepended.shape().slice(0, prepended.rank() - 2);
  joined.append(groups * each);
  return reshape(prepended, joined);
}

// How many groups the channels of the output fall into, seen from the filter; 0 if the filter itself has groups.
template <bool Depthwise> int64_t channel_groups(int64_t image_channels, int64_t filter_channels) {
  return Depthwise ? image_channels : filter_channels == image_channels ? 1 : 0;
}

// The images of a batch are separate, if the filter, the other input, is not by row.
template <int Images> RowStructure rows_of_images(const Call&, std::span<const bool> by_row, std::span<bool>) {
  return by_row[1 - Images] ? RowStructure::mixed : RowStructure::separate;
}
RowStructure rows_of_filter_gradient(const Call&, std::span<const bool>, std::span<bool> also_cut) {
  also_cut[0] = also_cut[1] = true;
  return RowStructure::summed;
}

template <bool Depthwise> struct ConvOps {
  static constexpr const char* who = Depthwise ? "nn.depthwise_conv2d" : "nn.conv2d";
  using F = Forms<Depthwise>;

  static void check_gradient(const ConvGeometry& g, const Shape& dy) {
    if (!(output_shape(g) == dy))
      fail(ErrorKind::invalid_argument, who, ": the gradient must have the shape of the output, ", output_shape(g),
           "; got ", dy);
  }

  // The rows are images of one large batch, or, if they have filters of their own, channels of the output.
  static bool batch_forward(BatchCall& c) {
    if (!c.batched[1]) return fold_and_run(c, {folded(c.in[0]), c.in[1]}, c.params);
    if (c.batched[0]) return false;
    const int64_t groups = channel_groups<Depthwise>(c.in[0].shape().back(), c.in[1].shape().back(2));
    if (groups == 0) return false;
    c.run_same({c.in[0], rows_as_channels(c.in[1], 1)}, c.params);
    c.out[0] = channels_as_rows(c.out[0], c.rows, groups);
    return true;
  }
  static bool batch_to_input(BatchCall& c) {
    if (c.batched[0]) return false;
    return fold_and_run(c, {c.in[0], folded(c.in[1])}, with_larger_batch(c, to_input_params.input_sizes));
  }
  static bool batch_to_filter(BatchCall& c) {
    if (c.batched[0]) return false;
    Ints sizes = c.params[to_filter_params.filter_sizes];
    const int64_t groups = channel_groups<Depthwise>(c.in[0].shape().back(), sizes[sizes.size() - 2]);
    if (groups == 0) return false;
    sizes[sizes.size() - 1] *= c.rows;
    c.run_same({c.in[0], rows_as_channels(c.in[1], groups)},
               c.params.with(to_filter_params.filter_sizes, Param(sizes)));
    c.out[0] = channels_as_rows(c.out[0], c.rows, 1);
    return true;
  }

  // All three are linear in each of two inputs: the gradient of one needs the other.
  static const Op& define_conv(Op op) {
    if (!Depthwise) op.planning.cost = {cost::convolutions, 0.02};
    op.planning.rounded_once = small_floating;
    op.keep = keep_input(0) | keep_input(1);
    op.keep_for[0] = keep_input(1);
    op.keep_for[1] = keep_input(0);
    op.keep_by_input = true;
    return define(std::move(op));
  }

  static const Op& define_forward(const char* name) {
    return define_conv(Op{
        .name = name,
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
                if (Depthwise ? depthwise_forward(g, a, b, y, call.epilogue) : conv_forward(g, a, b, y, call.epilogue))
                  call.epilogue = nullptr;
              });
            },
        .runs_epilogue = true,
        .vjp =
            [](RuleContext& c) {
              if (c.wants(0)) c.set(0, F::to_input(c.x(1), c.dy(), c.shape(0), c.params));
              if (c.wants(1)) c.set(1, F::to_filter(c.x(0), c.dy(), c.shape(1), c.params));
            },
        .batch = batch_forward,
        .row_rule = rows_of_images<0>,
    });
  }

  static const Op& define_to_input(const char* name) {
    std::vector<Argument> arguments = conv_arguments("filter", "out_backprop");
    arguments.push_back(ints(to_input_params.input_sizes));
    return define_conv(Op{
        .name = name,
        .arguments = std::move(arguments),
        .infer =
            [](Call& call) {
              require_one_dtype(call);
              check_gradient(conv_geometry(who, call.params.shape(to_input_params.input_sizes), call.in[0].shape(),
                                           call.params, Depthwise),
                             call.in[1].shape());
              call.returns(call.in[1].dtype(), call.params.shape(to_input_params.input_sizes));
            },
        .infer_staged =
            [](Call& call) {
              call.returns(call.in[1].dtype(), known_shape(call.params.value(to_input_params.input_sizes)));
            },
        .kernel =
            [](Call& call) {
              const Tensor &filter = call.in[0], &dy = call.in[1];
              ConvGeometry g = conv_geometry(who, call.params.shape(to_input_params.input_sizes), filter.shape(),
                                             call.params, Depthwise);
              in_wide_floats(call, dy, filter, [&]<class T>(const T* d, const T* f, T* x) {
                if constexpr (Depthwise)
                  depthwise_backward_input(g, d, f, x);
                else if (conv_backward_input(g, d, f, x, call.epilogue))
                  call.epilogue = nullptr;
              });
            },
        .runs_epilogue = !Depthwise,
        .vjp =
            [](RuleContext& c) {
              if (c.wants(0)) c.set(0, F::to_filter(c.dy(), c.x(1), c.shape(0), c.params));
              if (c.wants(1)) c.set(1, F::forward(c.dy(), c.x(0), c.params));
            },
        .batch = batch_to_input,
        .row_rule = rows_of_images<1>,
    });
  }

  static const Op& define_to_filter(const char* name) {
    std::vector<Argument> arguments = conv_arguments("input", "out_backprop");
    arguments.push_back(ints(to_filter_params.filter_sizes));
    return define_conv(Op{
        .name = name,
        .arguments = std::move(arguments),
        .infer =
            [](Call& call) {
              require_one_dtype(call);
              check_gradient(conv_geometry(who, call.in[0].shape(), call.params.shape(to_filter_params.filter_sizes),
                                           call.params, Depthwise),
                             call.in[1].shape());
              call.returns(call.in[0].dtype(), call.params.shape(to_filter_params.filter_sizes));
            },
        .infer_staged =
            [](Call& call) {
              call.returns(call.in[0].dtype(), known_shape(call.params.value(to_filter_params.filter_sizes)));
            },
        .kernel =
            [](Call& call) {
              const Tensor &x = call.in[0], &dy = call.in[1];
              ConvGeometry g = conv_geometry(who, x.shape(), call.params.shape(to_filter_params.filter_sizes),
                                             call.params, Depthwise);
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
        .batch = batch_to_filter,
        .row_rule = rows_of_filter_gradient,
    });
  }
};

const Op& conv_op = ConvOps<false>::define_forward("Conv");
const Op& conv_to_input_op = ConvOps<false>::define_to_input("ConvBackpropInput");
const Op& conv_to_filter_op = ConvOps<false>::define_to_filter("ConvBackpropFilter");
const Op& depthwise_op = ConvOps<true>::define_forward("DepthwiseConv");
const Op& depthwise_to_input_op = ConvOps<true>::define_to_input("DepthwiseConvBackpropInput");
const Op& depthwise_to_filter_op = ConvOps<true>::define_to_filter("DepthwiseConvBackpropFilter");

template <bool D> Tensor Forms<D>::forward(const Tensor& x, const Tensor& filter, const Params& p) {
  return run(D ? depthwise_op : conv_op, {x, filter}, p.first(conv_params.count));
}
template <bool D> Tensor Forms<D>::to_input(const Tensor& filter, const Tensor& dy, const Shape& x, const Params& p) {
  return run(D ? depthwise_to_input_op : conv_to_input_op, {filter, dy}, p.first(conv_params.count).appended(Param(x)));
}
template <bool D> Tensor Forms<D>::to_filter(const Tensor& x, const Tensor& dy, const Shape& filter, const Params& p) {
  return run(D ? depthwise_to_filter_op : conv_to_filter_op, {x, dy},
             p.first(conv_params.count).appended(Param(filter)));
}

}  // namespace
}  // namespace tapeflow
