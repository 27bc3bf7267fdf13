#include "intercept/session/graph/device-node.h"

#include <cstring>

#include "intercept/session/call.h"
#include "intercept/session/graph/step-frames.h"

namespace vgpu::client {

CUlaunchAttribute deviceUpdatable(CUgraphDeviceNode node) {
  CUlaunchAttribute attribute;
  std::memset(&attribute, 0, sizeof attribute);
  attribute.id = CU_LAUNCH_ATTRIBUTE_DEVICE_UPDATABLE_KERNEL_NODE;
  attribute.value.deviceUpdatableKernelNode.deviceUpdatable = 1;
  attribute.value.deviceUpdatableKernelNode.devNode = node;
  return attribute;
}

CUlaunchAttributeValue DeviceNode::describe(const KernelWork& work) {
  if (work.deviceNode == nullptr) return {};
  return deviceUpdatable(fromWire<CUgraphDeviceNode>(work.deviceNode->address)).value;
}

CUresult DeviceNode::make(Thread& thread, KernelWork& work, CUlaunchAttributeValue& value) {
  const int asked = value.deviceUpdatableKernelNode.deviceUpdatable;
  if (asked != 0 && asked != 1) return CUDA_ERROR_INVALID_VALUE;
  if (asked == 0) return work.deviceNode == nullptr ? CUDA_SUCCESS : CUDA_ERROR_NOT_SUPPORTED;
  if (work.deviceNode == nullptr) {
    Session& session = thread.session;
    const unsigned device = handleDevice(work.function);
    const uint64_t holder = session.handles.create(api::Kind::GRAPH_EXEC, device, thread.owner());
    uint64_t address = 0;
    auto send = [&]() -> CUresult {
      if (CUresult error = sendBegin(thread, holder)) return error;
      KernelWork held = work;
      held.attributes.push_back(deviceUpdatable());
      if (CUresult error = sendKernel(thread, {holder, 0, {}, false, device}, held)) return error;
      Call<api::Cuda::GraphInstantiateParams> frame(thread.on(device), api::Method::graphInstantiate);
      frame->setGraph(holder);
      frame->setHolds(true);
      if (CUresult error = frame.call()) return error;
      auto results = frame.results<api::Cuda::GraphInstantiateResults>();
      address = results.getAddress();
      return static_cast<CUresult>(results.getResult());
    };
    if (CUresult error = send()) {
      session.handles.destroy(holder);
      sendEnd(thread, holder);
      return error;
    }
    work.deviceNode = std::make_shared<DeviceNode>(session, holder, address);
  }
  value = describe(work);
  return CUDA_SUCCESS;
}

// Does nothing in a forked child, which has no session, and if the node has ended with its context.
DeviceNode::~DeviceNode() {
  if (Session::find() != &session || session.handles.find<api::Kind::GRAPH_EXEC>(holder) == nullptr) return;
  session.handles.destroy(holder);
  sendEnd(Thread::current(session), holder);
}

}  // namespace vgpu::client
