#include "intercept/driver/image.h"

#include <elf.h>

#include <algorithm>
#include <cstdint>
#include <cstring>

namespace vgpu {

namespace {

// Both formats as docs/fatbinary.md gives them.
constexpr uint32_t wrapperMagic = 0x466243b1, containerMagic = 0xba55ed50;
struct Wrapper {
  uint32_t magic, version;
  const void* container;
};
struct Container {
  uint32_t magic;
  uint16_t version, headerBytes;
  uint64_t payloadBytes;
};

// The end of an ELF image: the furthest of its section table, program table, sections and segments.
uint64_t elfBytes(const std::byte* image) {
  Elf64_Ehdr header;
  std::memcpy(&header, image, sizeof header);
  uint64_t end = std::max<uint64_t>(header.e_shoff + uint64_t{header.e_shnum} * sizeof(Elf64_Shdr),
                                    header.e_phoff + uint64_t{header.e_phnum} * sizeof(Elf64_Phdr));
  for (unsigned i = 0; i < header.e_shnum; ++i) {
    Elf64_Shdr section;
    std::memcpy(&section, image + header.e_shoff + i * sizeof section, sizeof section);
    if (section.sh_type != SHT_NOBITS) end = std::max<uint64_t>(end, section.sh_offset + section.sh_size);
  }
  return end;
}

}  // namespace

std::span<const std::byte> imageOf(const void* image) {
  auto* bytes = static_cast<const std::byte*>(image);
  uint32_t magic;
  std::memcpy(&magic, bytes, sizeof magic);
  if (magic == wrapperMagic) {
    Wrapper wrapper;
    std::memcpy(&wrapper, bytes, sizeof wrapper);
    return wrapper.container == nullptr ? std::span<const std::byte>() : imageOf(wrapper.container);
  }
  if (magic == containerMagic) {
    Container container;
    std::memcpy(&container, bytes, sizeof container);
    return {bytes, container.headerBytes + container.payloadBytes};
  }
  if (std::memcmp(bytes, ELFMAG, SELFMAG) == 0) return {bytes, elfBytes(bytes)};
  auto* text = reinterpret_cast<const char*>(image);
  return {bytes, std::strlen(text) + 1};
}

}  // namespace vgpu
