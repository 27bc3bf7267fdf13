// Cases that need a device of another make: each runs this program again with its own VGPU_EMULATED.
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>

#include "driver-fixture.h"

using namespace vgpu::test;

namespace {

// Runs the skipped case `name` in a process of its own; true where it passes.
bool passes(const char* name, const char* settings) {
  pid_t child = fork();
  if (child == 0) {
    setenv("VGPU_EMULATED", settings, 1);
    std::string filter = std::string("--test-case=") + name;
    execl("/proc/self/exe", "test", filter.c_str(), "--no-skip", nullptr);
    _exit(127);
  }
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

}  // namespace

TEST_CASE("settings make the device") {
  CHECK(passes("in a process: four small Turings", "devices=4,memory=64MiB,architecture=75,workers=1"));
  CHECK(passes("in a process: a kernel that never ends", "timeout=0.2"));
  CHECK(passes("in a process: checked shared memory", "check=shared"));
  CHECK(passes("in a process: checked shared memory", "check=races,check=uninitialized"));
}

TEST_CASE("settings that make no sense are refused") {
  for (const char* settings : {"device=2", "devices=0", "devices=two", "memory=1MiB", "memory=4GB", "architecture=60",
                               "timeout=-1", "check=all", "workers", "memory=99999999999TiB"}) {
    CAPTURE(settings);
    CHECK(passes("in a process: nonsense", settings));
  }
}

TEST_CASE("in a process: nonsense" * doctest::skip()) { CHECK_ANSWER(cuInit(0), CUDA_ERROR_INVALID_VALUE); }

TEST_CASE("in a process: four small Turings" * doctest::skip()) {
  Device first(0), second(3);
  int count = 0, major = 0, threads = 0;
  CHECK_CUDA(cuDeviceGetCount(&count));
  CHECK_EQ(count, 4);
  CHECK_CUDA(cuDeviceGetAttribute(&major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, 3));
  CHECK_EQ(major, 7);
  CHECK_CUDA(cuDeviceGetAttribute(&threads, CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR, 3));
  CHECK_EQ(threads, 1024);
  CUdeviceptr far = second.allocate(4), near = 0, much = 0;
  CHECK_ANSWER(cuMemAlloc(&much, 65 << 20), CUDA_ERROR_OUT_OF_MEMORY);
  REQUIRE_CUDA(cuCtxSetCurrent(first.context));
  near = first.allocate(4);
  // Copies reach any device; kernels reach a peer's memory once it is enabled.
  CHECK_CUDA(cuMemcpyPeer(far, second.context, near, first.context, 4));
  int can = 0;
  CHECK_CUDA(cuDeviceCanAccessPeer(&can, 0, 3));
  CHECK_EQ(can, 1);
  REQUIRE_CUDA(cuCtxEnablePeerAccess(second.context, 0));
  CHECK_ANSWER(cuCtxEnablePeerAccess(second.context, 0), CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED);
  CUfunction store = function(first.load(), "store");
  REQUIRE_CUDA(launch(store, nullptr, 1, far, 6u));
  CHECK_EQ(first.read(far), 6);
  REQUIRE_CUDA(cuCtxDisablePeerAccess(second.context));
  REQUIRE_CUDA(launch(store, nullptr, 1, far, 7u));
  CHECK_ANSWER(cuCtxSynchronize(), CUDA_ERROR_ILLEGAL_ADDRESS);
}

TEST_CASE("in a process: a kernel that never ends" * doctest::skip()) {
  Device device;
  CUdeviceptr word = device.allocate(4);
  REQUIRE_CUDA(launch(function(device.load(), "waitFor"), nullptr, 1, word, 1u));
  CHECK_ANSWER(cuCtxSynchronize(), CUDA_ERROR_LAUNCH_TIMEOUT);
}
