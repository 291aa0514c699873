// Serialised examples as tensors: `parse_columns`, which `tf.io.parse_example` makes its features of.
#include "python/examples.h"

#include <algorithm>
#include <string>
#include <vector>

#include "kernels/example_columns.h"
#include "python/common.h"

namespace tapeflow::python {

namespace {

FeatureKind kind_of(DType d) {
  switch (d) {
    case DType::string: return FeatureKind::bytes;
    case DType::float32: return FeatureKind::floats;
    case DType::int64: return FeatureKind::integers;
    default:
      fail(ErrorKind::invalid_argument, "parse_example: a feature must be float32, int64 or string; got ", name_of(d));
  }
}

const char* kind_name(FeatureKind kind) {
  return kind == FeatureKind::bytes ? "string" : kind == FeatureKind::floats ? "float" : "int64";
}

// The first bytes of an example, in characters that can be printed.
std::string shown(std::string_view text) {
  static const char* digits = "0123456789abcdef";
  std::string result;
  for (char c : text.substr(0, 100)) {
    const auto byte = uint8_t(c);
    if (byte >= 0x20 && byte < 0x7f)
      result += c;
    else
      result.append({'\\', 'x', digits[byte >> 4], digits[byte & 15]});
  }
  return result;
}

[[noreturn]] void fail_parsing(const ExampleStatus& status, std::span<const std::string> examples,
                               std::span<const ExampleColumn> columns, bool steps, bool single) {
  if (status.fault == ExampleFault::malformed) {
    if (steps) fail(ErrorKind::invalid_argument, "Could not parse sequence example input: invalid protocol buffer");
    fail(ErrorKind::invalid_argument, "Could not parse example input, value: '", shown(examples[status.example]), "'");
  }
  const ExampleColumn& column = columns[status.column];
  const std::string key = shown(column.key);
  if (single)
    fail(ErrorKind::invalid_argument, "Key: ", key, ".  Data types don't match. Data type: ", kind_name(status.found),
         " but expected type: ", kind_name(column.kind));
  fail(ErrorKind::invalid_argument, "Name: <unknown>, Key: ", key, ", Index: ", status.example,
       ".  Data types don't match. Data type: ", kind_name(status.found),
       " but expected type: ", kind_name(column.kind));
}

Tensor vector_of(std::span<const int64_t> numbers) {
  Tensor t = Tensor::allocate(DType::int64, Shape{int64_t(numbers.size())});
  std::copy(numbers.begin(), numbers.end(), t.mutable_data<int64_t>());
  return t;
}

Tensor values_of(const ExampleColumn& column, DType dtype) {
  Tensor t = Tensor::allocate(dtype, Shape{column.total});
  if (column.total == 0) return t;
  switch (column.kind) {
    case FeatureKind::floats: copy_values(column, t.mutable_data<float>()); break;
    case FeatureKind::integers: copy_values(column, t.mutable_data<int64_t>()); break;
    default: copy_values(column, t.mutable_data<std::string>());
  }
  return t;
}

// parse_columns(serialized, keys, dtypes, steps): a list with, for each key, its values in one vector, how many each
// list has, and how many lists each example has (-1: the feature is absent).
PyObject* parse_columns(PyObject*, PyObject* args) {
  return guarded([&]() -> PyObject* {
    PyObject *serialized, *keys, *dtypes;
    int steps;
    if (!PyArg_ParseTuple(args, "OO!O!p:parse_columns", &serialized, &PyTuple_Type, &keys, &PyTuple_Type, &dtypes,
                          &steps))
      throw_python_error();
    const Tensor tensor = to_tensor(serialized, DType::string, DType::invalid, "parse_example");
    const size_t count = size_t(PyTuple_GET_SIZE(keys));
    if (size_t(PyTuple_GET_SIZE(dtypes)) != count) fail(ErrorKind::value, "parse_columns: each key needs a dtype");
    std::vector<ExampleColumn> columns(count);
    std::vector<DType> kinds(count);
    for (size_t i = 0; i < count; ++i) {
      Py_ssize_t size;
      const char* text = PyUnicode_AsUTF8AndSize(PyTuple_GET_ITEM(keys, Py_ssize_t(i)), &size);
      if (!text) throw_python_error();
      kinds[i] = dtype_from(PyTuple_GET_ITEM(dtypes, Py_ssize_t(i)));
      columns[i].key = {text, size_t(size)};
      columns[i].kind = kind_of(kinds[i]);
    }
    const std::span examples(tensor.data<std::string>(), size_t(tensor.size()));
    const ExampleStatus status = find_columns(examples, columns, steps);
    if (status.fault != ExampleFault::none) fail_parsing(status, examples, columns, steps, tensor.rank() == 0);
    Ref result = checked(PyList_New(Py_ssize_t(count)));
    std::vector<int64_t> lengths;
    for (size_t i = 0; i < count; ++i) {
      lengths.clear();
      for (const auto& list : columns[i].lists) lengths.push_back(list.count);
      Ref values = checked(wrap(values_of(columns[i], kinds[i])));
      Ref counts = checked(wrap(vector_of(lengths)));
      Ref lists = checked(wrap(vector_of(columns[i].lists_by_example)));
      PyList_SET_ITEM(result.get(), Py_ssize_t(i), PyTuple_Pack(3, values.get(), counts.get(), lists.get()));
    }
    return result.release();
  });
}

PyMethodDef functions[] = {
    {"parse_columns", parse_columns, METH_VARARGS,
     "parse_columns(serialized, keys, dtypes, steps): values, list lengths and numbers of lists of each feature."},
    {nullptr, nullptr, 0, nullptr},
};

}  // namespace

void add_examples(PyObject* module) {
  if (PyModule_AddFunctions(module, functions) < 0) throw_python_error();
}

}  // namespace tapeflow::python
