#include <atomic>
#include <thread>

#include "driver-fixture.h"

using namespace vgpu::test;

namespace {

// Registered host memory that kernels poll: keeps a stream busy until the test opens the gate.
struct Gate {
  Gate() {
    REQUIRE_CUDA(cuMemHostAlloc(&pointer, 4096, CU_MEMHOSTALLOC_PORTABLE));
    word().store(0);
  }
  ~Gate() { cuMemFreeHost(pointer); }
  void open() { word().store(1); }
  std::atomic_ref<uint32_t> word() { return std::atomic_ref<uint32_t>(*static_cast<uint32_t*>(pointer)); }
  CUdeviceptr address() { return reinterpret_cast<CUdeviceptr>(pointer); }
  void* pointer = nullptr;
};

}  // namespace

TEST_CASE("work in a stream runs in order") {
  Device device;
  CUmodule module = device.load();
  CUfunction store = function(module, "store"), increment = function(module, "increment");
  CUdeviceptr word = device.allocate(4);
  CUstream stream = nullptr;
  REQUIRE_CUDA(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  for (uint32_t i = 0; i < 100; ++i) {
    REQUIRE_CUDA(launch(store, stream, 1, word, i));
    REQUIRE_CUDA(launch(increment, stream, 32, word));
  }
  REQUIRE_CUDA(cuStreamSynchronize(stream));
  CHECK_EQ(device.read(word), 99 + 32);
  CHECK_CUDA(cuStreamDestroy(stream));
}

TEST_CASE("streams run concurrently") {
  Device device;
  CUmodule module = device.load();
  CUfunction store = function(module, "store"), waitFor = function(module, "waitFor");
  CUstream waiting = nullptr, writing = nullptr;
  REQUIRE_CUDA(cuStreamCreate(&waiting, CU_STREAM_NON_BLOCKING));
  REQUIRE_CUDA(cuStreamCreate(&writing, CU_STREAM_NON_BLOCKING));
  CUdeviceptr word = device.allocate(4);
  REQUIRE_CUDA(cuCtxSynchronize());
  // The first kernel cannot end before the second one has run.
  REQUIRE_CUDA(launch(waitFor, waiting, 1, word, 7u));
  REQUIRE_CUDA(launch(store, writing, 1, word, 7u));
  CHECK_CUDA(cuStreamSynchronize(waiting));
  CHECK_CUDA(cuStreamDestroy(waiting));
  CHECK_CUDA(cuStreamDestroy(writing));
}

TEST_CASE("a launch returns before the kernel has run, and the stream reports it as pending") {
  Device device;
  Gate gate;
  CUfunction waitFor = function(device.load(), "waitFor");
  CUstream stream = nullptr;
  REQUIRE_CUDA(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  REQUIRE_CUDA(launch(waitFor, stream, 1, gate.address(), 1u));
  CHECK_ANSWER(cuStreamQuery(stream), CUDA_ERROR_NOT_READY);
  gate.open();
  CHECK_CUDA(cuStreamSynchronize(stream));
  CHECK_CUDA(cuStreamQuery(stream));
}

TEST_CASE("the default stream waits for blocking streams, and they wait for it") {
  Device device;
  Gate gate;
  CUmodule module = device.load();
  CUfunction waitFor = function(module, "waitFor"), store = function(module, "store");
  CUdeviceptr word = device.allocate(4);
  CUstream blocking = nullptr, later = nullptr;
  REQUIRE_CUDA(cuStreamCreate(&blocking, CU_STREAM_DEFAULT));
  REQUIRE_CUDA(cuStreamCreate(&later, CU_STREAM_DEFAULT));
  REQUIRE_CUDA(launch(waitFor, blocking, 1, gate.address(), 1u));
  REQUIRE_CUDA(launch(store, nullptr, 1, word, 5u));
  REQUIRE_CUDA(launch(function(module, "increment"), later, 1, word));
  CHECK_ANSWER(cuStreamQuery(nullptr), CUDA_ERROR_NOT_READY);
  CHECK_ANSWER(cuStreamQuery(later), CUDA_ERROR_NOT_READY);
  gate.open();
  CHECK_CUDA(cuStreamSynchronize(later));
  CHECK_EQ(device.read(word), 6);
}

TEST_CASE("the default stream does not wait for non-blocking streams") {
  Device device;
  Gate gate;
  CUmodule module = device.load();
  CUdeviceptr word = device.allocate(4);
  CUstream free = nullptr;
  REQUIRE_CUDA(cuStreamCreate(&free, CU_STREAM_NON_BLOCKING));
  REQUIRE_CUDA(launch(function(module, "waitFor"), free, 1, gate.address(), 1u));
  REQUIRE_CUDA(launch(function(module, "store"), nullptr, 1, word, 3u));
  CHECK_EQ(device.read(word), 3);  // would hang if the copy waited for the gate
  CHECK_ANSWER(cuStreamQuery(free), CUDA_ERROR_NOT_READY);
  gate.open();
  CHECK_CUDA(cuCtxSynchronize());
}

TEST_CASE("per-thread default streams are independent of each other") {
  Device device;
  Gate gate;
  CUmodule module = device.load();
  CUdeviceptr word = device.allocate(4);
  REQUIRE_CUDA(cuCtxSynchronize());
  REQUIRE_CUDA(launch(function(module, "waitFor"), CU_STREAM_PER_THREAD, 1, gate.address(), 1u));
  std::string answer;
  std::thread([&] {
    cuCtxSetCurrent(device.context);
    launch(function(module, "store"), CU_STREAM_PER_THREAD, 1, word, 9u);
    answer = nameOf(cuStreamSynchronize(CU_STREAM_PER_THREAD));
  }).join();
  CHECK_EQ(answer, "CUDA_SUCCESS");
  CHECK_ANSWER(cuStreamQuery(CU_STREAM_PER_THREAD), CUDA_ERROR_NOT_READY);
  gate.open();
  CHECK_CUDA(cuStreamSynchronize(CU_STREAM_PER_THREAD));
}

TEST_CASE("an event orders one stream behind another, as recorded when the wait was enqueued") {
  Device device;
  Gate gate;
  CUmodule module = device.load();
  CUfunction store = function(module, "store");
  CUdeviceptr word = device.allocate(4);
  CUstream first = nullptr, second = nullptr;
  CUevent event = nullptr;
  REQUIRE_CUDA(cuStreamCreate(&first, CU_STREAM_NON_BLOCKING));
  REQUIRE_CUDA(cuStreamCreate(&second, CU_STREAM_NON_BLOCKING));
  REQUIRE_CUDA(cuEventCreate(&event, CU_EVENT_DEFAULT));
  CHECK_CUDA(cuEventQuery(event));  // never recorded: nothing to wait for
  REQUIRE_CUDA(cuCtxSynchronize());
  REQUIRE_CUDA(launch(function(module, "waitFor"), first, 1, gate.address(), 1u));
  REQUIRE_CUDA(launch(store, first, 1, word, 1u));
  REQUIRE_CUDA(cuEventRecord(event, first));
  REQUIRE_CUDA(cuStreamWaitEvent(second, event, 0));
  REQUIRE_CUDA(launch(store, second, 1, word, 2u));
  CHECK_ANSWER(cuEventQuery(event), CUDA_ERROR_NOT_READY);
  CHECK_CUDA(cuEventDestroy(event));  // the wait keeps the recorded work alive
  gate.open();
  CHECK_CUDA(cuStreamSynchronize(second));
  CHECK_EQ(device.read(word), 2);
}

TEST_CASE("the time between two events is measured") {
  Device device;
  Gate gate;
  CUfunction waitFor = function(device.load(), "waitFor");
  CUevent start = nullptr, stop = nullptr, untimed = nullptr;
  REQUIRE_CUDA(cuEventCreate(&start, CU_EVENT_DEFAULT));
  REQUIRE_CUDA(cuEventCreate(&stop, CU_EVENT_DEFAULT));
  REQUIRE_CUDA(cuEventCreate(&untimed, CU_EVENT_DISABLE_TIMING));
  float milliseconds = -1;
  CHECK_ANSWER(cuEventElapsedTime(&milliseconds, start, stop), CUDA_ERROR_INVALID_HANDLE);
  REQUIRE_CUDA(cuEventRecord(start, nullptr));
  REQUIRE_CUDA(launch(waitFor, nullptr, 1, gate.address(), 1u));
  REQUIRE_CUDA(cuEventRecord(stop, nullptr));
  CHECK_ANSWER(cuEventElapsedTime(&milliseconds, start, stop), CUDA_ERROR_NOT_READY);
  gate.open();
  REQUIRE_CUDA(cuEventSynchronize(stop));
  CHECK_CUDA(cuEventElapsedTime(&milliseconds, start, stop));
  CHECK_GT(milliseconds, 0);
  REQUIRE_CUDA(cuEventRecord(untimed, nullptr));
  CHECK_ANSWER(cuEventElapsedTime(&milliseconds, start, untimed), CUDA_ERROR_INVALID_HANDLE);
}

TEST_CASE("host functions run in stream order and may block without stopping other streams") {
  Device device;
  CUmodule module = device.load();
  CUdeviceptr word = device.allocate(4);
  CUstream stream = nullptr, other = nullptr;
  REQUIRE_CUDA(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  REQUIRE_CUDA(cuStreamCreate(&other, CU_STREAM_NON_BLOCKING));
  REQUIRE_CUDA(cuCtxSynchronize());
  std::atomic<int> released{0};
  auto block = [](void* flag) {
    auto& released = *static_cast<std::atomic<int>*>(flag);
    released.wait(0);
  };
  REQUIRE_CUDA(cuLaunchHostFunc(stream, block, &released));
  REQUIRE_CUDA(launch(function(module, "store"), stream, 1, word, 4u));
  REQUIRE_CUDA(launch(function(module, "increment"), other, 1, word));
  CHECK_CUDA(cuStreamSynchronize(other));
  CHECK_EQ(device.read(word), 1);
  released = 1;
  released.notify_all();
  CHECK_CUDA(cuStreamSynchronize(stream));
  CHECK_EQ(device.read(word), 4);
}

TEST_CASE("a stream's write of a word tells another thread that all earlier work is done") {
  Device device;
  CUfunction square = function(device.load(), "square");
  constexpr uint32_t count = 1024;
  struct Shared {
    uint64_t position;
    uint32_t values[count];
  };
  void* pointer = nullptr;
  REQUIRE_CUDA(cuMemHostAlloc(&pointer, sizeof(Shared), 0));
  auto* shared = static_cast<Shared*>(pointer);
  auto base = reinterpret_cast<CUdeviceptr>(pointer);
  shared->position = 0;
  CUstream stream = nullptr;
  REQUIRE_CUDA(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  bool complete = false;
  std::thread reader([&] {
    std::atomic_ref<uint64_t> position(shared->position);
    while (position.load(std::memory_order_acquire) != 42) std::this_thread::yield();
    complete = true;
    for (uint32_t i = 0; i < count; ++i) complete = complete && shared->values[i] == i * i;
  });
  REQUIRE_CUDA(launch(square, stream, count, base + offsetof(Shared, values), count));
  REQUIRE_CUDA(cuStreamWriteValue64(stream, base, 42, 0));
  reader.join();
  CHECK(complete);
  CHECK_CUDA(cuStreamSynchronize(stream));
  CHECK_CUDA(cuMemFreeHost(pointer));
}

TEST_CASE("a stream waits for a word that the host writes") {
  Device device;
  Gate gate;
  CUdeviceptr word = device.allocate(4);
  CUstream stream = nullptr;
  REQUIRE_CUDA(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  REQUIRE_CUDA(cuStreamWaitValue32(stream, gate.address(), 1, CU_STREAM_WAIT_VALUE_GEQ));
  REQUIRE_CUDA(cuStreamWriteValue32(stream, word, 11, 0));
  CHECK_ANSWER(cuStreamQuery(stream), CUDA_ERROR_NOT_READY);
  gate.open();
  CHECK_CUDA(cuStreamSynchronize(stream));
  CHECK_EQ(device.read(word), 11);
  CHECK_ANSWER(cuStreamWriteValue32(stream, word + 2, 1, 0), CUDA_ERROR_INVALID_VALUE);
  CHECK_ANSWER(cuStreamWriteValue32(stream, 0x1234, 1, 0), CUDA_ERROR_INVALID_VALUE);
}

TEST_CASE("work of a destroyed stream still runs and is still waited for") {
  Device device;
  Gate gate;
  CUmodule module = device.load();
  CUdeviceptr word = device.allocate(4);
  CUstream stream = nullptr;
  REQUIRE_CUDA(cuStreamCreate(&stream, CU_STREAM_DEFAULT));
  REQUIRE_CUDA(launch(function(module, "waitFor"), stream, 1, gate.address(), 1u));
  REQUIRE_CUDA(launch(function(module, "store"), stream, 1, word, 8u));
  REQUIRE_CUDA(cuStreamDestroy(stream));
  CHECK_ANSWER(cuStreamSynchronize(stream), CUDA_ERROR_INVALID_HANDLE);
  gate.open();
  CHECK_EQ(device.read(word), 8);
}

TEST_CASE("many threads may use one stream, and many streams one event") {
  Device device;
  CUmodule module = device.load();
  CUfunction increment = function(module, "increment");
  CUdeviceptr word = device.allocate(4);
  CUevent event = nullptr;
  REQUIRE_CUDA(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
  std::atomic<int> failures{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      auto check = [&](CUresult answer) { failures += answer != CUDA_SUCCESS; };
      check(cuCtxSetCurrent(device.context));
      CUstream stream = nullptr;
      check(cuStreamCreate(&stream, 0));
      for (int i = 0; i < 50; ++i) {
        check(launch(increment, i % 2 ? stream : nullptr, 1, word));
        check(cuEventRecord(event, stream));
        check(cuStreamWaitEvent(nullptr, event, 0));
      }
      check(cuStreamSynchronize(stream));
      check(cuStreamDestroy(stream));
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK_EQ(failures, 0);
  CHECK_EQ(device.read(word), 200);
}
