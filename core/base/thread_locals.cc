// Owns the storage of ThreadLocals.
#include "base/thread_locals.h"

namespace tapeflow {

constinit thread_local ThreadLocals thread_locals __attribute__((tls_model("initial-exec"))){};

}  // namespace tapeflow
