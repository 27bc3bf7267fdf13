// A kernel node that kernels may update ("device-updatable"). Kernels know it by an address of the driver's, which the program gets as soon
// as the node becomes updatable, before there is an executable graph. Until then the worker keeps the node in a graph of its own, the
// holder; the executable graph takes it over when it is made (docs/graphs.md).
//
// Shared by the node and by the executable graph made from it; ends with the last of them. Survives a suspend by the holder's recipe.
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
  // Makes the node of `work` device-updatable, unless it is already, and fills `value` as the driver does. CUDA_ERROR_INVALID_VALUE for a
  // flag other than 0 and 1; CUDA_ERROR_NOT_SUPPORTED for 0 if it is updatable already.
  static CUresult make(Thread& thread, KernelWork& work, CUlaunchAttributeValue& value);
  // For cuGraphKernelNodeGetAttribute.
  static CUlaunchAttributeValue describe(const KernelWork& work);

  DeviceNode(Session& session, uint64_t holder, uint64_t address) : session(session), holder(holder), address(address) {}
  ~DeviceNode();
  DeviceNode(const DeviceNode&) = delete;
  DeviceNode& operator=(const DeviceNode&) = delete;

  Session& session;
  const uint64_t holder;   // virtual handle, of kind graphExec
  const uint64_t address;  // by which kernels know the node
  std::atomic<bool> isInstantiated{false};  // in an existing executable graph: at most one may have it
};

// The attribute that such a node has.
CUlaunchAttribute deviceUpdatable(CUgraphDeviceNode node = nullptr);

}  // namespace vgpu::client
