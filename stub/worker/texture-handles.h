// One GPU's handles of texture and surface objects. The program keeps these numbers, in kernel parameters and in device memory, so restore
// must give each object its old number.
//
// A driver numbers textures and surfaces in one sequence for each device, and counts up as long as none is destroyed; after that, which
// number it reuses and when is unspecified (docs/facts.md). So restore makes them in the order of their numbers, after all other objects,
// with placeholders for the numbers between them, and destroys the placeholders at the end. A program may end an array, or memory, while
// objects over it remain, which it can then only destroy: such an object gets its number over another resource. An object over memory that
// the program has mapped itself and unmapped is made over stand-in memory, because the program may map other memory there. Used by the
// thread of that GPU, in its context; a snapshot keeps the numbers.
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

  // Sets the number that each object with such a virtual handle must get; until finishRestore().
  void expect(std::unordered_map<uint64_t, TextureHandle> wanted) { expected = std::move(wanted); }
  // Makes the expected objects. CUDA's result; that an object does not get its number is no error here: the kind's compare finds it.
  CUresult finishRestore();

  // Makes an object by `create` and records it; an expected object is made only when the restore ends. CUDA's result. `isThere`: whether
  // the object's resource exists and is the session's; CUDA_ERROR_INVALID_VALUE if not, unless the object is expected.
  using Create = std::function<CUresult(unsigned long long& value)>;
  using IsThere = std::function<bool()>;
  CUresult make(uint64_t handle, bool surface, IsThere isThere, Create create, uint64_t& value);
  // Forgets an object; the driver keeps its number until destroyReal(). Nothing if there is no such object.
  std::optional<TextureHandle> take(uint64_t handle, bool surface);
  CUresult destroyReal(const TextureHandle& object);
  // The objects have ended with their context.
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
