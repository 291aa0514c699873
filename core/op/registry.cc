// The list of all entries, in order of definition.
#include <cstring>
#include <deque>
#include <string_view>
#include <unordered_map>

#include "op/op.h"

namespace tapeflow {
namespace {
struct Registry {
  std::deque<Op> ops;
  std::vector<const Op*> list;
  std::unordered_map<std::string_view, const Op*> op_by_name;
};
Registry& entries() {
  static Registry* r = new Registry;
  return *r;
}

// A parameter stands where its key says.
void check_keys(const Op& op) {
  int place = 0;
  for (const Argument& a : op.arguments) {
    if (a.kind == Argument::Kind::tensor || a.kind == Argument::Kind::tensors) continue;
    if (a.index != place)
      fail(ErrorKind::runtime, "the entry of ", op.name, ": '", a.name, "' is parameter ", place, "; its key says ",
           a.index);
    ++place;
  }
}

const Op& add(Op op) {
  check_keys(op);
  op.shortest_name = op.names.empty() ? op.called ? op.called : op.name : op.names[0];
  for (const char* path : op.names)
    if (std::strlen(path) < std::strlen(op.shortest_name)) op.shortest_name = path;
  return entries().ops.emplace_back(std::move(op));
}
}  // namespace

const Op& define(Op op) {
  const Op& entry = add(std::move(op));
  Registry& r = entries();
  if (!r.op_by_name.emplace(entry.name, &entry).second)
    fail(ErrorKind::runtime, "operation ", entry.name, " is defined twice");
  r.list.push_back(&entry);
  return entry;
}

const Op& define_inner(Op op) { return add(std::move(op)); }

const std::vector<const Op*>& registry() { return entries().list; }

const Op* find_op(const char* name) {
  auto it = entries().op_by_name.find(name);
  return it == entries().op_by_name.end() ? nullptr : it->second;
}

}  // namespace tapeflow
