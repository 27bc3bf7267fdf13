// Shared by the families of many-families: a thread's numbers and stream in one family, and kernels that use them.
#pragma once

#include <algorithm>
#include <condition_variable>
#include <mutex>

#include "../driver-entry.h"

namespace families {

using Numbers = std::vector<uint32_t>;

__global__ void addTo(uint32_t* data, int count, uint32_t value) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) data[i] += value;
}

__global__ void addFrom(uint32_t* data, const uint32_t* from, int count) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) data[i] += from[i];
}

// A thread's resources in one family: its numbers, and a non-blocking stream.
struct Place {
  uint32_t seed;
  cudaStream_t stream = nullptr;

  Place(int thread, int round) : seed(static_cast<uint32_t>(thread) * 1000003 + static_cast<uint32_t>(round) * 257 + 1) {
    CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  }
  ~Place() { CHECK(cudaStreamDestroy(stream)); }
  Place(const Place&) = delete;
  Place& operator=(const Place&) = delete;

  int count() const { return 100 + static_cast<int>(seed % 4000); }
  int blocks() const { return blocksFor(count(), 128); }
  size_t bytes() const { return count() * sizeof(uint32_t); }
  Numbers numbers(uint32_t more = 0) const {
    Numbers values(count());
    for (size_t i = 0; i < values.size(); ++i) values[i] = seed + static_cast<uint32_t>(i) * 3 + more;
    return values;
  }
  void add(uint32_t* data, uint32_t value, cudaStream_t in) const {
    addTo<<<blocks(), 128, 0, in>>>(data, count(), value);
    CHECK(cudaGetLastError());
  }
  void add(uint32_t* data, uint32_t value) const { add(data, value, stream); }
  void write(uint32_t* data, const Numbers& values) const {
    CHECK(cudaMemcpyAsync(data, values.data(), bytes(), cudaMemcpyHostToDevice, stream));
  }
  void wait() const { CHECK(cudaStreamSynchronize(stream)); }
  // Whether `data` has the thread's numbers, each with `more` added.
  bool holds(const char* family, const uint32_t* data, uint32_t more) const {
    Numbers found(count());
    CHECK(cudaMemcpyAsync(found.data(), data, bytes(), cudaMemcpyDefault, stream));
    wait();
    return same(family, found, numbers(more));
  }
};

// Limits how many threads are in a family at once that needs much of a real GPU: a context takes hundreds of megabytes.
class Few {
 public:
  class Entered {
   public:
    explicit Entered(Few& few) : few(few) {
      std::unique_lock<std::mutex> lock(few.mutex);
      few.changed.wait(lock, [&] { return few.left > 0; });
      --few.left;
    }
    ~Entered() {
      std::lock_guard<std::mutex> lock(few.mutex);
      ++few.left;
      few.changed.notify_one();
    }
    Entered(const Entered&) = delete;

   private:
    Few& few;
  };

 private:
  std::mutex mutex;
  std::condition_variable changed;
  int left = 4;
};

}  // namespace families
