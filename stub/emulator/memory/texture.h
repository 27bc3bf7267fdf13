// Texture and surface objects: their resource, and how it is read. Their handles are small numbers, the lowest free one first, counted
// separately for each device, so that the same calls give the same handles in another process.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <vector>

#include "stub/emulator/driver/context.h"
#include "stub/emulator/memory/texture-reference.h"
#include "stub/emulator/ptx/run/image-views.h"

namespace vgpu::emulator::api {

struct TextureObject {
  Context* context;
  bool surface;
  CUDA_RESOURCE_DESC resource;
  CUDA_TEXTURE_DESC texture;
  std::optional<CUDA_RESOURCE_VIEW_DESC> view;
  std::shared_ptr<const ImageView> image;  // the same, in the form that kernels read
  bool destroyed = false;                  // but kept: work issued before may use it
};

class TextureObjects {
 public:
  uint64_t add(TextureObject object);
  TextureObject get(const Context&, uint64_t handle, bool surface) const;  // refuses with CUDA_ERROR_INVALID_VALUE
  // Invalid for the program at once; for kernels, and its number free for reuse, when its context's present work is done.
  void destroy(const Context&, uint64_t handle, bool surface);
  void removeOf(const Context&);
  std::vector<std::shared_ptr<const ImageView>> images(const Device&) const;  // by handle

 private:
  using OfDevice = std::map<uint64_t, TextureObject>;
  static TextureObject& find(OfDevice&, uint64_t handle, bool surface);
  void remove(const Device&, uint64_t handle);

  mutable std::mutex mutex;
  mutable std::map<const Device*, OfDevice> objects;
  std::map<const Device*, std::set<uint64_t>>
      freed;  // numbers freed since the last object was made: a GPU may delay their reuse
};

// The objects at the time when a kernel first uses one, and the references of its module at the time of its launch.
class KernelViews : public ImageViews {
 public:
  KernelViews(const TextureObjects& objects, const Device& device, const LoadedModule& module, const ReferenceViews* references)
      : objects(objects), device(device), module(module), references(references) {}
  const ImageView* find(uint64_t handle) const override;
  bool isReference(uint64_t handle) const override { return findReferenceView(module, references, handle) != nullptr; }

 private:
  const TextureObjects& objects;
  const Device& device;
  const LoadedModule& module;
  const ReferenceViews* const references;  // null: the program has looked none up
  mutable std::once_flag taken;
  mutable std::vector<std::shared_ptr<const ImageView>> images;
};

}  // namespace vgpu::emulator::api
