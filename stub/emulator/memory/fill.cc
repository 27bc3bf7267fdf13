// cuMemset*: one function for fourteen entries.
#include "stub/emulator/driver/driver.h"
#include "stub/emulator/memory/copy.h"

namespace vgpu::emulator::api {
namespace {

CUresult fill(Waiting waiting, const Fill& request, CUstream handle) {
  return enterContext([&](Context& context) {
    std::shared_ptr<Stream> stream = streamOf(context, handle);
    if (request.width == 0 || request.height == 0) return;
    Operation operation = fillOperation(context, request);
    // A fill of device memory is asynchronous, whichever entry is called; a fill of host memory is not.
    std::optional<Mapping> mapping = context.driver.space.find(request.address);
    if (waiting == Waiting::sync && mapping && mapping->hostKind()) {
      stream->run(std::move(operation));
    } else {
      stream->submit(std::move(operation));
    }
  });
}

}  // namespace

Operation fillOperation(Context& context, const Fill& request) {
  constexpr uint64_t most = uint64_t{1} << 47;
  require(request.width <= most / request.valueBytes);
  uint64_t rowBytes = request.width * request.valueBytes;
  uint64_t pitch = request.height > 1 ? request.pitch : rowBytes;
  require(request.address != 0 && request.address % request.valueBytes == 0 && pitch % request.valueBytes == 0);
  require(pitch >= rowBytes && (request.height <= 1 || request.height - 1 <= most / pitch));
  uint64_t bytes = (request.height - 1) * pitch + rowBytes;
  MemorySpan span = MemorySpan::ofDevice(context.driver.space, request.address, bytes, context.device.bit());
  require(!span.isReadOnly());
  return {.weight = weightOf(bytes),
          .action =
              [span = std::move(span), request, rowBytes, pitch] {
                const MemorySpan now = span.current();
                for (uint64_t row = 0; row < request.height; ++row) {
                  fillBytes(now, row * pitch, rowBytes, request.value, request.valueBytes);
                }
                return Outcome::finished;
              },
          .type = CU_GRAPH_NODE_TYPE_MEMSET,
          .description = std::make_shared<const CUDA_MEMSET_NODE_PARAMS>(CUDA_MEMSET_NODE_PARAMS{
              request.address, request.pitch, request.value, request.valueBytes, request.width, request.height})};
}

}  // namespace vgpu::emulator::api

using namespace vgpu::emulator::api;

#define FILL_ENTRIES(bits, Value)                                                                            \
  CUresult CUDAAPI cuMemsetD##bits##_v2(CUdeviceptr address, Value value, size_t count) {                    \
    return fill(Waiting::sync, {address, 0, value, sizeof value, count, 1}, nullptr);                        \
  }                                                                                                          \
  CUresult CUDAAPI cuMemsetD##bits##Async(CUdeviceptr address, Value value, size_t count, CUstream stream) { \
    return fill(Waiting::async, {address, 0, value, sizeof value, count, 1}, stream);                        \
  }                                                                                                          \
  CUresult CUDAAPI cuMemsetD2D##bits##_v2(CUdeviceptr address, size_t pitch, Value value, size_t width,      \
                                          size_t height) {                                                   \
    return fill(Waiting::sync, {address, pitch, value, sizeof value, width, height}, nullptr);               \
  }                                                                                                          \
  CUresult CUDAAPI cuMemsetD2D##bits##Async(CUdeviceptr address, size_t pitch, Value value, size_t width,    \
                                            size_t height, CUstream stream) {                                \
    return fill(Waiting::async, {address, pitch, value, sizeof value, width, height}, stream);               \
  }

FILL_ENTRIES(8, unsigned char)
FILL_ENTRIES(16, unsigned short)
FILL_ENTRIES(32, unsigned int)
