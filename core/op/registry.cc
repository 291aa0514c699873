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
}  // namespace

const Op& define(Op op) {
  Registry& r = entries();
  op.shortest_name = op.names.empty() ? op.name : op.names[0];
  for (const char* path : op.names)
    if (std::strlen(path) < std::strlen(op.shortest_name)) op.shortest_name = path;
  r.ops.push_back(std::move(op));
  const Op& entry = r.ops.back();
  if (!r.op_by_name.emplace(entry.name, &entry).second)
    fail(ErrorKind::runtime, "operation ", entry.name, " is defined twice");
  r.list.push_back(&entry);
  return entry;
}

const Op& define_inner(Op op) {
  op.shortest_name = op.names.empty() ? op.name : op.names[0];
  return entries().ops.emplace_back(std::move(op));
}

const std::vector<const Op*>& registry() { return entries().list; }

const Op* find_op(const char* name) {
  auto it = entries().op_by_name.find(name);
  return it == entries().op_by_name.end() ? nullptr : it->second;
}

}  // namespace tapeflow
