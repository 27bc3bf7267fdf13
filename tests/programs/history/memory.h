// Memory of every kind: device allocations, pools, managed, pinned and registered memory, and memory that the program maps itself.
#pragma once

#include "world.h"

namespace history {

__global__ void mixWords(uint32_t* to, const uint32_t* from, uint32_t count, uint32_t factor) {
  for (uint32_t i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += gridDim.x * blockDim.x)
    to[i] = to[i] * factor + from[i];
}
__global__ void turnWords(uint32_t* to, uint32_t count, uint32_t by) {
  for (uint32_t i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += gridDim.x * blockDim.x)
    to[i] = __funnelshift_l(to[i], to[i], by) + by;
}

// Bytes at an address, their expected values, and the slot that last used them.
class Memory : public Object {
 public:
  using Word = uint32_t;

  Memory(World& world, int device, size_t bytes) : world(world), device(device), slot(world.pickSlot(device)), wanted(bytes) {}

  void act() override;
  bool isRight(Digest& digest) override;

  // The address for kernels and copies in `inSlot`, ordered behind earlier uses.
  char* use(int inSlot) {
    world.order(slot, inSlot);
    slot = inSlot;
    return static_cast<char*>(address());
  }
  size_t bytes() const { return wanted.size(); }
  size_t words() const { return wanted.size() / sizeof(Word); }
  Word word(size_t index) const;
  void setWord(size_t index, Word value);

  // Each changes the expected values and the device's memory alike. `at` and counts are in words.
  void mix(Memory& from, size_t at, size_t fromAt, size_t count, Word factor, int inSlot);
  void turn(size_t at, size_t count, Word by, int inSlot);
  void mixWanted(const Memory& from, size_t at, size_t fromAt, size_t count, Word factor);
  void turnWanted(size_t at, size_t count, Word by);
  void fill(size_t at, size_t count, unsigned char value, int inSlot);  // of bytes
  void upload(size_t at, size_t count, int inSlot);                     // of bytes
  void fillAll() { fill(0, bytes(), static_cast<unsigned char>(world.pick(256)), slot); }

  World& world;
  const int device;
  bool isPlain = false;    // other devices may copy it, and streams write values into it
  bool isRead = true;      // by kernels
  bool isWritten = true;   // by kernels

 protected:
  virtual void* address() { return data; }
  void copyFrom(Memory& from);
  void writeValue();

  int slot;
  void* data = nullptr;
  std::vector<unsigned char> wanted;
};

inline Memory::Word Memory::word(size_t index) const {
  Word value;
  std::memcpy(&value, wanted.data() + index * sizeof value, sizeof value);
  return value;
}
inline void Memory::setWord(size_t index, Word value) { std::memcpy(wanted.data() + index * sizeof value, &value, sizeof value); }

inline void Memory::mixWanted(const Memory& from, size_t at, size_t fromAt, size_t count, Word factor) {
  for (size_t i = 0; i < count; ++i) setWord(at + i, word(at + i) * factor + from.word(fromAt + i));
}
inline void Memory::turnWanted(size_t at, size_t count, Word by) {
  for (size_t i = at; i < at + count; ++i) {
    const Word value = word(i), shift = by % 32;
    setWord(i, (shift != 0 ? value << shift | value >> (32 - shift) : value) + by);
  }
}
inline void Memory::mix(Memory& from, size_t at, size_t fromAt, size_t count, Word factor, int inSlot) {
  auto* source = reinterpret_cast<Word*>(from.use(inSlot)) + fromAt;
  auto* target = reinterpret_cast<Word*>(use(inSlot)) + at;
  const auto threads = static_cast<uint32_t>(count);
  mixWords<<<2, 64, 0, world.enter(inSlot)>>>(target, source, threads, factor);
  CHECK(cudaGetLastError());
  mixWanted(from, at, fromAt, count, factor);
}
inline void Memory::turn(size_t at, size_t count, Word by, int inSlot) {
  auto* target = reinterpret_cast<Word*>(use(inSlot)) + at;
  auto threads = static_cast<uint32_t>(count);
  if (world.oneIn(4)) {
    void* parameters[] = {&target, &threads, &by};
    CHECK(cudaLaunchCooperativeKernel(turnWords, dim3(2), dim3(32), parameters, 0, world.enter(inSlot)));
  } else {
    turnWords<<<1, 64, 0, world.enter(inSlot)>>>(target, threads, by);
    CHECK(cudaGetLastError());
  }
  turnWanted(at, count, by);
}
inline void Memory::fill(size_t at, size_t count, unsigned char value, int inSlot) {
  char* target = use(inSlot) + at;
  CHECK(cudaMemsetAsync(target, value, count, world.enter(inSlot)));
  std::memset(wanted.data() + at, value, count);
}
inline void Memory::upload(size_t at, size_t count, int inSlot) {
  std::vector<unsigned char> fresh(count);
  for (auto& byte : fresh) byte = static_cast<unsigned char>(world.pick(256));
  char* target = use(inSlot) + at;
  CHECK(cudaMemcpyAsync(target, fresh.data(), count, cudaMemcpyDefault, world.enter(inSlot)));
  std::memcpy(wanted.data() + at, fresh.data(), count);
}

inline bool Memory::isRight(Digest& digest) {
  std::vector<unsigned char> got(bytes());
  char* source = use(slot);
  CHECK(cudaMemcpyAsync(got.data(), source, bytes(), cudaMemcpyDefault, world.enter(slot)));
  world.wait(slot);
  digest.add(got.data(), got.size());
  return same("memory", got, wanted);
}

std::shared_ptr<Memory> makeDeviceMemory(World& world, int device, size_t bytes);

}  // namespace history
