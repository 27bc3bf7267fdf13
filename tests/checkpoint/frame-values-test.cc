// Enumeration values in frames that CUDA does not define. A program that writes frames itself gets CUDA's error, and the driver is not
// called: some of its functions read past their tables for such a value.
#include <doctest/doctest.h>

#include "session-fixture.h"

using namespace vgpu;
using namespace vgpu::test;

namespace {

CUresult CUDAAPI endWorker(CUfunc_cache config) {
  if (config != CU_FUNC_CACHE_PREFER_L1) abort();
  return CUDA_SUCCESS;
}

RecordedFrame setCacheConfig(int32_t config) {
  return makeFrame<api::Cuda::CtxSetCacheConfigParams>(0, api::Method::ctxSetCacheConfig, 0, [&](auto p) { p.setConfig(config); });
}

}  // namespace

TEST_CASE("a value that its enumeration does not define does not reach the driver") {
  TestSession session;
  CHECK(session.inWorker(
            [&](stub::Worker& worker) {
              worker.proceed();
              session.require(setCacheConfig(CU_FUNC_CACHE_PREFER_L1));
              for (int32_t config : {-1, 4, INT32_MIN, INT32_MAX})
                KJ_REQUIRE(session.call(setCacheConfig(config)) == CUDA_ERROR_INVALID_VALUE, config);
            },
            "", [](stub::Driver& driver) { driver.cuCtxSetCacheConfig = endWorker; }) == "");
}
