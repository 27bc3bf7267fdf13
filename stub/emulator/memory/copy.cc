#include "stub/emulator/memory/copy.h"

#include "stub/emulator/driver/driver.h"
#include "stub/emulator/driver/interconnect.h"

namespace vgpu::emulator::api {
namespace {

// An asynchronous copy first copies a pageable source up to this size into a buffer (CUDA Runtime API, "API synchronization behavior"); it
// waits for larger ones.
constexpr uint64_t stagedBytes = 64 << 10;

Operation copyOperation(MemorySpan to, MemorySpan from) {
  Route route(to, from);
  const uint64_t devices = to.deviceBit() | from.deviceBit();
  return {.weight = route.limited() ? Weight::heavy : weightOf(from.bytes()),
          .action =
              [to = std::move(to), from = std::move(from), route] {
                route.carry(from.bytes());
                copyBytes(to.current(), 0, from.current(), 0, from.bytes());
                return Outcome::finished;
              },
          .type = CU_GRAPH_NODE_TYPE_MEMCPY,
          .devices = devices};
}

const AddressSpace& spaceOf(Context& context) { return context.driver.space; }

enum class Where { device, host, either };

MemorySpan spanOf(Context& context, Where where, uint64_t address, uint64_t bytes, uint64_t devices) {
  require(address != 0);
  if (where == Where::device) return MemorySpan::ofDevice(spaceOf(context), address, bytes, devices);
  return MemorySpan::ofEither(spaceOf(context), address, bytes, devices);
}

// A one-dimensional copy in the parameters of a graph node.
CUDA_MEMCPY3D describe(uint64_t to, uint64_t from, uint64_t bytes) {
  CUDA_MEMCPY3D copy{};
  copy.srcMemoryType = copy.dstMemoryType = CU_MEMORYTYPE_UNIFIED;
  copy.srcDevice = from;
  copy.dstDevice = to;
  copy.WidthInBytes = bytes;
  copy.Height = copy.Depth = 1;
  return copy;
}

// Implements all one-dimensional entries. Peer copies are the same, because one address space contains all devices; but in a peer copy the
// current device needs no access to another device's physical memory (docs/facts.md).
CUresult copy(Waiting waiting, Where toWhere, uint64_t to, Where fromWhere, uint64_t from, size_t bytes, CUstream handle,
              bool asPeers = false) {
  return enterContext([&](Context& context) {
    std::shared_ptr<Stream> stream = streamOf(context, handle);
    if (bytes == 0) return;
    const uint64_t devices = asPeers ? everyDevice : context.device.bit();
    MemorySpan target = spanOf(context, toWhere, to, bytes, devices), source = spanOf(context, fromWhere, from, bytes, devices);
    require(!target.isReadOnly());
    // A copy within device memory is asynchronous to the host, whichever entry is called.
    if (target.onDevice() && source.onDevice()) waiting = Waiting::async;
    submitCopy(*stream, waiting, std::move(target), std::move(source), describe(to, from, bytes));
  });
}

void checkPeer(Context& context, CUcontext peer) {
  if (peer) context.driver.contexts.get(peer)->check();
}

}  // namespace

void submitCopy(Stream& stream, Waiting waiting, MemorySpan to, MemorySpan from, const CUDA_MEMCPY3D& described) {
  if (waiting == Waiting::sync) refuseDuringCapture(stream.context.driver);
  bool capturing = stream.capturing();  // the graph copies what the source holds when it runs, so nothing is buffered now
  if (capturing) {
    waiting = Waiting::async;
  } else if (waiting == Waiting::async && from.pageable() && from.bytes() <= stagedBytes && !to.pageable()) {
    from = MemorySpan::ofCopy(from);
  } else if (to.pageable() || from.pageable()) {
    waiting = Waiting::sync;
  }
  Operation operation = copyOperation(std::move(to), std::move(from));
  operation.description = std::make_shared<const CUDA_MEMCPY3D>(described);
  if (waiting == Waiting::sync) {
    stream.run(std::move(operation));
  } else {
    stream.submit(std::move(operation));
  }
}

}  // namespace vgpu::emulator::api

using namespace vgpu::emulator::api;

CUresult CUDAAPI cuMemcpy(CUdeviceptr to, CUdeviceptr from, size_t bytes) {
  return copy(Waiting::sync, Where::either, to, Where::either, from, bytes, nullptr);
}

CUresult CUDAAPI cuMemcpyAsync(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream) {
  return copy(Waiting::async, Where::either, to, Where::either, from, bytes, stream);
}

CUresult CUDAAPI cuMemcpyHtoD_v2(CUdeviceptr to, const void* from, size_t bytes) {
  return copy(Waiting::sync, Where::device, to, Where::host, asNumber(from), bytes, nullptr);
}

CUresult CUDAAPI cuMemcpyHtoDAsync_v2(CUdeviceptr to, const void* from, size_t bytes, CUstream stream) {
  return copy(Waiting::async, Where::device, to, Where::host, asNumber(from), bytes, stream);
}

CUresult CUDAAPI cuMemcpyDtoH_v2(void* to, CUdeviceptr from, size_t bytes) {
  return copy(Waiting::sync, Where::host, asNumber(to), Where::device, from, bytes, nullptr);
}

CUresult CUDAAPI cuMemcpyDtoHAsync_v2(void* to, CUdeviceptr from, size_t bytes, CUstream stream) {
  return copy(Waiting::async, Where::host, asNumber(to), Where::device, from, bytes, stream);
}

CUresult CUDAAPI cuMemcpyDtoD_v2(CUdeviceptr to, CUdeviceptr from, size_t bytes) {
  return copy(Waiting::sync, Where::device, to, Where::device, from, bytes, nullptr);
}

CUresult CUDAAPI cuMemcpyDtoDAsync_v2(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream) {
  return copy(Waiting::async, Where::device, to, Where::device, from, bytes, stream);
}

CUresult CUDAAPI cuMemcpyPeer(CUdeviceptr to, CUcontext toContext, CUdeviceptr from, CUcontext fromContext,
                              size_t bytes) {
  CUresult checked = enterContext([&](Context& context) {
    checkPeer(context, toContext);
    checkPeer(context, fromContext);
  });
  if (checked != CUDA_SUCCESS) return checked;
  return copy(Waiting::sync, Where::device, to, Where::device, from, bytes, nullptr, true);
}

CUresult CUDAAPI cuMemcpyPeerAsync(CUdeviceptr to, CUcontext toContext, CUdeviceptr from, CUcontext fromContext,
                                   size_t bytes, CUstream stream) {
  CUresult checked = enterContext([&](Context& context) {
    checkPeer(context, toContext);
    checkPeer(context, fromContext);
  });
  if (checked != CUDA_SUCCESS) return checked;
  return copy(Waiting::async, Where::device, to, Where::device, from, bytes, stream, true);
}
