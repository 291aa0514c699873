// Finding out that examples do not mix, and running the backward pass once for all of them.
#include "vmap/by_example.h"

#include <algorithm>

#include "op/row_structure.h"
#include "ops/ops.h"

namespace tapeflow {
namespace {

enum class Kind : uint8_t { same, by_row, batched };

bool has_examples_in_front(const Shape& shape, int64_t examples) {
  return shape.rank() > 0 && shape[0] > 0 && shape[0] % examples == 0;
}

class Analysis {
 public:
  Analysis(const Graph& graph, int64_t examples)
      : graph_(graph), examples_(examples), kind_(graph.values.size(), Kind::same) {
    result_.cut_inputs.resize(graph.nodes.size());
  }

  std::optional<ExampleStructure> run() {
    if (!graph_.overrides.empty() || examples_ < 2) return std::nullopt;
    kind_[graph_.inputs[0]] = Kind::by_row;
    for (size_t i = 0; i < graph_.nodes.size(); ++i)
      if (graph_.nodes[i].op && !visit(i)) return std::nullopt;
    for (ValueId v : graph_.outputs) result_.by_row.push_back(kind_[v] == Kind::by_row);
    return std::move(result_);
  }

 private:
  bool visit(size_t i) {
    const Node& n = graph_.nodes[i];
    bool any_by_row = false, any_batched = false;
    for_each_operand(n, [&](ValueId v) {
      any_by_row |= kind_[v] == Kind::by_row;
      any_batched |= kind_[v] == Kind::batched;
    });
    if (!any_by_row) {
      give(n, any_batched ? Kind::batched : Kind::same);
      return true;
    }
    if (any_batched || n.op->stateful || n.op->effect || n.params.has_tensor()) return false;
    switch (structure_of(n, result_.cut_inputs[i])) {
      case RowStructure::separate:
        for (uint32_t k = 0; k < n.outputs; ++k)
          if (!has_examples_in_front(shape(n.first_output + k), examples_)) return false;
        result_.cut_inputs[i].clear();
        give(n, Kind::by_row);
        return true;
      case RowStructure::summed: give(n, Kind::batched); return true;
      default: return false;
    }
  }

  // Sets which inputs are cut if the node sums.
  RowStructure structure_of(const Node& n, SmallVector<bool, 4>& cut) {
    SmallVector<Tensor, 4> in;
    SmallVector<bool, 4> by_row;
    for (ValueId v : n.inputs) {
      const Tensor& t = graph_.values[v].tensor;
      if (t.size() < 0) return RowStructure::mixed;
      in.push_back(t);
      by_row.push_back(kind_[v] == Kind::by_row);
    }
    Call call(*n.op, in, n.params);
    for (uint32_t k = 0; k < n.outputs; ++k) {
      const Tensor& y = graph_.values[n.first_output + k].tensor;
      if (y.size() < 0) return RowStructure::mixed;
      call.returns(y.dtype(), y.shape());
    }
    cut = by_row;
    const RowStructure found = row_structure(call, by_row, std::span(cut.begin(), cut.size()));
    for (size_t k = 0; k < cut.size(); ++k)
      if (cut[k] && !has_examples_in_front(in[k].shape(), examples_)) return RowStructure::mixed;
    return found;
  }

  const Shape& shape(ValueId v) const { return graph_.values[v].tensor.shape(); }
  void give(const Node& n, Kind kind) {
    for (uint32_t k = 0; k < n.outputs; ++k) kind_[n.first_output + k] = kind;
  }

  const Graph& graph_;
  int64_t examples_;
  std::vector<Kind> kind_;
  ExampleStructure result_;
};

// The rows of each example with zeros for the others: [n, ...] becomes [examples, n, ...].
Tensor with_zeros_between(const Tensor& rows, int64_t examples) {
  Tensor own = Tensor::allocate(DType::boolean, {examples, examples, 1});
  bool* at = own.mutable_data<bool>();
  for (int64_t i = 0; i < examples * examples; ++i) at[i] = i % (examples + 1) == 0;
  Tensor flat = reshape(rows, {1, examples, rows.size() / examples});
  Shape shape = rows.shape();
  shape.insert(0, examples);
  return reshape(select(own, flat, Tensor::number(rows.dtype(), 0)), shape);
}

}  // namespace

std::optional<ExampleStructure> find_example_structure(const Graph& graph, int64_t examples) {
  return Analysis(graph, examples).run();
}

Tensors gradients_by_example(const Graph& graph, const ExampleStructure& structure, const Tensor& like,
                             std::span<const Tensor> captures, int64_t examples) {
  BatchedValues in{{ones_like(like)}, {false}};
  for (const Tensor& t : captures) in.tensors.push_back(t), in.batched.push_back(false);
  BatchedValues found = run_batched(graph, in, examples, structure.cut_inputs);
  for (size_t k = 0; k < found.tensors.size(); ++k) {
    if (!structure.by_row[k]) continue;
    found.tensors[k] = with_zeros_between(found.tensors[k], examples);
    found.batched[k] = true;
  }
  return rows_of(found, examples);
}

}  // namespace tapeflow
