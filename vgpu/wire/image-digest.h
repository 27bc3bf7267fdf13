// The name of a module image: the SHA-256 of its bytes. A program asks for an image by this name, and a worker stores the image under it;
// each computes it over its own copy of the bytes.
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
