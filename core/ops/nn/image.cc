// Images: resampling along an axis, which all resizing methods are made of, and non-maximum suppression of boxes.
#include <cmath>
#include <functional>
#include <queue>

#include "base/blocks.h"
#include "kernels/nn/resize.h"
#include "ops/family.h"
#include "ops/one_dtype.h"
#include "ops/partial_shape.h"

namespace tapeflow {
namespace {

// ---- resampling

struct Resampling {
  ResampleGeometry geometry;
  Scratch<int64_t> starts;
};
// Checks that weights [out, span] and starts [out] fit an axis of length `in`.
Resampling resampling_of(const Shape& x, int axis, int64_t in, const Tensor& weights, const Tensor& starts) {
  constexpr const char* who = "image.resize";
  if (weights.rank() != 2 || weights.dim(1) < 1 || !(starts.shape() == Shape{weights.dim(0)}))
    fail(ErrorKind::invalid_argument, who, ": weights must be [out, span] and starts [out]; got ", weights.shape(),
         " and ", starts.shape());
  Resampling r{{x.elements(0, axis), in, weights.dim(0), x.elements(axis + 1, x.rank()), weights.dim(1)},
               integers_in(starts)};
  for (int64_t start : r.starts)
    if (start < 0 || start + r.geometry.span > in)
      fail(ErrorKind::invalid_argument, who, ": a window of ", r.geometry.span, " from ", start,
           " leaves the axis of length ", in);
  return r;
}
template <class Kernel> void in_floats(const Call& call, Kernel kernel) {
  const Tensor &x = call.in[0], &weights = call.in[1], &y = call.out[0];
  if (x.dtype() == DType::float32)
    kernel(x.data<float>(), weights.data<float>(), y.mutable_data<float>());
  else
    kernel(x.data<double>(), weights.data<double>(), y.mutable_data<double>());
}

Tensor resample_transposed(const Tensor& dy, const Tensor& weights, const Tensor& starts, int64_t axis, int64_t size);

constexpr struct : Keys {
  Key<int64_t> axis = next("axis");
} resample_params;
const Op& resample_op = define(Op{
    .name = "Resample",
    .arguments = {tensor("input", wide_floating), tensor("weights", wide_floating), index_tensor("starts"),
                  integer(resample_params.axis)},
    .infer =
        [](Call& call) {
          Shape shape = call.in[0].shape();
          family::check_dtype(call, 1);
          shape[normalize_axis("image.resize", call.params[resample_params.axis], shape.rank())] = call.in[2].size();
          call.returns(call.in[0].dtype(), shape);
        },
    .kernel =
        [](Call& call) {
          const Shape& x = call.in[0].shape();
          int axis = normalize_axis("image.resize", call.params[resample_params.axis], x.rank());
          Resampling r = resampling_of(x, axis, x[axis], call.in[1], call.in[2]);
          in_floats(call, [&]<class T>(const T* from, const T* weights, T* to) {
            resample(r.geometry, from, weights, r.starts.data(), to);
          });
        },
    .vjp =
        [](RuleContext& c) {
          int axis = normalize_axis("image.resize", c.params[resample_params.axis], c.shape(0).rank());
          if (c.wants(0)) c.set(0, resample_transposed(c.dy(), c.x(1), c.x(2), axis, c.shape(0)[axis]));
        },
    .keep = keep_input(1) | keep_input(2),
    .batch = batch_along_of_first<resample_params.axis.index>,
});

constexpr struct : Keys {
  Key<int64_t> axis = next("axis"), size = next("size");
} resample_transposed_params;
const Op& resample_transposed_op = define(Op{
    .name = "ResampleTransposed",
    .arguments = {tensor("dy", wide_floating), tensor("weights", wide_floating), index_tensor("starts"),
                  integer(resample_transposed_params.axis), integer(resample_transposed_params.size)},
    .infer =
        [](Call& call) {
          Shape shape = call.in[0].shape();
          family::check_dtype(call, 1);
          shape[normalize_axis("image.resize", call.params[resample_transposed_params.axis], shape.rank())] =
              call.params[resample_transposed_params.size];
          call.returns(call.in[0].dtype(), shape);
        },
    .kernel =
        [](Call& call) {
          const Shape& dy = call.in[0].shape();
          int axis = normalize_axis("image.resize", call.params[resample_transposed_params.axis], dy.rank());
          Resampling r = resampling_of(dy, axis, call.params[resample_transposed_params.size], call.in[1], call.in[2]);
          in_floats(call, [&]<class T>(const T* from, const T* weights, T* to) {
            resample_transposed(r.geometry, from, weights, r.starts.data(), to);
          });
        },
    .vjp =
        [](RuleContext& c) {
          if (c.wants(0))
            c.set(0, run(resample_op, {c.dy(), c.x(1), c.x(2)}, {c.params.value(resample_transposed_params.axis)}));
        },
    .keep = keep_input(1) | keep_input(2),
    .batch = batch_along_of_first<resample_transposed_params.axis.index>,
});
Tensor resample_transposed(const Tensor& dy, const Tensor& weights, const Tensor& starts, int64_t axis, int64_t size) {
  return run(resample_transposed_op, {dy, weights, starts}, {Param(axis), Param(size)});
}

// ---- non-maximum suppression

// Intersection over union of two boxes (y1, x1, y2, x2), whose corners may stand in either order.
float overlap_of(const float* a, const float* b) {
  auto low = [](const float* box, int i) { return std::min(box[i], box[i + 2]); };
  auto high = [](const float* box, int i) { return std::max(box[i], box[i + 2]); };
  auto area = [&](const float* box) { return (high(box, 0) - low(box, 0)) * (high(box, 1) - low(box, 1)); };
  float area_a = area(a), area_b = area(b);
  if (!(area_a > 0) || !(area_b > 0)) return 0;
  float height = std::max(0.0f, std::min(high(a, 0), high(b, 0)) - std::max(low(a, 0), low(b, 0)));
  float width = std::max(0.0f, std::min(high(a, 1), high(b, 1)) - std::max(low(a, 1), low(b, 1)));
  float common = height * width;
  return common / (area_a + area_b - common);
}

struct Selection {
  BlockVector<int32_t> indices;
  BlockVector<float> scores;
};
struct SuppressionLimits {
  int64_t most;
  float overlap, score, sigma;  // sigma > 0: scores fade by exp(-overlap² / (2 sigma)) instead of falling out
};
// Takes the boxes from the best score down; a box falls out, or fades, by its overlap with those taken before.
// A candidate counts the selected boxes it has been compared with.
Selection suppress(int64_t count, FunctionRef<float(int64_t)> score, FunctionRef<float(int64_t, int64_t)> overlap,
                   SuppressionLimits limits) {
  struct Candidate {
    int64_t index;
    float score;
    size_t compared;
  };
  auto worse = [](const Candidate& a, const Candidate& b) {
    return a.score < b.score || (a.score == b.score && a.index > b.index);
  };
  std::priority_queue<Candidate, BlockVector<Candidate>, decltype(worse)> queue(worse);
  for (int64_t i = 0; i < count; ++i)
    if (score(i) > limits.score) queue.push({i, score(i), 0});
  Selection taken;
  bool soft = limits.sigma > 0;
  while (int64_t(taken.indices.size()) < limits.most && !queue.empty()) {
    Candidate next = queue.top();
    queue.pop();
    float before = next.score;
    bool out = false;
    for (size_t j = taken.indices.size(); j > next.compared && !out; --j) {
      float similarity = overlap(next.index, taken.indices[j - 1]);
      if (soft)
        next.score *= std::exp(-0.5f / limits.sigma * similarity * similarity);
      else if (similarity > limits.overlap)
        out = true;
      if (next.score <= limits.score) out = true;
    }
    if (out) continue;
    next.compared = taken.indices.size();
    if (next.score == before) {
      taken.indices.push_back(int32_t(next.index));
      taken.scores.push_back(next.score);
    } else {
      queue.push(next);
    }
  }
  return taken;
}

template <class T> Tensor vector_of(const BlockVector<T>& values, DType dtype, int64_t length) {
  Tensor t = Tensor::allocate(dtype, {length});
  T* to = t.mutable_data<T>();
  for (int64_t i = 0; i < length; ++i) to[i] = i < int64_t(values.size()) ? values[size_t(i)] : T(0);
  return t;
}

void check_suppression(const char* who, const Tensor& boxes, const Tensor& scores, int64_t columns, double threshold,
                       int64_t most) {
  if (boxes.rank() != 2) fail(ErrorKind::invalid_argument, who, ": boxes must be 2-D; got shape ", boxes.shape());
  if (columns >= 0 && boxes.dim(1) != columns)
    fail(ErrorKind::invalid_argument, who, ": boxes must have 4 columns; got shape ", boxes.shape());
  if (columns < 0 && boxes.dim(1) != boxes.dim(0))
    fail(ErrorKind::invalid_argument, who, ": overlaps must be square; got shape ", boxes.shape());
  if (scores.rank() != 1) fail(ErrorKind::invalid_argument, who, ": scores must be 1-D; got shape ", scores.shape());
  if (scores.dim(0) != boxes.dim(0))
    fail(ErrorKind::invalid_argument, who, ": scores has incompatible shape; got boxes ", boxes.shape(), " and scores ",
         scores.shape());
  if (!(threshold >= 0 && threshold <= 1))
    fail(ErrorKind::invalid_argument, who, ": iou_threshold must be in [0, 1]; got ", threshold);
  if (most < 0) fail(ErrorKind::invalid_argument, who, ": max_output_size must be non-negative; got ", most);
}

constexpr struct : Keys {
  Key<int64_t> max_output_size = next("max_output_size");
  Key<double> iou_threshold = next("iou_threshold"), score_threshold = next("score_threshold"),
              soft_nms_sigma = next("soft_nms_sigma");
  Key<bool> pad_to_max_output_size = next("pad_to_max_output_size");
} suppression_params;
// Indices and scores of the boxes taken, and their number; `pad` fills both up to max_output_size with zeros.
const Op& suppression_op = define(Op{
    .name = "NonMaxSuppressionV5",
    .arguments = {tensor("boxes", DType::float32), tensor("scores", DType::float32),
                  integer(suppression_params.max_output_size), real(suppression_params.iou_threshold, 0.5),
                  real(suppression_params.score_threshold, -INFINITY), real(suppression_params.soft_nms_sigma, 0),
                  flag(suppression_params.pad_to_max_output_size)},
    .infer_staged =
        [](Call& call) {
          Shape taken{known_flag(call.params.value(suppression_params.pad_to_max_output_size)) == 1
                          ? std::max<int64_t>(known_integer(call.params.value(suppression_params.max_output_size)), -1)
                          : -1};
          call.returns(DType::int32, taken);
          call.returns(DType::float32, taken);
          call.returns(DType::int32, {});
        },
    .kernel =
        [](Call& call) {
          const Tensor &boxes = call.in[0], &scores = call.in[1];
          const Params& p = call.params;
          check_suppression("image.non_max_suppression", boxes, scores, 4, p[suppression_params.iou_threshold],
                            p[suppression_params.max_output_size]);
          const float *box = boxes.data<float>(), *score = scores.data<float>();
          Selection taken = suppress(
              boxes.dim(0), [&](int64_t i) { return score[i]; },
              [&](int64_t i, int64_t j) { return overlap_of(box + 4 * i, box + 4 * j); },
              {p[suppression_params.max_output_size], float(p[suppression_params.iou_threshold]),
               float(p[suppression_params.score_threshold]), float(p[suppression_params.soft_nms_sigma])});
          int64_t found = int64_t(taken.indices.size()),
                  length = p[suppression_params.pad_to_max_output_size] ? p[suppression_params.max_output_size] : found;
          call.out.push_back(vector_of(taken.indices, DType::int32, length));
          call.out.push_back(vector_of(taken.scores, DType::float32, length));
          call.out.push_back(Tensor::scalar(int32_t(found)));
        },
    .makes_outputs = true,
    .gradient = Gradient::none,
    .returns_list = true,
});

constexpr struct : Keys {
  Key<int64_t> max_output_size = next("max_output_size");
  Key<double> overlap_threshold = next("overlap_threshold"), score_threshold = next("score_threshold");
} overlap_suppression_params;
const Op& overlap_suppression_op = define(Op{
    .name = "NonMaxSuppressionWithOverlaps",
    .arguments = {tensor("overlaps", DType::float32), tensor("scores", DType::float32),
                  integer(overlap_suppression_params.max_output_size),
                  real(overlap_suppression_params.overlap_threshold, 0.5),
                  real(overlap_suppression_params.score_threshold, -INFINITY)},
    .infer_staged = [](Call& call) { call.returns(DType::int32, {-1}); },
    .kernel =
        [](Call& call) {
          const Tensor &overlaps = call.in[0], &scores = call.in[1];
          const Params& p = call.params;
          check_suppression("image.non_max_suppression_overlaps", overlaps, scores, -1, 0,
                            p[overlap_suppression_params.max_output_size]);
          const float *table = overlaps.data<float>(), *score = scores.data<float>();
          int64_t count = overlaps.dim(0);
          Selection taken = suppress(
              count, [&](int64_t i) { return score[i]; }, [&](int64_t i, int64_t j) { return table[i * count + j]; },
              {p[overlap_suppression_params.max_output_size], float(p[overlap_suppression_params.overlap_threshold]),
               float(p[overlap_suppression_params.score_threshold]), 0});
          call.out.push_back(vector_of(taken.indices, DType::int32, int64_t(taken.indices.size())));
        },
    .makes_outputs = true,
    .gradient = Gradient::none,
});

constexpr struct : Keys {
  Key<int64_t> max_output_size_per_class = next("max_output_size_per_class"), max_total_size = next("max_total_size");
  Key<double> iou_threshold = next("iou_threshold"), score_threshold = next("score_threshold");
  Key<bool> pad_per_class = next("pad_per_class"), clip_boxes = next("clip_boxes");
} combined_suppression_params;
// Suppression within each class of each image, then the best of all classes: boxes, scores, classes, number of each
// image.
const Op& combined_suppression_op = define(Op{
    .name = "CombinedNonMaxSuppression",
    .arguments = {tensor("boxes", DType::float32), tensor("scores", DType::float32),
                  integer(combined_suppression_params.max_output_size_per_class),
                  integer(combined_suppression_params.max_total_size),
                  real(combined_suppression_params.iou_threshold, 0.5),
                  real(combined_suppression_params.score_threshold, -INFINITY),
                  flag(combined_suppression_params.pad_per_class), flag(combined_suppression_params.clip_boxes, true)},
    .infer_staged =
        [](Call& call) {
          const Tensor &boxes = call.in[0], &scores = call.in[1];
          int64_t batch = boxes.rank() == 4 ? boxes.dim(0) : -1, classes = scores.rank() == 3 ? scores.dim(2) : -1;
          int64_t most = std::max<int64_t>(
                      known_integer(call.params.value(combined_suppression_params.max_output_size_per_class)), -1),
                  total = std::max<int64_t>(
                      known_integer(call.params.value(combined_suppression_params.max_total_size)), -1);
          int64_t per_class = known_product(most, classes),
                  padded = known_flag(call.params.value(combined_suppression_params.pad_per_class));
          if (padded != 0) total = padded == 1 && total >= 0 && per_class >= 0 ? std::min(total, per_class) : -1;
          call.returns(DType::float32, {batch, total, 4});
          call.returns(DType::float32, {batch, total});
          call.returns(DType::float32, {batch, total});
          call.returns(DType::int32, {batch});
        },
    .kernel =
        [](Call& call) {
          constexpr const char* who = "image.combined_non_max_suppression";
          const Tensor &boxes = call.in[0], &scores = call.in[1];
          const Params& p = call.params;
          if (boxes.rank() != 4 || boxes.dim(3) != 4)
            fail(ErrorKind::invalid_argument, who, ": boxes must be 4-D, [batch, boxes, q, 4]; got ", boxes.shape());
          if (scores.rank() != 3 || scores.dim(0) != boxes.dim(0) || scores.dim(1) != boxes.dim(1))
            fail(ErrorKind::invalid_argument, who, ": scores must be 3-D, [batch, boxes, classes]; got ",
                 scores.shape(), " for boxes ", boxes.shape());
          int64_t batch = boxes.dim(0), count = boxes.dim(1), q = boxes.dim(2), classes = scores.dim(2),
                  most = p[combined_suppression_params.max_output_size_per_class];
          if (q != 1 && q != classes)
            fail(ErrorKind::invalid_argument, who, ": third dimension of boxes must be either 1 or num classes; got ",
                 boxes.shape());
          if (most <= 0) fail(ErrorKind::invalid_argument, who, ": max_size_per_class must be positive; got ", most);
          if (p[combined_suppression_params.max_total_size] <= 0)
            fail(ErrorKind::invalid_argument, who, ": max_total_size must be > 0; got ",
                 p[combined_suppression_params.max_total_size]);
          if (!(p[combined_suppression_params.iou_threshold] >= 0 && p[combined_suppression_params.iou_threshold] <= 1))
            fail(ErrorKind::invalid_argument, who, ": iou_threshold must be in [0, 1]; got ",
                 p[combined_suppression_params.iou_threshold]);
          int64_t total = p[combined_suppression_params.pad_per_class]
                              ? std::min(p[combined_suppression_params.max_total_size], most * classes)
                              : p[combined_suppression_params.max_total_size];
          Tensor out_boxes = zeros(DType::float32, {batch, total, 4}),
                 out_scores = zeros(DType::float32, {batch, total});
          Tensor out_classes = zeros(DType::float32, {batch, total}), valid = Tensor::allocate(DType::int32, {batch});
          struct Found {
            float score;
            int64_t category, index;
          };
          for (int64_t b = 0; b < batch; ++b) {
            BlockVector<Found> found;
            auto box = [&](int64_t i, int64_t c) {
              return boxes.data<float>() + ((b * count + i) * q + (q == 1 ? 0 : c)) * 4;
            };
            for (int64_t c = 0; c < classes; ++c) {
              Selection taken = suppress(
                  count, [&](int64_t i) { return scores.data<float>()[(b * count + i) * classes + c]; },
                  [&](int64_t i, int64_t j) { return overlap_of(box(i, c), box(j, c)); },
                  {std::min(most, count), float(p[combined_suppression_params.iou_threshold]),
                   float(p[combined_suppression_params.score_threshold]), 0});
              for (size_t i = 0; i < taken.indices.size(); ++i) found.push_back({taken.scores[i], c, taken.indices[i]});
            }
            std::stable_sort(found.begin(), found.end(),
                             [](const Found& a, const Found& other) { return a.score > other.score; });
            int64_t kept = std::min<int64_t>(total, int64_t(found.size()));
            valid.mutable_data<int32_t>()[b] = int32_t(kept);
            for (int64_t i = 0; i < kept; ++i) {
              const Found& f = found[size_t(i)];
              for (int k = 0; k < 4; ++k) {
                float edge = box(f.index, f.category)[k];
                out_boxes.mutable_data<float>()[(b * total + i) * 4 + k] =
                    p[combined_suppression_params.clip_boxes] ? std::clamp(edge, 0.0f, 1.0f) : edge;
              }
              out_scores.mutable_data<float>()[b * total + i] = f.score;
              out_classes.mutable_data<float>()[b * total + i] = float(f.category);
            }
          }
          for (Tensor t : {out_boxes, out_scores, out_classes, valid}) call.out.push_back(t);
        },
    .makes_outputs = true,
    .gradient = Gradient::none,
    .returns_list = true,
});

}  // namespace
}  // namespace tapeflow
