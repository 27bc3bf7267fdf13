#include "stub/worker/folding-frames.h"

#include <cstring>
#include <optional>

#include "stub/gpu/folded-graph.h"
#include "vgpu/api/place.h"

namespace vgpu::stub {

namespace {

using api::Method;

// Larger copies and fills are not folded: they take so long that the launch cost does not matter.
constexpr uint64_t mostBytes = 64 * MiB;
constexpr unsigned hostLeaseDevice = 0;  // in whose ring the program leases host memory and ends leases

bool readKernel(Execution& on, const api::FrameReader<api::Cuda::LaunchKernelParams>& p, FoldedWork& work) {
  auto found = on.functions.find(p.getFunction());
  // A node's cluster size is fixed when the node is added.
  if (found == on.functions.end() || p.getCooperative() || found->second.hasClusters) return false;
  auto parameters = p.getParameters();
  if (parameters.size() < found->second.parameterBytes) return false;
  work.what = KernelWork{found->second.real, p.getFunction(), found->second.module, p.getGridX(),  p.getGridY(),       p.getGridZ(),
                         p.getBlockX(),      p.getBlockY(),   p.getBlockZ(),        p.getSharedBytes(), parameters};
  work.shape = kernelShape;
  return true;
}

// Whether memory that a node may name is host memory (true) or this GPU's (false). Nothing if the session does not own all of it in one of
// these, or if it belongs to another GPU or to a variable. Nothing also for host memory on any GPU but hostLeaseDevice: leases end in that
// GPU's ring, and only its graphs are forgotten then.
std::optional<bool> isOnHost(Execution& on, uint64_t address, uint64_t bytes) {
  if (bytes == 0 || bytes > mostBytes) return std::nullopt;
  if (on.gpu.leases.owns(address, bytes)) return false;
  if (on.device() == hostLeaseDevice && on.session.hostLeases.owns(address, bytes)) return true;
  return std::nullopt;
}

// Reads a copy of one row between addresses.
bool readCopy(Execution& on, const api::FrameReader<api::Cuda::Copy3dParams>& p, FoldedWork& work) {
  api::Place target(p.getTo()), source(p.getFrom());
  if (target.type() != api::PlaceType::ADDRESS || source.type() != api::PlaceType::ADDRESS) return false;
  if (p.getHeight() > 1 || p.getDepth() > 1) return false;
  uint64_t bytes = p.getWidth();
  auto to = isOnHost(on, target.value(), bytes), from = isOnHost(on, source.value(), bytes);
  if (!to || !from) return false;
  work.what = CopyWork{target.value(), source.value(), bytes};
  work.shape = copyShape(*to, *from);
  return true;
}

// Reads a fill of this GPU's own memory without gaps between rows: the parameters of such a node can be changed.
bool readFill(Execution& on, const api::FrameReader<api::Cuda::FillParams>& p, FoldedWork& work) {
  uint32_t element = p.getElementBytes();
  if ((element != 1 && element != 2 && element != 4) || p.getHeight() != 1 || p.getWidth() > mostBytes) return false;
  if (isOnHost(on, p.getDestination(), p.getWidth() * element) != false) return false;
  uint32_t value = element == 4 ? p.getValue() : p.getValue() & ((1u << 8 * element) - 1);
  work.what = FillWork{p.getDestination(), value, element, p.getWidth()};
  work.shape = fillShape(element);
  return true;
}

bool readRecord(Execution& on, const Frame& frame, FoldedWork& work) {
  api::FrameReader<api::Cuda::EventRecordParams> p(frame.words);
  auto& events = on.handles.of(api::Kind::EVENT);
  auto found = events.find(p.getEvent());
  if (found == events.end() || p.getLine() >= completionWordCount) return false;
  work.what = RecordWork{fromWire<CUevent>(found->second), p.getEvent(),
                         on.session.gpuAddress(&on.shared().completionWord(p.getLine()).done), frame.sequence()};
  work.shape = recordShape;
  return true;
}

bool readWhat(Execution& on, const Frame& frame, FoldedWork& work) {
  switch (frame.method) {
    case Method::launchKernel: return readKernel(on, api::FrameReader<api::Cuda::LaunchKernelParams>(frame.words), work);
    case Method::copy3d: return readCopy(on, api::FrameReader<api::Cuda::Copy3dParams>(frame.words), work);
    case Method::fill: return readFill(on, api::FrameReader<api::Cuda::FillParams>(frame.words), work);
    case Method::eventRecord: return readRecord(on, frame, work);
    default: return false;
  }
}

}  // namespace

Foldable foldableOf(Method method) {
  switch (method) {
    case Method::launchKernel:
    case Method::copy3d:
    case Method::fill:
    case Method::eventRecord: return Foldable::WORK;
    case Method::streamFence: return Foldable::FENCE;
    case Method::streamWaitEvent: return Foldable::WAIT;
    default: return Foldable::NO;
  }
}

uint64_t streamOf(const Frame& frame) {
  switch (frame.method) {
    case Method::launchKernel: return api::FrameReader<api::Cuda::LaunchKernelParams>(frame.words).getStream();
    case Method::copy3d: return api::FrameReader<api::Cuda::Copy3dParams>(frame.words).getStream();
    case Method::fill: return api::FrameReader<api::Cuda::FillParams>(frame.words).getStream();
    case Method::eventRecord: return api::FrameReader<api::Cuda::EventRecordParams>(frame.words).getStream();
    case Method::streamFence: return api::FrameReader<api::Cuda::StreamFenceParams>(frame.words).getStream();
    default: return api::FrameReader<api::Cuda::StreamWaitEventParams>(frame.words).getHStream();
  }
}

bool readWork(Execution& on, const Frame& frame, FoldedWork& work) {
  if (on.session.hostLeases.hasUnregistered()) return false;
  uint64_t stream = streamOf(frame);
  if (stream != 0 && !on.handles.of(api::Kind::STREAM).contains(stream)) return false;
  if (!readWhat(on, frame, work)) return false;
  auto* kernel = std::get_if<KernelWork>(&work.what);
  work.kind = hashOf(static_cast<uint64_t>(work.shape), kernel != nullptr ? kernel->function : 0);
  work.words = frame.words;
  work.hash = static_cast<uint64_t>(work.shape);
  for (const capnp::word& word : frame.words) {
    uint64_t number;
    std::memcpy(&number, &word, sizeof number);
    work.hash = hashOf(work.hash, number);
  }
  return true;
}

}  // namespace vgpu::stub
