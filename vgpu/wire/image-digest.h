// What a module image is called: the SHA-256 of its bytes. A program names an image by it, and a worker files it under
// it, each having computed it over the bytes that it holds itself.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace vgpu {

using ImageDigest = std::array<uint8_t, 32>;

ImageDigest digestOf(std::span<const std::byte> image);

// As 64 lower-case hexadecimal digits.
std::string hexOf(const ImageDigest& digest);

}  // namespace vgpu
