// By hand: what kernels print.
#include <algorithm>

#include "cuda-handlers.h"

namespace vgpu::stub {

namespace {

// What fits into a slot with Cap'n Proto's overhead.
constexpr size_t partBytes = 7 * KiB;
static_assert(partBytes + 64 <= replyBytes);

}  // namespace

// What finished kernels have printed is in this reply or in that of the next call; this call does not wait for the GPU.
CUresult outputTake(Execution& on, const api::FrameReader<api::Cuda::OutputTakeParams>&, Reply& reply) {
  on.collectOutput();
  std::string part = on.session.output.take(partBytes);
  auto results = reply.init<api::Cuda::OutputTakeResults>();
  std::copy(part.begin(), part.end(), results.initText(static_cast<unsigned>(part.size())).begin());
  results.setMore(!on.session.output.isEmpty());
  on.session.tellOutput();
  return CUDA_SUCCESS;
}

}  // namespace vgpu::stub
