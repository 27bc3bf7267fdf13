#include "checkpoint/pipeline.h"

#include <errno.h>
#include <fmt/format.h>
#include <kj/debug.h>
#include <sys/mman.h>

#include <algorithm>
#include <condition_variable>
#include <cstring>
#include <mutex>
#include <thread>

#include "vgpu/base/fail.h"
#include "vgpu/base/sizes.h"

namespace vgpu::checkpoint {

namespace {

// More than this, and the disk is the slower side.
constexpr unsigned mostThreads = 8;

unsigned threadsHere() { return std::clamp(std::thread::hardware_concurrency(), 1u, mostThreads); }

}  // namespace

Pipeline::Pipeline(const stub::Driver* driver) : driver(driver), threads(threadsHere()), chunks(2 * threads + 2) {
  void* mapped = mmap(nullptr, bytes(), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapped == MAP_FAILED)
    fail(fmt::format("the worker was refused {} MiB of memory for its buffers: {}. Free memory on its host, or raise its limit",
                     bytes() / MiB, std::strerror(errno)));
  memory = static_cast<std::byte*>(mapped);
  std::byte* packed = memory + pinnedBytes();
  for (size_t i = 0; i < chunks.size(); ++i, packed += packedMost()) {
    chunks[i].raw = memory + i * chunkBytes;
    chunks[i].packed = {packed, packedMost()};
  }
  // Without pinning, the driver copies once more: slower, not wrong.
  pinned = driver != nullptr &&
           driver->cuMemHostRegister_v2(memory, pinnedBytes(), CU_MEMHOSTREGISTER_PORTABLE) == CUDA_SUCCESS;
}

Pipeline::~Pipeline() {
  if (pinned) driver->cuMemHostUnregister(memory);
  munmap(memory, bytes());
}


// One run's state. `mutex` guards all of it; no stage runs under it.
struct Pipeline::Run {
  std::vector<Chunk>& chunks;
  const Stages& stages;
  std::mutex mutex;
  std::condition_variable changed;
  uint64_t produced = 0, claimed = 0, consumed = 0;
  bool ended = false;
  kj::Maybe<kj::Exception> failure;
  std::vector<bool> transformed = std::vector<bool>(chunks.size());

  Chunk& at(uint64_t index) { return chunks[index % chunks.size()]; }

  // Waits for `ready`; false when the run has failed.
  template <typename Ready>
  bool await(std::unique_lock<std::mutex>& lock, Ready ready) {
    changed.wait(lock, [&] { return failure != nullptr || ready(); });
    return failure == nullptr;
  }

  void produce() {
    for (uint64_t index = 0;; ++index) {
      {
        std::unique_lock lock(mutex);
        if (!await(lock, [&] { return index - consumed < chunks.size(); })) return;
      }
      at(index).index = index;
      bool made = stages.produce(at(index));
      std::lock_guard lock(mutex);
      if (made) ++produced;
      ended = !made;
      changed.notify_all();
      if (ended) return;
    }
  }

  void transform() {
    for (;;) {
      uint64_t index;
      {
        std::unique_lock lock(mutex);
        if (!await(lock, [&] { return claimed < produced || ended; }) || claimed == produced) return;
        index = claimed++;
      }
      stages.transform(at(index));
      std::lock_guard lock(mutex);
      transformed[index % chunks.size()] = true;
      changed.notify_all();
    }
  }

  void consume() {
    for (uint64_t index = 0;; ++index) {
      {
        std::unique_lock lock(mutex);
        bool goesOn = await(lock, [&] { return transformed[index % chunks.size()] || (ended && index == produced); });
        if (!goesOn || !transformed[index % chunks.size()]) return;
      }
      stages.consume(at(index));
      std::lock_guard lock(mutex);
      transformed[index % chunks.size()] = false;
      consumed = index + 1;
      changed.notify_all();
    }
  }

  template <typename Work>
  void guard(Work work) {
    KJ_IF_MAYBE (exception, kj::runCatchingExceptions([&] { work(); })) {
      std::lock_guard lock(mutex);
      if (failure == nullptr) failure = kj::mv(*exception);
      changed.notify_all();
    }
  }
};

void Pipeline::run(const Stages& stages, Here here) {
  Run run{chunks, stages};
  std::vector<std::thread> others;
  auto start = [&](void (Run::*stage)()) {
    others.emplace_back([&run, stage] { run.guard([&] { (run.*stage)(); }); });
  };
  run.guard([&] {
    for (unsigned i = 0; i < threads; ++i) start(&Run::transform);
    start(here == Here::produce ? &Run::consume : &Run::produce);
    here == Here::produce ? run.produce() : run.consume();
  });
  for (auto& thread : others) thread.join();
  KJ_IF_MAYBE (exception, run.failure) kj::throwFatalException(kj::mv(*exception));
}

}  // namespace vgpu::checkpoint
