// Opening, pausing and stopping recorders.
#include "op/thread_state.h"

#include <algorithm>
#include <mutex>
#include <vector>

#include "op/op.h"

namespace tapeflow {

namespace {

using Recorders = SmallVector<Recorder*, 4>;

// The state of a thread with the lists that PauseRecording will put back: who stops meanwhile leaves them, too.
struct WholeState : ThreadState {
  std::vector<Recorders*> hidden;
  WholeState();
  ~WholeState();
};
struct AllStates {
  std::mutex mutex;
  std::vector<WholeState*> states;
};
AllStates& all_states() {
  static AllStates& all = *new AllStates;  // threads may end after everything else
  return all;
}
WholeState::WholeState() {
  std::lock_guard lock(all_states().mutex);
  all_states().states.push_back(this);
}
WholeState::~WholeState() {
  std::lock_guard lock(all_states().mutex);
  std::erase(all_states().states, this);
}
std::vector<Recorders*>& hidden_lists() { return static_cast<WholeState&>(thread_state()).hidden; }

bool take_out(Recorders& recorders, const Recorder* recorder) {
  size_t at = 0;
  while (at < recorders.size() && recorders[at] != recorder) ++at;
  if (at == recorders.size()) return false;
  for (; at + 1 < recorders.size(); ++at) recorders[at] = recorders[at + 1];
  recorders.pop_back();
  return true;
}
bool take_out(WholeState& state, const Recorder* recorder) {
  bool found = take_out(state.recorders, recorder);
  for (Recorders* list : state.hidden) found |= take_out(*list, recorder);
  return found;
}

void hide(Recorders& saved) {
  if (!saved.empty()) hidden_lists().push_back(&saved);
}

}  // namespace

ThreadState& begin_thread() {
  static thread_local WholeState state;
  return *(thread_locals.state = &state);
}

void stop_recorder(const Recorder* recorder) {
  if (take_out(static_cast<WholeState&>(thread_state()), recorder)) return;
  // It was opened on another thread, as that of an object which the garbage collector finds.
  std::lock_guard lock(all_states().mutex);
  for (WholeState* state : all_states().states) take_out(*state, recorder);
}

const Tensor& read_variable(VariableBody& v) {
  ThreadState& state = thread_state();
  if (!v.value && !state.stage) fail(ErrorKind::failed_precondition, "Variable: it was read before it was initialised");
  const Tensor& value = state.stage ? state.stage->read(v) : v.value;
  for (Recorder* r : state.recorders) r->read(v, value);
  return value;
}

PauseRecording::PauseRecording(size_t first) : saved_(thread_state().recorders) {
  hide(saved_);
  thread_state().recorders.resize(first);
}
PauseRecording::PauseRecording(TapesOnly) : saved_(thread_state().recorders) {
  hide(saved_);
  auto& recorders = thread_state().recorders;
  recorders.clear();
  for (Recorder* r : saved_)
    if (r->forward()) recorders.push_back(r);
}
PauseRecording::~PauseRecording() {
  auto& hidden = hidden_lists();
  if (!hidden.empty() && hidden.back() == &saved_)
    hidden.pop_back();
  else
    std::erase(hidden, &saved_);
  thread_state().recorders = std::move(saved_);
}

}  // namespace tapeflow
