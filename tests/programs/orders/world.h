// The state of a thread's random program: its order, its buffers, and the graphs that it has not destroyed yet.
#pragma once

#include "buffers.h"

namespace orders {

class World {
 public:
  World(unsigned seed, int devices, int thread, bool isAlone);

  // Orders the stream's next work behind everything that it must follow to use the buffer.
  void requireRead(int stream, const Buffer& buffer, bool isWork = true) { order.require(stream, buffer.written, isWork); }
  void requireWrite(int stream, const Buffer& buffer, bool isWork = true);
  // The same for the host.
  void requireReadOfHost(const Buffer& buffer) { order.requireOfHost(buffer.written); }
  void requireWriteOfHost(const Buffer& buffer);

  // A buffer for which `fits` holds, or none.
  template <typename Fits>
  Buffer* find(Fits fits) {
    std::vector<Buffer*> fitting;
    for (auto& buffer : buffers)
      if (fits(buffer)) fitting.push_back(&buffer);
    return fitting.empty() ? nullptr : fitting[random.pick(static_cast<int>(fitting.size()))];
  }
  // Managed memory that can be prefetched, which CUDA refuses without concurrent managed access.
  Buffer* findMovable() {
    int isConcurrent = 0;
    CHECK(cudaDeviceGetAttribute(&isConcurrent, cudaDevAttrConcurrentManagedAccess, 0));
    return find([&](Buffer& buffer) { return isConcurrent != 0 && buffer.kind == Kind::managed; });
  }
  // Whether kernels of the stream can access it.
  bool isReached(const Buffer& buffer, int stream) const {
    return (buffer.is().isEverywhere && buffer.isReached) || (!buffer.is().isHosts && buffer.device == order.deviceOf(stream));
  }
  Buffer& any() { return buffers[random.pick(static_cast<int>(buffers.size()))]; }
  Byte byte() { return static_cast<Byte>(random.pick(256)); }

  void make(Buffer& buffer);
  void remove(Buffer& buffer);
  void compare(Buffer& buffer);  // with its expected bytes
  void finish();                 // compares and removes all buffers

  Random random;
  const int devices, thread;
  const bool isAlone;  // no other thread uses the devices
  Order order;
  std::vector<Buffer> buffers;
  std::deque<cudaGraphExec_t> graphs;
  bool ok = true;

 private:
  const int largest;  // bytes of a buffer
};

inline World::World(unsigned seed, int devices, int thread, bool isAlone)
    : random(seed), devices(devices), thread(thread), isAlone(isAlone), order(random, devices, isAlone),
      largest(random.oneIn(3) ? 300'000 : 20'000) {
  buffers.resize(4 + random.pick(8));
  for (auto& buffer : buffers) make(buffer);
}

inline void World::requireWrite(int stream, const Buffer& buffer, bool isWork) {
  order.require(stream, buffer.written, isWork);
  for (auto moment : buffer.read) order.require(stream, moment, isWork);
}

inline void World::requireWriteOfHost(const Buffer& buffer) {
  order.requireOfHost(buffer.written);
  for (auto moment : buffer.read) order.requireOfHost(moment);
}

inline void World::make(Buffer& buffer) {
  Buffer made;
  made.kind = static_cast<Kind>(random.pick(kinds));
  made.device = random.pick(devices);
  made.bytes = 1 + random.pick(random.oneIn(4) ? largest : variableBytes);
  if (made.kind == Kind::privateFile) made.bytes = std::min(made.bytes, privateBytes);
  if (made.kind == Kind::variable) {
    made.bytes = std::min(made.bytes, variableBytes);
    for (auto& other : buffers)
      if (other.data != nullptr && other.kind == Kind::variable && other.device == made.device) made.kind = Kind::device;
  }
  const int stream = order.pickStreamOf(made.device);
  const cudaStream_t handle = order.enter(stream);
  allocate(made, thread, handle);
  const Byte value = byte();
  made.model.assign(made.bytes, value);
  if (made.is().isHosts) {
    std::memset(made.data, value, made.bytes);
  } else {
    CHECK(cudaMemsetAsync(made.data, value, made.bytes, handle));
    made.noteWrite("first fill", order.post(stream));
  }
  buffer = std::move(made);
}

// Device memory may be freed in stream order.
inline void World::remove(Buffer& buffer) {
  const bool isFreedInOrder = (buffer.kind == Kind::device || buffer.kind == Kind::streamOrdered) && random.oneIn(2);
  int stream;
  do stream = order.pickStreamOf(buffer.device);
  while (order.isLegacy(stream));
  if (isFreedInOrder) {
    requireWrite(stream, buffer, false);
    CHECK(cudaFreeAsync(buffer.data, order.enter(stream)));
    order.postWithin(stream);
    buffer.data = nullptr;
  } else {
    requireWriteOfHost(buffer);
    release(buffer, ok);
  }
}

inline void World::compare(Buffer& buffer) {
  if (buffer.is().isHosts) {
    requireReadOfHost(buffer);
    ok &= buffer.holds(buffer.data);
    return;
  }
  std::vector<Byte> got(buffer.bytes);
  const int stream = order.pickStreamOf(buffer.device);
  requireRead(stream, buffer);
  CHECK(cudaMemcpyAsync(got.data(), buffer.data, buffer.bytes, cudaMemcpyDeviceToHost, order.enter(stream)));
  buffer.noteRead("comparison", order.post(stream));
  order.returned(stream);  // as copies to pageable memory do
  ok &= buffer.holds(got.data());
}

inline void World::finish() {
  for (auto& buffer : buffers) {
    if (ok) compare(buffer);
    requireWriteOfHost(buffer);
    release(buffer, ok);
  }
  for (auto graph : graphs) CHECK(cudaGraphExecDestroy(graph));
  graphs.clear();
}

}  // namespace orders
