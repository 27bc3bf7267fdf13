// A kernel's node that kernels may change ("device-updatable"). They know it by an address of the driver's, which the program has from
// the moment when the node becomes one, and so before there is an executable graph. Until then the worker has the node in a graph of
// its own, the holder, and moves it to the executable graph when that is made (docs/graphs.md).
//
// Shared by the node, and by the executable graph that has been made of it; with the last of them it ends. It stays over a suspend, by
// the holder's recipe.
#pragma once

#include <cuda.h>

#include <atomic>
#include <cstdint>
#include <memory>

#include "intercept/session/graph/node-work.h"

namespace vgpu::client {

class Session;
class Thread;

class DeviceNode {
 public:
  // Makes what `work` describes such a node, if it is not one already, and answers in `value` as the driver does. CUDA_ERROR_INVALID_VALUE
  // for a flag that is neither 0 nor 1, CUDA_ERROR_NOT_SUPPORTED for 0 if it is one.
  static CUresult make(Thread& thread, KernelWork& work, CUlaunchAttributeValue& value);
  // For cuGraphKernelNodeGetAttribute.
  static CUlaunchAttributeValue describe(const KernelWork& work);

  DeviceNode(Session& session, uint64_t holder, uint64_t address) : session(session), holder(holder), address(address) {}
  ~DeviceNode();
  DeviceNode(const DeviceNode&) = delete;
  DeviceNode& operator=(const DeviceNode&) = delete;

  Session& session;
  const uint64_t holder;   // virtual handle, of kind graphExec
  const uint64_t address;  // by which kernels know it
  std::atomic<bool> isInstantiated{false};  // in an executable graph that lives: there may be one
};

// What such a node has among its attributes.
CUlaunchAttribute deviceUpdatable(CUgraphDeviceNode node = nullptr);

}  // namespace vgpu::client
