// The module images that this node has seen, with what was found out about each (docs/image-cache.md), in a store
// (vgpu/store/store.h). A program that names an image's digest need not send the image.
//
// Any GPU's thread of a worker: a mutex guards find() and add().
//
// Nothing here can fail a program: what cannot be read is absent, what cannot be written is not kept, which is logged
// once. A suspend keeps nothing of it: a snapshot holds the images themselves.
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
  // The store in `directory`, made where it is not there, that holds at most about `limitBytes`. Nothing where the
  // folder is not private to us (private-folder.h); `problem` says why.
  static std::optional<ImageStore> open(const std::string& directory, uint64_t limitBytes, std::string& problem);

  // The image of that digest, null where it is not there; counts as its last use. A file is checked when it is mapped, and
  // not again as long as somebody has it. What is damaged is removed, and absent.
  std::shared_ptr<const StoredImage> find(const ImageDigest& digest);

  // Keeps an image, whose digest the caller has computed himself, in the place of those that were not used for longest.
  void add(const ImageDigest& digest, std::span<const std::byte> image, const ImageFacts& facts, const ImageCode& code = {});

 private:
  explicit ImageStore(Store files) : files(std::move(files)) {}
  std::shared_ptr<const StoredImage> read(const ImageDigest& digest);
  void complain(int error);

  std::unique_ptr<std::mutex> mutex = std::make_unique<std::mutex>();
  Store files;
  bool complained = false;
  std::map<ImageDigest, std::weak_ptr<const StoredImage>> mapped;  // as many as the folder has had
};

}  // namespace vgpu::stub
