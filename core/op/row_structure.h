// How the result of an operation depends on the rows of its inputs, along their first dimension. An entry says it by
// its `row_rule` where its other properties do not.
#pragma once
#include "op/op.h"

namespace tapeflow {

// Every row of every input is worked on by itself: of an operation that is linear in the inputs that are by row, and
// works along dimensions behind the first, of tensors of at least this rank.
template <int Rank> RowStructure separate_rows(const Call& call, std::span<const bool> by_row, std::span<bool>) {
  for (size_t i = 0; i < call.in.size(); ++i)
    if (by_row[i] && call.in[i].rank() < Rank) return RowStructure::mixed;
  return RowStructure::separate;
}

// For a call whose shapes are known; call.specs has the results.
RowStructure row_structure(const Call&, std::span<const bool> by_row, std::span<bool> also_cut);

}  // namespace tapeflow
