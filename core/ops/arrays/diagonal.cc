// Diagonals and bands of matrices: taking, making and replacing them.
#include <algorithm>

#include "base/parallel.h"
#include "ops/arrays/elements.h"
#include "ops/arrays/strided_copy.h"
#include "ops/family.h"
#include "ops/one_dtype.h"

namespace tapeflow {
namespace {

// Diagonals `lowest`..`highest` of a rows x columns matrix, and how they lie in rows of `length` elements.
struct Band {
  int64_t rows, columns, lowest, highest, length;
  bool left_above, left_below;  // short diagonals above and below the main one start at the left

  int64_t count() const { return highest - lowest + 1; }

  // Calls body(at in the matrix, at in the diagonals, elements, which diagonal) for each diagonal.
  template <class Body> void each(Body body) const {
    for (int64_t d = highest; d >= lowest; --d) {
      int64_t size = std::min(rows + std::min<int64_t>(d, 0), columns - std::max<int64_t>(d, 0));
      bool left = (d >= 0 && left_above) || (d <= 0 && left_below);
      int64_t start = left ? 0 : length - size, row = (highest - d) * length;
      body(std::max<int64_t>(-d, 0) * columns + std::max<int64_t>(d, 0), row + start, size, row);
    }
  }
};

void set_diagonals(const char* who, const Ints& k, Band* band) {
  if (k.size() != 1 && k.size() != 2)
    fail(ErrorKind::invalid_argument, who, ": diag_index must have only one or two elements, received ", k.size(),
         " elements.");
  band->lowest = k[0], band->highest = k[k.size() - 1];
  if (band->lowest > band->highest)
    fail(ErrorKind::invalid_argument, who,
         ": lower_diag_index must not be larger than upper_diag_index: ", band->lowest, " > ", band->highest);
}
void set_alignment(const char* who, const std::string& align, Band* band) {
  if (align != "LEFT_RIGHT" && align != "RIGHT_LEFT" && align != "LEFT_LEFT" && align != "RIGHT_RIGHT")
    fail(ErrorKind::invalid_argument, who,
         ": align must be 'LEFT_RIGHT', 'RIGHT_LEFT', 'LEFT_LEFT' or 'RIGHT_RIGHT'; got '", align, "'");
  band->left_above = align.starts_with("LEFT"), band->left_below = align.ends_with("LEFT");
}
void check_inside(const char* who, const Band& band) {
  auto inside = [&](int64_t d) { return d == 0 || (-band.rows < d && d < band.columns); };
  if (!inside(band.lowest) || !inside(band.highest))
    fail(ErrorKind::invalid_argument, who, ": ", inside(band.lowest) ? "upper" : "lower",
         "_diag_index is out of bound: ", inside(band.lowest) ? band.highest : band.lowest, ". It must be between ",
         -band.rows, " and ", band.columns);
}

// The band of a matrix that is there.
Band band_of(const char* who, const Shape& matrix, const Ints& k, const std::string& align) {
  if (matrix.rank() < 2)
    fail(ErrorKind::invalid_argument, who, ": input must be at least 2-dim, received shape: ", matrix,
         "; it must be at least rank 2");
  Band band{};
  set_diagonals(who, k, &band);
  set_alignment(who, align, &band);
  band.rows = matrix.back(2), band.columns = matrix.back(1);
  check_inside(who, band);
  band.length =
      std::min(band.rows + std::min<int64_t>(band.highest, 0), band.columns - std::max<int64_t>(band.lowest, 0));
  return band;
}

// The band of a matrix to be made from diagonals; sizes of -1 are the least that fit.
Band band_from(const char* who, const Shape& diagonals, const Ints& k, int64_t rows, int64_t columns,
               const std::string& align) {
  if (diagonals.rank() < 1)
    fail(ErrorKind::invalid_argument, who,
         ": diagonal must be at least rank 1: diagonal must be at least 1-dim, received shape: ", diagonals);
  Band band{};
  set_diagonals(who, k, &band);
  set_alignment(who, align, &band);
  if (band.count() > 1 && (diagonals.rank() < 2 || diagonals.back(2) != band.count()))
    fail(ErrorKind::invalid_argument, who,
         ": The number of diagonals provided in the input does not match the lower_diag_index and upper_diag_index "
         "range; got shape ",
         diagonals, " for ", band.count(), " diagonals");
  band.length = diagonals.back();
  int64_t least_rows = band.length - std::min<int64_t>(band.highest, 0),
          least_columns = band.length + std::max<int64_t>(band.lowest, 0);
  if (rows == -1 && columns == -1) rows = columns = std::max(least_rows, least_columns);
  if (rows == -1) rows = least_rows;
  if (columns == -1) columns = least_columns;
  if (rows < least_rows)
    fail(ErrorKind::invalid_argument, who, ": The number of rows is too small; at least ", least_rows, ", got ", rows);
  if (columns < least_columns)
    fail(ErrorKind::invalid_argument, who, ": The number of columns is too small; at least ", least_columns, ", got ",
         columns);
  if (rows != least_rows && columns != least_columns)
    fail(ErrorKind::invalid_argument, who,
         ": The number of rows or columns is not consistent with the specified d_lower, d_upper, and diagonal; got ",
         rows, " and ", columns);
  band.rows = rows, band.columns = columns;
  check_inside(who, band);
  return band;
}

Shape diagonals_shape(const Shape& matrix, const Band& band) {
  Shape shape = matrix.slice(0, matrix.rank() - 2);
  if (band.count() > 1) shape.append(band.count());
  shape.append(band.length);
  return shape;
}

constexpr struct : Keys {
  Key<Ints> k = next("k");
  Key<std::string> align = next("align");
} diag_part_params;
Tensor diagonal_matrix(const Tensor& diagonal, const Ints& k, int64_t rows, int64_t columns, const char* align);
const Op& diag_part_op = define(Op{
    .name = "MatrixDiagPartV3",
    .planning = {.cannot_fail = true},
    .arguments = {tensor("input", fixed_size), ints(diag_part_params.k), tensor("padding_value", fixed_size),
                  text(diag_part_params.align, "RIGHT_LEFT")},
    .infer =
        [](Call& call) {
          const Shape& x = call.in[0].shape();
          family::check_dtype(call, 1);
          call.returns(call.in[0].dtype(), diagonals_shape(x, band_of("diag_part", x, call.params[diag_part_params.k],
                                                                      call.params[diag_part_params.align])));
        },
    .kernel =
        [](Call& call) {
          const Tensor &x = call.in[0], &y = call.out[0];
          const Band band =
              band_of("diag_part", x.shape(), call.params[diag_part_params.k], call.params[diag_part_params.align]);
          by_size(x.dtype(), [&]<class T>(T*) {
            const T *from = static_cast<const T*>(x.raw()), pad = *static_cast<const T*>(call.in[1].raw());
            T* to = static_cast<T*>(y.mutable_raw());
            int64_t size = band.rows * band.columns, taken = band.count() * band.length;
            for (int64_t i = 0; taken && i < y.size() / taken; ++i, from += size, to += taken)
              band.each([&](int64_t at, int64_t out, int64_t n, int64_t row) {
                std::fill(to + row, to + row + band.length, pad);
                for (int64_t j = 0; j < n; ++j) to[out + j] = from[at + j * (band.columns + 1)];
              });
          });
        },
    .vjp =
        [](RuleContext& c) {
          const Shape& x = c.shape(0);
          if (c.wants(0))
            c.set(0, diagonal_matrix(c.dy(), c.params[diag_part_params.k], x[x.rank() - 2], x[x.rank() - 1],
                                     c.params[diag_part_params.align].c_str()));
        },
    .batch = batch_leading_but_last,
    .called = "linalg.diag_part",
});

// Writes the diagonals of all matrices, which have `size` elements together.
template <class T> void write_diagonals(const Band& band, const T* from, T* to, int64_t size) {
  const int64_t matrix = band.rows * band.columns, taken = band.count() * band.length;
  for (int64_t i = 0; matrix && i < size / matrix; ++i, from += taken, to += matrix)
    band.each([&](int64_t at, int64_t in, int64_t n, int64_t) {
      for (int64_t j = 0; j < n; ++j) to[at + j * (band.columns + 1)] = from[in + j];
    });
}

constexpr struct : Keys {
  Key<Ints> k = next("k");
  Key<int64_t> num_rows = next("num_rows"), num_cols = next("num_cols");
  Key<std::string> align = next("align");
} diag_params;
const Op& diag_op = define(Op{
    .name = "MatrixDiagV3",
    .planning = {.cannot_fail = true},
    .arguments = {tensor("diagonal", fixed_size), ints(diag_params.k), integer(diag_params.num_rows, -1),
                  integer(diag_params.num_cols, -1), tensor("padding_value", fixed_size),
                  text(diag_params.align, "RIGHT_LEFT")},
    .infer =
        [](Call& call) {
          const Shape& d = call.in[0].shape();
          const Params& p = call.params;
          family::check_dtype(call, 1);
          Band band = band_from("diag", d, p[diag_params.k], p[diag_params.num_rows], p[diag_params.num_cols],
                                p[diag_params.align]);
          Shape shape = d.slice(0, d.rank() - (band.count() > 1 ? 2 : 1));
          shape.append(band.rows), shape.append(band.columns);
          call.returns(call.in[0].dtype(), shape);
        },
    .kernel =
        [](Call& call) {
          const Tensor &x = call.in[0], &y = call.out[0];
          const Params& p = call.params;
          const Band band = band_from("diag", x.shape(), p[diag_params.k], p[diag_params.num_rows],
                                      p[diag_params.num_cols], p[diag_params.align]);
          by_size(x.dtype(), [&]<class T>(T*) {
            const T* from = static_cast<const T*>(x.raw());
            T* to = static_cast<T*>(y.mutable_raw());
            fill_elements(to, y.size(), *static_cast<const T*>(call.in[1].raw()));
            write_diagonals(band, from, to, y.size());
          });
        },
    .vjp =
        [](RuleContext& c) {
          if (c.wants(0))
            c.set(0, matrix_diag_part(c.dy(), c.params[diag_params.k], c.params[diag_params.align].c_str()));
        },
    .batch = batch_leading_but_last,
    .called = "linalg.diag",
});

constexpr struct : Keys {
  Key<Ints> k = next("k");
  Key<std::string> align = next("align");
} set_diag_params;
const Op& set_diag_op = define(Op{
    .name = "MatrixSetDiagV3",
    .planning = {.cannot_fail = true},
    .arguments = {tensor("input", fixed_size), tensor("diagonal", fixed_size), ints(set_diag_params.k),
                  text(set_diag_params.align, "RIGHT_LEFT")},
    .infer =
        [](Call& call) {
          const Tensor &x = call.in[0], &d = call.in[1];
          if (x.dtype() != d.dtype()) family::fail_dtypes(call);
          if (d.rank() < 1)
            fail(ErrorKind::invalid_argument, "set_diag: diagonal must be at least 1-dim, received shape: ", d.shape(),
                 "; it must be at least rank 1");
          Band band =
              band_of("set_diag", x.shape(), call.params[set_diag_params.k], call.params[set_diag_params.align]);
          Shape wanted = diagonals_shape(x.shape(), band);
          if (!(d.shape() == wanted))
            fail(ErrorKind::invalid_argument,
                 "set_diag: Either first dimensions of diagonal don't match input.shape[:-2], or diagonal.shape[:-1] "
                 "is not equal to the longests diagonal in range [lower_diag_index:upper_diag_index]. Input shape: ",
                 x.shape(), ", diagonal shape: ", d.shape(), ", Expected diagonal shape: ", wanted);
          call.returns(x.dtype(), x.shape());
        },
    .kernel =
        [](Call& call) {
          const Tensor &x = call.in[0], &d = call.in[1], &y = call.out[0];
          const Band band =
              band_of("set_diag", x.shape(), call.params[set_diag_params.k], call.params[set_diag_params.align]);
          by_size(x.dtype(), [&]<class T>(T*) {
            const T* from = static_cast<const T*>(d.raw());
            T* to = static_cast<T*>(y.mutable_raw());
            std::copy_n(static_cast<const T*>(x.raw()), x.size(), to);
            write_diagonals(band, from, to, y.size());
          });
        },
    .vjp =
        [](RuleContext& c) {
          const Ints& k = c.params[set_diag_params.k];
          const char* align = c.params[set_diag_params.align].c_str();
          if (c.wants(0)) c.set(0, matrix_set_diag(c.dy(), zeros(c.dtype(1), c.shape(1)), k, align));
          if (c.wants(1)) c.set(1, matrix_diag_part(c.dy(), k, align));
        },
    .jvp =
        [](RuleContext& c) {
          Tensor x_dot = c.x_dot(0) ? c.x_dot(0) : zeros(c.dtype(0), c.shape(0));
          Tensor d_dot = c.x_dot(1) ? c.x_dot(1) : zeros(c.dtype(1), c.shape(1));
          c.set(0, run(c.op, {x_dot, d_dot}, c.params));
        },
    .batch = batch_leading,
});

constexpr struct : Keys {
  Key<int64_t> num_lower = next("num_lower"), num_upper = next("num_upper");
} band_part_params;
const Op& band_part_op = define(Op{
    .name = "MatrixBandPart",
    .planning = {.cannot_fail = true},
    .arguments = {tensor("input", fixed_size), integer(band_part_params.num_lower),
                  integer(band_part_params.num_upper)},
    .infer =
        [](Call& call) {
          const Shape& x = call.in[0].shape();
          if (x.rank() < 2)
            fail(ErrorKind::invalid_argument, call.name(), ": input must be at least 2-dim, received shape: ", x,
                 "; it must be at least rank 2");
          if (call.params[band_part_params.num_lower] > x.back(2))
            fail(ErrorKind::invalid_argument, call.name(),
                 ": num_lower must be negative or less or equal to number of rows (", x.back(2),
                 ") got: ", call.params[band_part_params.num_lower]);
          if (call.params[band_part_params.num_upper] > x.back(1))
            fail(ErrorKind::invalid_argument, call.name(),
                 ": num_upper must be negative or less or equal to number of columns (", x.back(1),
                 ") got: ", call.params[band_part_params.num_upper]);
          call.returns(call.in[0].dtype(), x);
        },
    .kernel =
        [](Call& call) {
          const Tensor &x = call.in[0], &y = call.out[0];
          if (x.size() == 0) return;
          int64_t lower = call.params[band_part_params.num_lower], upper = call.params[band_part_params.num_upper],
                  rows = x.shape().back(2), columns = x.shape().back(1);
          by_size(x.dtype(), [&]<class T>(T*) {
            const T* from = static_cast<const T*>(x.raw());
            T* to = static_cast<T*>(y.mutable_raw());
            parallel_for(x.size() / columns, std::max<int64_t>(1, kCopyGrain / columns),
                         [&](int64_t begin, int64_t end) {
                           for (int64_t r = begin; r < end; ++r) {
                             int64_t i = r % rows, first = lower < 0 ? 0 : std::clamp<int64_t>(i - lower, 0, columns);
                             int64_t last = upper < 0 ? columns : std::clamp<int64_t>(i + upper + 1, first, columns);
                             const T* row = from + r * columns;
                             T* out = to + r * columns;
                             std::fill(out, out + first, T());
                             std::copy(row + first, row + last, out + first);
                             std::fill(out + last, out + columns, T());
                           }
                         });
          });
        },
    .vjp =
        [](RuleContext& c) {
          c.set(0, band_part(c.dy(), c.params[band_part_params.num_lower], c.params[band_part_params.num_upper]));
        },
    .jvp = [](RuleContext& c) { c.set(0, run(c.op, {c.x_dot(0)}, c.params)); },
    .batch = batch_leading,
    .names = {"linalg.band_part", "compat.v1.matrix_band_part"},
    .doc = R"(The elements within a band around the main diagonal; all others are 0.

Args:
  input: A batch of matrices, `[..., m, n]`.
  num_lower: How many diagonals to keep below the main one; -1 keeps all.
  num_upper: How many diagonals to keep above the main one; -1 keeps all.

Returns: A tensor of the shape and dtype of `input`.

Gradient: `dy` within the band, 0 elsewhere.

>>> tf.linalg.band_part([[1, 2], [3, 4]], -1, 0)
<tf.Tensor: shape=(2, 2), dtype=int32, numpy=
array([[1, 0],
       [3, 4]], dtype=int32)>)",
});

Tensor diagonal_matrix(const Tensor& diagonal, const Ints& k, int64_t rows, int64_t columns, const char* align) {
  return run(diag_op, {diagonal, Tensor::number(diagonal.dtype(), 0)},
             {Param(k), Param(rows), Param(columns), Param(align)});
}

}  // namespace

Tensor band_part(const Tensor& x, int64_t lower, int64_t upper) {
  return run(band_part_op, {x}, {Param(lower), Param(upper)});
}
Tensor matrix_diag_part(const Tensor& x, const Ints& k, const char* align) {
  return run(diag_part_op, {x, Tensor::number(x.dtype(), 0)}, {Param(k), Param(align)});
}
Tensor matrix_set_diag(const Tensor& x, const Tensor& diagonal, const Ints& k, const char* align) {
  return run(set_diag_op, {x, diagonal}, {Param(k), Param(align)});
}
Tensor matrix_diag(const Tensor& diagonal) { return diagonal_matrix(diagonal, {0}, -1, -1, "RIGHT_LEFT"); }

}  // namespace tapeflow
