// What would refuse or delay a suspend of a session: as reported by its worker, and by those of the sessions that would be suspended
// together with it.
#pragma once

#include <kj/async.h>

#include <string>
#include <vector>

#include "tools/vgpud/sessions.h"

namespace vgpu::daemon {

struct Obstacle {
  bool refuses = false;  // else it delays it
  std::string object, why;
};

struct Explanation {
  std::vector<Obstacle> obstacles;
  uint64_t deviceBytes = 0;  // that a suspend would save, of all these sessions
};

// Throws kj::Exception, at once or later, if the session does not run.
kj::Promise<Explanation> explain(Sessions& sessions, Session& session);

}  // namespace vgpu::daemon
