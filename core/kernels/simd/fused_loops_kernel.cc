// The combined loops for one instruction set: compiled once per set, with TAPEFLOW_ISA as the namespace.
#include "kernels/simd/fused_loops.h"

#include "kernels/simd/vector_memory.h"

namespace tapeflow::TAPEFLOW_ISA {

Combination combination(bool doubles, Arithmetic outer, Arithmetic left, Arithmetic right);

namespace {

template <Arithmetic f, class V> TAPEFLOW_INLINE V apply(V a, V b) {
  if constexpr (f == Arithmetic::add)
    return a + b;
  else if constexpr (f == Arithmetic::subtract)
    return a - b;
  else if constexpr (f == Arithmetic::multiply)
    return a * b;
  else
    return a / b;
}

// One side of a combination: a function of one operand or of two.
template <class T, Arithmetic f> struct Side {
  static constexpr int second = f == Arithmetic::first || f == Arithmetic::square_root ? 0 : 1;
  TAPEFLOW_INLINE Side(const void* const* operands, const int64_t* steps)
      : a(static_cast<const T*>(operands[0])),
        b(static_cast<const T*>(operands[second])),
        a_step(steps[0]),
        b_step(steps[second]) {}
  TAPEFLOW_INLINE Vector<T> at(int64_t i) const {
    if constexpr (f == Arithmetic::first)
      return load(a + i * a_step);
    else if constexpr (f == Arithmetic::square_root)
      return sqrt(load(a + i * a_step));
    else
      return apply<f>(load(a + i * a_step), load(b + i * b_step));
  }
  const T *a, *b;
  int64_t a_step, b_step;
};

template <class T, Arithmetic outer, Arithmetic left, Arithmetic right>
void combined(const void* const* operands, const int64_t* steps, void* results, int64_t n) {
  const Side<T, left> l(operands, steps);
  const Side<T, right> r(operands + 2, steps + 2);
  T* y = static_cast<T*>(results);
  for (int64_t i = 0; i < n; i += lanes<Vector<T>>) {
    const Vector<T> x = apply<outer>(l.at(i), r.at(i));
    std::memcpy(y + i, &x, sizeof x);
  }
}

// What is left after the whole vectors is copied into vectors.
template <class T> void run(CombinationLoop loop, const void* const* operands, const bool* single, void* y, int64_t n) {
  using V = Vector<T>;
  const int64_t whole = n / lanes<V> * lanes<V>;
  const size_t rest = size_t(n - whole) * sizeof(T);
  V vectors[4], result;
  const void* now[4] = {};
  int64_t steps[4];
  for (int k = 0; k < 4; ++k) {
    steps[k] = single[k] ? 0 : 1;
    now[k] = operands[k];
    if (!operands[k] || !single[k]) continue;
    vectors[k] = splat<V>(*static_cast<const T*>(operands[k]));
    now[k] = &vectors[k];
  }
  loop(now, steps, y, whole);
  if (rest == 0) return;
  for (int k = 0; k < 4; ++k) {
    if (!operands[k] || single[k]) continue;
    vectors[k] = V{};
    std::memcpy(&vectors[k], static_cast<const T*>(operands[k]) + whole, rest);
    now[k] = &vectors[k];
  }
  loop(now, steps, &result, lanes<V>);
  std::memcpy(static_cast<T*>(y) + whole, &result, rest);
}

// One side is an operand as it is, or both are cheap. Of two orders that give the same there is one.
constexpr bool worth(Arithmetic outer, Arithmetic left, Arithmetic right) {
  constexpr auto cheap = [](Arithmetic f) {
    return f == Arithmetic::add || f == Arithmetic::subtract || f == Arithmetic::multiply;
  };
  if (commutes(outer) && left < right) return false;
  if (left == Arithmetic::first || right == Arithmetic::first) return left != right;
  return cheap(left) && cheap(right);
}

template <class T> constexpr CombinationTable make_table() {
  CombinationTable table{};
  auto each_function = [](auto visit) {
    visit.template operator()<Arithmetic::first>();
    visit.template operator()<Arithmetic::add>();
    visit.template operator()<Arithmetic::subtract>();
    visit.template operator()<Arithmetic::multiply>();
    visit.template operator()<Arithmetic::divide>();
    visit.template operator()<Arithmetic::square_root>();
  };
  auto add_outer = [&]<Arithmetic outer>() {
    each_function([&]<Arithmetic left>() {
      each_function([&]<Arithmetic right>() {
        if constexpr (worth(outer, left, right))
          table.loops[int(outer)][int(left)][int(right)] = combined<T, outer, left, right>;
      });
    });
  };
  add_outer.template operator()<Arithmetic::add>();
  add_outer.template operator()<Arithmetic::subtract>();
  add_outer.template operator()<Arithmetic::multiply>();
  add_outer.template operator()<Arithmetic::divide>();
  return table;
}

constinit const CombinationTable of_floats = make_table<float>(), of_doubles = make_table<double>();

}  // namespace

Combination combination(bool doubles, Arithmetic outer, Arithmetic left, Arithmetic right) {
  const CombinationTable& table = doubles ? of_doubles : of_floats;
  return {doubles ? run<double> : run<float>, table.loops[int(outer)][int(left)][int(right)]};
}

}  // namespace tapeflow::TAPEFLOW_ISA
