// The two descriptions of an array's element: the driver's format and number of channels, and the runtime's bits of each channel
// and kind.
#pragma once
#include <cuda.h>
#include <driver_types.h>

#include <optional>

namespace vgpu::runtime {

struct ElementFormat {
  CUarray_format format;
  unsigned channels;
};

/// Nothing if it is not an array format.
std::optional<ElementFormat> toDriver(const cudaChannelFormatDesc& description);
std::optional<cudaChannelFormatDesc> toRuntime(const ElementFormat& format);
/// Of one element; of one block of a block-compressed format; 1 for planar video formats.
size_t bytesOf(const ElementFormat& format);

}  // namespace vgpu::runtime
