// Cases that need a differently configured device: each runs this program again with its own VGPU_EMULATED.
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>

#include "../no-more-threads.h"
#include "driver-fixture.h"

using namespace vgpu::test;

namespace {

// Runs the skipped case `name` in a separate process; true if it passes.
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

TEST_CASE("VGPU_EMULATED configures the device") {
  CHECK(passes("in a process: four small Turings", "devices=4,memory=64MiB,architecture=75,workers=1"));
  CHECK(passes("in a process: a kernel that never ends", "timeout=0.2"));
  CHECK(passes("in a process: a graph that launches itself for ever", "timeout=0.2"));
  CHECK(passes("in a process: checked shared memory", "check=shared,faults=reset"));
  CHECK(passes("in a process: checked shared memory", "check=races,check=uninitialized,faults=reset"));
  CHECK(passes("in a process: a fault ends all contexts", "devices=2"));
  CHECK(passes("in a process: physical memory of another device", "devices=2"));
  CHECK(passes("in a process: devices that are no peers", "devices=2,peers=0"));
  CHECK(passes("in a process: slow links", "devices=2,link=16MiB,peer-link=8MiB"));
  CHECK(passes("in a process: slow links", "devices=2,link=8MiB,peer-link=16MiB"));
  CHECK(passes("in a process: no more threads", "workers=4"));
}

TEST_CASE("invalid settings are refused") {
  for (const char* settings :
       {"device=2", "devices=0", "devices=two", "memory=1MiB", "memory=4GB", "architecture=60", "timeout=-1",
        "check=all", "link=0", "link=fast", "peer-link=8GB/s", "workers", "memory=99999999999TiB"}) {
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
  // Copies reach any device; kernels reach a peer's memory after peer access is enabled.
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

// As on two H200 (docs/facts.md).
TEST_CASE("in a process: physical memory of another device" * doctest::skip()) {
  Device first(0), second(1);
  constexpr size_t bytes = 2 << 20;
  CUmemAllocationProp properties{.type = CU_MEM_ALLOCATION_TYPE_PINNED, .location = {CU_MEM_LOCATION_TYPE_DEVICE, 1}};
  CUmemGenericAllocationHandle physical = 0;
  CUdeviceptr far = 0;
  REQUIRE_CUDA(cuMemCreate(&physical, bytes, &properties, 0));
  REQUIRE_CUDA(cuMemAddressReserve(&far, bytes, 0, 0, 0));
  REQUIRE_CUDA(cuMemMap(far, bytes, 0, physical, 0));
  CUmemAccessDesc access{{CU_MEM_LOCATION_TYPE_DEVICE, {1}}, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
  REQUIRE_CUDA(cuMemSetAccess(far, bytes, &access, 1));
  REQUIRE_CUDA(cuCtxSetCurrent(first.context));
  CUdeviceptr near = first.allocate(4);
  CHECK_ANSWER(cuMemcpyDtoD(far, near, 4), CUDA_ERROR_INVALID_VALUE);
  CHECK_ANSWER(cuMemcpy(near, far, 4), CUDA_ERROR_INVALID_VALUE);
  CHECK_ANSWER(cuMemsetD32(far, 1, 1), CUDA_ERROR_INVALID_VALUE);
  CHECK_CUDA(cuMemcpyPeer(far, second.context, near, first.context, 4));
  access.location.id = 0;
  REQUIRE_CUDA(cuMemSetAccess(far, bytes, &access, 1));
  CHECK_CUDA(cuMemsetD32(far, 9, 1));
  CHECK_CUDA(cuMemcpyDtoD(near, far, 4));
  CHECK_EQ(first.read(near), 9);
}

// The existing threads execute all work.
TEST_CASE("in a process: no more threads" * doctest::skip()) {
  constexpr unsigned blocks = 64, count = blocks * 32;
  Device device;
  CUdeviceptr squares = device.allocate(count * 4), word = device.allocate(4), many = device.allocate(4 << 20);
  NoMoreThreads limit;
  CUstream stream = nullptr, other = nullptr;
  REQUIRE_CUDA(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  REQUIRE_CUDA(cuStreamCreate(&other, CU_STREAM_NON_BLOCKING));
  int calls = 0;
  unsigned n = count;
  void* arguments[] = {&squares, &n};
  CHECK_CUDA(cuLaunchKernel(function(device.load(), "square"), blocks, 1, 1, 32, 1, 1, 0, stream, arguments, nullptr));
  CHECK_CUDA(cuLaunchHostFunc(stream, [](void* counted) { ++*static_cast<int*>(counted); }, &calls));
  CHECK_CUDA(cuStreamWaitValue32(stream, word, 1, CU_STREAM_WAIT_VALUE_EQ));
  CHECK_CUDA(cuMemsetD32Async(many, 7, 1 << 20, stream));
  CHECK_ANSWER(cuStreamQuery(stream), CUDA_ERROR_NOT_READY);
  CHECK_CUDA(cuStreamWriteValue32(other, word, 1, CU_STREAM_WRITE_VALUE_DEFAULT));
  CHECK_CUDA(cuStreamSynchronize(stream));
  CHECK_EQ(calls, 1);
  CHECK_EQ(device.read(many + (4 << 20) - 4), 7);
  for (unsigned i : {0u, 33u, count - 1}) CHECK_EQ(device.read(squares + i * 4), i * i);
}

TEST_CASE("in a process: devices that are no peers" * doctest::skip()) {
  Device first(0), second(1);
  int can = 1, value = 1;
  CHECK_CUDA(cuDeviceCanAccessPeer(&can, 0, 1));
  CHECK_CUDA(cuDeviceGetP2PAttribute(&value, CU_DEVICE_P2P_ATTRIBUTE_ACCESS_SUPPORTED, 0, 1));
  CHECK_EQ(can, 0);
  CHECK_EQ(value, 0);
  CUdeviceptr far = second.allocate(4), mapped = 0;
  CHECK_ANSWER(cuCtxEnablePeerAccess(first.context, 0), CUDA_ERROR_PEER_ACCESS_UNSUPPORTED);
  constexpr size_t bytes = 2 << 20;
  CUmemAllocationProp properties{.type = CU_MEM_ALLOCATION_TYPE_PINNED, .location = {CU_MEM_LOCATION_TYPE_DEVICE, 1}};
  CUmemGenericAllocationHandle physical = 0;
  REQUIRE_CUDA(cuMemCreate(&physical, bytes, &properties, 0));
  REQUIRE_CUDA(cuMemAddressReserve(&mapped, bytes, 0, 0, 0));
  REQUIRE_CUDA(cuMemMap(mapped, bytes, 0, physical, 0));
  CUmemAccessDesc access{{CU_MEM_LOCATION_TYPE_DEVICE, {0}}, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
  CHECK_ANSWER(cuMemSetAccess(mapped, bytes, &access, 1), CUDA_ERROR_INVALID_DEVICE);
  access.location.id = 1;
  CHECK_CUDA(cuMemSetAccess(mapped, bytes, &access, 1));
  REQUIRE_CUDA(cuCtxSetCurrent(first.context));
  CHECK_CUDA(cuMemcpyPeer(far, second.context, first.allocate(4), first.context, 4));  // staged through the host
}

TEST_CASE("in a process: a fault ends all contexts" * doctest::skip()) {
  Device first(0), second(1);
  CUdeviceptr word = second.allocate(4);
  REQUIRE_CUDA(cuCtxSetCurrent(first.context));
  REQUIRE_CUDA(launch(function(first.load(), "store"), nullptr, 1, CUdeviceptr{0x7000000000000}, 1u));
  CHECK_ANSWER(cuCtxSynchronize(), CUDA_ERROR_ILLEGAL_ADDRESS);
  REQUIRE_CUDA(cuCtxSetCurrent(second.context));
  CHECK_ANSWER(cuCtxSynchronize(), CUDA_ERROR_ILLEGAL_ADDRESS);
  CHECK_ANSWER(cuMemsetD32(word, 1, 1), CUDA_ERROR_ILLEGAL_ADDRESS);
  CUcontext another = nullptr;
  CHECK_ANSWER(cuDevicePrimaryCtxRetain(&another, 1), CUDA_ERROR_ILLEGAL_ADDRESS);
}

TEST_CASE("in a process: a kernel that never ends" * doctest::skip()) {
  Device device;
  CUdeviceptr word = device.allocate(4);
  REQUIRE_CUDA(launch(function(device.load(), "waitFor"), nullptr, 1, word, 1u));
  CHECK_ANSWER(cuCtxSynchronize(), CUDA_ERROR_LAUNCH_TIMEOUT);
}

namespace {

// The value of `key` in VGPU_EMULATED, in MiB.
double speedOf(const std::string& key) {
  std::string settings = getenv("VGPU_EMULATED");
  return std::stod(settings.substr(settings.find("," + key + "=") + key.size() + 2));
}

// Milliseconds between two events in the null stream, with `work` between them.
template <class Work>
double duration(Work work) {
  CUevent begin = nullptr, end = nullptr;
  REQUIRE_CUDA(cuEventCreate(&begin, CU_EVENT_DEFAULT));
  REQUIRE_CUDA(cuEventCreate(&end, CU_EVENT_DEFAULT));
  REQUIRE_CUDA(cuEventRecord(begin, nullptr));
  work();
  REQUIRE_CUDA(cuEventRecord(end, nullptr));
  REQUIRE_CUDA(cuEventSynchronize(end));
  float milliseconds = 0;
  REQUIRE_CUDA(cuEventElapsedTime(&milliseconds, begin, end));
  cuEventDestroy(begin);
  cuEventDestroy(end);
  return static_cast<double>(milliseconds);
}

}  // namespace

// A link may be slower than configured, on a busy machine, but never faster.
TEST_CASE("in a process: slow links" * doctest::skip()) {
  constexpr size_t bytes = 1 << 20;
  const double host = 999 / speedOf("link"), peer = 999 / speedOf("peer-link");  // milliseconds for 1 MiB, rounded down
  Device second(1), first(0);
  CUdeviceptr near = first.allocate(bytes);
  REQUIRE_CUDA(cuCtxSetCurrent(second.context));
  CUdeviceptr far = second.allocate(bytes);
  REQUIRE_CUDA(cuCtxSetCurrent(first.context));
  std::vector<uint32_t> sent(bytes / 4), received(bytes / 4);
  for (size_t i = 0; i < sent.size(); ++i) sent[i] = static_cast<uint32_t>(i * 2654435761u);
  void* pinned = nullptr;
  REQUIRE_CUDA(cuMemAllocHost(&pinned, bytes));

  SUBCASE("a copy takes as long as its link") {
    CHECK_GE(duration([&] { CHECK_CUDA(cuMemcpyHtoD(near, sent.data(), bytes)); }), host);
    CHECK_GE(duration([&] { CHECK_CUDA(cuMemcpyPeerAsync(far, second.context, near, first.context, bytes, nullptr)); }),
             peer);
    CHECK_GE(duration([&] { CHECK_CUDA(cuMemcpyDtoH(received.data(), far, bytes)); }), host);
    CHECK_EQ(received, sent);
  }
  SUBCASE("rows take as long as their bytes") {
    CUDA_MEMCPY2D rows{};
    rows.srcMemoryType = CU_MEMORYTYPE_HOST;
    rows.srcHost = sent.data();
    rows.dstMemoryType = CU_MEMORYTYPE_DEVICE;
    rows.dstDevice = near;
    rows.srcPitch = rows.dstPitch = 1024;
    rows.WidthInBytes = 512;
    rows.Height = bytes / 1024;
    CHECK_GE(duration([&] { CHECK_CUDA(cuMemcpy2D(&rows)); }), host / 2);
  }
  SUBCASE("copies of several streams share a direction") {
    CUstream streams[2] = {};
    CUevent done[2] = {}, begun = nullptr;
    REQUIRE_CUDA(cuEventCreate(&begun, CU_EVENT_DISABLE_TIMING));
    double both = duration([&] {
      CHECK_CUDA(cuEventRecord(begun, nullptr));  // measured in the null stream, for which the other streams do not wait
      for (int i = 0; i < 2; ++i) {
        REQUIRE_CUDA(cuStreamCreate(&streams[i], CU_STREAM_NON_BLOCKING));
        REQUIRE_CUDA(cuEventCreate(&done[i], CU_EVENT_DISABLE_TIMING));
        CHECK_CUDA(cuStreamWaitEvent(streams[i], begun, 0));
        CHECK_CUDA(cuMemcpyHtoDAsync(near + i * bytes / 2, pinned, bytes / 2, streams[i]));
        CHECK_CUDA(cuEventRecord(done[i], streams[i]));
      }
      for (CUevent event : done) CHECK_CUDA(cuStreamWaitEvent(nullptr, event, 0));
    });
    CHECK_GE(both, host);
  }
  SUBCASE("many small copies take as long as one large one") {
    double all = duration([&] {
      for (size_t at = 0; at < bytes; at += 16 << 10)
        CHECK_CUDA(cuMemcpyHtoDAsync(near + at, static_cast<std::byte*>(pinned) + at, 16 << 10, nullptr));
    });
    CHECK_GE(all, host);
  }
  SUBCASE("what a copy has not brought yet is not there") {
    CUstream copying = nullptr;
    REQUIRE_CUDA(cuStreamCreate(&copying, CU_STREAM_NON_BLOCKING));
    CUdeviceptr aside = first.allocate(4);
    std::memset(pinned, 0xff, bytes);
    CHECK_CUDA(cuMemcpyHtoDAsync(near, pinned, bytes, copying));
    // Copies within the device are not slowed down, so this one overtakes the other.
    CHECK_CUDA(cuMemcpyDtoD(aside, near, 4));
    CHECK_CUDA(cuStreamSynchronize(nullptr));
    bool overtaken = cuStreamQuery(copying) == CUDA_ERROR_NOT_READY;  // else this thread slept longer than the copy took
    CHECK_CUDA(cuStreamSynchronize(copying));
    if (overtaken) CHECK_EQ(first.read(aside), 0);
    CHECK_EQ(first.read(near), 0xffffffff);
  }
  cuMemFreeHost(pinned);
}
