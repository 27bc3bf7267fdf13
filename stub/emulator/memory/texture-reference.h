// Texture and surface references: variables of a module that its kernels name in place of a handle, and that the program binds to
// memory. Deprecated, but a driver of CUDA 13 has them still.
//
// A kernel sees of them what they were when it was launched (measured with driver 580 on an H100: two launches with another binding
// between them). So a launch takes their views with it. Captured kernels, which must not use references (cuda.h,
// cuStreamBeginCapture), see what was bound when they were captured; other kernels of graphs see nothing bound.
//
// Any thread may call; a reference's state has a mutex of its own, which is taken after ModuleReferences'.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <optional>

#include "stub/emulator/driver/cuda-api.h"
#include "stub/emulator/ptx/run/image-views.h"

namespace vgpu::emulator::api {

struct LoadedModule;

// By the address of the reference's variable, which is what kernels name it by.
using ReferenceViews = std::map<uint64_t, std::shared_ptr<const ImageView>>;

struct TextureReference {
  explicit TextureReference(Context& context, std::weak_ptr<LoadedModule> module = {})
      : context(context), module(std::move(module)) {}
  Context& context;
  const std::weak_ptr<LoadedModule> module;  // none: made by cuTexRefCreate
  CUtexref handle = nullptr;

  std::mutex mutex;  // guards what follows
  CUarray_format format = CU_AD_FORMAT_FLOAT;
  unsigned channels = 1;
  CUDA_TEXTURE_DESC how = {.addressMode = {CU_TR_ADDRESS_MODE_CLAMP, CU_TR_ADDRESS_MODE_CLAMP, CU_TR_ADDRESS_MODE_CLAMP}};
  // Of linear and pitched memory without the format; an array may have been destroyed.
  std::optional<CUDA_RESOURCE_DESC> bound;

  // Zeros if nothing is bound or what is bound cannot be read in this way: hardware reports neither. Takes the mutex.
  std::shared_ptr<const ImageView> view();
};

struct SurfaceReference {
  explicit SurfaceReference(Context& context) : context(context) {}
  Context& context;
  CUsurfref handle = nullptr;
  std::atomic<CUarray> array{nullptr};  // may have been destroyed

  std::shared_ptr<const ImageView> view() const;
};

// Those of a module that the program has asked for.
class ModuleReferences {
 public:
  // The same handle at every call. Both refuse with CUDA_ERROR_NOT_FOUND.
  CUtexref texture(LoadedModule&, const char* name);
  CUsurfref surface(LoadedModule&, const char* name);
  // The reference ends; another is made when the program asks for the variable again.
  void forget(const TextureReference&);
  // Their handles end with the module.
  void end(Driver&);
  std::shared_ptr<const ReferenceViews> views();  // null if the program has asked for none

 private:
  std::atomic<bool> any{false};  // asked at each launch, without the mutex
  std::mutex mutex;
  std::map<uint64_t, std::shared_ptr<TextureReference>> textures;  // by the variable's address
  std::map<uint64_t, std::shared_ptr<SurfaceReference>> surfaces;
};

// What a kernel of the module reads through the reference at `address`: of `views`, or zeros if the program never asked for it.
// nullptr if no reference is there. `views` may be null.
const ImageView* findReferenceView(const LoadedModule&, const ReferenceViews* views, uint64_t address);

}  // namespace vgpu::emulator::api
