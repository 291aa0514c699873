// Lists of tensors in a graph: one tensor whose rows are the elements. A list into which nothing was written yet, and
// whose elements' shape is not known, is blank: its rows are empty vectors.
#pragma once
#include <optional>

#include "graph/graph.h"

namespace tapeflow {

// The list with `value` at `index`; a list that is not `growing` must be long enough.
Tensor list_set(const Tensor& list, const Tensor& index, const Tensor& value, bool growing);
// The element at `index`; zeros of this shape if the list is blank.
Tensor list_get(const Tensor& list, const Tensor& index, const Shape& element);
// All elements; zeros of this shape if the list is blank.
Tensor list_stack(const Tensor& list, const Shape& element);
// The tensor itself; running the graph fails with this text if `holds` is false.
Tensor required(const Tensor&, const Tensor& holds, std::string text);

bool is_list_write(const Op&);
bool list_grows(const Params&);  // of a write

// What the object among the parameters of a node is; null if the node is another operation.
const Shape* list_element_of(const Node&);
const std::string* required_message_of(const Node&);

// A list that its holder changes in place, as long as nobody else sees the elements; not of strings. While tracing, its
// elements are values of the graph.
class RowBuffer {
 public:
  explicit RowBuffer(const Tensor& list, bool traced = false);
  void write(int64_t index, const Tensor& value, bool growing);
  // The element, which is zero from now on.
  Tensor take(int64_t index);
  Tensor list() const;  // shares the elements

 private:
  void own(int64_t index);
  void write_traced(int64_t index, const Tensor& value);

  Tensor rows_;  // may have room for more than `length_`
  int64_t length_;
  bool owned_ = false;
  std::optional<Tensors> traced_;  // the elements; `rows_` is then what they were at first
};

}  // namespace tapeflow
