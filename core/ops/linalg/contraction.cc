// Matrix products, with batches and broadcasting of batches.
#include "base/subnormals.h"
#include "kernels/linalg/gemm.h"
#include "kernels/linalg/gemm_bfloat16.h"
#include "op/cost.h"
#include "op/row_structure.h"
#include "ops/family.h"
#include "tensor/addition.h"

namespace tapeflow {
namespace {

constexpr DTypes matrix_dtypes = floating | float8s | complexes | DType::int32 | DType::int64;
constexpr DTypes narrow_dtypes = integers;  // multiplied in the `output_type` that is asked for
constexpr struct : Keys {
  Key<bool> transpose_a = next("transpose_a"), transpose_b = next("transpose_b"), adjoint_a = next("adjoint_a"),
            adjoint_b = next("adjoint_b"), a_is_sparse = next("a_is_sparse"), b_is_sparse = next("b_is_sparse");
  Key<DType> output_type = next("output_type");
  Key<bool> grad_a = next("grad_a"), grad_b = next("grad_b");
} matmul_params;
bool transposes_a(const Params& p) { return p[matmul_params.transpose_a] || p[matmul_params.adjoint_a]; }
bool transposes_b(const Params& p) { return p[matmul_params.transpose_b] || p[matmul_params.adjoint_b]; }

// The dtype in which the product is taken and given.
DType product_dtype(const Params& p, DType a) {
  const bool given = int(p.size()) > matmul_params.output_type.index && p.has(matmul_params.output_type);
  return given ? p[matmul_params.output_type] : a;
}

struct Product {
  bool ta, tb;
  int64_t m, n, k;
  Shape batch;
};

Product plan(const char* who, const Shape& a, const Shape& b, bool ta, bool tb) {
  if (a.rank() < 2 || b.rank() < 2)
    fail(ErrorKind::invalid_argument, who, ": In[", a.rank() < 2 ? 0 : 1,
         "] ndims must be >= 2: In[0] and In[1] must have at least 2 dimensions (at least rank 2); got shapes ", a,
         " and ", b, ". A vector becomes a matrix with x[:, tf.newaxis]; see also tf.linalg.matvec.");
  Product p{ta, tb, ta ? a.back(1) : a.back(2), tb ? b.back(2) : b.back(1), ta ? a.back(2) : a.back(1), {}};
  int64_t other = tb ? b.back(1) : b.back(2);
  if (p.k != other && p.k >= 0 && other >= 0)
    fail(ErrorKind::invalid_argument, who, ": Matrix size-incompatible: In[0]: ", a, ", In[1]: ", b,
         "; the inner dimensions ", p.k, " and ", other, " must be equal");
  if (!broadcast(a.slice(0, a.rank() - 2), b.slice(0, b.rank() - 2), &p.batch))
    fail(ErrorKind::invalid_argument, who, ": In[0] and In[1] must have compatible batch dimensions: ", a, " vs. ", b);
  return p;
}

// True if it called `epilogue`.
template <class T>
bool multiply_batches(const Product& p, const Tensor& a, const Tensor& b, const Tensor& y, const Epilogue* epilogue) {
  const T *pa = a.data<T>(), *pb = b.data<T>();
  T* py = y.mutable_data<T>();
  int64_t lda = a.shape().back(), ldb = b.shape().back();
  int64_t size_a = a.shape().back(1) * a.shape().back(2), size_b = b.shape().back(1) * b.shape().back(2),
          size_y = p.m * p.n;
  int64_t batches = p.batch.elements();
  int64_t batches_a = a.shape().elements(0, a.rank() - 2), batches_b = b.shape().elements(0, b.rank() - 2);
  if (size_y == 0 || batches == 0) return false;
  // Rows of a batch of matrices times one matrix: one tall product.
  if (batches_b == 1 && !p.ta && batches_a == batches)
    return gemm<T>(false, p.tb, batches * p.m, p.n, p.k, pa, lda, pb, ldb, py, p.n, false, epilogue);
  if ((batches_a == batches || batches_a == 1) && (batches_b == batches || batches_b == 1))
    return gemm_batched<T>(batches, p.ta, p.tb, p.m, p.n, p.k, pa, lda, batches_a == 1 ? 0 : size_a, pb, ldb,
                           batches_b == 1 ? 0 : size_b, py, p.n, size_y, epilogue);
  // Batches broadcast against each other.
  for (int64_t i = 0; i < batches; ++i) {
    int64_t at_a = 0, at_b = 0, rest = i, unit_a = 1, unit_b = 1;
    for (int d = p.batch.rank() - 1; d >= 0; --d) {
      int64_t index = rest % p.batch[d];
      rest /= p.batch[d];
      int da = d - (p.batch.rank() - (a.rank() - 2)), db = d - (p.batch.rank() - (b.rank() - 2));
      if (da >= 0) at_a += (a.dim(da) == 1 ? 0 : index) * unit_a, unit_a *= a.dim(da);
      if (db >= 0) at_b += (b.dim(db) == 1 ? 0 : index) * unit_b, unit_b *= b.dim(db);
    }
    gemm<T>(p.ta, p.tb, p.m, p.n, p.k, pa + at_a * size_a, lda, pb + at_b * size_b, ldb, py + i * size_y, p.n, false);
  }
  return false;
}

void matmul_kernel(Call& call) {
  const Params& f = call.params;
  PauseRecording paused;
  const DType dtype = call.specs[0].dtype;
  Tensor a = call.in[0], b = call.in[1];
  if (a.dtype() != dtype) a = cast(a, dtype);
  if (b.dtype() != dtype) b = cast(b, dtype);
  if (f[matmul_params.adjoint_a]) a = conj(a);
  if (f[matmul_params.adjoint_b]) b = conj(b);
  Product p = plan(call.name(), a.shape(), b.shape(), transposes_a(f), transposes_b(f));
  Tensor& y = call.out[0];
  FlushSubnormals flush(dtype == DType::float32);
  auto multiply = [&]<class T>(T*) {
    if (multiply_batches<T>(p, a, b, y, call.epilogue)) call.epilogue = nullptr;
  };
  switch (a.dtype()) {
    case DType::float32: return multiply(static_cast<float*>(nullptr));
    case DType::float64: return multiply(static_cast<double*>(nullptr));
    case DType::complex64: return multiply(static_cast<std::complex<float>*>(nullptr));
    case DType::complex128: return multiply(static_cast<std::complex<double>*>(nullptr));
    case DType::int32: return multiply(static_cast<int32_t*>(nullptr));
    case DType::int64: return multiply(static_cast<int64_t*>(nullptr));
    case DType::bfloat16:
      if (multiplies_bfloat16()) return multiply(static_cast<bfloat16*>(nullptr));
      [[fallthrough]];
    default: {  // the small float types: products in float, rounded once
      Tensor wide = Tensor::allocate(DType::float32, y.shape());
      multiply_batches<float>(p, cast(a, DType::float32), cast(b, DType::float32), wide, nullptr);
      y = cast(wide, y.dtype());
    }
  }
}

// total += op(a) op(b), for the gradient of a weight that is used many times; false if the dtype has no such kernel. A
// product of middle size is computed in the background: too large for the caller to wait for, too small to share out.
bool add_product(const Tensor& a, const Tensor& b, bool ta, bool tb, const Tensor& total) {
  Product p = plan("matmul", a.shape(), b.shape(), ta, tb);
  auto add = [&]<class T>(T*) {
    constexpr int64_t least = 1 << 16, most = 1 << 21;  // multiplications
    auto work = [ta, tb, m = p.m, n = p.n, k = p.k, x = a.data<T>(), lda = a.shape().back(), y = b.data<T>(),
                 ldb = b.shape().back(), sum = static_cast<T*>(address_of_total(total))] {
      FlushSubnormals flush(std::is_same_v<T, float>);
      gemm<T>(ta, tb, m, n, k, x, lda, y, ldb, sum, n, true);
    };
    const int64_t multiplications = p.m * p.n * p.k;
    if (multiplications >= least && multiplications <= most && add_in_background(total, a, b, work)) return true;
    total.raw();  // after the background work
    work();
    return true;
  };
  if (a.dtype() == DType::float32) return add(static_cast<float*>(nullptr));
  if (a.dtype() == DType::float64) return add(static_cast<double*>(nullptr));
  return false;
}

// With A = op(a), B = op(b): dA = dy B^H and dB = A^H dy, taken back through op.
void matmul_vjp(RuleContext& c) {
  bool ta = transposes_a(c.params), tb = transposes_b(c.params);
  bool aa = c.params[matmul_params.adjoint_a], ab = c.params[matmul_params.adjoint_b];
  Tensor dy = c.dy();
  const DType dtype = dy.dtype();
  auto given = [&](int i) { return c.dtype(i) == dtype ? c.x(i) : cast(c.x(i), dtype); };
  auto answer = [&](int i, const Tensor& dx) { c.set(i, c.dtype(i) == dtype ? dx : cast(dx, c.dtype(i))); };
  if (c.wants(0)) {
    Tensor b = ab ? given(1) : conj(given(1));
    Tensor da = ta ? matmul(b, dy, tb, true) : matmul(dy, b, false, !tb);
    answer(0, unbroadcast(aa ? conj(da) : da, c.shape(0)));
  }
  if (c.wants(1)) {
    Tensor a = aa ? given(0) : conj(given(0));
    const Shape shape = c.shape(1);
    Tensor db;
    if (const Tensor* total = c.total(1); total && !ab && a.rank() == 2 && dy.rank() == 2 && c.dtype(1) == dtype &&
                                          !complexes.has(dtype) &&
                                          add_product(tb ? dy : a, tb ? a : dy, tb || !ta, tb && ta, *total))
      return;
    if (shape.rank() == 2 && a.rank() > 2 && !ta) {  // the batch is summed inside the product
      Tensor rows = reshape(a, {a.shape().elements(0, a.rank() - 1), a.shape().back()});
      Tensor dy_rows = reshape(dy, {dy.shape().elements(0, dy.rank() - 1), dy.shape().back()});
      db = tb ? matmul(dy_rows, rows, true, false) : matmul(rows, dy_rows, true, false);
    } else {
      db = tb ? matmul(dy, a, true, ta) : matmul(a, dy, !ta, false);
    }
    answer(1, unbroadcast(ab ? conj(db) : db, shape));
  }
}

void matmul_jvp(RuleContext& c) {
  Tensor sum;
  if (c.x_dot(0)) sum = run(c.op, {c.x_dot(0), c.x(1)}, c.params);
  if (c.x_dot(1)) {
    Tensor other = run(c.op, {c.x(0), c.x_dot(1)}, c.params);
    sum = sum ? add(sum, other) : other;
  }
  c.set(0, sum);
}

// One matrix times a vector per row, or a matrix per row times one matrix: one product for all rows.
bool batch_as_one_product(BatchCall& c) {
  const Tensor &a = c.in[0], &b = c.in[1];
  const Params& f = c.params;
  const bool adjoint = f[matmul_params.adjoint_a] || f[matmul_params.adjoint_b], ta = transposes_a(f),
             tb = transposes_b(f);
  if ((adjoint && complexes.has(a.dtype())) || product_dtype(f, a.dtype()) != a.dtype() || a.dtype() != b.dtype())
    return false;
  if (c.batched[0] == c.batched[1]) return false;
  if (c.batched[0] && b.rank() == 2) {
    int64_t k = ta ? a.shape().back(2) : a.shape().back(), m = ta ? a.shape().back() : a.shape().back(2);
    if ((ta && m != 1) || k == 0) return false;
    Tensor product = matmul(reshape(a, {a.size() / k, k}), b, false, tb);
    Shape shape = a.shape();
    shape[shape.rank() - 2] = m;
    shape[shape.rank() - 1] = product.dim(1);
    c.out.push_back(reshape(product, shape));
    return true;
  }
  if (c.batched[1] && a.rank() == 2 && b.rank() == 3) {
    int64_t k = tb ? b.dim(2) : b.dim(1), n = tb ? b.dim(1) : b.dim(2);
    if (n != 1) return false;
    Tensor product = matmul(reshape(b, {c.rows, k}), a, false, !ta);
    c.out.push_back(reshape(product, {c.rows, product.dim(1), 1}));
    return true;
  }
  return false;
}

bool batch_matmul(BatchCall& c) { return batch_as_one_product(c) || batch_broadcasting(c); }

// The rows of matrices, and the matrices of a batch, are separate; rows that meet in the product are summed.
RowStructure rows_of_matmul(const Call& call, std::span<const bool> by_row, std::span<bool> also_cut) {
  const int a = call.in[0].rank(), b = call.in[1].rank();
  const bool ta = transposes_a(call.params), tb = transposes_b(call.params);
  if (a > 2 || b > 2) {
    const bool leads = (!by_row[0] || a >= b) && (!by_row[1] || b >= a);
    return leads ? RowStructure::separate : RowStructure::mixed;
  }
  if (by_row[0] && !by_row[1] && !ta) return RowStructure::separate;
  if (!ta || tb) return RowStructure::mixed;
  also_cut[0] = also_cut[1] = true;
  return RowStructure::summed;
}

void infer_matmul(Call& call) {
  const Tensor &a = call.in[0], &b = call.in[1];
  const Params& f = call.params;
  const DType dtype = product_dtype(f, a.dtype());
  if (a.dtype() != b.dtype() && !(narrow_dtypes.has(a.dtype()) && narrow_dtypes.has(b.dtype()) && dtype != a.dtype()))
    family::fail_dtypes(call);
  if (f[matmul_params.transpose_a] && f[matmul_params.adjoint_a])
    fail(ErrorKind::value, call.name(), ": Only one of `transpose_a` and `adjoint_a` can be True.");
  if (f[matmul_params.transpose_b] && f[matmul_params.adjoint_b])
    fail(ErrorKind::value, call.name(), ": Only one of `transpose_b` and `adjoint_b` can be True.");
  if (!matrix_dtypes.has(dtype))
    fail(ErrorKind::invalid_argument, call.name(), ": Value for attr 'T' of ", legacy_name_of(dtype),
         " is not in the list of allowed values: products are taken in float, complex, int32 or int64; ask for one "
         "with output_type");
  if (!a.shape().known_rank() || !b.shape().known_rank()) return call.returns(dtype, Shape::unknown());
  Product p = plan(call.name(), a.shape(), b.shape(), transposes_a(f), transposes_b(f));
  Shape shape = p.batch;
  shape.append(p.m);
  shape.append(p.n);
  call.returns(dtype, shape);
}

// Of two matrices, whose number of rows or columns may be unknown, nothing is broadcast: the rule needs products alone.
bool multiplies_two_matrices(const RuleContext& c) {
  const Shape a = c.shape(0), b = c.shape(1);
  if (a.rank() != 2 || b.rank() != 2 || !c.has_dy(0)) return false;
  const bool ta = transposes_a(c.params), tb = transposes_b(c.params);
  return a[!ta] >= 0 && b[tb] >= 0 && c.dy().shape() == Shape{a[ta], b[!tb]};
}

const Op& matmul_op = []() -> const Op& {
  Op op{
      .name = "MatMul",
      .planning = {.cost = {cost::products, 0.012},
                   .rounded_once = multiplies_bfloat16() ? DTypes(DType::float16) : small_floating},
      .arguments = {tensor("a", matrix_dtypes | narrow_dtypes), tensor("b", matrix_dtypes | narrow_dtypes),
                    flag(matmul_params.transpose_a), flag(matmul_params.transpose_b), flag(matmul_params.adjoint_a),
                    flag(matmul_params.adjoint_b), flag(matmul_params.a_is_sparse), flag(matmul_params.b_is_sparse),
                    dtype_argument(matmul_params.output_type), flag(matmul_params.grad_a), flag(matmul_params.grad_b)}};
  op.infer = op.infer_staged = infer_matmul;
  op.kernel = matmul_kernel;
  op.runs_epilogue = true;
  op.vjp = matmul_vjp;
  op.jvp = matmul_jvp;
  op.keep_for[0] = keep_input(1);
  op.keep_for[1] = keep_input(0);
  op.keep = keep_input(0) | keep_input(1);
  op.keep_by_input = true;
  op.adds_in_place = true;
  op.rule_needs_no_shapes = multiplies_two_matrices;
  op.batch = batch_matmul;
  op.row_rule = rows_of_matmul;
  op.non_finite = {"The product overflows: scale the weights or inputs down, or lower the learning rate."};
  op.mixed_dtypes = true;
  op.names = {"linalg.matmul", "matmul"};
  op.doc =
      R"(Matrix product of `a` and `b`, over the last two dimensions; the others are batches and broadcast.

Args:
  a: A batch of matrices, `[..., m, k]`, or `[..., k, m]` with `transpose_a`.
  b: A batch of matrices, `[..., k, n]`, or `[..., n, k]` with `transpose_b`.
  transpose_a: Whether to transpose `a` first.
  transpose_b: Whether to transpose `b` first.
  adjoint_a: Whether to transpose and conjugate `a` first.
  adjoint_b: Whether to transpose and conjugate `b` first.
  a_is_sparse: A hint of TensorFlow's; it changes nothing.
  b_is_sparse: A hint of TensorFlow's; it changes nothing.
  output_type: The dtype of the result, for int8 inputs: `tf.int32`.
  grad_a: A hint of TensorFlow's; it changes nothing.
  grad_b: A hint of TensorFlow's; it changes nothing.

Returns: A tensor of shape `[..., m, n]`.

Gradient: `da = dy b^H`, `db = a^H dy`, summed over dimensions that broadcast.

>>> tf.matmul([[1., 2.]], [[3.], [4.]])
<tf.Tensor: shape=(1, 1), dtype=float32, numpy=array([[11.]], dtype=float32)>)";
  return define(std::move(op));
}();

}  // namespace

Tensor matmul(const Tensor& a, const Tensor& b, bool ta, bool tb, bool aa, bool ab) {
  return run(matmul_op, {a, b}, {Param(ta), Param(tb), Param(aa), Param(ab)});
}

}  // namespace tapeflow
