// The device's report on stderr about a faulty kernel, and CUDA's error for it.
#include "caught-stderr.h"
#include "driver-fixture.h"

using namespace vgpu::test;

extern "C" void vgpuEmulatorNote(uint64_t address, uint64_t bytes, const char* owner);

namespace {

constexpr const char* misdeeds = R"(
.version 8.0
.target sm_75
.address_size 64
.visible .entry storeAt(.param .u64 p)
{
  .reg .b64 %a;
  ld.param.u64 %a, [p];
  st.global.u32 [%a], 1;
  ret;
}
.func recurse()
{
  .local .b32 x;
  .reg .b64 %d;
  mov.u64 %d, x;
  call.uni recurse;
  ret;
}
.visible .entry overflow()
{
  call.uni recurse;
  ret;
}
.visible .entry part()
{
  .reg .pred %p;
  .reg .b32 %t;
  mov.u32 %t, %tid.x;
  setp.lt.u32 %p, %t, 32;
  @%p bra other;
  bar.sync 1;
  ret;
other:
  bar.sync 2;
  ret;
}
.visible .entry readUnwritten()
{
  .shared .align 4 .b8 tile[256];
  .reg .b32 %t, %a;
  mov.u32 %t, tile;
  ld.shared.u32 %a, [%t+8];
  ret;
}
.visible .entry race()
{
  .shared .align 4 .b8 tile[256];
  .reg .b32 %t, %a;
  mov.u32 %t, %tid.x;
  st.shared.u32 [tile], %t;
  ret;
}
)";

struct Told {
  std::string answer, report;
};

template <class... Arguments>
Told runKernel(Device& device, const char* name, unsigned threads, Arguments... arguments) {
  CUfunction kernel = function(device.load(misdeeds), name);
  CaughtStderr caught;
  REQUIRE_CUDA(launch(kernel, nullptr, threads, arguments...));
  std::string answer = nameOf(cuCtxSynchronize());
  return {answer, caught.text()};
}

bool says(const Told& told, std::string_view what) {
  CAPTURE(told.report);
  CHECK(told.report.find(what) != std::string::npos);
  return told.report.find(what) != std::string::npos;
}

}  // namespace

TEST_CASE("the report of a write outside an allocation names the nearest allocation and the call that made it") {
  Device device;
  CUdeviceptr memory = device.allocate(100);
  Told told = runKernel(device, "storeAt", 1, memory + 104);
  CHECK_EQ(told.answer, "CUDA_ERROR_ILLEGAL_ADDRESS");
  says(told, "kernel storeAt, block (0, 0, 0), thread (0, 0, 0)");
  says(told, "PTX line 9");
  says(told, "4 bytes past the end of the 100-byte allocation made by cuMemAlloc at");
}

TEST_CASE("the report of a write to freed memory says so") {
  Device device;
  CUdeviceptr memory = device.allocate(64);
  REQUIRE_CUDA(cuMemFree(memory));
  Told told = runKernel(device, "storeAt", 1, memory);
  CHECK_EQ(told.answer, "CUDA_ERROR_ILLEGAL_ADDRESS");
  says(told, "inside memory that was freed: 64 bytes at");
  says(told, "made by cuMemAlloc");
}

TEST_CASE("a report names the owner of the touched part of a mapping") {
  Device device;
  CUdeviceptr memory = device.allocate(4096);
  vgpuEmulatorNote(memory, 256, "cudaMallocPitch");
  Told told = runKernel(device, "storeAt", 1, memory + 260);
  says(told, "4 bytes past the end of the 256-byte allocation made by cudaMallocPitch");
}

TEST_CASE("a misaligned write, a stack overflow and a divergent barrier give the driver's errors and a report") {
  {
    Device device;
    Told told = runKernel(device, "storeAt", 1, device.allocate(64) + 2);
    CHECK_EQ(told.answer, "CUDA_ERROR_MISALIGNED_ADDRESS");
    says(told, "a misaligned write of 4 bytes");
  }
  {
    Device device;
    Told told = runKernel(device, "overflow", 1);
    CHECK_EQ(told.answer, "CUDA_ERROR_HARDWARE_STACK_ERROR");
    says(told, "stack overflow: 'recurse'");
  }
  Device device;
  Told told = runKernel(device, "part", 64);
  CHECK_EQ(told.answer, "CUDA_ERROR_LAUNCH_FAILED");
  says(told, "waits for ever at barrier");
}

TEST_CASE("shared memory is checked only if requested") {
  Device device;
  CHECK_EQ(runKernel(device, "readUnwritten", 1).answer, "CUDA_SUCCESS");
  CHECK_EQ(runKernel(device, "race", 64).answer, "CUDA_SUCCESS");
}

TEST_CASE("in a process: checked shared memory" * doctest::skip()) {
  {
    Device device;
    Told told = runKernel(device, "readUnwritten", 1);
    CHECK_EQ(told.answer, "CUDA_ERROR_ILLEGAL_ADDRESS");
    says(told,
         "kernel readUnwritten, block (0, 0, 0), thread (0, 0, 0): 4 bytes at offset 8 of shared memory are read");
  }
  Device device;
  Told told = runKernel(device, "race", 64);
  CHECK_EQ(told.answer, "CUDA_ERROR_LAUNCH_FAILED");
  says(told, "a race on shared memory");
}
