// An array's element has two descriptions: the driver's (format and number of channels) and the runtime's (bits of each channel and kind).
// This converts between them.
#pragma once
#include <cuda.h>
#include <driver_types.h>

#include <optional>

namespace vgpu::runtime {

struct ElementFormat {
  CUarray_format format;
  unsigned channels;
};

/// Nothing if `description` is not an array format.
std::optional<ElementFormat> toDriver(const cudaChannelFormatDesc& description);
std::optional<cudaChannelFormatDesc> toRuntime(const ElementFormat& format);
/// Bytes of one element, or of one block of a block-compressed format; 1 for planar video formats.
size_t bytesOf(const ElementFormat& format);

}  // namespace vgpu::runtime
