#pragma once

#include "vgpu/api/effects.h"

namespace vgpu::stub {

// The name of a call, for messages.
inline const char* methodName(api::Method method) {
  auto& info = api::infoOf(method);
  return info.entry != nullptr ? info.entry : info.name;
}

}  // namespace vgpu::stub
