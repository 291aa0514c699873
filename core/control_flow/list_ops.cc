// The operations behind a tf.TensorArray whose positions or length are known only when the graph runs.
#include "control_flow/list_ops.h"

#include <algorithm>
#include <cstring>

#include "ops/ops.h"

namespace tapeflow {
namespace {

bool is_blank(const Shape& list) { return list.rank() == 2 && list[1] == 0; }
bool is_blank(const Tensor& list) { return is_blank(list.shape()); }

Shape row_shape(const Shape& list) { return Shape(list.data() + 1, list.rank() - 1); }

Shape list_shape(int64_t length, const Shape& element) {
  if (!element.known_rank()) return Shape::unknown();
  Shape shape{length};
  for (int64_t d : element) shape.append(d);
  return shape;
}

int64_t length_of(const Shape& list) { return list.known_rank() && list.rank() > 0 ? list[0] : -1; }

// The shape of elements as a parameter: nothing, if the rank is not known.
constexpr struct : Keys {
  Key<Boxed<const Shape>> element = next("element");
} element_params;
const Shape& element_in(const Params& params) { return params[element_params.element]; }
Param element_param(const Shape& element) {
  return Param(std::static_pointer_cast<void>(std::make_shared<Shape>(element)));
}

const Shape& checked_element(const Params& params, const char* what) {
  const Shape& element = element_in(params);
  if (!element.fully_known())
    fail(ErrorKind::invalid_argument, "TensorArray.", what, ": Trying to ", what,
         " elements that were never written, and whose shape is not known; give element_shape. Tried to use ", element);
  return element;
}

void check_write(int64_t index, int64_t length, bool growing) {
  if (index < 0)
    fail(ErrorKind::invalid_argument, "TensorArray.write: Writing to negative indices (index ", index,
         ") is not allowed.");
  if (index >= length && !growing)
    fail(ErrorKind::invalid_argument, "TensorArray.write: Trying to modify element ", index, " in a list with ", length,
         " elements.");
}

Tensor with_string(const Tensor& list, int64_t index, const Tensor& value, int64_t length) {
  Tensors rows = unstack(list, 0);
  rows.resize(size_t(length));
  for (int64_t i = list.dim(0); i < length; ++i) rows[size_t(i)] = zeros_like(value);
  rows[size_t(index)] = value;
  return stack(rows, 0);
}

constexpr struct : Keys {
  Key<bool> growing = next("growing");
} set_params;
const Op& set_op = define_inner(Op{
    .name = "TensorListSetItem",
    .arguments = {tensor("list", any_dtype), tensor("index", any_dtype), tensor("value", any_dtype),
                  flag(set_params.growing)},
    .infer_staged =
        [](Call& call) {
          int64_t length = call.params[set_params.growing] ? -1 : length_of(call.in[0].shape());
          call.returns(call.in[2].dtype(), list_shape(length, call.in[2].shape()));
        },
    .kernel =
        [](Call& call) {
          PauseRecording unrecorded;
          const Tensor &list = call.in[0], &value = call.in[2];
          int64_t index = read_ints(call.in[1])[0], length = list.dim(0);
          if (value.dtype() == DType::string) {
            check_write(index, length, call.params[set_params.growing]);
            Tensor rows = is_blank(list) ? zeros(list.dtype(), list_shape(length, value.shape())) : list;
            return call.out.push_back(with_string(rows, index, value, std::max(length, index + 1)));
          }
          RowBuffer rows(list);
          rows.write(index, value, call.params[set_params.growing]);
          call.out.push_back(rows.list());
        },
    .makes_outputs = true,
    .vjp =
        [](RuleContext& c) {
          const Shape list = c.shape(0);
          if (c.wants(2)) c.set(2, list_get(c.dy(), c.x(1), c.shape(2)));
          if (!c.wants(0)) return;
          if (list.elements() == 0) return c.set(0, zeros(c.dtype(0), list));
          Tensor rest = list_set(c.dy(), c.x(1), zeros(c.dtype(2), c.shape(2)), false);
          if (rest.dim(0) != list[0]) {
            Ints begin, size;
            begin.resize(size_t(list.rank()));
            std::fill(begin.begin(), begin.end(), 0);
            for (int64_t d : list) size.push_back(d);
            rest = slice(rest, begin, size);
          }
          c.set(0, rest);
        },
    .keep = keep_input(1),
});

const Op& get_op = define_inner(Op{
    .name = "TensorListGetItem",
    .arguments = {tensor("list", any_dtype), tensor("index", any_dtype)},
    .infer_staged =
        [](Call& call) {
          const Tensor& list = call.in[0];
          bool known = list.shape().known_rank() && !(list.rank() == 2 && list.dim(1) == 0);
          call.returns(list.dtype(), known ? row_shape(list.shape()) : element_in(call.params));
        },
    .kernel =
        [](Call& call) {
          PauseRecording unrecorded;
          const Tensor& list = call.in[0];
          int64_t index = read_ints(call.in[1])[0], length = list.dim(0);
          if (index < 0 || index >= length)
            fail(ErrorKind::invalid_argument, "TensorArray.read: Trying to access element ", index, " in a list with ",
                 length, " elements.");
          if (is_blank(list)) return call.out.push_back(zeros(list.dtype(), checked_element(call.params, "read")));
          call.out.push_back(gather(list, call.in[1], 0, 0));
        },
    .makes_outputs = true,
    .vjp =
        [](RuleContext& c) {
          if (is_blank(c.shape(0))) return;
          Shape row = list_shape(1, c.dy().shape());
          c.set_rows(0, reshape(c.dy(), row), reshape(c.x(1), {1}));
        },
    .keep = keep_input(1),
    .copies_elements = true,
});

const Op& list_stack_op = define_inner(Op{
    .name = "TensorListStack",
    .arguments = {tensor("list", any_dtype)},
    .infer_staged =
        [](Call& call) {
          const Tensor& list = call.in[0];
          bool known = list.shape().known_rank() && !(list.rank() == 2 && list.dim(1) == 0);
          call.returns(list.dtype(),
                       known ? list.shape() : list_shape(length_of(list.shape()), element_in(call.params)));
        },
    .kernel =
        [](Call& call) {
          PauseRecording unrecorded;
          const Tensor& list = call.in[0];
          if (!is_blank(list) || element_in(call.params) == Shape{0})
            return call.out.push_back(list.view(list.shape()));
          if (list.dim(0) == 0 && !element_in(call.params).fully_known())
            return call.out.push_back(zeros(list.dtype(), {0}));
          call.out.push_back(zeros(list.dtype(), list_shape(list.dim(0), checked_element(call.params, "stack"))));
        },
    .makes_outputs = true,
    .vjp = [](RuleContext& c) { c.set(0, c.shape(0).elements() ? c.dy() : zeros(c.dtype(0), c.shape(0))); },
    .copies_elements = true,
});

constexpr struct : Keys {
  Key<Boxed<const std::string>> message = next("message");
} required_params;
const Op& required_op = define_inner(Op{
    .name = "Required",
    .arguments = {tensor("value", any_dtype), tensor("holds", DType::boolean)},
    .infer_staged = [](Call& call) { call.returns(call.in[0].dtype(), call.in[0].shape()); },
    .kernel =
        [](Call& call) {
          if (!*call.in[1].data<bool>()) fail(ErrorKind::invalid_argument, call.params[required_params.message]);
          call.out.push_back(call.in[0].view(call.in[0].shape()));
        },
    .makes_outputs = true,
    .vjp = [](RuleContext& c) { c.set(0, c.dy()); },
    .python_rule = true,
});

}  // namespace

bool list_grows(const Params& params) { return params[set_params.growing]; }
bool is_list_write(const Op& op) { return &op == &set_op; }
const Shape* list_element_of(const Node& node) {
  return node.op == &get_op || node.op == &list_stack_op ? &element_in(node.params) : nullptr;
}
const std::string* required_message_of(const Node& node) {
  return node.op == &required_op ? &node.params[required_params.message] : nullptr;
}

RowBuffer::RowBuffer(const Tensor& list, bool traced) : rows_(list), length_(list.dim(0)) {
  if (traced) traced_ = is_blank(list) || length_ == 0 ? Tensors() : unstack(list, 0);
}

Tensor RowBuffer::list() const {
  if (traced_) return traced_->empty() ? rows_ : stack(*traced_, 0);
  Shape shape = rows_.shape();
  shape[0] = length_;
  return rows_.view(shape);
}

void RowBuffer::write(int64_t index, const Tensor& value, bool growing) {
  check_write(index, length_, growing);
  if (is_blank(rows_) && !(row_shape(rows_.shape()) == value.shape())) {
    rows_ = zeros(rows_.dtype(), list_shape(length_, value.shape()));
    owned_ = true;
  }
  if (!(row_shape(rows_.shape()) == value.shape()))
    fail(ErrorKind::invalid_argument, "TensorArray.write: Incompatible shape for value ", value.shape(), ", expected ",
         row_shape(rows_.shape()));
  if (traced_) return write_traced(index, value);
  own(index);
  std::memcpy(static_cast<char*>(rows_.mutable_raw()) + size_t(index) * value.bytes(), value.raw(), value.bytes());
}

void RowBuffer::write_traced(int64_t index, const Tensor& value) {
  length_ = std::max(length_, index + 1);
  while (int64_t(traced_->size()) < length_) traced_->push_back(zeros(value.dtype(), value.shape()));
  (*traced_)[size_t(index)] = value;
}

void RowBuffer::own(int64_t index) {
  int64_t capacity = rows_.dim(0), wanted = std::max(length_, index + 1);
  if (!owned_ || wanted > capacity || !rows_.unique()) {
    // Room for more, if it grows step by step.
    int64_t room = owned_ && wanted > capacity ? std::max(wanted, 2 * capacity) : wanted;
    Shape shape = rows_.shape();
    shape[0] = room;
    Tensor bigger = Tensor::allocate(rows_.dtype(), shape);
    size_t row = bigger.bytes() / size_t(std::max<int64_t>(room, 1)), used = size_t(length_) * row;
    std::memcpy(bigger.mutable_raw(), rows_.raw(), used);
    std::memset(static_cast<char*>(bigger.mutable_raw()) + used, 0, bigger.bytes() - used);
    rows_ = bigger;
    owned_ = true;
  }
  length_ = wanted;
}

Tensor RowBuffer::take(int64_t index) {
  if (traced_) {
    const Tensor row = index < int64_t(traced_->size()) ? (*traced_)[size_t(index)] : Tensor();
    const Tensor zero = zeros(rows_.dtype(), row_shape(rows_.shape()));
    write_traced(index, zero);
    return row ? row : zero;
  }
  own(index);
  Tensor row = Tensor::allocate(rows_.dtype(), row_shape(rows_.shape()));
  char* at = static_cast<char*>(rows_.mutable_raw()) + size_t(index) * row.bytes();
  std::memcpy(row.mutable_raw(), at, row.bytes());
  std::memset(at, 0, row.bytes());
  return row;
}

Tensor list_set(const Tensor& list, const Tensor& index, const Tensor& value, bool growing) {
  return run(set_op, std::initializer_list<Tensor>{list, index, value}, {Param(growing)});
}
Tensor list_get(const Tensor& list, const Tensor& index, const Shape& element) {
  return run(get_op, std::initializer_list<Tensor>{list, index}, {element_param(element)});
}
Tensor list_stack(const Tensor& list, const Shape& element) {
  return run(list_stack_op, std::initializer_list<Tensor>{list}, {element_param(element)});
}
Tensor required(const Tensor& t, const Tensor& holds, std::string text) {
  return run(required_op, std::initializer_list<Tensor>{t, holds},
             {Param(std::static_pointer_cast<void>(std::make_shared<std::string>(std::move(text))))});
}

}  // namespace tapeflow
