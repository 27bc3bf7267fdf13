// Green contexts: multiprocessors only by number, which groups can become a context, and streams that end with their green context.
#include "driver-fixture.h"

namespace vgpu::test {
namespace {

constexpr CUdevResourceType multiprocessors = CU_DEV_RESOURCE_TYPE_SM;

CUdevResource wholeDevice() {
  CUdevResource whole{};
  REQUIRE_CUDA(cuDeviceGetDevResource(0, &whole, multiprocessors));
  return whole;
}

}  // namespace

TEST_CASE("a device's multiprocessors are split into equal disjoint groups, and a remainder") {
  REQUIRE_CUDA(cuInit(0));
  CUdevResource whole = wholeDevice(), parts[64], rest;
  int processors = 0;
  REQUIRE_CUDA(cuDeviceGetAttribute(&processors, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 0));
  REQUIRE(processors == 132);
  CHECK(whole.sm.smCount == 132);
  CHECK(whole.sm.minSmPartitionSize == 8);
  CHECK(whole.sm.smCoscheduledAlignment == 8);
  struct Case {
    unsigned flags, least, size, groups;
  };
  for (auto [flags, least, size, groups] : {Case{0, 0, 8, 16}, Case{0, 9, 16, 8}, Case{0, 132, 136, 0},
                                            Case{CU_DEV_SM_RESOURCE_SPLIT_IGNORE_SM_COSCHEDULING, 3, 4, 33}}) {
    CAPTURE(least);
    unsigned count = 0;
    REQUIRE_CUDA(cuDevSmResourceSplitByCount(nullptr, &count, &whole, nullptr, flags, least));
    CHECK(count == groups);
    count = 64;
    REQUIRE_CUDA(cuDevSmResourceSplitByCount(parts, &count, &whole, &rest, flags, least));
    REQUIRE(count == groups);
    for (unsigned i = 0; i < count; ++i) CHECK(parts[i].sm.smCount == size);
    CHECK((rest.type == multiprocessors ? rest.sm.smCount : 0) == 132 - size * groups);
    if (groups == 0) continue;
    CUdevResourceDesc all = nullptr;
    CUgreenCtx green = nullptr;
    CUdevResource gathered;
    REQUIRE_CUDA(cuDevResourceGenerateDesc(&all, parts, count));
    REQUIRE_CUDA(cuGreenCtxCreate(&green, all, 0, CU_GREEN_CTX_DEFAULT_STREAM));
    REQUIRE_CUDA(cuGreenCtxGetDevResource(green, &gathered, multiprocessors));
    CHECK(gathered.sm.smCount == size * groups);  // so the groups are disjoint
    CHECK_CUDA(cuGreenCtxDestroy(green));
  }
}

TEST_CASE("a green context has all of its resources' multiprocessors; groups of different splits cannot be joined, nor a group split") {
  REQUIRE_CUDA(cuInit(0));
  CUdevResource whole = wholeDevice(), parts[2], others[2], rest;
  unsigned count = 2;
  REQUIRE_CUDA(cuDevSmResourceSplitByCount(parts, &count, &whole, &rest, 0, 8));
  REQUIRE_CUDA(cuDevSmResourceSplitByCount(others, &count, &whole, nullptr, 0, 8));
  CUdevResourceDesc descriptor = nullptr;
  CUdevResource mixed[] = {parts[0], others[1]}, twice[] = {parts[0], parts[0]}, joined[] = {parts[0], rest},
                all[] = {parts[0], whole};
  CHECK(cuDevResourceGenerateDesc(&descriptor, mixed, 2) == CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION);
  CHECK(cuDevSmResourceSplitByCount(others, &count, &whole, nullptr, 0, 133) == CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION);
  CHECK_CUDA(cuDevSmResourceSplitByCount(others, &count, &whole, nullptr, 0x80000004, 8));  // flag bits that cuda.h does not define
  CHECK(cuDevSmResourceSplitByCount(others, &count, parts, nullptr, 0, 8) == CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION);
  CHECK_CUDA(cuDevResourceGenerateDesc(&descriptor, joined, 2));
  CUgreenCtx green = nullptr;
  CHECK(cuGreenCtxCreate(&green, descriptor, 1, CU_GREEN_CTX_DEFAULT_STREAM) == CUDA_ERROR_INVALID_DEVICE);
  CHECK(cuGreenCtxCreate(&green, descriptor, 0, 0) == CUDA_ERROR_INVALID_VALUE);
  const auto processorsOf = [&](CUdevResource* resources) {
    CUdevResource has{};
    if (resources != nullptr) REQUIRE_CUDA(cuDevResourceGenerateDesc(&descriptor, resources, 2));
    REQUIRE_CUDA(cuGreenCtxCreate(&green, resources == nullptr ? nullptr : descriptor, 0, CU_GREEN_CTX_DEFAULT_STREAM));
    REQUIRE_CUDA(cuGreenCtxGetDevResource(green, &has, multiprocessors));
    REQUIRE_CUDA(cuGreenCtxDestroy(green));
    return has.sm.smCount;
  };
  CHECK(processorsOf(twice) == 8);
  CHECK(processorsOf(joined) == 8 + 132 - 16);
  CHECK(processorsOf(all) == 132);
  CHECK(processorsOf(nullptr) == 132);
}

TEST_CASE("a green context's streams are refused once it is destroyed") {
  REQUIRE_CUDA(cuInit(0));
  CUcontext primary = nullptr;
  REQUIRE_CUDA(cuDevicePrimaryCtxRetain(&primary, 0));
  REQUIRE_CUDA(cuCtxSetCurrent(primary));
  CUdevResource whole = wholeDevice();
  CUdevResourceDesc descriptor = nullptr;
  CUgreenCtx green = nullptr, found = nullptr;
  CUstream stream = nullptr;
  REQUIRE_CUDA(cuDevResourceGenerateDesc(&descriptor, &whole, 1));
  REQUIRE_CUDA(cuGreenCtxCreate(&green, descriptor, 0, CU_GREEN_CTX_DEFAULT_STREAM));
  CHECK(cuGreenCtxStreamCreate(&stream, green, CU_STREAM_DEFAULT, 0) == CUDA_ERROR_INVALID_VALUE);
  REQUIRE_CUDA(cuGreenCtxStreamCreate(&stream, green, CU_STREAM_NON_BLOCKING, 0));
  CHECK_CUDA(cuStreamGetGreenCtx(stream, &found));
  CHECK(found == green);
  CHECK_CUDA(cuStreamSynchronize(stream));
  CHECK_CUDA(cuGreenCtxDestroy(green));
  CHECK(cuStreamSynchronize(stream) == CUDA_ERROR_CONTEXT_IS_DESTROYED);
  CHECK(cuStreamDestroy_v2(stream) == CUDA_ERROR_CONTEXT_IS_DESTROYED);
  CHECK(cuGreenCtxDestroy(green) == CUDA_ERROR_INVALID_CONTEXT);
  CHECK_CUDA(cuCtxSetCurrent(nullptr));
  CHECK_CUDA(cuDevicePrimaryCtxRelease_v2(0));
}

}  // namespace vgpu::test
