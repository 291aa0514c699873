#include "kernels/example_columns.h"

#include <cstring>

namespace tapeflow {

namespace {

enum Wire : uint32_t { kVarint = 0, kFixed64 = 1, kBytes = 2, kFixed32 = 5 };

// Reads fields one after the other; `ok` becomes false at the first byte that does not fit.
class Reader {
 public:
  explicit Reader(std::string_view text) : at_(text.data()), end_(text.data() + text.size()) {}
  bool ok = true;
  uint32_t field = 0, wire = 0;
  std::string_view body;  // of a field of kind kBytes, kFixed32 or kFixed64
  uint64_t number = 0;    // of a varint

  bool next() {
    if (at_ == end_ || !ok) return false;
    const uint64_t tag = varint();
    field = uint32_t(tag >> 3), wire = uint32_t(tag & 7);
    if (!ok || tag >> 32 || field == 0) return ok = false;
    switch (wire) {
      case kVarint: number = varint(); return ok;
      case kFixed64: return take(8);
      case kBytes: {
        const uint64_t size = varint();
        return ok && take(size);
      }
      case kFixed32: return take(4);
      default: return ok = false;
    }
  }

  // The next varint of a packed list; false at its end.
  bool next_varint() {
    if (at_ == end_ || !ok) return false;
    number = varint();
    return ok;
  }

 private:
  uint64_t varint() {
    uint64_t value = 0;
    for (int shift = 0; shift < 64; shift += 7) {
      if (at_ == end_) break;
      const auto byte = uint8_t(*at_++);
      value |= uint64_t(byte & 0x7f) << shift;
      if (byte < 0x80) return value;
    }
    ok = false;
    return 0;
  }
  bool take(uint64_t size) {
    if (size > uint64_t(end_ - at_)) return ok = false;
    body = {at_, size_t(size)};
    at_ += size;
    return true;
  }
  const char* at_;
  const char* end_;
};

int64_t count_varints(std::string_view packed, bool& ok) {
  int64_t count = 0;
  int length = 0;  // of the varint that is being read
  for (char c : packed) {
    ++length;
    if (uint8_t(c) < 0x80) {
      ++count;
      length = 0;
    } else if (length >= 10) {
      ok = false;
    }
  }
  ok = ok && length == 0;
  return count;
}

// How many values a list holds; its bytes are checked here, so that copying needs no check.
int64_t count_values(std::string_view list, FeatureKind kind, bool& ok) {
  int64_t count = 0;
  Reader r(list);
  while (r.next()) {
    if (r.field != 1) continue;
    if (kind == FeatureKind::bytes && r.wire == kBytes) {
      ++count;
    } else if (kind == FeatureKind::floats && r.wire == kFixed32) {
      ++count;
    } else if (kind == FeatureKind::floats && r.wire == kBytes && r.body.size() % 4 == 0) {
      count += int64_t(r.body.size() / 4);
    } else if (kind == FeatureKind::integers && r.wire == kVarint) {
      ++count;
    } else if (kind == FeatureKind::integers && r.wire == kBytes) {
      count += count_varints(r.body, ok);
    } else {
      ok = false;
    }
  }
  ok = ok && r.ok;
  return count;
}

// The list of a feature: the last one counts, as in a message with a `oneof`.
bool find_list(std::string_view feature, ExampleColumn::List& found) {
  found = {{}, FeatureKind::none, 0};
  Reader r(feature);
  while (r.next()) {
    if (r.field < 1 || r.field > 3) continue;
    if (r.wire != kBytes) return false;
    found.body = r.body, found.kind = FeatureKind(r.field);
  }
  if (!r.ok) return false;
  bool ok = true;
  if (found.kind != FeatureKind::none) found.count = count_values(found.body, found.kind, ok);
  return ok;
}

// Key and value of an entry of a map.
bool read_entry(std::string_view entry, std::string_view& key, std::string_view& value) {
  key = value = {};
  Reader r(entry);
  while (r.next()) {
    if (r.field != 1 && r.field != 2) continue;
    if (r.wire != kBytes) return false;
    (r.field == 1 ? key : value) = r.body;
  }
  return r.ok;
}

// Collects, for one example, the bytes of every requested feature: those of the last entry of its name.
class Finder {
 public:
  Finder(std::span<ExampleColumn> columns, bool steps) : columns_(columns), steps_(steps), found_(columns.size()) {}

  bool read(std::string_view example) {
    for (auto& f : found_) f = {nullptr, 0};
    Reader r(example);
    while (r.next()) {
      if (r.field != (steps_ ? 2u : 1u)) continue;
      if (r.wire != kBytes || !read_map(r.body)) return false;
    }
    return r.ok;
  }
  // Null data: absent.
  std::string_view found(size_t column) const { return found_[column]; }

 private:
  bool read_map(std::string_view map) {
    Reader r(map);
    // Writers put the features of all examples in one order: the search begins after the last hit.
    size_t next = 0;
    while (r.next()) {
      if (r.field != 1) continue;
      std::string_view key, value;
      if (r.wire != kBytes || !read_entry(r.body, key, value)) return false;
      for (size_t k = 0; k < columns_.size(); ++k) {
        const size_t i = next + k < columns_.size() ? next + k : next + k - columns_.size();
        if (columns_[i].key != key) continue;
        found_[i] = value.data() ? value : std::string_view("", 0);
        next = i + 1 < columns_.size() ? i + 1 : 0;
        break;
      }
    }
    return r.ok;
  }
  std::span<ExampleColumn> columns_;
  bool steps_;
  std::vector<std::string_view> found_;
};

}  // namespace

ExampleStatus find_columns(std::span<const std::string> examples, std::span<ExampleColumn> columns, bool steps) {
  Finder finder(columns, steps);
  for (auto& c : columns) {
    c.lists_by_example.assign(examples.size(), -1);
    c.lists.clear();
    c.total = 0;
    if (!steps) c.lists.reserve(examples.size());
  }
  const auto add = [](ExampleColumn& c, std::string_view feature) {
    ExampleColumn::List list;
    if (!find_list(feature, list)) return ExampleFault::malformed;
    if (list.kind != FeatureKind::none && list.kind != c.kind) {
      c.lists.push_back(list);  // for the message
      return ExampleFault::wrong_kind;
    }
    c.total += list.count;
    c.lists.push_back(list);
    return ExampleFault::none;
  };
  for (size_t e = 0; e < examples.size(); ++e) {
    if (!finder.read(examples[e])) return {ExampleFault::malformed, e, 0, FeatureKind::none};
    for (size_t k = 0; k < columns.size(); ++k) {
      auto& c = columns[k];
      const std::string_view found = finder.found(k);
      if (!found.data()) continue;
      ExampleFault fault = ExampleFault::none;
      const size_t before = c.lists.size();
      if (!steps) {
        fault = add(c, found);
        if (fault == ExampleFault::none && c.lists.back().kind == FeatureKind::none) {  // no list: as if it were absent
          c.lists.pop_back();
          continue;
        }
      } else {
        Reader r(found);
        while (fault == ExampleFault::none && r.next())
          if (r.field == 1) fault = r.wire == kBytes ? add(c, r.body) : ExampleFault::malformed;
        if (fault == ExampleFault::none && !r.ok) fault = ExampleFault::malformed;
      }
      if (fault != ExampleFault::none)
        return {fault, e, k, fault == ExampleFault::wrong_kind ? c.lists.back().kind : FeatureKind::none};
      c.lists_by_example[e] = int64_t(c.lists.size() - before);
    }
  }
  return {};
}

void copy_values(const ExampleColumn& column, float* out) {
  for (const auto& list : column.lists) {
    Reader r(list.body);
    while (r.next()) {
      if (r.field != 1) continue;
      std::memcpy(out, r.body.data(), r.body.size());  // little-endian, as the machine
      out += r.body.size() / 4;
    }
  }
}

void copy_values(const ExampleColumn& column, int64_t* out) {
  for (const auto& list : column.lists) {
    Reader r(list.body);
    while (r.next()) {
      if (r.field != 1) continue;
      if (r.wire == kVarint) {
        *out++ = int64_t(r.number);
        continue;
      }
      Reader packed(r.body);
      while (packed.next_varint()) *out++ = int64_t(packed.number);
    }
  }
}

void copy_values(const ExampleColumn& column, std::string* out) {
  for (const auto& list : column.lists) {
    Reader r(list.body);
    while (r.next())
      if (r.field == 1) *out++ = r.body;
  }
}

}  // namespace tapeflow
