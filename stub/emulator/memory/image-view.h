// From the driver's descriptions of textures and surfaces to what kernels read.
#pragma once

#include <memory>

#include "stub/emulator/driver/driver.h"

namespace vgpu::emulator::api {

// Both throw a Refusal if the resource cannot be read in the described way. The resource itself has been checked.
std::shared_ptr<const ImageView> textureOf(Driver&, const CUDA_RESOURCE_DESC&, const CUDA_TEXTURE_DESC&,
                                           const CUDA_RESOURCE_VIEW_DESC* view);
std::shared_ptr<const ImageView> surfaceOf(const Array&);
// The view format for an array format; CU_RES_VIEW_FORMAT_NONE if there is none.
CUresourceViewFormat viewFormatOf(CUarray_format, unsigned channels);

}  // namespace vgpu::emulator::api
