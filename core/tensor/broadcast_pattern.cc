// How operands of elementwise operations lie along a result, and writing out those that broadcasting repeats.
#include <algorithm>
#include <cstring>

#include "tensor/elementwise_program.h"

namespace tapeflow {
namespace {
constexpr int64_t kShortestRow = 128;  // elements of a row for which an operand of its own is not written out
}  // namespace

void Placement::find(const Shape& operand, const Shape& result, Layout& layout) {
  int64_t size = operand.elements(), length = 0;
  int skip = 0, same = 0;
  while (skip < operand.rank() && operand[skip] == 1) ++skip;
  if (size == result.elements()) {
    layout = Layout::full;
  } else if (size == 1) {
    layout = Layout::scalar;
  } else if (operand.slice(skip, operand.rank()) ==
             result.slice(result.rank() - operand.rank() + skip, result.rank())) {
    layout = Layout::row;
    length = size;
  } else {
    const int ahead = result.rank() - operand.rank();  // dimensions that the operand has not got
    if (ahead == 0)
      while (same < operand.rank() && operand[same] == result[same]) ++same;
    bool by_row = ahead == 0;
    for (int i = same; i < operand.rank(); ++i) by_row &= operand[i] == 1;
    length = by_row ? result.elements(same, result.rank()) : 0;
    layout = length >= kShortestRow ? Layout::column : Layout::broadcast;
  }
  if (length != 0 && row_length != 0 && row_length != length) layout = Layout::broadcast;
  if (layout == Layout::row || layout == Layout::column) row_length = length;
}

BroadcastPattern::BroadcastPattern(const Shape& operand, const Shape& result) {
  const int ahead = result.rank() - operand.rank();
  int64_t stride = 1;
  for (int i = result.rank(); i-- > 0;) {
    if (result[i] == 1) continue;
    const bool varies = i >= ahead && operand[i - ahead] != 1;
    if (!groups_.empty() && (groups_.back().stride != 0) == varies)
      groups_.back().length *= result[i];
    else
      groups_.push_back({result[i], varies ? stride : 0});
    if (varies) stride *= result[i];
  }
  if (groups_.empty()) groups_.push_back({1, 0});
  std::reverse(groups_.begin(), groups_.end());
  // Behind the innermost repetition but the last, if that is one: each element of the run may itself be repeated.
  const size_t inside = groups_.back().stride == 0 ? 2 : 1;
  if (groups_.size() <= inside) return;
  const int64_t run = inside == 1 ? groups_.back().length : groups_.back().length * groups_.rbegin()[1].length;
  if (run > kLongestPeriod) return;
  period_ = run;
  region_ = run * groups_.rbegin()[inside].length;
}

template <class T> void BroadcastPattern::write_as(const T* operand, int64_t first, int64_t n, T* y) const {
  const size_t last = groups_.size() - 1;
  const Group inner = groups_[last];
  int64_t index[kMaxRank], rest = first, offset = 0;
  for (size_t g = groups_.size(); g-- > 0;) {
    index[g] = rest % groups_[g].length;
    rest /= groups_[g].length;
    offset += index[g] * groups_[g].stride;
  }
  auto repeat = [](const T element, int64_t count, T* to) {  // and up to kSlack more
    constexpr int64_t together = kSlack / 4;
    for (int64_t i = 0; i < count; i += together)
      for (int64_t k = 0; k < together; ++k) to[i + k] = element;
  };
  for (int64_t done = 0; done < n;) {
    const int64_t count = std::min(inner.length - index[last], n - done);
    const T* from = operand + offset;
    if (inner.stride == 0) {
      repeat(*from, count, y + done);
      // Neighbours that are each repeated: all but the last one of them.
      if (last > 0 && index[last] + count == inner.length) {
        const int64_t more =
            std::min(groups_[last - 1].length - 1 - index[last - 1], (n - done - count) / inner.length);
        T* to = y + done + count;
        for (int64_t i = 1; i <= more; ++i, to += inner.length) repeat(from[i], inner.length, to);
        index[last - 1] += more;
        offset += more * groups_[last - 1].stride;
        done += more * inner.length;
      }
    } else if (count >= 8) {
      std::memcpy(y + done, from, size_t(count) * sizeof(T));
    } else {
      for (int64_t i = 0; i < count; ++i) y[done + i] = from[i];
    }
    done += count;
    // A short run that comes again, as often as it does.
    if (last > 0 && groups_[last - 1].stride == 0 && count == inner.length && done < n) {
      int64_t more = std::min((groups_[last - 1].length - 1 - index[last - 1]) * count, n - done), there = count;
      index[last - 1] += more / count;
      if (more % count == 0 && count <= kSlack && more <= kSlack * count) {
        T run[kSlack];
        std::memcpy(run, y + done - count, sizeof run);
        for (int64_t made = 0; made < more; made += count) std::memcpy(y + done + made, run, sizeof run);
        done += more;
      } else if (more % count == 0) {
        for (int64_t made = 0, part; made < more; made += part, there += part) {
          part = std::min(there, more - made);
          std::memcpy(y + done + made, y + done - count, size_t(part) * sizeof(T));
        }
        done += more;
      } else {
        for (int64_t made = 0; made < more; made += std::min(count, more - made))
          std::memcpy(y + done + made, y + done - count, size_t(std::min(count, more - made)) * sizeof(T));
        return;  // n is reached
      }
    }
    offset -= index[last] * inner.stride;
    index[last] = 0;
    for (size_t g = last; g-- > 0;) {
      offset += groups_[g].stride;
      if (++index[g] < groups_[g].length) break;
      offset -= index[g] * groups_[g].stride;
      index[g] = 0;
    }
  }
}

void BroadcastPattern::write(const TensorBody& operand, int64_t first, int64_t n, char* y) const {
  auto write = [&]<class T>(T*) { write_as(static_cast<const T*>(operand.data), first, n, reinterpret_cast<T*>(y)); };
  switch (size_of(operand.dtype)) {
    case 1: return write(static_cast<uint8_t*>(nullptr));
    case 2: return write(static_cast<uint16_t*>(nullptr));
    case 4: return write(static_cast<uint32_t*>(nullptr));
    default: return write(static_cast<uint64_t*>(nullptr));
  }
}

}  // namespace tapeflow
