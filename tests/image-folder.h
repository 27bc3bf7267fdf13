// A temporary image folder for a test, removed by the destructor.
#pragma once

#include <stdexcept>
#include <string>
#include <utility>

#include "scratch-directory.h"
#include "stub/worker/image-store.h"
#include "vgpu/wire/image-digest.h"

namespace vgpu::test {

// Throws if the store refuses the folder.
inline stub::ImageStore openImages(const std::string& path, uint64_t limit = 1ull << 30) {
  std::string problem;
  auto store = stub::ImageStore::open(path, limit, problem);
  if (!store) throw std::runtime_error(problem);
  return std::move(*store);
}

class ImageFolder {
 public:
  // `name`: path of the folder below an empty directory. Opening the store creates it.
  explicit ImageFolder(const std::string& name = "images") : path(scratch.path + "/" + name) {}

  template <typename... Limit>
  stub::ImageStore open(Limit... limit) const {
    return openImages(path, limit...);
  }
  std::string fileOf(std::span<const std::byte> image) const { return path + "/" + hexOf(digestOf(image)); }

  const ScratchDirectory scratch;
  const std::string path;
};

}  // namespace vgpu::test
