#include "stub/gpu/continuations.h"

#include <doctest/doctest.h>

#include <atomic>
#include <deque>
#include <optional>
#include <set>
#include <string>

#include "vgpu/api/wire-value.h"

using namespace vgpu::stub;
namespace api = vgpu::api;

namespace {

// A GPU that executes a write when the test says so. It notes which streams it had to wait for, and in which streams the writes were.
struct {
  std::deque<std::pair<uint64_t, uint64_t>> writes;  // address, value
  std::string joined, written;
  std::set<uint64_t> done;  // streams without work
  uint64_t made = 900, events = 800;
  std::set<uint64_t> passed;  // events
} gpu;

constexpr uint64_t behindLegacy = 903;  // the worker's own stream, the third that is made

CUresult CUDAAPI registerHost(void*, size_t, unsigned) { return CUDA_SUCCESS; }
CUresult CUDAAPI devicePointer(CUdeviceptr* address, void* host, unsigned) {
  *address = vgpu::toWire(host);
  return CUDA_SUCCESS;
}
CUresult CUDAAPI createStream(CUstream* stream, unsigned, int) {
  *stream = vgpu::fromWire<CUstream>(++gpu.made);
  return CUDA_SUCCESS;
}
CUresult CUDAAPI createEvent(CUevent* event, unsigned) {
  *event = vgpu::fromWire<CUevent>(gpu.events++);
  return CUDA_SUCCESS;
}
CUresult CUDAAPI record(CUevent, CUstream stream) {
  gpu.joined += std::to_string(vgpu::toWire(stream)) + " ";
  return CUDA_SUCCESS;
}
CUresult CUDAAPI queryEvent(CUevent event) { return gpu.passed.contains(vgpu::toWire(event)) ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY; }
CUresult CUDAAPI waitFor(CUstream, CUevent, unsigned) { return CUDA_SUCCESS; }
CUresult CUDAAPI query(CUstream stream) { return gpu.done.contains(vgpu::toWire(stream)) ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY; }
// Stream 13 is non-blocking.
CUresult CUDAAPI flagsOf(CUstream stream, unsigned* flags) {
  *flags = vgpu::toWire(stream) == 13 ? CU_STREAM_NON_BLOCKING : CU_STREAM_DEFAULT;
  return CUDA_SUCCESS;
}
CUresult CUDAAPI write(CUstream stream, CUdeviceptr address, cuuint64_t value, unsigned) {
  gpu.writes.push_back({address, value});
  gpu.written += std::to_string(vgpu::toWire(stream)) + " ";
  return CUDA_SUCCESS;
}

void passOne() {
  auto [address, value] = gpu.writes.front();
  gpu.writes.pop_front();
  vgpu::fromWire<std::atomic<uint64_t>*>(address)->store(value);
}

Driver fakeDriver() {
  Driver driver;
  driver.cuMemHostRegister_v2 = registerHost;
  driver.cuMemHostGetDevicePointer_v2 = devicePointer;
  driver.cuMemHostUnregister = [](void*) { return CUDA_SUCCESS; };
  driver.cuStreamCreateWithPriority = createStream;
  driver.cuStreamDestroy_v2 = [](CUstream) { return CUDA_SUCCESS; };
  driver.cuEventCreate = createEvent;
  driver.cuEventDestroy_v2 = [](CUevent) { return CUDA_SUCCESS; };
  driver.cuEventQuery = queryEvent;
  driver.cuEventRecord = record;
  driver.cuStreamWaitEvent = waitFor;
  driver.cuStreamQuery = query;
  driver.cuStreamGetFlags = flagsOf;
  driver.cuStreamWriteValue64_v2 = write;
  return driver;
}

constexpr uint64_t firstMark = 801;  // the first event belongs to the worker's streams

// A device with the streams 1, 2 and 3, whose real handles are 11, 12 and 13.
struct Fixture {
  Driver driver = fakeDriver();
  HandleMap handles;
  std::optional<DeviceProgress> device;
  Continuations continuations;
  std::string ran;
  std::atomic<uint64_t> word{0};

  Fixture() {
    gpu = {};
    handles.add(api::Kind::STREAM, 1, 11);
    handles.add(api::Kind::STREAM, 2, 12);
    handles.add(api::Kind::STREAM, 3, 13);
    device.emplace(driver, handles);
    REQUIRE(device->start() == CUDA_SUCCESS);
  }
  uint64_t fence() {
    uint64_t number = 0;
    REQUIRE(device->fence(number) == CUDA_SUCCESS);
    return number;
  }
  // Signals a word when all work given to the stream so far is done.
  void await(uint64_t stream, uint64_t value) {
    REQUIRE(device->signalStream(stream, {&word, vgpu::toWire(&word), value}) == CUDA_SUCCESS);
  }
  void add(const char* name) {
    continuations.add(fence(), [this, name](CUresult fault) { ran += name + std::to_string(fault) + " "; });
  }
};

TEST_CASE_FIXTURE(Fixture, "a fence is behind all streams with work since the previous fence, and costs nothing if there are none") {
  CHECK(device->hasPassed(fence()));
  CHECK(gpu.writes.empty());
  device->used(1);
  device->used(1);
  uint64_t first = fence();
  CHECK(gpu.joined == "11 ");
  CHECK(fence() == first);
  device->used(2);
  uint64_t second = fence();
  CHECK(gpu.joined == "11 12 ");
  CHECK(gpu.writes.size() == 2);
  passOne();
  CHECK(device->hasPassed(first));
  CHECK_FALSE(device->hasPassed(second));
  passOne();
  CHECK(device->hasPassed(second));
}

TEST_CASE_FIXTURE(Fixture, "the legacy stream is joined only if it has pending work") {
  device->used(0);
  gpu.done = {0};
  CHECK(device->hasPassed(fence()));
  CHECK(gpu.joined.empty());
  device->used(0);
  gpu.done = {};
  CHECK_FALSE(device->hasPassed(fence()));
  CHECK(gpu.joined == std::to_string(behindLegacy) + " ");
}

TEST_CASE_FIXTURE(Fixture, "a wait for the stream with the latest work is a write in that stream") {
  device->used(0);
  device->used(1);
  await(1, 5);
  CHECK(gpu.written == "11 ");
  device->used(0);
  await(0, 6);
  CHECK(gpu.written == "11 0 ");
  device->used(3);
  device->used(0);
  await(3, 7);
  CHECK(gpu.written == "11 0 13 ");
  CHECK(gpu.joined == "11 ");  // the event of stream 1; the non-blocking stream has none
}

TEST_CASE_FIXTURE(Fixture, "a wait for a blocking stream, whose work is followed by the legacy stream's, ends with the stream's own work") {
  device->used(1);
  device->used(0);
  CHECK(gpu.joined == "11 ");
  await(2, 4);
  CHECK(word == 4);  // the stream has no work
  await(1, 5);
  device->ask();
  CHECK(word == 4);
  CHECK(device->isAsking());
  gpu.passed = {firstMark};
  device->ask();
  CHECK(word == 5);
  CHECK_FALSE(device->isAsking());
  await(1, 6);
  CHECK(word == 6);
  CHECK(gpu.written.empty());
}

TEST_CASE_FIXTURE(Fixture, "a wait for a blocking stream takes no longer if both streams get more work, or if the stream is destroyed") {
  device->used(1);
  device->used(0);
  await(1, 5);
  device->used(1);
  device->used(0);
  REQUIRE(device->joinDestroyed(1) == CUDA_SUCCESS);
  handles.remove(api::Kind::STREAM, 1);
  CHECK(gpu.written.empty());
  gpu.passed = {firstMark + 1};  // an event recorded behind its later work
  device->ask();
  CHECK(word == 0);
  gpu.passed = {firstMark};
  device->ask();
  CHECK(word == 5);
  CHECK_FALSE(device->isAsking());
}

TEST_CASE_FIXTURE(Fixture, "a stream has one event, and another one is made only while a wait uses the first") {
  for (int times = 0; times < 3; ++times) {
    device->used(1);
    device->used(0);
  }
  CHECK(gpu.joined == "11 11 11 ");
  CHECK(gpu.events == firstMark + 1);
  await(1, 5);
  device->used(1);
  device->used(0);
  CHECK(gpu.events == firstMark + 2);
}

TEST_CASE_FIXTURE(Fixture, "a wait for a blocking stream is given up with the context") {
  device->used(1);
  device->used(0);
  await(1, 5);
  device->fail(CUDA_ERROR_ILLEGAL_ADDRESS);
  gpu.passed = {firstMark};
  device->ask();
  CHECK(word == 0);
  CHECK_FALSE(device->isAsking());
}

TEST_CASE_FIXTURE(Fixture, "a wait for the legacy stream is ordered behind blocking streams, and does not delay them") {
  device->used(0);
  for (uint64_t stream : {1, 2, 3}) device->used(stream);
  gpu.done = {12};
  await(0, 5);
  CHECK(gpu.joined == "11 ");
  CHECK(gpu.written == std::to_string(behindLegacy) + " ");
}

TEST_CASE_FIXTURE(Fixture, "the work of a destroyed stream counts") {
  device->used(1);
  REQUIRE(device->joinDestroyed(1) == CUDA_SUCCESS);
  handles.remove(api::Kind::STREAM, 1);
  CHECK_FALSE(device->hasPassed(fence()));
  passOne();
  CHECK(device->hasPassed(fence()));
}

TEST_CASE_FIXTURE(Fixture, "continuations run once their fences have passed, in their order") {
  device->used(1);
  add("a");
  add("b");
  device->used(1);
  add("c");
  continuations.poll(*device);
  CHECK(ran.empty());
  passOne();
  continuations.poll(*device);
  CHECK(ran == "a0 b0 ");
  CHECK_FALSE(continuations.isEmpty());
  passOne();
  continuations.poll(*device);
  CHECK(ran == "a0 b0 c0 ");
  CHECK(continuations.isEmpty());
}

TEST_CASE_FIXTURE(Fixture, "a continuation that is added by another one runs the next time") {
  device->used(1);
  continuations.add(fence(), [this](CUresult) { add("later"); });
  passOne();
  continuations.poll(*device);
  CHECK(ran.empty());
  continuations.poll(*device);
  CHECK(ran == "later0 ");
}

TEST_CASE_FIXTURE(Fixture, "a fault completes all continuations that wait for the device") {
  device->used(1);
  add("a");
  device->fail(CUDA_ERROR_ILLEGAL_ADDRESS);
  continuations.poll(*device);
  CHECK(ran == "a700 ");
}

}  // namespace
