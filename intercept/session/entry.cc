#include "intercept/session/entry.h"

namespace vgpu::client {

Session* initializedSession() { return Session::find(); }

}  // namespace vgpu::client
