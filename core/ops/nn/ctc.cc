// Connectionist temporal classification: the loss with dense labels, and beam search.
#include "kernels/nn/ctc.h"
#include "base/blocks.h"

#include "base/parallel.h"
#include "ops/family.h"
#include "ops/one_dtype.h"
#include "ops/partial_shape.h"

namespace tapeflow {
namespace {

// Inputs after the first `skip`: labels [batch, length], label_length [batch], logit_length [batch].
struct Sequences {
  int64_t times, batch, classes, blank;
  bool merge_repeated;
  BlockVector<BlockVector<int64_t>> labels;
  Ints lengths;
};
constexpr struct : Keys {
  Key<int64_t> blank_index = next("blank_index");
  Key<bool> merge_repeated = next("merge_repeated");
} ctc_params;
Sequences sequences_of(const Call& call, size_t first) {
  const Shape& logits = call.in[0].shape();
  if (logits.rank() != 3) fail(ErrorKind::invalid_argument, "nn.ctc_loss: logits must have rank 3; got ", logits);
  Sequences s{
      logits[0], logits[1], logits[2], call.params[ctc_params.blank_index], call.params[ctc_params.merge_repeated],
      {},        {}};
  const Shape &labels = call.in[first].shape(), &label_length = call.in[first + 1].shape(),
              &length = call.in[first + 2].shape();
  Shape batch{s.batch};
  if (labels.rank() != 2 || labels[0] != s.batch || !(label_length == batch) || !(length == batch))
    fail(ErrorKind::invalid_argument,
         "nn.ctc_loss: labels must be [batch, length] and both lengths [batch] for a batch of ", s.batch,
         "; got labels ", labels, ", label_length ", label_length, " and logit_length ", length);
  if (s.blank < 0 || s.blank >= s.classes)
    fail(ErrorKind::invalid_argument, "nn.ctc_loss: blank_index must be in [0, ", s.classes, "); got ", s.blank);
  Ints values = read_ints(call.in[first]), label_lengths = read_ints(call.in[first + 1]);
  s.lengths = read_ints(call.in[first + 2]);
  for (int64_t b = 0; b < s.batch; ++b) {
    s.lengths[size_t(b)] = std::clamp<int64_t>(s.lengths[size_t(b)], 0, s.times);
    int64_t count = std::clamp<int64_t>(label_lengths[size_t(b)], 0, labels[1]);
    BlockVector<int64_t> row;
    for (int64_t i = 0; i < count; ++i) {
      int64_t label = values[size_t(b * labels[1] + i)];
      if (label < 0 || label >= s.classes)
        fail(ErrorKind::invalid_argument, "nn.ctc_loss: labels must be in [0, ", s.classes, "); got ", label,
             " in sequence ", b);
      row.push_back(label);
    }
    s.labels.push_back(std::move(row));
  }
  return s;
}

template <class Number, class Read> BlockVector<Number> read_sequence(const Sequences& s, int64_t b, Read read) {
  int64_t times = s.lengths[size_t(b)];
  BlockVector<Number> y(size_t(times * s.classes));
  for (int64_t t = 0; t < times; ++t)
    for (int64_t c = 0; c < s.classes; ++c) y[size_t(t * s.classes + c)] = read((t * s.batch + b) * s.classes + c);
  return y;
}

std::vector<Argument> ctc_arguments(std::vector<Argument> first) {
  for (Argument a : {index_tensor("labels"), index_tensor("label_length"), index_tensor("logit_length"),
                     integer(ctc_params.blank_index), flag(ctc_params.merge_repeated, true)})
    first.push_back(a);
  return first;
}

Tensor ctc_curvature(const RuleContext& c, const Tensor& direction);
Tensor per_sequence(const Tensor& dy) { return reshape(dy, {1, dy.dim(0), 1}); }

// The loss of each sequence, and its derivative by the logits, which the rule multiplies by dy.
const Op& ctc_loss_op = define(Op{
    .name = "CTCLossDense",
    .arguments = ctc_arguments({tensor("logits", floating)}),
    .infer =
        [](Call& call) {
          const Shape& logits = call.in[0].shape();
          if (logits.rank() != 3)
            fail(ErrorKind::invalid_argument, "nn.ctc_loss: logits must have rank 3; got ", logits);
          call.returns(call.in[0].dtype(), {logits[1]});
          call.returns(call.in[0].dtype(), logits);
        },
    .kernel =
        [](Call& call) {
          Sequences s = sequences_of(call, 1);
          visit<floating.bits>(call.in[0].dtype(), [&](auto* p) {
            using T = Pointee<decltype(p)>;
            const T* logits = call.in[0].data<T>();
            T *losses = call.out[0].mutable_data<T>(), *derivatives = call.out[1].mutable_data<T>();
            parallel_for(s.batch, 1, [&](int64_t begin, int64_t end) {
              BlockVector<double> derivative;
              for (int64_t b = begin; b < end; ++b) {
                auto y = read_sequence<double>(s, b, [&](int64_t i) { return double(load(logits + i)); });
                double loss;
                if (!ctc::scaled_loss(y, s.lengths[size_t(b)], s.classes, s.labels[size_t(b)], s.blank,
                                      s.merge_repeated, derivative, loss))
                  loss = ctc::loss(std::move(y), s.lengths[size_t(b)], s.classes, s.labels[size_t(b)], s.blank,
                                   s.merge_repeated, derivative);
                store(losses + b, Compute<T>(loss));
                for (int64_t t = 0; t < s.times; ++t)
                  for (int64_t c = 0; c < s.classes; ++c)
                    store(derivatives + (t * s.batch + b) * s.classes + c,
                          Compute<T>(t < s.lengths[size_t(b)] ? derivative[size_t(t * s.classes + c)] : 0));
              }
            });
          });
        },
    .vjp =
        [](RuleContext& c) {
          if (!c.wants(0)) return;
          Tensor d;
          if (c.has_dy(0)) d = multiply(per_sequence(c.dy(0)), c.y(1));
          if (c.has_dy(1)) d = d ? add(d, ctc_curvature(c, c.dy(1))) : ctc_curvature(c, c.dy(1));
          c.set(0, d);
        },
    .keep = keep_all_inputs | keep_output(1),
});

// The second derivative of the loss, which is symmetric, times a direction.
const Op& ctc_curvature_op = define(Op{
    .name = "CTCLossCurvature",
    .arguments = ctc_arguments({tensor("logits", floating), tensor("direction", floating)}),
    .infer =
        [](Call& call) {
          family::check_dtype(call, 1);
          call.returns(call.in[0].dtype(), call.in[0].shape());
        },
    .kernel =
        [](Call& call) {
          Sequences s = sequences_of(call, 2);
          visit<floating.bits>(call.in[0].dtype(), [&](auto* p) {
            using T = Pointee<decltype(p)>;
            const T *logits = call.in[0].data<T>(), *direction = call.in[1].data<T>();
            T* y_dot = call.out[0].mutable_data<T>();
            parallel_for(s.batch, 1, [&](int64_t begin, int64_t end) {
              BlockVector<Dual> derivative;
              for (int64_t b = begin; b < end; ++b) {
                auto y = read_sequence<Dual>(
                    s, b, [&](int64_t i) { return Dual(double(load(logits + i)), double(load(direction + i))); });
                ctc::loss(std::move(y), s.lengths[size_t(b)], s.classes, s.labels[size_t(b)], s.blank, s.merge_repeated,
                          derivative);
                for (int64_t t = 0; t < s.times; ++t)
                  for (int64_t c = 0; c < s.classes; ++c)
                    store(y_dot + (t * s.batch + b) * s.classes + c,
                          Compute<T>(t < s.lengths[size_t(b)] ? derivative[size_t(t * s.classes + c)].derivative : 0));
              }
            });
          });
        },
    .vjp =
        [](RuleContext& c) {
          if (c.wants(0)) fail(ErrorKind::lookup, "nn.ctc_loss: the third derivative does not exist; the first two do");
          if (c.wants(1)) c.set(1, run(c.op, {c.x(0), c.dy(), c.x(2), c.x(3), c.x(4)}, c.params));
        },
    .keep = keep_all_inputs,
});
Tensor ctc_curvature(const RuleContext& c, const Tensor& direction) {
  return run(ctc_curvature_op, {c.x(0), direction, c.x(1), c.x(2), c.x(3)}, c.params);
}

constexpr struct : Keys {
  Key<int64_t> beam_width = next("beam_width"), top_paths = next("top_paths");
  Key<bool> merge_repeated = next("merge_repeated");
} ctc_beam_search_params;
// Outputs: indices, values and shape of each path as a sparse matrix, then the log probabilities [batch, top_paths].
const Op& ctc_beam_search_op = define(Op{
    .name = "CTCBeamSearchDecoder",
    .arguments = {tensor("inputs", DTypes(DType::float32) | DType::float64), index_tensor("sequence_length"),
                  integer(ctc_beam_search_params.beam_width), integer(ctc_beam_search_params.top_paths),
                  flag(ctc_beam_search_params.merge_repeated, true)},
    .infer_staged =
        [](Call& call) {
          int64_t top = known_integer(call.params.value(ctc_beam_search_params.top_paths)),
                  batch = call.in[0].rank() == 3 ? call.in[0].dim(1) : -1;
          if (top < 1)
            fail(ErrorKind::invalid_argument,
                 "nn.ctc_beam_search_decoder: top_paths must be positive, and known while tracing");
          for (int64_t k = 0; k < top; ++k) call.returns(DType::int64, {-1, 2});
          for (int64_t k = 0; k < top; ++k) call.returns(DType::int64, {-1});
          for (int64_t k = 0; k < top; ++k) call.returns(DType::int64, {2});
          call.returns(call.in[0].dtype(), {batch, top});
        },
    .kernel =
        [](Call& call) {
          constexpr const char* who = "nn.ctc_beam_search_decoder";
          const Tensor& inputs = call.in[0];
          int64_t width = call.params[ctc_beam_search_params.beam_width],
                  top = call.params[ctc_beam_search_params.top_paths];
          bool merge = call.params[ctc_beam_search_params.merge_repeated];
          if (inputs.rank() != 3)
            fail(ErrorKind::invalid_argument, who, ": inputs is not a 3-Tensor; got ", inputs.shape());
          int64_t times = inputs.dim(0), batch = inputs.dim(1), classes = inputs.dim(2);
          if (!(call.in[1].shape() == Shape{batch}))
            fail(ErrorKind::failed_precondition, who,
                 ": len(sequence_length) != batch_size. len(sequence_length): ", call.in[1].size(),
                 " batch_size: ", batch);
          if (width < 1 || top < 1)
            fail(ErrorKind::invalid_argument, who, ": beam_width and top_paths must be positive; got ", width, " and ",
                 top);
          if (top > width) fail(ErrorKind::invalid_argument, who, ": requested more paths than the beam width.");
          if (batch < 1 || classes < 1)
            fail(ErrorKind::invalid_argument, who, ": batch_size must not be 0; got inputs ", inputs.shape());
          Ints lengths = read_ints(call.in[1]);
          for (size_t b = 0; b < lengths.size(); ++b)
            if (lengths[b] < 0 || lengths[b] > times)
              fail(ErrorKind::failed_precondition, who, ": sequence_length(", b, ") <= ", times);
          BlockVector<BlockVector<ctc::Path>> found(static_cast<size_t>(batch));
          visit<(DTypes(DType::float32) | DType::float64).bits>(inputs.dtype(), [&](auto* p) {
            using T = Pointee<decltype(p)>;
            parallel_for(batch, 1, [&](int64_t begin, int64_t end) {
              for (int64_t b = begin; b < end; ++b) {
                int64_t length = lengths[size_t(b)];
                BlockVector<double> y(size_t(length * classes));
                for (int64_t t = 0; t < length; ++t)
                  for (int64_t c = 0; c < classes; ++c)
                    y[size_t(t * classes + c)] = double(inputs.data<T>()[(t * batch + b) * classes + c]);
                found[size_t(b)] = ctc::beam_search(std::move(y), length, classes, width, top);
              }
            });
          });
          for (BlockVector<ctc::Path>& paths : found)
            for (ctc::Path& path : paths)
              if (merge) path.labels.erase(std::unique(path.labels.begin(), path.labels.end()), path.labels.end());
          Tensors indices, values, shapes;
          Tensor probabilities = Tensor::allocate(inputs.dtype(), {batch, top});
          for (int64_t k = 0; k < top; ++k) {
            int64_t count = 0, longest = 0;
            for (auto& paths : found) {
              if (size_t(k) >= paths.size())
                fail(ErrorKind::invalid_argument, who, ": fewer than top_paths = ", top, " paths exist");
              count += int64_t(paths[size_t(k)].labels.size());
              longest = std::max(longest, int64_t(paths[size_t(k)].labels.size()));
            }
            indices.push_back(Tensor::allocate(DType::int64, {count, 2}));
            values.push_back(Tensor::allocate(DType::int64, {count}));
            int64_t shape[] = {batch, longest};
            shapes.push_back(int_tensor(shape, DType::int64));
            int64_t *place = indices.back().mutable_data<int64_t>(), *value = values.back().mutable_data<int64_t>();
            for (int64_t b = 0; b < batch; ++b) {
              const ctc::Path& path = found[size_t(b)][size_t(k)];
              for (size_t i = 0; i < path.labels.size(); ++i) {
                *place++ = b;
                *place++ = int64_t(i);
                *value++ = path.labels[i];
              }
              if (inputs.dtype() == DType::float32)
                probabilities.mutable_data<float>()[b * top + k] = float(path.log_probability);
              else
                probabilities.mutable_data<double>()[b * top + k] = path.log_probability;
            }
          }
          for (auto* group : {&indices, &values, &shapes})
            for (Tensor& t : *group) call.out.push_back(t);
          call.out.push_back(probabilities);
        },
    .makes_outputs = true,
    .gradient = Gradient::none,
    .returns_list = true,
});

}  // namespace
}  // namespace tapeflow
