// Texture and surface objects: what they read from and how. Their handles are small numbers, the lowest free one first,
// so that the same calls give the same handles in another process.
#pragma once

#include <map>
#include <mutex>
#include <optional>

#include "context.h"

namespace vgpu::emulator::api {

struct TextureObject {
  Context* context;
  bool surface;
  CUDA_RESOURCE_DESC resource;
  CUDA_TEXTURE_DESC texture;
  std::optional<CUDA_RESOURCE_VIEW_DESC> view;
};

class TextureObjects {
 public:
  uint64_t add(TextureObject object);
  TextureObject get(uint64_t handle, bool surface) const;  // refuses with CUDA_ERROR_INVALID_VALUE
  void remove(uint64_t handle, bool surface);
  void removeOf(const Context&);

 private:
  mutable std::mutex mutex_;
  std::map<uint64_t, TextureObject> objects_;
};

}  // namespace vgpu::emulator::api
