// Making plans. The graph is traced once more with the shapes of the inputs, so that every rule that waited is there; then
// equal nodes are merged, nodes that only show elements under another shape become aliases, elementwise nodes are put
// into groups, and memory is given out by lifetime.
#include "graph/plan.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <set>
#include <string_view>

#include "graph/control_ops.h"
#include "graph/shown_memory.h"
#include "kernels/vector.h"
#include "ops/ops.h"

namespace tapeflow {
namespace {

Tensor bare_tensor(DType dtype, const Shape& shape) {
  TensorBody* body = TensorBody::create();
  body->dtype = dtype;
  body->shape = shape;
  body->size = shape.elements();
  return Tensor(body);
}

bool same_param(const Param& a, const Param& b) {
  if (a.kind != b.kind) return false;
  switch (a.kind) {
    case Param::Kind::none: return true;
    case Param::Kind::flag: return a.flag == b.flag;
    case Param::Kind::integer: return a.integer == b.integer;
    case Param::Kind::real: return std::memcmp(&a.real, &b.real, sizeof a.real) == 0;
    case Param::Kind::dtype: return a.dtype == b.dtype;
    case Param::Kind::ints: return std::equal(a.ints.begin(), a.ints.end(), b.ints.begin(), b.ints.end());
    case Param::Kind::text: return a.text == b.text;
    default: return a.object == b.object;
  }
}

bool only_shows(std::string_view name) {
  for (const char* shown : {"Identity", "StopGradient", "Reshape", "ExpandDims", "Squeeze"})
    if (name == shown) return true;
  return false;
}
// These give a view of their input for some parameters, whatever the elements are.
bool may_show(std::string_view name) {
  for (const char* shown : {"StridedSlice", "SplitV", "Unpack", "GetItem"})
    if (name == shown) return true;
  return false;
}

}  // namespace

class Planner {
 public:
  explicit Planner(const Graph& from) : from_(from), plan_(new Plan) {}

  std::unique_ptr<Plan> make(std::span<const Tensor> inputs) {
    specialise(inputs);
    if (!can_be_planned()) return nullptr;
    find_values();
    schedule();
    find_lifetimes();
    place_values();
    make_steps();
    return std::move(plan_);
  }

 private:
  static constexpr int kNone = -1;
  struct Info {
    enum class Kind : uint8_t { constant, input, variable, computed } kind = Kind::computed;
    ValueId same;          // the value that is meant: another one if this one is equal to it or lies in it
    size_t offset = 0;     // bytes, inside it
    int node = kNone;      // that computes it
    int step = kNone;      // of the schedule
    int last_use = kNone;  // step
    bool is_result = false, stored = false;
    bool grouped = false;  // computed by a group
    bool kept = false;     // elements outlive that group
    int member = kNone;    // place in the group
    Tensor body;
  };

  Graph& graph() { return *plan_->graph_; }
  const Spec spec(ValueId v) { return {graph().values[v].tensor.dtype(), graph().values[v].tensor.shape()}; }

  void specialise(std::span<const Tensor> inputs) {
    plan_->graph_ = std::make_shared<Graph>();
    Graph& g = graph();
    g.plain_updates = true;
    EnterStage stage(&g);
    PauseRecording unheard;
    std::vector<Tensor> in;
    for (const Tensor& t : inputs) in.push_back(g.add_input({t.dtype(), t.shape()}));
    for (const Tensor& t : interpret(from_, in)) g.outputs.push_back(g.id_of(t));
  }

  static bool has_state(const Graph& g) {
    for (const Node& n : g.nodes) {
      if (!n.op) continue;
      if (n.op == &read_variable_op() || n.op == &assign_op()) return true;
      if (n.op->effect && !has_only_pure_graphs(n)) return true;
    }
    return false;
  }
  static bool has_only_pure_graphs(const Node& n) {
    if (!is_control_op(*n.op)) return false;
    for (const auto& inner : graphs_of(n))
      if (has_state(*inner)) return false;
    return true;
  }

  bool can_be_planned() {
    for (const Value& v : graph().values) {
      if (v.tensor.size() < 0 || v.tensor.dtype() == DType::string) return false;
      if (v.tensor.dtype() == DType::float64 || v.tensor.dtype() == DType::complex128) plan_->flushes_ = false;
    }
    for (const Node& n : graph().nodes) {
      if (!n.op || n.params.has_tensor()) return false;
      if (std::string_view(n.op->name) == "Composition") return false;
      if (n.op->effect && n.op != &assign_op() && !has_only_pure_graphs(n)) return false;
    }
    return true;
  }

  // ---- which values there are

  ValueId meant(ValueId v) const { return info_[v].same; }

  // The one value that all elements of a constant have.
  bool uniform(ValueId v, float* value) {
    if (info_[v].kind != Info::Kind::constant) return false;
    const Tensor& t = graph().values[v].tensor;
    if (t.dtype() != DType::float32 || t.size() == 0) return false;
    const float* p = t.data<float>();
    for (int64_t i = 1; i < t.size(); ++i)
      if (std::memcmp(p, p + i, sizeof *p) != 0) return false;
    *value = *p;
    return true;
  }

  // The operand that a node is equal to, if it is.
  int simplified(const Node& n) {
    std::string_view name = n.op->name;
    if (name != "Mul" && name != "RealDiv") return kNone;
    for (size_t one = name == "Mul" ? 0 : 1; one < 2; ++one) {
      float value;
      ValueId other = n.inputs[1 - one];
      if (uniform(n.inputs[one], &value) && value == 1.0f && spec(other).shape == spec(n.first_output).shape) return int(other);
    }
    return kNone;
  }

  void find_values() {
    Graph& g = graph();
    info_.resize(g.values.size());
    for (ValueId v = 0; v < g.values.size(); ++v) {
      info_[v].same = v;
      int node = g.values[v].node;
      info_[v].kind = node == Value::kConstant ? Info::Kind::constant : node == Value::kInput ? Info::Kind::input : Info::Kind::computed;
      info_[v].node = node >= 0 ? node : kNone;
    }
    std::map<VariableBody*, ValueId> now;
    std::map<VariableBody*, ValueId> first;
    std::multimap<size_t, size_t> equal_nodes;
    for (size_t i = 0; i < g.nodes.size(); ++i) {
      Node& n = g.nodes[i];
      for (ValueId& v : n.inputs)
        if (info_[v].offset == 0 && spec(v).shape == spec(meant(v)).shape) v = meant(v);
      read_before_broadcast(n);
      if (n.op == &read_variable_op()) {
        VariableBody* variable = &variable_in(n.params[0]);
        auto it = now.find(variable);
        if (it != now.end()) {
          lie(n.first_output, it->second, 0);
        } else {
          info_[n.first_output].kind = Info::Kind::variable;
          now[variable] = first[variable] = n.first_output;
        }
        continue;
      }
      if (n.op == &assign_op()) {
        now[&variable_in(n.params[0])] = n.inputs[0];
        assigned_.insert(&variable_in(n.params[0]));
        continue;
      }
      if (show(n)) continue;
      if (int same = simplified(n); same != kNone) {
        lie(n.first_output, ValueId(same), 0);
        continue;
      }
      if (!n.op->stateful && !n.op->effect && n.outputs > 0 && merge(n, i, equal_nodes)) continue;
      nodes_.push_back(int(i));
    }
    for (auto& [variable, v] : first) plan_->variables_.push_back({variable, nullptr, spec(v)}), variable_values_.push_back(v);
    for (VariableBody* variable : assigned_) stores_.push_back({variable, now[variable]});
    drop_unused();
  }

  // An operation that broadcasts by itself reads what was broadcast for it before that.
  void read_before_broadcast(Node& n) {
    if (n.op->float_binary == nullptr) return;
    for (size_t k = 0; k < 2; ++k) {
      const int from = info_[n.inputs[k]].node;
      if (from == kNone || std::string_view(graph().nodes[size_t(from)].op->name) != "BroadcastTo") continue;
      if (spec(n.inputs[1 - k]).shape == spec(n.first_output).shape) n.inputs[k] = graph().nodes[size_t(from)].inputs[0];
    }
  }

  // Leaves out the nodes whose results nobody reads.
  void drop_unused() {
    std::vector<bool> used(info_.size(), false);
    for (ValueId v : graph().outputs) used[meant(v)] = true;
    for (auto& [variable, v] : stores_) used[meant(v)] = true;
    std::vector<int> kept;
    for (auto i = nodes_.rbegin(); i != nodes_.rend(); ++i) {
      const Node& n = graph().nodes[size_t(*i)];
      bool needed = n.op->effect || n.op->stateful;
      for (uint32_t k = 0; k < n.outputs; ++k) needed |= used[n.first_output + k];
      if (!needed) continue;
      for (ValueId v : n.inputs) used[meant(v)] = true;
      kept.push_back(*i);
    }
    nodes_.assign(kept.rbegin(), kept.rend());
  }

  void lie(ValueId v, ValueId in, size_t offset) {
    info_[v].same = meant(in);
    info_[v].offset = info_[in].offset + offset;
  }

  bool show(const Node& n) {
    std::string_view name = n.op->name;
    if (only_shows(name) || (name == "CustomGradient")) {
      for (uint32_t k = 0; k < n.outputs; ++k) lie(n.first_output + k, n.inputs[k], 0);
      return true;
    }
    if (!may_show(name) || n.inputs.size() != 1) return false;
    Spec s = spec(n.inputs[0]);
    Tensor sample = Tensor::allocate(s.dtype, s.shape);
    if (!sample.body()->buffer) return false;
    Call call(*n.op, std::span(&sample, 1), n.params);
    if (n.op->infer) n.op->infer(call);
    n.op->kernel(call);
    for (const Tensor& t : call.out)
      if (t.body()->buffer != sample.body()->buffer) return false;
    for (uint32_t k = 0; k < n.outputs; ++k)
      lie(n.first_output + k, n.inputs[0], size_t(static_cast<const char*>(call.out[k].raw()) - static_cast<const char*>(sample.raw())));
    return true;
  }

  bool merge(const Node& n, size_t i, std::multimap<size_t, size_t>& equal_nodes) {
    size_t hash = reinterpret_cast<size_t>(n.op);
    for (ValueId v : n.inputs) hash = hash * 1000003 + v;
    auto [from, to] = equal_nodes.equal_range(hash);
    for (; from != to; ++from) {
      const Node& other = graph().nodes[from->second];
      bool same = other.op == n.op && other.params.size() == n.params.size() &&
                  std::equal(n.inputs.begin(), n.inputs.end(), other.inputs.begin(), other.inputs.end());
      for (int p = 0; same && p < int(n.params.size()); ++p) same = same_param(n.params[p], other.params[p]);
      if (!same) continue;
      for (uint32_t k = 0; k < n.outputs; ++k) lie(n.first_output + k, other.first_output + k, 0);
      return true;
    }
    equal_nodes.emplace(hash, i);
    return false;
  }

  // ---- in which order, and in which groups

  // A kernel, or a group of elementwise nodes and the sums of their results, or a kernel and the group that follows it
  // element by element.
  struct Scheduled {
    int kernel = kNone;
    std::vector<int> group, sums;
    int64_t row_length = 0;  // 0: no operand of the group needs rows
    int64_t sum_length = 0;  // of those sums that are not of all elements

    template <class Visit> void each_node(Visit visit) const {
      if (kernel != kNone) visit(kernel);
      for (int i : group) visit(i);
      for (int i : sums) visit(i);
    }
  };

  bool is_float_elementwise(const Node& n) {
    if (!n.op->float_unary && !n.op->float_binary) return false;
    if (spec(n.first_output).dtype != DType::float32 || spec(n.first_output).shape.elements() == 0) return false;
    return std::all_of(n.inputs.begin(), n.inputs.end(), [&](ValueId v) { return spec(v).dtype == DType::float32; });
  }

  // Whether a node fits into a group whose rows have some length or none yet, and how its operands lie.
  bool fits_group(const Node& n, int64_t size, int64_t* row_length, Placement& placement) {
    if (!is_float_elementwise(n) || spec(n.first_output).shape.elements() != size) return false;
    const Shape result = spec(n.first_output).shape;
    placement.row_length = *row_length;
    if (n.op->float_unary) return true;
    if (!placement.find(spec(n.inputs[0]).shape, spec(n.inputs[1]).shape, result)) return false;
    *row_length = placement.row_length;
    return true;
  }

  void schedule() {
    Graph& g = graph();
    std::vector<int> waiting(g.nodes.size(), 0);
    std::vector<std::vector<int>> readers(g.nodes.size());
    std::set<int> ready;
    for (int i : nodes_) {
      std::set<int> before;
      for (ValueId v : g.nodes[size_t(i)].inputs)
        if (info_[meant(v)].kind == Info::Kind::computed) before.insert(info_[meant(v)].node);
      waiting[size_t(i)] = int(before.size());
      for (int b : before) readers[size_t(b)].push_back(i);
      if (before.empty()) ready.insert(i);
    }
    auto done = [&](int i) {
      ready.erase(i);
      for (int r : readers[size_t(i)])
        if (--waiting[size_t(r)] == 0) ready.insert(r);
    };
    Placement placement;
    while (!ready.empty()) {
      int next = *ready.begin();
      const Node& n = g.nodes[size_t(next)];
      Scheduled s;
      int64_t size = n.outputs ? spec(n.first_output).shape.elements() : 0;
      done(next);
      if (!fits_group(n, size, &s.row_length, placement)) {
        s.kernel = next;
        if (!join_group(next)) add(std::move(s));
        continue;
      }
      s.group.push_back(next);
      for (bool more = true; more && s.group.size() < 96;) {
        more = false;
        for (int candidate : ready)
          if (fits_group(g.nodes[size_t(candidate)], size, &s.row_length, placement)) {
            s.group.push_back(candidate);
            done(candidate);
            more = true;
            break;
          }
      }
      for (int i : s.group) info_[g.nodes[size_t(i)].first_output].grouped = true;
      if (int at = followed(s); at != kNone) {
        s.kernel = scheduled_[size_t(at)].kernel;
        number(scheduled_[size_t(at)] = std::move(s), at);
      } else {
        add(std::move(s));
      }
    }
  }

  void add(Scheduled s) {
    number(s, int(scheduled_.size()));
    scheduled_.push_back(std::move(s));
  }
  void number(const Scheduled& s, int step) {
    s.each_node([&](int i) {
      for (uint32_t k = 0; k < graph().nodes[size_t(i)].outputs; ++k) info_[graph().nodes[size_t(i)].first_output + k].step = step;
    });
  }

  // Lets the group that computes the input of a sum or mean make it, over all elements or over rows: the last axes.
  bool join_group(int i) {
    const Node& n = graph().nodes[size_t(i)];
    const std::string_view name = n.op->name;
    if (name != "Sum" && name != "Mean") return false;
    const Info& x = info_[meant(n.inputs[0])];
    if (!x.grouped || info_[n.inputs[0]].offset != 0 || scheduled_[size_t(x.step)].kernel != kNone) return false;
    const Shape shape = spec(n.inputs[0]).shape;
    if (spec(meant(n.inputs[0])).shape.elements() != shape.elements()) return false;
    const int64_t length = sum_length(n);
    int64_t& others = scheduled_[size_t(x.step)].sum_length;
    if (length == 0 || (length != shape.elements() && others != 0 && others != length)) return false;
    if (length != shape.elements()) others = length;
    scheduled_[size_t(x.step)].sums.push_back(i);
    info_[n.first_output].step = x.step;
    return true;
  }

  // How many neighbouring elements a sum or mean adds up to one; 0 if they are not neighbours.
  int64_t sum_length(const Node& n) {
    const Shape shape = spec(n.inputs[0]).shape;
    const Param& axes = n.params[0];
    if (axes.kind == Param::Kind::none) return shape.elements();
    if (axes.kind != Param::Kind::ints) return 0;
    std::set<int64_t> reduced;
    for (int64_t a : axes.ints) reduced.insert(a < 0 ? a + shape.rank() : a);
    const int first = shape.rank() - int(reduced.size());
    return reduced.empty() || *reduced.begin() == first ? shape.elements(first, shape.rank()) : 0;
  }

  // The step whose kernel a group can follow: the last one that the group waits for, if the kernel says when elements of
  // its result are ready and the group reads that result element by element.
  int followed(const Scheduled& s) {
    Graph& g = graph();
    int last = kNone;
    for (int i : s.group)
      for (ValueId v : g.nodes[size_t(i)].inputs)
        if (info_[meant(v)].kind == Info::Kind::computed) last = std::max(last, info_[meant(v)].step);
    if (last == kNone || scheduled_[size_t(last)].kernel == kNone || !scheduled_[size_t(last)].group.empty()) return kNone;
    const Node& kernel = g.nodes[size_t(scheduled_[size_t(last)].kernel)];
    if (!kernel.op->finishes || spec(kernel.first_output).dtype != DType::float32) return kNone;
    int64_t size = spec(g.nodes[size_t(s.group[0])].first_output).shape.elements();
    for (int i : s.group)
      for (ValueId v : g.nodes[size_t(i)].inputs)
        if (meant(v) == kernel.first_output && (info_[v].offset != 0 || spec(v).shape.elements() != size)) return kNone;
    return spec(kernel.first_output).shape.elements() == size ? last : kNone;
  }

  // ---- where values live

  void find_lifetimes() {
    Graph& g = graph();
    int end = int(scheduled_.size());
    for (int s = end; s-- > 0;) {
      scheduled_[size_t(s)].each_node([&](int i) {
        const Node& n = g.nodes[size_t(i)];
        // What a kernel makes may lie in its inputs.
        int until = s;
        if (n.op->makes_outputs)
          for (uint32_t k = 0; k < n.outputs; ++k) until = std::max(until, info_[n.first_output + k].last_use);
        for (ValueId v : n.inputs) {
          Info& used = info_[meant(v)];
          used.last_use = std::max(used.last_use, until);
          bool inside = used.step == s && used.grouped && info_[v].offset == 0 && spec(v).shape.elements() == spec(meant(v)).shape.elements();
          if (!inside) used.kept = true;
        }
      });
    }
    for (ValueId v : g.outputs) {
      info_[meant(v)].kept = true;
      info_[meant(v)].last_use = end;
      info_[meant(v)].is_result = true;
    }
    for (auto& [variable, v] : stores_) {
      info_[meant(v)].kept = true;
      info_[meant(v)].last_use = end;
    }
    for (ValueId v = 0; v < info_.size(); ++v)
      if (meant(v) != v && info_[meant(v)].kind == Info::Kind::computed && (info_[v].offset || spec(v).shape.elements() != spec(meant(v)).shape.elements())) info_[meant(v)].kept = true;
  }

  TensorBody* body_of(ValueId v) {
    Info& info = info_[v];
    if (!info.body) {
      const Tensor& t = graph().values[v].tensor;
      if (info.kind == Info::Kind::constant && meant(v) == v) {
        t.raw();
        info.body = t;
      } else {
        info.body = bare_tensor(t.dtype(), t.shape());
      }
      plan_->bodies_.push_back(info.body);
    }
    return info.body.body();
  }

  bool made(const Node& n) const { return n.op->makes_outputs; }

  // A value that is computed by a step straight into memory of its own: it can be an output or a variable's new value.
  bool own_memory(ValueId v) {
    const Info& info = info_[v];
    return meant(v) == v && info.kind == Info::Kind::computed && !made(graph().nodes[size_t(info.node)]);
  }

  void place_values() {
    Graph& g = graph();
    for (size_t i = 0; i < g.inputs.size(); ++i) plan_->inputs_.push_back({body_of(g.inputs[i]), spec(g.inputs[i])});
    for (size_t i = 0; i < variable_values_.size(); ++i) plan_->variables_[i].body = body_of(variable_values_[i]);
    std::map<ValueId, int> store_of;
    for (auto& [variable, v] : stores_) {
      bool computed = own_memory(v) && !store_of.contains(v) && spec(v).shape == variable->shape;
      if (computed) store_of[v] = int(plan_->stores_.size()), info_[v].stored = true;
      plan_->stores_.push_back({variable, body_of(v), spec(v), computed, computed && over_old_value(variable, v), Tensor()});
    }
    std::set<ValueId> fresh;
    for (ValueId v : g.outputs) {
      using Kind = Plan::Result::Kind;
      ValueId m = meant(v);
      if (m == v && info_[v].kind == Info::Kind::input) {
        int at = int(std::find(g.inputs.begin(), g.inputs.end(), v) - g.inputs.begin());
        plan_->results_.push_back({Kind::input, nullptr, spec(v), at, Tensor()});
      } else if (m == v && info_[v].kind == Info::Kind::constant) {
        plan_->results_.push_back({Kind::constant, nullptr, spec(v), 0, g.values[v].tensor});
      } else if (auto it = store_of.find(m); it != store_of.end() && info_[v].offset == 0 && spec(v).shape.elements() == spec(m).shape.elements()) {
        plan_->results_.push_back({Kind::stored, nullptr, spec(v), it->second, Tensor()});
      } else if (own_memory(v) && fresh.insert(v).second) {
        plan_->results_.push_back({Kind::computed, body_of(v), spec(v), 0, Tensor()});
        info_[v].stored = true;
      } else {
        plan_->results_.push_back({Kind::copied, body_of(v), spec(v), 0, Tensor()});
      }
    }
    place_in_arena();
  }

  // Whether a variable's new value may be written over the old one, element by element: everyone who reads the old one
  // has done so, or reads in the same group the same element.
  bool over_old_value(VariableBody* variable, ValueId v) {
    const Info& info = info_[v];
    size_t at = 0;
    while (at < variable_values_.size() && plan_->variables_[at].variable != variable) ++at;
    if (at == variable_values_.size()) return true;
    ValueId old = variable_values_[at];
    if (info_[old].last_use > info.step || info_[old].is_result) return false;
    if (info_[old].last_use < info.step) return true;
    return read_element_by_element(old, v);
  }

  // Whether the group that computes `v` may write it over `old`: its members read `old` element by element, none does so
  // after the one that makes `v`, and the kernel that they follow does not read it.
  bool read_element_by_element(ValueId old, ValueId v) {
    const Scheduled& s = scheduled_[size_t(info_[v].step)];
    if (!info_[v].grouped) return false;
    if (s.kernel != kNone)
      for (ValueId x : graph().nodes[size_t(s.kernel)].inputs)
        if (meant(x) == old) return false;
    bool written = false;
    for (int i : s.group) {
      const Node& n = graph().nodes[size_t(i)];
      for (ValueId x : n.inputs)
        if (meant(x) == old && (written || info_[x].offset != 0 || spec(x).shape.elements() != spec(n.first_output).shape.elements())) return false;
      written |= n.first_output == v;
    }
    return true;
  }

  struct Place {
    ValueId value;
    size_t bytes;
    Buffer* buffer;
  };

  void place_in_arena() {
    std::multimap<size_t, Buffer*> unused;
    std::vector<std::vector<Place>> ends(scheduled_.size() + 1);  // what is free after each step
    std::vector<Buffer*> all;
    for (size_t s = 0; s < scheduled_.size(); ++s) {
      scheduled_[s].each_node([&](int i) {
        const Node& n = graph().nodes[size_t(i)];
        if (made(n)) return;
        for (uint32_t k = 0; k < n.outputs; ++k) {
          ValueId v = n.first_output + k;
          Info& info = info_[v];
          if (info.stored || (info.grouped && !info.kept)) continue;
          TensorBody* body = body_of(v);
          size_t bytes = size_t(body->size) * size_of(body->dtype);
          if (bytes <= sizeof body->small) continue;
          Place place = take_over(ends[s], v, bytes);
          auto found = unused.lower_bound(bytes);
          if (!place.buffer && found != unused.end() && found->first <= 2 * bytes) {
            place = {v, found->first, found->second};
            unused.erase(found);
          } else if (!place.buffer) {
            place = {v, bytes, allocate_buffer(bytes)};
            all.push_back(place.buffer);
          }
          place.buffer->retain();
          body->buffer = place.buffer;
          body->data = place.buffer->data;
          ends[info.last_use == kNone ? s : size_t(info.last_use)].push_back(place);
        }
      });
      for (const Place& p : ends[s])
        if (p.buffer) unused.emplace(p.bytes, p.buffer);
    }
    for (Buffer* b : all) b->drop();
  }

  // The memory of a value that the group which computes `v` reads for the last time, if `v` may be written over it.
  Place take_over(std::vector<Place>& dying, ValueId v, size_t bytes) {
    for (Place& p : dying)
      if (p.buffer && p.bytes >= bytes && p.bytes <= 2 * bytes && (!info_[p.value].grouped || info_[p.value].step < info_[v].step) && read_element_by_element(p.value, v))
        return {v, p.bytes, std::exchange(p.buffer, nullptr)};
    return {v, 0, nullptr};
  }

  // ---- the steps

  void alias(ValueId v) {
    if (meant(v) == v || !aliased_.insert(v).second) return;
    TensorBody *body = body_of(v), *root = body_of(meant(v));
    const Info& info = info_[meant(v)];
    bool by_kernel = info.kind == Info::Kind::computed && made(graph().nodes[size_t(info.node)]);
    if (by_kernel)
      made_aliases_[info.node].push_back({body, root, info_[v].offset});
    else if (info.kind == Info::Kind::constant || (info.kind == Info::Kind::computed && !info.stored))
      lie_in(body, root, info_[v].offset);
    else
      plan_->aliases_.push_back({body, root, info_[v].offset});
  }

  void make_steps() {
    Graph& g = graph();
    for (size_t s = 0; s < scheduled_.size(); ++s)
      scheduled_[s].each_node([&](int i) {
        for (ValueId v : g.nodes[size_t(i)].inputs) alias(v);
      });
    for (ValueId v : g.outputs) alias(v);
    for (auto& [variable, v] : stores_) alias(v);
    for (const Scheduled& s : scheduled_) {
      Plan::Step step;
      if (s.kernel != kNone) make_call(g.nodes[size_t(s.kernel)], s.kernel, step);
      if (!s.group.empty()) step.program = make_program(s);
      plan_->steps_.push_back(std::move(step));
    }
  }

  const ElementwiseProgram* make_program(const Scheduled& s) {
    Graph& g = graph();
    int64_t size = spec(g.nodes[size_t(s.group[0])].first_output).shape.elements();
    ElementwiseProgram& program = plan_->programs_.emplace_back(size, s.row_length);
    for (int i : s.group) {
      const Node& n = g.nodes[size_t(i)];
      Placement placement;
      int64_t rows = s.row_length;
      fits_group(n, size, &rows, placement);
      ElementwiseProgram::Step step;
      ElementwiseProgram::Operand* operands[] = {&step.a, &step.b};
      for (size_t k = 0; k < n.inputs.size(); ++k) {
        ValueId v = n.inputs[k];
        const Info& m = info_[meant(v)];
        operands[k]->layout = k == 0 ? placement.a : placement.b;
        if (m.member != kNone && m.step == info_[n.first_output].step)
          operands[k]->step = m.member;
        else
          operands[k]->body = body_of(v);
      }
      step.unary = n.op->float_unary;
      if (n.op->float_binary) step.binary = placement.loop(*n.op->float_binary);
      Info& made = info_[n.first_output];
      if (made.kept) step.target = body_of(n.first_output);
      made.member = program.add(step);
    }
    for (int i : s.sums) {
      const Node& n = g.nodes[size_t(i)];
      const int64_t length = sum_length(n);
      const float divisor = std::string_view(n.op->name) == "Mean" ? float(length) : 1.0f;
      program.add({info_[meant(n.inputs[0])].member, length, divisor, body_of(n.first_output)}, vector_kernels<float>().sum);
    }
    program.finish();
    return &program;
  }

  void make_call(const Node& n, int index, Plan::Step& step) {
    step.kernel = n.op->kernel;
    step.in = std::make_unique<SmallVector<Tensor, 4>>();
    for (ValueId v : n.inputs) step.in->push_back(Tensor::borrow(body_of(v)));
    step.call = std::make_unique<Call>(*n.op, std::span<const Tensor>(step.in->begin(), step.in->size()), n.params);
    for (uint32_t k = 0; k < n.outputs; ++k) {
      Spec s = spec(n.first_output + k);
      step.call->returns(s.dtype, s.shape);
    }
    if (!made(n)) {
      for (uint32_t k = 0; k < n.outputs; ++k) {
        step.out.push_back(body_of(n.first_output + k));
        step.call->out.push_back(Tensor::borrow(step.out.back()));
      }
      return;
    }
    step.made = int(plan_->made_.size());
    Plan::Made& made = plan_->made_.emplace_back();
    for (uint32_t k = 0; k < n.outputs; ++k) made.bodies.push_back(body_of(n.first_output + k));
    made.aliases = made_aliases_[index];
  }

  const Graph& from_;
  std::unique_ptr<Plan> plan_;
  std::vector<Info> info_;
  std::vector<int> nodes_;  // that become steps, in program order
  std::vector<ValueId> variable_values_;
  std::set<VariableBody*> assigned_;
  std::vector<std::pair<VariableBody*, ValueId>> stores_;
  std::vector<Scheduled> scheduled_;
  std::set<ValueId> aliased_;
  std::map<int, std::vector<Plan::Alias>> made_aliases_;
};

std::unique_ptr<Plan> Plan::make(const Graph& graph, std::span<const Tensor> inputs) { return Planner(graph).make(inputs); }

}  // namespace tapeflow
