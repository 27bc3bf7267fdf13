// Texture and surface objects: what they read from and how. Their handles are small numbers, the lowest free one first,
// so that the same calls give the same handles in another process.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "stub/emulator/driver/context.h"
#include "stub/emulator/ptx/run/image-views.h"

namespace vgpu::emulator::api {

struct TextureObject {
  Context* context;
  bool surface;
  CUDA_RESOURCE_DESC resource;
  CUDA_TEXTURE_DESC texture;
  std::optional<CUDA_RESOURCE_VIEW_DESC> view;
  std::shared_ptr<const ImageView> image;  // the same, as kernels read it
  bool destroyed = false;                  // but not gone: work that was issued before may use it
};

class TextureObjects {
 public:
  uint64_t add(TextureObject object);
  TextureObject get(uint64_t handle, bool surface) const;  // refuses with CUDA_ERROR_INVALID_VALUE
  // Dead to the program at once; to kernels, and its number free, when the work is over that its context has now.
  void destroy(uint64_t handle, bool surface);
  void removeOf(const Context&);
  std::vector<std::shared_ptr<const ImageView>> images() const;  // by handle

 private:
  void remove(uint64_t handle);

  mutable std::mutex mutex;
  std::map<uint64_t, TextureObject> objects;
};

// The objects as they are when a kernel first uses one.
class KernelViews : public ImageViews {
 public:
  explicit KernelViews(const TextureObjects& objects) : objects(objects) {}
  const ImageView* find(uint64_t handle) const override;

 private:
  const TextureObjects& objects;
  mutable std::once_flag taken;
  mutable std::vector<std::shared_ptr<const ImageView>> images;
};

}  // namespace vgpu::emulator::api
