// A random history: objects made, used and destroyed in an order that a seed decides, each of which knows its expected state.
//
// Every use of memory belongs to a slot, which is a stream of a device; before memory is used in another slot than the last time,
// an event orders the two. So the expected state is that of the steps executed in sequence, however the work overlaps.
#pragma once

#include <cstring>
#include <memory>
#include <string>

#include "../driver-entry.h"

namespace history {

// Digest of everything that was read back: the same for the same seed, however often the history was interrupted, and on every GPU.
class Digest {
 public:
  void add(const void* data, size_t count) {  // FNV-1a
    for (size_t i = 0; i < count; ++i) hash = (hash ^ static_cast<const unsigned char*>(data)[i]) * 0x100000001b3ull;
  }
  template <typename T>
  void add(const T& value) {
    add(&value, sizeof value);
  }
  uint64_t value() const { return hash; }

 private:
  uint64_t hash = 0xcbf29ce484222325ull;
};

class Object {
 public:
  virtual ~Object() = default;
  virtual void act() = 0;                     // one random use
  virtual bool isRight(Digest& digest) = 0;  // compares its state with the expected one; digests what it has read
};

class World {
 public:
  explicit World(unsigned seed);
  ~World();
  World(const World&) = delete;
  World& operator=(const World&) = delete;

  // Below `bound`.
  uint32_t pick(uint32_t bound) { return random() % bound; }
  bool oneIn(uint32_t count) { return pick(count) == 0; }
  int pickDevice() { return static_cast<int>(pick(devices)); }

  // A random slot of a device; the first slot of each device is its default stream.
  int pickSlot(int device) { return device * slotsOfDevice + static_cast<int>(pick(slotsOfDevice)); }
  int deviceOf(int slot) const { return slot / slotsOfDevice; }
  // The slot's stream; makes its device current.
  cudaStream_t enter(int slot);
  void wait(int slot) { CHECK(cudaStreamSynchronize(enter(slot))); }
  // Later work in `after` begins when all present work in `before` has ended.
  void order(int before, int after);

  void step();
  bool isRight(Digest& digest);
  // A random element of `objects` that fits; null if there is none.
  template <typename T, typename Fits>
  std::shared_ptr<T> pickObject(Fits fits);

  std::vector<std::shared_ptr<Object>> objects;

 private:
  static constexpr int slotsOfDevice = 4;
  void make();
  void replaceStream(int slot);
  void wait();
  void callHost(int slot);

  std::mt19937 random;
  int devices;
  std::vector<cudaStream_t> streams;
  uint32_t called = 0;            // host functions enqueued
  std::atomic<uint32_t> ran{0};  // host functions that have run
};

template <typename T, typename Fits>
std::shared_ptr<T> World::pickObject(Fits fits) {
  std::vector<std::shared_ptr<T>> found;
  for (auto& object : objects)
    if (auto one = std::dynamic_pointer_cast<T>(object); one && fits(*one)) found.push_back(one);
  return found.empty() ? nullptr : found[pick(found.size())];
}

// Defined in the other files.
std::shared_ptr<Object> makeMemory(World& world);
std::shared_ptr<Object> makeArray(World& world);
std::shared_ptr<Object> makeCode(World& world);
std::shared_ptr<Object> makeGraph(World& world);
std::shared_ptr<Object> makeEvents(World& world);
std::shared_ptr<Object> makePointers(World& world);

}  // namespace history
