#include "intercept/session/textures.h"

namespace vgpu::client {

void Textures::add(unsigned device, uint64_t value, const KnownTexture& texture) {
  std::lock_guard lock(mutex);
  objects.insert_or_assign({device, value}, texture);
}

std::optional<KnownTexture> Textures::find(unsigned device, uint64_t value, ObjectKind kind) const {
  std::lock_guard lock(mutex);
  auto found = objects.find({device, value});
  if (found == objects.end() || found->second.kind != kind) return std::nullopt;
  return found->second;
}

std::optional<KnownTexture> Textures::take(unsigned device, uint64_t value, ObjectKind kind) {
  std::lock_guard lock(mutex);
  auto found = objects.find({device, value});
  if (found == objects.end() || found->second.kind != kind) return std::nullopt;
  KnownTexture taken = found->second;
  objects.erase(found);
  return taken;
}

std::vector<uint64_t> Textures::values(unsigned device, ObjectKind kind, uint64_t context) const {
  std::lock_guard lock(mutex);
  std::vector<uint64_t> values;
  for (auto& [key, texture] : objects)
    if (key.first == device && texture.kind == kind && (context == 0 || texture.context == context))
      values.push_back(key.second);
  return values;
}

}  // namespace vgpu::client
