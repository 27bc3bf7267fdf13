// The program's texture and surface objects. The program knows them by the small numbers that the device's driver assigned, because kernels
// read those from memory; each device has its own numbers.
#pragma once

#include <cuda.h>

#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <vector>

namespace vgpu::client {

enum class ObjectKind { texture, surface };

struct KnownTexture {
  ObjectKind kind = ObjectKind::texture;
  uint64_t handle = 0;   // virtual
  uint64_t context = 0;  // in which it was made and with which it ends
  CUDA_RESOURCE_DESC resource{};
  CUDA_TEXTURE_DESC sampling{};
  CUDA_RESOURCE_VIEW_DESC view{};
};

class Textures {
 public:
  void add(unsigned device, uint64_t value, const KnownTexture& texture);
  std::optional<KnownTexture> find(unsigned device, uint64_t value, ObjectKind kind) const;
  // Finds and removes it.
  std::optional<KnownTexture> take(unsigned device, uint64_t value, ObjectKind kind);
  // Only those of `context` if it is not 0.
  std::vector<uint64_t> values(unsigned device, ObjectKind kind, uint64_t context = 0) const;

 private:
  mutable std::mutex mutex;  // leaf lock
  std::map<std::pair<unsigned, uint64_t>, KnownTexture> objects;
};

}  // namespace vgpu::client
