// From the driver's descriptions of textures and surfaces to what kernels read.
#pragma once

#include <memory>

#include "stub/emulator/driver/driver.h"

namespace vgpu::emulator::api {

// Both throw CUDA's answer for what cannot be read in the way described. The resource has been checked.
std::shared_ptr<const ImageView> textureOf(Driver&, const CUDA_RESOURCE_DESC&, const CUDA_TEXTURE_DESC&,
                                           const CUDA_RESOURCE_VIEW_DESC* view);
std::shared_ptr<const ImageView> surfaceOf(const Array&);
// How a view names the format; CU_RES_VIEW_FORMAT_NONE for one that views do not have.
CUresourceViewFormat viewFormatOf(CUarray_format, unsigned channels);

}  // namespace vgpu::emulator::api
