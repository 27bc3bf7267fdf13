#include "intercept/session/graph/step-frames.h"

#include <cstring>

#include "intercept/session/graph/device-node.h"
#include "intercept/session/launch-attributes.h"

namespace vgpu::client {

namespace {

// A frame that adds or sets a node, with the fields that all such frames have.
template <typename Params>
class NodeFrame : public Call<Params> {
 public:
  NodeFrame(Thread& thread, const WorkerNode& node, api::Method add, api::Method set, uint64_t extraBytes = 0)
      : Call<Params>(thread.on(node.device), node.isSet ? set : add, dataWords(node.before.size() * sizeof(uint32_t)) + dataWords(extraBytes)) {
    (*this)->setGraph(node.graph);
    (*this)->setNode(node.number);
    (*this)->setBefore(kj::arrayPtr(node.before.data(), node.before.size()));
  }
};

}  // namespace

CUresult sendBegin(Thread& thread, uint64_t graph) {
  Call<api::Cuda::GraphBeginParams> frame(thread.of(graph), api::Method::graphBegin);
  frame->setGraph(graph);
  return frame.post();
}

CUresult sendEnd(Thread& thread, uint64_t graph) {
  Call<api::Cuda::GraphEndParams> frame(thread.of(graph), api::Method::graphEnd);
  frame->setGraph(graph);
  return frame.post();
}

CUresult sendKernel(Thread& thread, const WorkerNode& node, const KernelWork& work) {
  auto given = work.attributes;
  const bool moves = work.deviceNode != nullptr && !node.isSet;
  if (moves) given.push_back(deviceUpdatable());
  const api::Method set = node.isOther ? api::Method::graphChangeKernel : api::Method::graphSetKernel;
  NodeFrame<api::Cuda::GraphKernelParams> frame(thread, node, api::Method::graphKernel, set,
                                                work.parameters.size() + 8 + bytesOf(given).size());
  frame->setFunction(work.function);
  frame->setGridX(work.shape.gridX);
  frame->setGridY(work.shape.gridY);
  frame->setGridZ(work.shape.gridZ);
  frame->setBlockX(work.shape.blockX);
  frame->setBlockY(work.shape.blockY);
  frame->setBlockZ(work.shape.blockZ);
  frame->setSharedBytes(work.shape.sharedBytes);
  frame->setCooperative(work.shape.cooperative);
  auto into = frame->initParameters(work.parameters.size());
  if (!work.parameters.empty()) std::memcpy(into.begin(), work.parameters.data(), into.size());
  if (moves) frame->setHolder(work.deviceNode->holder);
  auto attributes = bytesOf(given);
  if (!attributes.empty())
    std::memcpy(frame->initAttributes(static_cast<uint32_t>(attributes.size())).begin(), attributes.data(), attributes.size());
  return node.isOther ? frame.call() : frame.post();
}

CUresult sendCopy(Thread& thread, const WorkerNode& node, const CopyEnd& to, const CopyEnd& from, const BoxSize& size) {
  NodeFrame<api::Cuda::GraphCopyParams> frame(thread, node, api::Method::graphCopy, api::Method::graphSetCopy);
  frame->setTo(to.place.number());
  frame->setFrom(from.place.number());
  frame->setWidth(size.width);
  setBox(frame, to, from, size);
  return frame.post();
}

CUresult sendFill(Thread& thread, const WorkerNode& node, const FillWork& work) {
  NodeFrame<api::Cuda::GraphFillParams> frame(thread, node, api::Method::graphFill, api::Method::graphSetFill);
  frame->setDestination(work.given.dst);
  frame->setPitch(work.given.pitch);
  frame->setValue(work.given.value);
  frame->setElementBytes(work.given.elementSize);
  frame->setWidth(work.given.width);
  frame->setHeight(work.given.height);
  return frame.post();
}

CUresult sendEvent(Thread& thread, const WorkerNode& node, const EventWork& work) {
  NodeFrame<api::Cuda::GraphEventParams> frame(thread, node, api::Method::graphEvent, api::Method::graphSetEvent);
  frame->setEvent(work.event);
  frame->setWaits(work.waits);
  return frame.post();
}

CUresult sendEdge(Thread& thread, uint64_t graph, unsigned device, const WorkerEdge& edge) {
  Call<api::Cuda::GraphEdgeParams> frame(thread.on(device), api::Method::graphEdge);
  frame->setGraph(graph);
  frame->setFrom(edge.from);
  frame->setTo(edge.to);
  frame->setPort(edge.data.from_port);
  frame->setType(edge.data.type);
  return frame.post();
}

CUresult sendConditions(Thread& thread, uint64_t graph, const std::vector<Condition>& conditions) {
  for (uint32_t i = 0; i < conditions.size(); ++i) {
    Call<api::Cuda::GraphConditionParams> frame(thread.of(graph), api::Method::graphCondition);
    frame->setGraph(graph);
    frame->setCondition(i + 1);
    frame->setValue(conditions[i].value);
    frame->setFlags(conditions[i].flags);
    if (CUresult error = frame.post()) return error;
  }
  return CUDA_SUCCESS;
}

CUresult sendBody(Thread& thread, uint64_t graph, const WorkerBody& body) {
  Call<api::Cuda::GraphBodyParams> frame(thread.of(graph), api::Method::graphBody);
  frame->setGraph(graph);
  frame->setNode(body.node);
  frame->setBody(body.body);
  return frame.post();
}

CUresult sendConditional(Thread& thread, const WorkerNode& node, const ConditionalWork& work) {
  NodeFrame<api::Cuda::GraphConditionalParams> frame(thread, node, api::Method::graphConditional, api::Method::graphConditional);
  frame->setCondition(work.condition);
  frame->setType(work.type);
  frame->setBodies(static_cast<uint32_t>(work.bodies.size()));
  return frame.post();
}

CUresult sendMemOps(Thread& thread, const WorkerNode& node, const MemOpsWork& work) {
  const size_t bytes = work.operations.size() * sizeof(CUstreamBatchMemOpParams);
  NodeFrame<api::Cuda::GraphMemOpsParams> frame(thread, node, api::Method::graphMemOps, api::Method::graphSetMemOps, bytes);
  auto into = frame->initOperations(bytes);
  if (bytes != 0) std::memcpy(into.begin(), work.operations.data(), bytes);
  return frame.post();
}

// Never set: another call needs another node.
CUresult sendCaptured(Thread& thread, const WorkerNode& node, const LibraryWork& work) {
  NodeFrame<api::Cuda::GraphCapturedParams> frame(thread, node, api::Method::graphCaptured, api::Method::graphCaptured);
  frame->setCall(work.call->handle);
  return frame.post();
}

CUresult sendWords(Thread& thread, const WorkerNode& node, OwnWords does, uint32_t word) {
  NodeFrame<api::Cuda::GraphMemOpsParams> frame(thread, node, api::Method::graphMemOps, api::Method::graphSetMemOps);
  frame->setLine(word);
  frame->setOurs(static_cast<uint32_t>(does));
  return frame.post();
}

}  // namespace vgpu::client
