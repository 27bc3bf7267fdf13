// A library call captured in a stream: the worker keeps its work as a graph of the driver's. Nodes share it; it ends with the last of them,
// but executable graphs keep their copies. It survives a suspend by its recipe.
#pragma once

#include <cstdint>

namespace vgpu::client {

class Session;

class CapturedCall {
 public:
  CapturedCall(Session& session, uint64_t handle) : session(session), handle(handle) {}
  ~CapturedCall();
  CapturedCall(const CapturedCall&) = delete;
  CapturedCall& operator=(const CapturedCall&) = delete;

  Session& session;
  const uint64_t handle;  // virtual
};

}  // namespace vgpu::client
