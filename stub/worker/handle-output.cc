// By hand: what kernels print.
#include <algorithm>

#include "cuda-handlers.h"

namespace vgpu::stub {

namespace {

// As much as fits into a slot with what Cap'n Proto puts around it.
constexpr size_t partBytes = 7 * KiB;
static_assert(partBytes + 64 <= replyBytes);

}  // namespace

// What kernels that have ended had printed is in the reply, or waits for the next call: nobody waits for the GPU here.
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
