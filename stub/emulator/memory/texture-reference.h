// Texture and surface references: variables of a module that its kernels name instead of a handle, and that the program binds to memory.
// Deprecated, but still present in drivers of CUDA 13.
//
// A kernel uses the bindings at the time of its launch (measured with driver 580 on an H100: two launches with a rebinding between them).
// So a launch takes the references' views with it. Captured kernels, which must not use references (cuda.h, cuStreamBeginCapture), use the
// bindings at the time of the capture; other kernels of graphs find nothing bound.
//
// Any thread may call; a reference's state has its own mutex, which is locked after that of ModuleReferences.
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

// By the address of the reference's variable, by which kernels name it.
using ReferenceViews = std::map<uint64_t, std::shared_ptr<const ImageView>>;

struct TextureReference {
  explicit TextureReference(Context& context, std::weak_ptr<LoadedModule> module = {})
      : context(context), module(std::move(module)) {}
  Context& context;
  const std::weak_ptr<LoadedModule> module;  // none: made by cuTexRefCreate
  CUtexref handle = nullptr;

  std::mutex mutex;  // guards the following members
  CUarray_format format = CU_AD_FORMAT_FLOAT;
  unsigned channels = 1;
  CUDA_TEXTURE_DESC how = {.addressMode = {CU_TR_ADDRESS_MODE_CLAMP, CU_TR_ADDRESS_MODE_CLAMP, CU_TR_ADDRESS_MODE_CLAMP}};
  // For linear and pitched memory without the format; a bound array may have been destroyed.
  std::optional<CUDA_RESOURCE_DESC> bound;

  // Reads as zeros if nothing is bound or the binding cannot be read in this way: hardware reports no error either. Takes the mutex.
  std::shared_ptr<const ImageView> view();
};

struct SurfaceReference {
  explicit SurfaceReference(Context& context) : context(context) {}
  Context& context;
  CUsurfref handle = nullptr;
  std::atomic<CUarray> array{nullptr};  // may be destroyed

  std::shared_ptr<const ImageView> view() const;
};

// A module's references that the program has looked up.
class ModuleReferences {
 public:
  // The same handle at every call. Both refuse with CUDA_ERROR_NOT_FOUND.
  CUtexref texture(LoadedModule&, const char* name);
  CUsurfref surface(LoadedModule&, const char* name);
  // Destroys a reference; a later lookup of the variable makes another one.
  void forget(const TextureReference&);
  // Removes the references' handles when the module ends.
  void end(Driver&);
  std::shared_ptr<const ReferenceViews> views();  // null if the program has looked up none

 private:
  std::atomic<bool> any{false};  // read at each launch, without the mutex
  std::mutex mutex;
  std::map<uint64_t, std::shared_ptr<TextureReference>> textures;  // by the variable's address
  std::map<uint64_t, std::shared_ptr<SurfaceReference>> surfaces;
};

// What a kernel of the module reads through the reference at `address`: its entry in `views`, or zeros if the program never looked it up.
// nullptr if there is no reference. `views` may be null.
const ImageView* findReferenceView(const LoadedModule&, const ReferenceViews* views, uint64_t address);

}  // namespace vgpu::emulator::api
