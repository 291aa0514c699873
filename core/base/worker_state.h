// Whether a parallel_for would find its workers awake.
#pragma once

namespace tapeflow {

// True if no worker sleeps and this thread may use them: sharing out work then costs a microsecond instead of ten or
// more. A hint: it may have changed by the time it is used.
bool workers_awake();

}  // namespace tapeflow
