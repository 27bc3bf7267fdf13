// A call of a library that a stream has captured: the worker has what it does as a graph of the driver's. Nodes share it; with
// the last of them it ends, but executable graphs keep theirs. It stays over a suspend, by its recipe.
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
