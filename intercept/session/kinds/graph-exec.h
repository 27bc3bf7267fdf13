#pragma once

#include <memory>

#include "intercept/session/kinds/head.h"

namespace vgpu::client {

class Executable;

struct GraphExecState : ObjectHead {
  std::shared_ptr<Executable> executable;  // intercept/session/graph/executable.h

  void reset() { executable.reset(); }
};

}  // namespace vgpu::client
