// Attributes of kernel nodes.
#include "stub/emulator/driver/driver.h"
#include "stub/emulator/stream/device-graph-node.h"
#include "stub/emulator/stream/graph-node.h"

using namespace vgpu::emulator::api;

CUresult CUDAAPI cuGraphKernelNodeSetAttribute(CUgraphNode handle, CUkernelNodeAttrID attribute,
                                               const CUkernelNodeAttrValue* value) {
  if (value == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return enterDriver([&](Driver& driver) {
    std::lock_guard lock(driver.graphMutex);
    std::shared_ptr<GraphNode> node = driver.graphNodes.get(handle);
    LaunchRequest request = describedAs<LaunchRequest>(node->operation, CU_GRAPH_NODE_TYPE_KERNEL);
    applyAttribute(attribute, *value, request);
    checkLaunch(request);
    if (request.deviceUpdatable && !request.device) request.device = driver.deviceNodes.make();
    if (request.deviceUpdatable)  // the driver writes the handle there, although the prototype says const
      const_cast<CUkernelNodeAttrValue*>(value)->deviceUpdatableKernelNode.devNode = asHandle<CUgraphDeviceNode>(request.device->handle);
    node->operation = launchOperation(std::move(request));
  });
}

CUresult CUDAAPI cuGraphKernelNodeGetAttribute(CUgraphNode handle, CUkernelNodeAttrID attribute, CUkernelNodeAttrValue* value) {
  if (value == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return enterDriver([&](Driver& driver) {
    std::lock_guard lock(driver.graphMutex);
    const auto& request = describedAs<LaunchRequest>(driver.graphNodes.get(handle)->operation, CU_GRAPH_NODE_TYPE_KERNEL);
    CUkernelNodeAttrValue answer{};
    switch (attribute) {
      case CU_LAUNCH_ATTRIBUTE_COOPERATIVE:
        answer.cooperative = request.cooperative;
        break;
      case CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION:
        answer.clusterDim = {request.cluster[0], request.cluster[1], request.cluster[2]};
        break;
      case CU_LAUNCH_ATTRIBUTE_DEVICE_UPDATABLE_KERNEL_NODE:
        answer.deviceUpdatableKernelNode.deviceUpdatable = request.device != nullptr;
        if (request.device) answer.deviceUpdatableKernelNode.devNode = asHandle<CUgraphDeviceNode>(request.device->handle);
        break;
      default:
        refuse(CUDA_ERROR_NOT_SUPPORTED);
    }
    *value = answer;
  });
}
