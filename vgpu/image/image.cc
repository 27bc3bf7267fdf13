#include "vgpu/image/image.h"

#include "vgpu/image/elf.h"
#include "vgpu/image/fatbinary.h"

namespace vgpu::image {

namespace {

constexpr uint32_t elfMagic = 0x464c457f;  // ELFMAG

// Reads only up to a zero byte, because a text may be shorter than a magic number; no magic number contains one.
uint32_t magicAt(const void* image) {
  uint32_t magic = 0;
  std::memcpy(&magic, image, strnlen(static_cast<const char*>(image), sizeof magic));
  return magic;
}

}  // namespace

Bytes imageAt(const void* image, std::string& problem) {
  if (magicAt(image) == wrapperMagic) {
    FatbinaryWrapper wrapper;
    std::memcpy(&wrapper, image, sizeof wrapper);
    image = wrapper.image;
    if (image == nullptr || magicAt(image) == wrapperMagic) {
      problem = "the fatbinary wrapper does not point to an image";
      return {};
    }
  }
  // The largest possible image; the readers read no further than the headers say.
  Bytes most(static_cast<const std::byte*>(image), mostImageBytes);
  if (magicAt(image) == containerMagic) {
    uint64_t headerBytes = read<uint16_t>(most, 6), memberBytes = read<uint64_t>(most, 8);
    if (isInside(headerBytes, memberBytes, mostImageBytes)) return most.first(headerBytes + memberBytes);
    problem = "the fatbinary says that it has " + std::to_string(memberBytes) + " bytes; an image has at most " +
              std::to_string(mostImageBytes);
    return {};
  }
  if (magicAt(image) == elfMagic) {
    Elf elf(most);
    if (elf.problem() == nullptr) return most.first(elf.end());
    problem = elf.problem();
    return {};
  }
  return most.first(std::strlen(static_cast<const char*>(image)) + 1);
}

}  // namespace vgpu::image
