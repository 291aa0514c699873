// Columns of serialised `tf.train.Example`s: the values of one feature over many examples, read from the wire format.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tapeflow {

// The three kinds of lists, by their field numbers in `Feature`; none is a feature without a list.
enum class FeatureKind : uint8_t { none = 0, bytes = 1, floats = 2, integers = 3 };

// One feature of all examples, as it is requested and as it is found. In `Example`s each example has at most one list;
// in the steps of `SequenceExample`s it has several. `lists` holds them in order of the examples; they point into the
// serialised strings.
struct ExampleColumn {
  struct List {
    std::string_view body;  // of the BytesList, FloatList or Int64List
    FeatureKind kind;
    int64_t count;
  };
  std::string_view key;
  FeatureKind kind;
  std::vector<int64_t> lists_by_example;  // how many lists each example has; -1: the feature is absent
  std::vector<List> lists;
  int64_t total = 0;  // values in all lists
};

enum class ExampleFault { none, malformed, wrong_kind };

struct ExampleStatus {
  ExampleFault fault = ExampleFault::none;
  size_t example = 0, column = 0;
  FeatureKind found = FeatureKind::none;
};

// Finds the columns in serialised examples. With `steps` they are those of the feature lists of sequences.
// Every length is checked against the bytes that are there; nothing is allocated by what a length says.
ExampleStatus find_columns(std::span<const std::string> examples, std::span<ExampleColumn> columns, bool steps);

// Writes the values of a column, one list after the other: `total` of them.
void copy_values(const ExampleColumn&, float*);
void copy_values(const ExampleColumn&, int64_t*);
void copy_values(const ExampleColumn&, std::string*);

}  // namespace tapeflow
