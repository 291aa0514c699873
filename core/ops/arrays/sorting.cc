// Order and equality of elements: sorting, the k largest, search in sorted lines, distinct elements.
#include <algorithm>
#include <bit>
#include <unordered_map>

#include "base/blocks.h"
#include "base/parallel.h"
#include "kernels/sort/rows.h"
#include "op/cost.h"
#include "ops/family.h"
#include "ops/one_dtype.h"
#include "ops/partial_shape.h"

namespace tapeflow {
namespace {

constexpr DTypes ordered = real_numbers | booleans;
constexpr int64_t kSortGrain = 1 << 12;

DType index_dtype(const Param& p) {
  if (p.is_none()) return DType::int32;
  if (p.dtype != DType::int32 && p.dtype != DType::int64 && p.dtype != DType::int16)
    fail(ErrorKind::type, "the dtype of positions must be int16, int32 or int64; got ", name_of(p.dtype));
  return p.dtype;
}
// Writes positions as elements of an integer tensor.
template <class Position> void write_positions(const Tensor& y, int64_t begin, int64_t n, Position position) {
  visit<signed_integers.bits>(y.dtype(), [&](auto* p) {
    using T = Pointee<decltype(p)>;
    for (int64_t i = 0; i < n; ++i) y.mutable_data<T>()[begin + i] = T(position(i));
  });
}

// x as rows of its last dimension.
Shape as_rows(const Shape& x) { return {x.elements(0, x.rank() - 1), x.back()}; }

// Elements and positions of the first k places of the order of each row: of all places, or of many, by sorting the row.
template <class Item, class T>
void pick_rows(const Tensor& x, int64_t k, bool descending, const Tensor& values, const Tensor& indices) {
  constexpr int64_t short_row = 256, middle_row = 4096;  // sorted sooner than searched for a few, for many
  const int64_t n = x.shape().back();
  const bool sorts = (k == n || n <= short_row || (k > kFew && n <= middle_row)) && n >> 31 == 0;
  visit<signed_integers.bits>(indices.dtype(), [&](auto* p) {
    using Index = Pointee<decltype(p)>;
    parallel_for(values.size() / k, std::max<int64_t>(1, kSortGrain / n), [&](int64_t begin, int64_t end) {
      T* value = values.mutable_data<T>();
      Index* index = indices.mutable_data<Index>();
      if (sorts)
        return order_rows(x.data<T>() + begin * n, value + begin * k, index + begin * k, end - begin, n, k, descending);
      SortSpace<Item> space;
      for (int64_t row = begin; row < end; ++row) {
        const T* from = x.data<T>() + row * n;
        first_of_order(from, n, k, descending, space, [&](int64_t place, int64_t position) {
          value[row * k + place] = from[position];
          index[row * k + place] = Index(position);
        });
      }
    });
  });
}

constexpr struct : Keys {
  Key<int64_t> k = next("k");
  Key<bool> sorted = next("sorted"), ascending = next("ascending");
  Key<DType> index_type = next("index_type");
} top_k_params;
// The first k elements of the order along the last dimension and their positions. Equal elements keep their order.
const Op& top_k_op = define(Op{
    .name = "TopKV2",
    .planning = {.cost = {cost::sorted_rows, 0.7}, .cannot_fail = true},
    .arguments = {tensor("input", real_numbers), integer(top_k_params.k, 1), flag(top_k_params.sorted, true),
                  flag(top_k_params.ascending), dtype_argument(top_k_params.index_type)},
    .infer =
        [](Call& call) {
          const Shape& x = call.in[0].shape();
          int64_t k = call.params[top_k_params.k];
          if (x.rank() < 1) fail(ErrorKind::invalid_argument, "top_k: input must be >= 1-D, got shape ", x);
          if (k < 0) fail(ErrorKind::invalid_argument, "top_k: Need k >= 0, got ", k);
          if (x.back() < k)
            fail(ErrorKind::invalid_argument, "top_k: input must have at least k columns. Had ", x.back(), ", needed ",
                 k);
          Shape shape = x;
          shape[x.rank() - 1] = k;
          call.returns(call.in[0].dtype(), shape);
          call.returns(index_dtype(call.params.value(top_k_params.index_type)), shape);
        },
    .kernel =
        [](Call& call) {
          const Tensor &x = call.in[0], &values = call.out[0], &indices = call.out[1];
          int64_t k = call.params[top_k_params.k], n = x.shape().back();
          bool descending = !call.params[top_k_params.ascending];
          if (values.size() == 0) return;
          visit<real_numbers.bits>(x.dtype(), [&](auto* p) {
            using T = Pointee<decltype(p)>;
            using Item = std::conditional_t<sizeof(T) <= 4, NarrowItem, WideItem>;
            if (sizeof(T) <= 4 && n >> 32)
              pick_rows<WideItem, T>(x, k, descending, values, indices);
            else
              pick_rows<Item, T>(x, k, descending, values, indices);
          });
        },
    .vjp =
        [](RuleContext& c) {
          const Shape& x = c.shape(0);
          Shape picked = as_rows(c.output_spec(0).shape);
          c.set(0, reshape(gather_grad(reshape(c.dy(), picked), reshape(c.y(1), picked), as_rows(x), 1, 1), x));
        },
    .jvp =
        [](RuleContext& c) {
          const Tensor& indices = c.y(1);
          Tensor rows = reshape(c.x_dot(0), as_rows(c.x_dot(0).shape()));
          c.set(0, reshape(gather(rows, reshape(indices, as_rows(indices.shape())), 1, 1), indices.shape()));
        },
    .keep = keep_output(1),
    .batch = batch_leading,
    .returns_list = true,
});

// Elements of each row in order. Of narrow types few elements differ, so their positions cost little.
template <class T> void sort_all(const Tensor& x, bool descending, const Tensor& y) {
  const int64_t n = x.shape().back();
  parallel_for(x.size() / n, std::max<int64_t>(1, kSortGrain / n), [&](int64_t begin, int64_t end) {
    const T* from = x.data<T>() + begin * n;
    T* to = y.mutable_data<T>() + begin * n;
    if constexpr (has_vector_keys<T>) {
      sort_rows(from, to, end - begin, n, descending);
    } else if (n >> 31) {
      std::copy(from, from + (end - begin) * n, to);
      for (; to != y.data<T>() + end * n; to += n)
        std::stable_sort(to, to + n,
                         [&](T a, T b) { return directed_key(a, descending) < directed_key(b, descending); });
    } else {
      Scratch<int32_t> positions((end - begin) * n);
      order_rows(from, to, positions.data(), end - begin, n, n, descending);
    }
  });
}
constexpr struct : Keys {
  Key<bool> ascending = next("ascending");
} sort_params;
// The positions that the elements came from.
Tensor order_of(const RuleContext& c, const Tensor& x) {
  const Shape& shape = x.shape();
  return run_all(top_k_op, std::array{x},
                 {Param(shape.back()), Param(true), Param(c.params[sort_params.ascending]), Param()})[1];
}
// The elements along the last dimension in order. Equal elements keep their order.
const Op& sort_op = define(Op{
    .name = "Sort",
    .planning = {.cost = {cost::sorted_rows, 0.2}, .cannot_fail = true},
    .arguments = {tensor("values", real_numbers), flag(sort_params.ascending, true)},
    .infer =
        [](Call& call) {
          const Tensor& x = call.in[0];
          if (x.rank() < 1) fail(ErrorKind::invalid_argument, "sort: values must be >= 1-D, got shape ", x.shape());
          call.returns(x.dtype(), x.shape());
        },
    .kernel =
        [](Call& call) {
          const Tensor &x = call.in[0], &y = call.out[0];
          if (x.size() == 0) return;
          visit<real_numbers.bits>(
              x.dtype(), [&](auto* p) { sort_all<Pointee<decltype(p)>>(x, !call.params[sort_params.ascending], y); });
        },
    .vjp =
        [](RuleContext& c) {
          const Shape rows = as_rows(c.shape(0));
          Tensor order = reshape(order_of(c, c.x(0)), rows);
          c.set(0, reshape(gather_grad(reshape(c.dy(), rows), order, rows, 1, 1), c.shape(0)));
        },
    .jvp =
        [](RuleContext& c) {
          const Shape shape = c.x_dot(0).shape(), rows = as_rows(shape);
          Tensor order = reshape(order_of(c, c.x(0)), rows);
          c.set(0, reshape(gather(reshape(c.x_dot(0), rows), order, 1, 1), shape));
        },
    .keep = keep_input(0),
    .batch = batch_leading,
});

// For each of `width` values the number of elements of a sorted line of which before(element, value) is true. The line
// is halved without branches, and the loads for one value do not wait for those for another.
template <int width, class T, class Before>
void count_before(const T* line, int64_t n, const T* values, Before before, int64_t* counts) {
  T value[width];
  const T* from[width];
  for (int k = 0; k < width; ++k) value[k] = values[k], from[k] = line;
  for (; n > 1; n -= n / 2)
    for (int k = 0; k < width; ++k) from[k] += -int64_t(before(from[k][n / 2 - 1], value[k])) & (n / 2);
  for (int k = 0; k < width; ++k) counts[k] = from[k] - line + int64_t(n == 1 && before(*from[k], value[k]));
}
template <class T, class Before>
void count_before(const T* line, int64_t n, const T* values, int64_t count, Before before, int64_t* counts) {
  constexpr int width = 8;
  int64_t i = 0;
  for (; i + width <= count; i += width) count_before<width>(line, n, values + i, before, counts + i);
  for (; i < count; ++i) count_before<1>(line, n, values + i, before, counts + i);
}

constexpr struct : Keys {
  Key<bool> right = next("right");
  Key<DType> out_type = next("out_type");
} search_sorted_params;
// For each value, the number of elements of its sorted row that are smaller (or, from the right, not larger).
const Op& search_sorted_op = define(Op{
    .name = "SearchSorted",
    .arguments = {tensor("sorted_inputs", real_numbers), tensor("values", real_numbers),
                  flag(search_sorted_params.right), dtype_argument(search_sorted_params.out_type)},
    .infer =
        [](Call& call) {
          const Shape &line = call.in[0].shape(), &values = call.in[1].shape();
          family::check_dtype(call, 1);
          for (const Shape& shape : {line, values})
            if (shape.rank() != 2)
              fail(ErrorKind::invalid_argument, "searchsorted: Shape must be rank 2 but is rank ", shape.rank(),
                   "; got ", line, " and ", values);
          if (line[0] != values[0])
            fail(ErrorKind::invalid_argument, "searchsorted: Leading dim_size of both tensors must match; got ", line,
                 " and ", values);
          call.returns(index_dtype(call.params.value(search_sorted_params.out_type)), values);
        },
    .kernel =
        [](Call& call) {
          const Tensor &lines = call.in[0], &values = call.in[1], &y = call.out[0];
          int64_t n = lines.dim(1), m = values.dim(1);
          if (values.size() == 0) return;
          visit<real_numbers.bits>(lines.dtype(), [&](auto* p) {
            using T = Pointee<decltype(p)>;
            constexpr int64_t block = 256;
            const bool right = call.params[search_sorted_params.right];
            parallel_for(values.size(), kSortGrain, [&](int64_t begin, int64_t end) {
              int64_t counts[block];
              for (int64_t i = begin, length; i < end; i += length) {
                length = std::min({block, end - i, m - i % m});  // of one line
                const T *line = lines.data<T>() + i / m * n, *v = values.data<T>() + i;
                if (right)
                  count_before(line, n, v, length, [](T a, T b) { return !(load(&b) < load(&a)); }, counts);
                else
                  count_before(line, n, v, length, [](T a, T b) { return load(&a) < load(&b); }, counts);
                write_positions(y, i, length, [&](int64_t k) { return counts[k]; });
              }
            });
          });
        },
    .gradient = Gradient::none,
    .called = "searchsorted",
});

// Numbers 0, 1, ... of keys in the order in which they come, in a table that is at most half full.
class KeyNumbers {
 public:
  explicit KeyNumbers(int64_t expected) {
    resize(std::bit_ceil(uint64_t(std::clamp<int64_t>(expected, 8, 1 << 12)) * 2));
  }
  // The number of a key; `next` if it is new.
  int64_t find_or_add(uint64_t key, int64_t next) {
    if (uint64_t(next) * 2 >= slots_.size()) resize(slots_.size() * 4);
    Slot& slot = slot_of(key);
    if (slot.number < 0) slot = {key, next};
    return slot.number;
  }

 private:
  struct Slot {
    uint64_t key = 0;
    int64_t number = -1;
  };
  Slot& slot_of(uint64_t key) {
    uint64_t hash = key * 0x9e3779b97f4a7c15u;
    hash ^= hash >> 32;
    for (size_t at = hash * 0x9e3779b97f4a7c15u >> shift_;; at = (at + 1) & (slots_.size() - 1))
      if (slots_[at].number < 0 || slots_[at].key == key) return slots_[at];
  }
  void resize(size_t size) {
    BlockVector<Slot> old(size);
    std::swap(old, slots_);
    shift_ = 64 - std::countr_zero(size);
    for (const Slot& slot : old)
      if (slot.number >= 0) slot_of(slot.key) = slot;
  }
  BlockVector<Slot> slots_;
  int shift_ = 0;
};

constexpr struct : Keys {
  Key<DType> out_idx = next("out_idx");
} distinct_params;
// Distinct elements of a vector: the position of the first of each, which of them each element is, and how often each
// occurs.
const Op& distinct_op = define(Op{
    .name = "DistinctElements",
    .arguments = {tensor("x", ordered | strings), dtype_argument(distinct_params.out_idx)},
    .infer_staged =
        [](Call& call) {
          const Tensor& x = call.in[0];
          if (x.rank() >= 0 && x.rank() != 1)
            fail(ErrorKind::invalid_argument, "unique: unique expects a 1D vector; got shape ", x.shape());
          DType type = index_dtype(call.params.value(distinct_params.out_idx));
          for (int64_t n : {int64_t(-1), x.rank() < 0 ? -1 : x.dim(0), int64_t(-1)}) call.returns(type, {n});
        },
    .kernel =
        [](Call& call) {
          const Tensor& x = call.in[0];
          if (x.rank() != 1)
            fail(ErrorKind::invalid_argument, "unique: unique expects a 1D vector; got shape ", x.shape());
          DType type = index_dtype(call.params.value(distinct_params.out_idx));
          BlockVector<int64_t> first, which(size_t(x.size())), count;
          const auto number = [&](int64_t i, int64_t number) {
            if (number == int64_t(first.size())) first.push_back(i), count.push_back(0);
            ++count[size_t(number)];
            which[size_t(i)] = number;
          };
          if (x.dtype() == DType::string) {
            std::unordered_map<std::string, int64_t> seen;
            for (int64_t i = 0; i < x.size(); ++i)
              number(i, seen.try_emplace(x.data<std::string>()[i], int64_t(first.size())).first->second);
          } else {
            KeyNumbers seen(x.size());
            visit<ordered.bits>(x.dtype(), [&](auto* p) {
              using T = Pointee<decltype(p)>;
              for (int64_t i = 0; i < x.size(); ++i) {
                const T value = x.data<T>()[i];
                const int64_t next = int64_t(first.size());  // a NaN is equal to nothing
                number(i, is_not_a_number(value) ? next : seen.find_or_add(order_key(value), next));
              }
            });
          }
          for (const BlockVector<int64_t>* v : {&first, &which, &count}) {
            call.out.push_back(Tensor::allocate(type, {int64_t(v->size())}));
            write_positions(call.out.back(), 0, int64_t(v->size()), [&](int64_t i) { return (*v)[size_t(i)]; });
          }
        },
    .makes_outputs = true,
    .gradient = Gradient::none,
    .returns_list = true,
});

}  // namespace
}  // namespace tapeflow
