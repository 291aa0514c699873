// Arguments of operations: the signature that an entry declares, and the values of the arguments that are not tensors.
#pragma once
#include <memory>
#include <string>
#include <type_traits>
#include <vector>

#include "base/dtype.h"
#include "base/shape.h"
#include "base/small_vector.h"
#include "tensor/tensor.h"

namespace tapeflow {

using Ints = SmallVector<int64_t, 6>;

// One argument value that is not a tensor. `none` is Python's None.
struct Param {
  enum class Kind : uint8_t { none, flag, integer, real, dtype, ints, text, object, tensor } kind = Kind::none;
  union {
    bool flag;
    int64_t integer = 0;
    double real;
    DType dtype;
  };
  Ints ints;
  std::string text;
  std::shared_ptr<void> object;  // something of the Python layer's; a Tensor if the kind is `tensor`

  Param() = default;
  Param(bool v) : kind(Kind::flag), flag(v) {}
  Param(int64_t v) : kind(Kind::integer), integer(v) {}
  Param(int v) : kind(Kind::integer), integer(v) {}
  Param(double v) : kind(Kind::real), real(v) {}
  Param(DType v) : kind(Kind::dtype), dtype(v) {}
  Param(Ints v) : kind(Kind::ints), ints(std::move(v)) {}
  Param(const Shape& v) : kind(Kind::ints) {
    for (int64_t d : v) ints.push_back(d);
  }
  Param(const char* v) : kind(Kind::text), text(v) {}
  Param(std::string v) : kind(Kind::text), text(std::move(v)) {}
  Param(std::shared_ptr<void> v) : kind(Kind::object), object(std::move(v)) {}
  // A value that only running the graph gives, of an argument of the given kind (an Argument::Kind).
  Param(Tensor symbolic, int argument_kind);
  int argument_kind() const { return int(integer); }
  const Tensor& tensor() const { return *static_cast<const Tensor*>(object.get()); }
  bool is_none() const { return kind == Kind::none; }
};

// A parameter by name: its place among the parameters of an entry, and the type of its value. define() checks that the
// entry's signature has it there.
template <class T> struct Key {
  int index;
  const char* name;
};
template <class T> struct Boxed {};  // Key<Boxed<T>>: an object of C++ that no program gives

// The parameters of an entry, in the order of its signature:
//   constexpr struct : Keys {
//     Key<int64_t> axis = next("axis");
//     Key<bool> reverse = next("reverse");
//   } scan_params;
// Its arguments are then {tensor("x", numbers), integer(scan_params.axis, 0), flag(scan_params.reverse)}, and a kernel
// reads call.params[scan_params.axis].
struct Keys {
  struct Next {
    int index;
    const char* name;
    template <class T> constexpr operator Key<T>() const { return {index, name}; }
  };
  int count = 0;
  constexpr Next next(const char* name) { return {count++, name}; }
};

// The values in the order of the signature; shared by a call, its records and its graph nodes.
class Params {
 public:
  Params() : block_(nullptr) {}
  template <class... V>
    requires(sizeof...(V) > 0 && (std::is_constructible_v<Param, V> && ...))
  Params(V&&... values) : Params(sized(sizeof...(V))) {
    Param* at = block_->values.data();
    ((*at++ = Param(std::forward<V>(values))), ...);
  }
  Params(const Params& other) : block_(other.block_) {
    if (block_) ++block_->references;
  }
  Params(Params&& other) noexcept : block_(std::exchange(other.block_, nullptr)) {}
  Params& operator=(Params other) noexcept {
    std::swap(block_, other.block_);
    return *this;
  }
  ~Params() {
    if (block_ && --block_->references == 0) recycle(block_);
  }
  static Params sized(size_t count);
  static Params joined(Param first, const Params& rest);
  Params without_first() const;
  Params first(int count) const;
  Params appended(Param last) const;
  bool has_tensor() const;  // a value that only running the graph gives

  size_t size() const { return block_ ? block_->values.size() : 0; }
  const Param& at(int i) const { return block_->values[size_t(i)]; }
  Param& mutable_at(int i) { return block_->values[size_t(i)]; }
  // By name.
  const Param& value(const auto& key) const { return block_->values[size_t(key.index)]; }
  bool has(const auto& key) const { return !value(key).is_none(); }  // it is not None
  bool operator[](Key<bool> key) const { return value(key).flag; }
  int64_t operator[](Key<int64_t> key) const { return value(key).integer; }
  double operator[](Key<double> key) const { return value(key).real; }
  DType operator[](Key<DType> key) const { return value(key).dtype; }
  const Ints& operator[](Key<Ints> key) const { return value(key).ints; }
  const std::string& operator[](Key<std::string> key) const { return value(key).text; }
  template <class T> T& operator[](Key<Boxed<T>> key) const { return *static_cast<T*>(value(key).object.get()); }
  Shape shape(Key<Ints>) const;  // throws if there are too many dimensions
  Params with(const auto& key, Param changed) const { return with(key.index, std::move(changed)); }
  Params with(int i, Param changed) const;

 private:
  struct Block {
    int64_t references;
    SmallVector<Param, 4> values;
  };
  static void recycle(Block*);
  Block* block_;
};

// One argument of an entry. Tensor arguments of one `group` have one dtype; numbers given for them take that dtype.
struct Argument {
  enum class Kind : uint8_t { tensor, tensors, flag, integer, real, dtype, axes, ints, text } kind;
  const char* name;
  DTypes dtypes = any_dtype;  // tensors: what is allowed
  int group = 0;              // tensors: -1 stands alone
  bool required = true;
  Param fallback;                    // when not given
  DType preferred = DType::invalid;  // tensors: the dtype a Python number or list takes if nothing else decides
  int index = -1;                    // others: the place that its key says
  // Lists of tensors: what is taken for the whole list, beside a tensor.
  enum class Whole : uint8_t { tensor, array, numbers } whole = Whole::tensor;

  Argument or_array() const;    // as tf.concat
  Argument or_numbers() const;  // as tf.stack, which puts the elements of a list of numbers side by side
};

Argument tensor(const char* name, DTypes allowed, int group = 0);
Argument tensors(const char* name, DTypes allowed, int group = 0);  // a list of tensors
Argument index_tensor(const char* name);                            // int32 or int64, a dtype of its own
Argument flag(Key<bool>, bool fallback = false);
Argument integer(Key<int64_t>);
Argument integer(Key<int64_t>, int64_t fallback);
Argument real(Key<double>, double fallback);
Argument dtype_argument(Key<DType>);  // a dtype or None
Argument required_dtype(Key<DType>);
Argument axes(Key<Ints>);  // None, an int or a list of ints
Argument ints(Key<Ints>);  // an int or a list of ints, or a tensor of them
Argument optional_ints(Key<Ints>);
Argument text(Key<std::string>);
Argument text(Key<std::string>, const char* fallback);

}  // namespace tapeflow
