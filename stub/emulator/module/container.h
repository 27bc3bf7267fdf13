// Finds the PTX in a program's module image: PTX text, a fatbinary, or an ELF file that carries one. Nothing in the bytes is
// trusted.
#pragma once

#include <cstddef>
#include <span>
#include <string>

namespace vgpu::emulator::api {

// The PTX text for a device of `architecture` (major * 10 + minor): the newest that the device can run. Throws Refusal:
// CUDA_ERROR_INVALID_IMAGE, CUDA_ERROR_NO_BINARY_FOR_GPU with a list of the members, or CUDA_ERROR_UNSUPPORTED_PTX_VERSION if a newer
// compiler's text comes without machine code for the device.
std::string findPtx(std::span<const std::byte> image, int architecture);

// Whether the image is a part of CUDA's device runtime (libcudadevrt.a), which has machine code for most GPUs and PTX for the newest alone.
// The emulated device has a device runtime of its own (ptx/run/device-runtime.h).
bool isDeviceRuntime(std::span<const std::byte> image);

// The bytes of an image that is given only by its address (vgpu/image/image.h). Throws Refusal (CUDA_ERROR_INVALID_IMAGE).
std::span<const std::byte> imageAt(const void* pointer);

}  // namespace vgpu::emulator::api
