#include "stub/emulator/memory/texture-reference.h"

#include <algorithm>

#include "stub/emulator/driver/driver.h"
#include "stub/emulator/memory/image-view.h"

namespace vgpu::emulator::api {
namespace {

std::shared_ptr<const ImageView> makeEmpty(bool surface) {
  auto image = std::make_shared<ImageView>();
  image->levels.push_back({.width = 0, .height = 0, .slices = 0});
  image->surface = surface;
  return image;
}

const std::shared_ptr<const ImageView>& nothing(bool surface) {
  static const std::shared_ptr<const ImageView> ofTextures = makeEmpty(false), ofSurfaces = makeEmpty(true);
  return surface ? ofSurfaces : ofTextures;
}

// nullptr if a texture object with these descriptions would be refused.
std::shared_ptr<const ImageView> readable(Driver& driver, const CUDA_RESOURCE_DESC& resource, const CUDA_TEXTURE_DESC& how,
                                          const CUDA_RESOURCE_VIEW_DESC* view) {
  try {
    return textureOf(driver, resource, how, view);
  } catch (const Refusal&) {
    return nullptr;
  }
}

// The bound array, or the largest level of a bound mipmapped array; nullptr once it is destroyed.
std::shared_ptr<Array> arrayOf(Driver& driver, const CUDA_RESOURCE_DESC& resource) {
  if (resource.resType == CU_RESOURCE_TYPE_ARRAY) return driver.arrays.find(resource.res.array.hArray);
  const auto levels = driver.mipmappedArrays.find(resource.res.mipmap.hMipmappedArray);
  return levels ? levels->levels[0] : nullptr;
}

}  // namespace

std::shared_ptr<const ImageView> TextureReference::view() {
  std::lock_guard lock(mutex);
  if (!bound) return nothing(false);
  CUDA_RESOURCE_DESC resource = *bound;
  CUDA_RESOURCE_VIEW_DESC view{};
  const unsigned element = elementBytes(format, channels);
  if (resource.resType == CU_RESOURCE_TYPE_LINEAR) {
    auto& linear = resource.res.linear;
    linear.format = format;
    linear.numChannels = channels;
    linear.sizeInBytes = std::max<size_t>(linear.sizeInBytes, element);  // the first element is read even if the size is 0
    if (element == 0) return nothing(false);
  } else if (resource.resType == CU_RESOURCE_TYPE_PITCH2D) {
    auto& rows = resource.res.pitch2D;
    rows.format = format;
    rows.numChannels = channels;
    if (element == 0 || rows.width == 0 || rows.height == 0) return nothing(false);
  } else {
    const std::shared_ptr<Array> array = arrayOf(context.driver, resource);
    if (!array) return nothing(false);
    if (format != array->descriptor.Format || channels != array->descriptor.NumChannels) {
      view.format = viewFormatOf(format, channels);
      if (view.format == CU_RES_VIEW_FORMAT_NONE) return nothing(false);
      if (resource.resType == CU_RESOURCE_TYPE_MIPMAPPED_ARRAY)
        view.lastMipmapLevel =
            static_cast<unsigned>(context.driver.mipmappedArrays.get(resource.res.mipmap.hMipmappedArray)->levels.size() - 1);
    }
  }
  const CUDA_RESOURCE_VIEW_DESC* const other = view.format == CU_RES_VIEW_FORMAT_NONE ? nullptr : &view;
  if (auto image = readable(context.driver, resource, how, other)) return image;
  // Linear memory and integers are not filtered, even if the program requests it.
  CUDA_TEXTURE_DESC unfiltered = how;
  unfiltered.filterMode = CU_TR_FILTER_MODE_POINT;
  if (auto image = readable(context.driver, resource, unfiltered, other)) return image;
  return nothing(false);
}

std::shared_ptr<const ImageView> SurfaceReference::view() const {
  const std::shared_ptr<Array> found = context.driver.arrays.find(array);
  return found ? surfaceOf(*found) : nothing(true);
}

CUtexref ModuleReferences::texture(LoadedModule& module, const char* name) {
  const Variable* const variable = module.findReference(name, Type::texref);
  if (!variable) refuse(CUDA_ERROR_NOT_FOUND);
  std::lock_guard lock(mutex);
  std::shared_ptr<TextureReference>& known = textures[module.addressOf(*variable)];
  if (!known) {
    known = std::make_shared<TextureReference>(module.context, module.weak_from_this());
    module.context.driver.textureReferences.add(known);
  }
  any.store(true, std::memory_order_release);
  return known->handle;
}

CUsurfref ModuleReferences::surface(LoadedModule& module, const char* name) {
  const Variable* const variable = module.findReference(name, Type::surfref);
  if (!variable) refuse(CUDA_ERROR_NOT_FOUND);
  std::lock_guard lock(mutex);
  std::shared_ptr<SurfaceReference>& known = surfaces[module.addressOf(*variable)];
  if (!known) {
    known = std::make_shared<SurfaceReference>(module.context);
    module.context.driver.surfaceReferences.add(known);
  }
  any.store(true, std::memory_order_release);
  return known->handle;
}

void ModuleReferences::forget(const TextureReference& reference) {
  std::lock_guard lock(mutex);
  std::erase_if(textures, [&](const auto& each) { return each.second.get() == &reference; });
}

void ModuleReferences::end(Driver& driver) {
  if (!any.load(std::memory_order_acquire)) return;
  std::lock_guard lock(mutex);
  driver.textureReferences.removeIf([&](const TextureReference& each) {
    return std::ranges::any_of(textures, [&](const auto& mine) { return mine.second.get() == &each; });
  });
  driver.surfaceReferences.removeIf([&](const SurfaceReference& each) {
    return std::ranges::any_of(surfaces, [&](const auto& mine) { return mine.second.get() == &each; });
  });
  textures.clear();
  surfaces.clear();
}

std::shared_ptr<const ReferenceViews> ModuleReferences::views() {
  if (!any.load(std::memory_order_acquire)) return nullptr;
  auto views = std::make_shared<ReferenceViews>();
  std::lock_guard lock(mutex);
  for (const auto& [address, reference] : textures) views->emplace(address, reference->view());
  for (const auto& [address, reference] : surfaces) views->emplace(address, reference->view());
  return views;
}

const ImageView* findReferenceView(const LoadedModule& module, const ReferenceViews* views, uint64_t address) {
  if (views)
    if (const auto found = views->find(address); found != views->end()) return found->second.get();
  const Variable* const variable = module.findReference(address);
  return variable ? nothing(variable->type == Type::surfref).get() : nullptr;
}

}  // namespace vgpu::emulator::api
