#include "intercept/session/entry.h"

namespace vgpu {

Session* initializedSession() { return Session::find(); }

}  // namespace vgpu
