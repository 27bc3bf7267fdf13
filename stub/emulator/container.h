// Finds the PTX in what a program calls a module: PTX text, a fatbinary, or an ELF file that carries one.
// docs/fatbinary.md describes the format. Nothing in the bytes is trusted.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cuda-api.h"

namespace vgpu::emulator::api {

struct FatbinaryMember {
  enum class Kind : uint16_t { ptx = 1, elf = 2 };
  uint16_t kind;          // of `Kind`, or one that we do not know
  uint32_t architecture;  // 75 for compute_75
  uint64_t flags;
  std::string_view name;               // the source file, where the compiler left it
  std::span<const std::byte> payload;  // as stored
  uint64_t plainBytes;                 // what decompression gives; the payload's own size where it is stored plain
};

// The members in file order. Throws Refusal (CUDA_ERROR_INVALID_IMAGE) naming offset and field where one is wrong.
std::vector<FatbinaryMember> readFatbinary(std::span<const std::byte> container);
// The member's bytes, decompressed. Throws Refusal where they are not what the header says.
std::string plainPayload(const FatbinaryMember&);

// The PTX text for a device of `architecture` (major * 10 + minor): the newest that the device can run. Throws Refusal:
// CUDA_ERROR_INVALID_IMAGE, or CUDA_ERROR_NO_BINARY_FOR_GPU with the list of what is there.
std::string findPtx(std::span<const std::byte> image, int architecture);

// How many bytes an image given by address alone claims to have. Reads its headers only.
std::span<const std::byte> imageAt(const void* pointer);

}  // namespace vgpu::emulator::api
