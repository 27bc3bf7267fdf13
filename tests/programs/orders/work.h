// Work for a stream, as data: chosen at random, issued to a stream or captured, and applied to the buffers' expected bytes.
#pragma once

#include "world.h"

namespace orders {

// A box of bytes in each of two buffers: rows of `width` bytes, `height` of them in each of `depth` planes.
struct Box {
  int width, height = 1, depth = 1;
  int pitch[2] = {0, 0}, rows[2] = {1, 1};  // distance between rows in bytes, and between planes in rows

  int place(int side, int plane, int row) const { return (plane * rows[side] + row) * pitch[side]; }
  int extent(int side) const { return place(side, depth - 1, height - 1) + width; }
};

struct Work {
  const struct WorkKind* kind = nullptr;
  Buffer *to = nullptr, *from = nullptr;  // `from` is null if it only writes
  int toOffset = 0, fromOffset = 0;
  Box box{1};
  int factor = 0, delay = 0;   // of a kernel
  Byte value = 0;              // of a fill
  bool isSynchronous = false;  // a copy by a call without a stream

  Byte* destination() const { return to->data + toOffset; }
  const Byte* source() const { return from->data + fromOffset; }
  Byte* modelDestination() const { return to->model.data() + toOffset; }
  const Byte* modelSource() const { return from->model.data() + fromOffset; }
};

struct WorkKind {
  const char* name;
  int weight;
  bool isCapturable;
  bool (*choose)(World&, int stream, Work&);  // false if no buffers suit it
  void (*issue)(const Work&, cudaStream_t);
  void (*apply)(const Work&);  // to the expected bytes
};

__global__ void mix(Byte* to, const Byte* from, int written, int count, int factor, int delay) {
  int slow = factor;
  for (int i = 0; i < delay; ++i) {
    slow = slow * 1664525 + 1013904223;
    asm volatile("" : "+r"(slow));
  }
  for (int i = threadIdx.x; i < written; i += blockDim.x)
    to[i] = static_cast<Byte>(to[i] * 3 + from[(i * 7 + factor) % count] + factor + (delay != 0 && slow == 0x12345678));
}

// ---- kernels

inline bool chooseKernel(World& world, int stream, Work& work) {
  work.to = world.find([&](Buffer& buffer) { return world.isReached(buffer, stream); });
  work.from = world.find([&](Buffer& buffer) { return &buffer != work.to && world.isReached(buffer, stream); });
  if (work.to == nullptr || work.from == nullptr) return false;
  work.box.width = 1 + world.random.pick(std::min(work.to->bytes, 1500));
  work.factor = world.random.pick(1000);
  work.delay = world.random.oneIn(5) ? world.random.pick(20'000) : 0;
  return true;
}
inline void issueKernel(const Work& work, cudaStream_t stream) {
  mix<<<1, 32, 0, stream>>>(work.to->data, work.from->data, work.box.width, work.from->bytes, work.factor, work.delay);
  CHECK(cudaGetLastError());
}
inline void applyKernel(const Work& work) {
  for (int i = 0; i < work.box.width; ++i) {
    Byte& byte = work.to->model[i];
    byte = static_cast<Byte>(byte * 3 + work.from->model[(i * 7 + work.factor) % work.from->bytes] + work.factor);
  }
}

// ---- fills

inline bool chooseFill(World& world, int stream, Work& work) {
  work.to = world.find([&](Buffer& buffer) { return world.isReached(buffer, stream) || buffer.kind == Kind::privateFile; });
  if (work.to == nullptr) return false;
  work.toOffset = world.random.pick(work.to->bytes);
  work.value = world.byte();
  work.box.width = 1 + world.random.pick(work.to->bytes - work.toOffset);
  return true;
}
// Splits one row into several, over the same bytes.
inline bool cutIntoRows(World& world, Work& work) {
  const int bytes = work.box.width;
  if (bytes < 10) return false;
  Box& box = work.box;
  box.width = 1 + world.random.pick(bytes / 4);
  for (auto& pitch : box.pitch) pitch = box.width + world.random.pick(bytes / 4);
  box.height = std::min(200, 1 + (bytes - box.width) / std::max(box.pitch[0], box.pitch[1]));
  return true;
}
inline bool chooseRowsFill(World& world, int stream, Work& work) {
  return chooseFill(world, stream, work) && cutIntoRows(world, work);
}
inline void issueFill(const Work& work, cudaStream_t stream) {
  CHECK(cudaMemsetAsync(work.destination(), work.value, work.box.width, stream));
}
inline void issueRowsFill(const Work& work, cudaStream_t stream) {
  CHECK(cudaMemset2DAsync(work.destination(), work.box.pitch[0], work.value, work.box.width, work.box.height, stream));
}
inline void applyFill(const Work& work) {
  for (int row = 0; row < work.box.height; ++row)
    std::memset(work.modelDestination() + work.box.place(0, 0, row), work.value, work.box.width);
}

// ---- copies

inline bool chooseTwo(World& world, Work& work, bool isPageableToo, int leastBytes = 1) {
  auto fits = [&](Buffer& buffer) {
    return &buffer != work.to && buffer.bytes >= leastBytes && (isPageableToo || buffer.kind != Kind::pageable);
  };
  work.to = world.find(fits);
  work.from = world.find(fits);
  return work.to != nullptr && work.from != nullptr;
}
inline bool chooseCopy(World& world, int stream, Work& work) {
  if (!chooseTwo(world, work, true)) return false;
  auto& random = world.random;
  work.isSynchronous = world.order.isLegacy(stream) && random.oneIn(2);
  if (!random.oneIn(3)) work.toOffset = random.pick(work.to->bytes), work.fromOffset = random.pick(work.from->bytes);
  work.box.width = std::min(work.to->bytes - work.toOffset, work.from->bytes - work.fromOffset);
  if (!random.oneIn(3)) work.box.width = 1 + random.pick(work.box.width);
  return true;
}
inline bool chooseRowsCopy(World& world, int stream, Work& work) {
  return chooseCopy(world, stream, work) && cutIntoRows(world, work);
}
inline bool chooseBoxCopy(World& world, int, Work& work) {
  if (!chooseTwo(world, work, false)) return false;
  auto& random = world.random;
  Box& box = work.box = {1 + random.pick(20), 1 + random.pick(6), 1 + random.pick(4)};
  for (auto& pitch : box.pitch) pitch = box.width + random.pick(10);
  for (auto& rows : box.rows) rows = box.height + random.pick(3);
  // Checks that all bytes of the box's planes lie in both buffers.
  return box.place(0, box.depth, 0) <= work.to->bytes && box.place(1, box.depth, 0) <= work.from->bytes;
}
inline void issueCopy(const Work& work, cudaStream_t stream) {
  if (work.isSynchronous) {
    CHECK(cudaMemcpy(work.destination(), work.source(), work.box.width, cudaMemcpyDefault));
  } else {
    CHECK(cudaMemcpyAsync(work.destination(), work.source(), work.box.width, cudaMemcpyDefault, stream));
  }
}
inline void issueRowsCopy(const Work& work, cudaStream_t stream) {
  auto& [width, height, depth, pitch, rows] = work.box;
  if (work.isSynchronous) {
    CHECK(cudaMemcpy2D(work.destination(), pitch[0], work.source(), pitch[1], width, height, cudaMemcpyDefault));
  } else {
    CHECK(cudaMemcpy2DAsync(work.destination(), pitch[0], work.source(), pitch[1], width, height, cudaMemcpyDefault, stream));
  }
}
inline void issueBoxCopy(const Work& work, cudaStream_t stream) {
  auto& [width, height, depth, pitch, rows] = work.box;
  cudaMemcpy3DParms copy{};
  copy.srcPtr = make_cudaPitchedPtr(work.from->data, pitch[1], width, rows[1]);
  copy.dstPtr = make_cudaPitchedPtr(work.to->data, pitch[0], width, rows[0]);
  copy.extent = make_cudaExtent(width, height, depth);
  copy.kind = cudaMemcpyDefault;
  CHECK(cudaMemcpy3DAsync(&copy, stream));
}
inline void applyCopy(const Work& work) {
  const Box& box = work.box;
  for (int plane = 0; plane < box.depth; ++plane)
    for (int row = 0; row < box.height; ++row)
      std::memcpy(work.modelDestination() + box.place(0, plane, row), work.modelSource() + box.place(1, plane, row), box.width);
}

// Three copies, unordered among each other. A batch cannot be issued to the legacy default stream.
struct BatchedCopy {
  int to, from;
  size_t bytes;
};
constexpr BatchedCopy batched[] = {{0, 7, 10}, {20, 0, 5}, {40, 30, 20}};

inline bool chooseBatch(World& world, int stream, Work& work) {
  return !world.order.isLegacy(stream) && chooseTwo(world, work, false, 64);
}
inline void issueBatch(const Work& work, cudaStream_t stream) {
  void* to[std::size(batched)];
  const void* from[std::size(batched)];
  size_t bytes[std::size(batched)], first = 0;
  for (size_t i = 0; i < std::size(batched); ++i)
    to[i] = work.to->data + batched[i].to, from[i] = work.from->data + batched[i].from, bytes[i] = batched[i].bytes;
  cudaMemcpyAttributes attributes{};
  attributes.srcAccessOrder = cudaMemcpySrcAccessOrderStream;
  CHECK(cudaMemcpyBatchAsync(to, from, bytes, std::size(batched), &attributes, &first, 1, stream));
}
inline void applyBatch(const Work& work) {
  for (auto& copy : batched) std::memcpy(work.to->model.data() + copy.to, work.from->model.data() + copy.from, copy.bytes);
}

// ---- functions of the host

constexpr int incremented = 16;  // bytes

inline void incrementBytes(Byte* bytes) {
  for (int i = 0; i < incremented; ++i) ++bytes[i];
}
inline bool chooseHostFunction(World& world, int, Work& work) {
  work.to = world.find([](Buffer& buffer) { return buffer.is().isForHostFunctions && buffer.bytes >= incremented; });
  if (work.to != nullptr) work.toOffset = world.random.pick(work.to->bytes - incremented + 1);
  return work.to != nullptr;
}
inline void issueHostFunction(const Work& work, cudaStream_t stream) {
  CHECK(cudaLaunchHostFunc(stream, [](void* bytes) { incrementBytes(static_cast<Byte*>(bytes)); }, work.destination()));
}
inline void issueCallback(const Work& work, cudaStream_t stream) {
  CHECK(cudaStreamAddCallback(
      stream, [](cudaStream_t, cudaError_t, void* bytes) { incrementBytes(static_cast<Byte*>(bytes)); }, work.destination(), 0));
}
inline void applyHostFunction(const Work& work) { incrementBytes(work.modelDestination()); }

constexpr WorkKind workKinds[] = {
    {"kernel", 35, true, chooseKernel, issueKernel, applyKernel},
    {"fill", 10, true, chooseFill, issueFill, applyFill},
    {"fill of rows", 5, true, chooseRowsFill, issueRowsFill, applyFill},
    {"copy", 15, true, chooseCopy, issueCopy, applyCopy},
    {"copy of rows", 7, true, chooseRowsCopy, issueRowsCopy, applyCopy},
    {"copy of a box", 2, true, chooseBoxCopy, issueBoxCopy, applyCopy},
    {"batch of copies", 2, false, chooseBatch, issueBatch, applyBatch},
    {"host function", 6, true, chooseHostFunction, issueHostFunction, applyHostFunction},
    {"callback", 1, false, chooseHostFunction, issueCallback, applyHostFunction},
};

// A random row of a table, chosen by weight.
template <typename Row, size_t rows>
const Row& pickRow(Random& random, const Row (&table)[rows]) {
  int sum = 0;
  for (auto& row : table) sum += row.weight;
  int left = random.pick(sum);
  for (auto& row : table)
    if ((left -= row.weight) < 0) return row;
  return table[0];
}

inline bool chooseWork(World& world, int stream, Work& work) {
  work.kind = &pickRow(world.random, workKinds);
  return work.kind->choose(world, stream, work);
}

// Orders the stream's next work behind everything that `work` depends on. Pageable memory is read, or written, during the call.
inline void requireWork(World& world, int stream, const Work& work) {
  if (work.from != nullptr) {
    if (work.from->kind == Kind::pageable) world.requireReadOfHost(*work.from);
    world.requireRead(stream, *work.from);
  }
  if (work.from != nullptr && work.to->kind == Kind::pageable) world.requireWriteOfHost(*work.to);
  world.requireWrite(stream, *work.to);
}
inline void noteWork(const char* what, const Work& work, Moment moment) {
  if (work.from != nullptr) work.from->noteRead(what, moment);
  work.to->noteWrite(what, moment);
}

// Records what the host knows when a copy's call returns (CUDA Runtime API, "API synchronization behavior"): the copy is complete if it is
// to pageable memory, or if it was made by a call without a stream and not from pageable memory to a device. For managed memory this is not
// specified.
inline void noteReturn(World& world, int stream, const Work& work) {
  const bool isManaged = work.to->kind == Kind::managed || work.from->kind == Kind::managed;
  const bool isHosts = work.to->is().isHosts || work.from->is().isHosts, isStaged = work.from->kind == Kind::pageable;
  if (!isManaged && (work.to->kind == Kind::pageable || (work.isSynchronous && isHosts && !isStaged))) world.order.returned(stream);
}

inline void giveWork(World& world, int stream) {
  Work work;
  if (!chooseWork(world, stream, work)) return;
  requireWork(world, stream, work);
  const cudaStream_t handle = world.order.enter(stream);
  work.kind->issue(work, handle);
  work.kind->apply(work);
  const bool isTakenAtOnce = work.from != nullptr && work.from->kind == Kind::pageable && work.to->kind != Kind::managed;
  const std::vector<Moment> readers = isTakenAtOnce ? work.from->read : std::vector<Moment>();
  const Moment moment = world.order.post(stream);
  noteWork(work.kind->name, work, moment);
  if (work.from != nullptr) noteReturn(world, stream, work);
  if (!isTakenAtOnce) return;
  // This copy has already read it. If no other pending work reads it, it is sometimes overwritten at once.
  work.from->read = readers;
  for (auto reader : readers)
    if (!world.order.doesHostKnow(reader)) return;
  if (world.random.oneIn(2)) return;
  const Byte value = world.byte();
  std::memset(work.from->data, value, work.from->bytes);
  work.from->model.assign(work.from->bytes, value);
}

}  // namespace orders
