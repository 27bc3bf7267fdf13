// One GPU's handles of texture and surface objects. The program holds those very numbers, in kernel parameters and in
// device memory, so restore must make each object have the one it had.
//
// A driver numbers textures and surfaces alike, each device its own, and counts as long as none is destroyed: which number it
// gives after that, and when, is its own affair (docs/facts.md). So restore makes them in the order of their numbers, after all
// other objects, and placeholders for the numbers between them, and destroys those at the end. A program may end an array, or memory,
// before the objects over it, which it only destroys then: such a one has its number over something else. Memory that it maps itself it may
// map there again: what is over that is made over memory that stands in for it. Used by the thread of that GPU, in its context; a snapshot
// keeps the numbers.
#pragma once

#include <cuda.h>

#include <functional>
#include <map>
#include <optional>
#include <unordered_map>
#include <vector>

#include "stub/driver/driver.h"
#include "stub/worker/physical-memory.h"

namespace vgpu::stub {

struct TextureHandle {
  bool surface = false;
  uint64_t value = 0;
  bool operator==(const TextureHandle&) const = default;
};

class TextureHandles {
 public:
  TextureHandles(const Driver& driver, PhysicalMemory& physical, unsigned device) : driver(driver), physical(physical), device(device) {}

  // Says which number each object that comes by this virtual handle shall have; until finishRestore().
  void expect(std::unordered_map<uint64_t, TextureHandle> wanted) { expected = std::move(wanted); }
  // Makes those that have been expected. CUDA's answer; a number that cannot be had is no error here, the kind's compare finds
  // it.
  CUresult finishRestore();

  // Makes an object by `create`, and remembers it; one that is expected only when the restore ends. CUDA's answer. `isThere`: whether
  // what it is over is, and is the session's; CUDA_ERROR_INVALID_VALUE if not, unless it is expected.
  using Create = std::function<CUresult(unsigned long long& value)>;
  using IsThere = std::function<bool()>;
  CUresult make(uint64_t handle, bool surface, IsThere isThere, Create create, uint64_t& value);
  // Forgets an object, whose number is the driver's until destroyReal(). Nothing where there is no such object.
  std::optional<TextureHandle> take(uint64_t handle, bool surface);
  CUresult destroyReal(const TextureHandle& object);
  // Their context has ended, and they with it.
  void forgetAll() { objects.clear(); }

  const std::unordered_map<uint64_t, TextureHandle>& live() const { return objects; }

 private:
  struct Later {
    uint64_t handle;
    IsThere isThere;
    Create create;
  };
  CUresult makeLater(std::vector<TextureHandle>& placeholders);
  CUresult makeOutlived(bool surface, unsigned long long& value);

  const Driver& driver;
  PhysicalMemory& physical;
  const unsigned device;
  std::unordered_map<uint64_t, TextureHandle> objects, expected;  // by virtual handle
  std::multimap<uint64_t, Later> later;                           // by number
};

}  // namespace vgpu::stub
