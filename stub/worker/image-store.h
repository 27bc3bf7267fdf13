// The module images that this node has seen, with the facts about each (docs/image-cache.md), in a store (vgpu/store/store.h). A program
// that names an image's digest need not send the image.
//
// Any GPU's thread of a worker: a mutex guards find() and add().
//
// No failure here fails a program: an image that cannot be read is absent, and one that cannot be written is not kept, which is logged
// once. A suspend keeps nothing of the store: a snapshot holds the images themselves.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "stub/worker/image-file.h"
#include "vgpu/store/store.h"

namespace vgpu::stub {

class ImageStore {
 public:
  // The store in `directory`, which is created if it does not exist; holds at most about `limitBytes`. Nothing if the directory is not
  // private to us (private-folder.h); `problem` says why.
  static std::optional<ImageStore> open(const std::string& directory, uint64_t limitBytes, std::string& problem);

  // The image with that digest, null if there is none; counts as a use. A file is checked when it is mapped, and not again as long as
  // anyone has it mapped. A damaged file is removed, and counts as absent.
  std::shared_ptr<const StoredImage> find(const ImageDigest& digest);

  // Keeps an image, whose digest the caller itself has computed; evicts the least recently used ones.
  void add(const ImageDigest& digest, std::span<const std::byte> image, const ImageFacts& facts, const ImageCode& code = {});

 private:
  explicit ImageStore(Store files) : files(std::move(files)) {}
  std::shared_ptr<const StoredImage> read(const ImageDigest& digest);
  void complain(int error);

  std::unique_ptr<std::mutex> mutex = std::make_unique<std::mutex>();
  Store files;
  bool complained = false;
  std::map<ImageDigest, std::weak_ptr<const StoredImage>> mapped;  // never removed: at most as many as the directory has had
};

}  // namespace vgpu::stub
