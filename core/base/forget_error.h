// Letting go of an error that is caught and not reported.
#pragma once

namespace tapeflow {

// Lets go of an error whose text is kept outside of the core (ErrorKind::python). Who catches an Error and goes on must
// call it, or Python finds an exception set after a call that succeeded. Set by the Python layer.
inline void (*forget_error)() = [] {};

}  // namespace tapeflow
