// The product of a sparse and a dense matrix.
#include "base/blocks.h"
#include "ops/family.h"
#include "ops/partial_shape.h"
#include "ops/wide_elements.h"

namespace tapeflow {
namespace {

Tensor sparse_matmul(const Tensor& indices, const Tensor& values, const Tensor& b, const Ints& shape, bool adjoint);

// Column `which` of the positions, as a vector.
Tensor index_column(const Tensor& indices, int64_t which) {
  return reshape(slice(indices, {0, which}, {indices.dim(0), 1}), {indices.dim(0)});
}

constexpr struct : Keys {
  Key<Ints> shape = next("shape");
  Key<bool> adjoint = next("adjoint");
} sparse_matmul_params;
// y = A b, or A^H b with `adjoint`, for the matrix A of the given shape with values[i] at indices[i].
const Op& sparse_matmul_op = define(Op{
    .name = "SparseTensorDenseMatMul",
    .arguments = {index_tensor("indices"), tensor("values", numbers), tensor("b", numbers),
                  ints(sparse_matmul_params.shape), flag(sparse_matmul_params.adjoint)},
    .infer =
        [](Call& call) {
          const Shape &indices = call.in[0].shape(), &values = call.in[1].shape(), &b = call.in[2].shape();
          const Ints& shape = call.params[sparse_matmul_params.shape];
          if (indices.rank() != 2 || indices[1] != 2 || values.rank() != 1 || values[0] != indices[0] ||
              shape.size() != 2)
            fail(ErrorKind::invalid_argument, "sparse_dense_matmul: the sparse matrix must have rank 2; got indices ",
                 indices, ", values ", values);
          if (b.rank() != 2)
            fail(ErrorKind::invalid_argument, "sparse_dense_matmul: Tensor 'b' is not a matrix; got shape ", b);
          bool adjoint = call.params[sparse_matmul_params.adjoint];
          int64_t rows = shape[adjoint ? 1 : 0], inner = shape[adjoint ? 0 : 1];
          if (b[0] != inner)
            fail(ErrorKind::invalid_argument,
                 "sparse_dense_matmul: Cannot multiply A and B because inner dimension does not match: ", inner,
                 " vs. ", b[0], ".  Did you forget a transpose?  Dimensions of A: [", shape[0], ", ", shape[1],
                 ").  Dimensions of B: ", b);
          if (call.in[1].dtype() != call.in[2].dtype())
            fail(ErrorKind::invalid_argument, "sparse_dense_matmul: both matrices must have one dtype; got ",
                 name_of(call.in[1].dtype()), " and ", name_of(call.in[2].dtype()));
          call.returns(call.in[2].dtype(), {rows, b[1]});
        },
    .infer_staged =
        [](Call& call) {
          const Tensor& b = call.in[2];
          int64_t adjoint = known_flag(call.params.value(sparse_matmul_params.adjoint));
          Shape shape = known_shape(call.params.value(sparse_matmul_params.shape));
          int64_t rows = shape.rank() == 2 && adjoint != kUnknownInt ? shape[adjoint ? 1 : 0] : -1;
          call.returns(b.dtype(), {rows, b.rank() == 2 ? b.dim(1) : -1});
        },
    .kernel =
        [](Call& call) {
          const Tensor &values = call.in[1], &b = call.in[2], &y = call.out[0];
          const Ints& shape = call.params[sparse_matmul_params.shape];
          bool adjoint = call.params[sparse_matmul_params.adjoint];
          Scratch<int64_t> at = integers_in(call.in[0]);
          for (size_t i = 0; i < at.size(); ++i)
            if (at[i] < 0 || at[i] >= shape[i % 2])
              fail(ErrorKind::invalid_argument, "sparse_dense_matmul: index ", at[i], " of element ", i / 2,
                   " is not in [0, ", shape[i % 2], ")");
          int64_t n = values.size(), columns = b.dim(1);
          visit<numbers.bits>(y.dtype(), [&](auto* p) {
            using T = Pointee<decltype(p)>;
            using C = Compute<T>;
            BlockVector<C> wide;
            C* total = wide_elements<T>(y, wide);
            std::fill(total, total + y.size(), C(0));
            for (int64_t i = 0; i < n; ++i) {
              int64_t row = at[size_t(2 * i + adjoint)], inner = at[size_t(2 * i + !adjoint)];
              C value = load(values.data<T>() + i);
              if constexpr (is_complex<T>) value = adjoint ? std::conj(value) : value;
              const T* from = b.data<T>() + inner * columns;
              C* to = total + row * columns;
              for (int64_t k = 0; k < columns; ++k) to[k] = C(to[k] + C(value * load(from + k)));
            }
            if constexpr (!std::is_same_v<T, C>)
              for (int64_t i = 0; i < y.size(); ++i) store(y.mutable_data<T>() + i, total[i]);
          });
        },
    .vjp =
        [](RuleContext& c) {
          const Tensor& indices = c.x(0);
          bool adjoint = c.params[sparse_matmul_params.adjoint];
          if (c.wants(1)) {
            Tensor of_y = gather(c.dy(), index_column(indices, adjoint), 0, 0);
            Tensor of_b = gather(c.x(2), index_column(indices, !adjoint), 0, 0);
            bool is_complex_number = complexes.has(of_y.dtype());
            Tensor product = is_complex_number ? multiply(adjoint ? conj(of_y) : of_y, adjoint ? of_b : conj(of_b))
                                               : multiply(of_y, of_b);
            c.set(1, reduce_sum(product, {1}, false));
          }
          if (c.wants(2))
            c.set(2, sparse_matmul(indices, c.x(1), c.dy(), c.params[sparse_matmul_params.shape], !adjoint));
        },
    .keep = keep_input(0) | keep_input(1) | keep_input(2),
    .batch =
        [](BatchCall& c) {  // a sparse matrix times one matrix per row, side by side
          if (c.batched[0] || c.batched[1]) return false;
          const Tensor& b = c.in[2];
          const int64_t columns = b.dim(2);
          Tensor wide = reshape(transpose(b, {1, 0, 2}), {b.dim(1), c.rows * columns});
          c.run_same({c.in[0], c.in[1], wide}, c.params);
          c.out[0] = transpose(reshape(c.out[0], {c.out[0].dim(0), c.rows, columns}), {1, 0, 2});
          return true;
        },
});
Tensor sparse_matmul(const Tensor& indices, const Tensor& values, const Tensor& b, const Ints& shape, bool adjoint) {
  return run(sparse_matmul_op, {indices, values, b}, {Param(shape), Param(adjoint)});
}

}  // namespace
}  // namespace tapeflow
