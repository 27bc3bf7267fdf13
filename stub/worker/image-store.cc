#include "stub/worker/image-store.h"

#include <spdlog/spdlog.h>

#include <cstring>

namespace vgpu::stub {

std::optional<ImageStore> ImageStore::open(const std::string& directory, uint64_t limitBytes, std::string& problem) {
  auto files = Store::open(directory, limitBytes, problem);
  if (!files) return std::nullopt;
  return ImageStore(std::move(*files));
}

std::shared_ptr<const StoredImage> ImageStore::find(const ImageDigest& digest) {
  std::lock_guard lock(*mutex);
  auto known = mapped.find(digest);
  auto image = known == mapped.end() ? nullptr : known->second.lock();
  if (image == nullptr) {
    image = read(digest);
    if (image == nullptr) return nullptr;
    mapped[digest] = image;
  }
  files.touch(digest);
  return image;
}

std::shared_ptr<const StoredImage> ImageStore::read(const ImageDigest& digest) {
  std::string damage;
  std::optional<StoredImage> image;
  KJ_IF_MAYBE (file, files.find(digest, damage)) {
    image = StoredImage::read(*file, digest, damage);
  }
  if (image) return std::make_shared<const StoredImage>(std::move(*image));
  if (damage.empty()) return nullptr;
  spdlog::warn("the image {}/{} is removed: {}", files.path(), hexOf(digest), damage);
  files.remove(digest);
  return nullptr;
}

void ImageStore::add(const ImageDigest& digest, std::span<const std::byte> image, const ImageFacts& facts, const ImageCode& code) {
  std::lock_guard lock(*mutex);
  auto head = imageFileHead(digest, image, facts, code), gap = imageFileGap(image, code);
  if (int error = files.add(digest, {head, image, gap, code.bytes})) complain(error);
}

void ImageStore::complain(int error) {
  if (complained) return;
  complained = true;
  spdlog::warn("module images cannot be cached in {}: {}. Programs go on, and send their images again", files.path(), strerror(error));
}

}  // namespace vgpu::stub
