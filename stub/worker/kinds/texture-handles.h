// One GPU's handles of texture and surface objects. The program holds those very numbers, in kernel parameters and in
// device memory, so restore must make each object have the one it had.
//
// A driver gives the lowest number that is free, textures and surfaces alike, each device its own (seen on an H200 with
// driver 580). What a restored session has never made leaves holes, so restore fills them: objects are made, and kept to
// the end of the restore, until the next one is what is wanted. Used by the thread of that GPU, in its context; a
// snapshot keeps the numbers.
#pragma once

#include <cuda.h>

#include <functional>
#include <map>
#include <optional>
#include <unordered_map>
#include <vector>

#include "stub/driver/driver.h"

namespace vgpu::stub {

struct TextureHandle {
  bool surface = false;
  uint64_t value = 0;
  bool operator==(const TextureHandle&) const = default;
};

class TextureHandles {
 public:
  explicit TextureHandles(const Driver& driver) : driver(driver) {}

  // Says which number each object that comes by this virtual handle shall have; until finishRestore().
  void expect(std::unordered_map<uint64_t, TextureHandle> wanted) { expected = std::move(wanted); }
  // Destroys the placeholders.
  void finishRestore();

  // Makes an object by `create`, and remembers it. CUDA's answer; an expected
  // number that cannot be had is no error here, the kind's compare finds it.
  using Create = std::function<CUresult(unsigned long long& value)>;
  CUresult make(uint64_t handle, bool surface, const Create& create, uint64_t& value);
  // Forgets an object, whose number is the driver's until destroyReal(). Nothing where there is no such object.
  std::optional<TextureHandle> take(uint64_t handle, bool surface);
  CUresult destroyReal(const TextureHandle& object);
  // Their context has ended, and they with it.
  void forgetAll() { objects.clear(); }

  const std::unordered_map<uint64_t, TextureHandle>& live() const { return objects; }

 private:
  CUresult makeExpected(const TextureHandle& wanted, const Create& create, unsigned long long& value);

  const Driver& driver;
  std::unordered_map<uint64_t, TextureHandle> objects, expected;  // by virtual handle
  std::map<uint64_t, bool> placeholders;                       // their numbers, and whether each is a surface
};

}  // namespace vgpu::stub
