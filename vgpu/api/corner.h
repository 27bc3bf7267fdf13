// One end of a copied box, as the frames of copyBox have it.
#pragma once

#include <cstdint>

namespace vgpu::api {

// Where the box begins: in an array x (bytes), row and slice; in memory an address, with the distances of rows and slices in
// bytes.
struct Corner {
  uint64_t x = 0, row = 0, slice = 0;
  uint64_t address = 0, pitch = 0, slicePitch = 0;
};

}  // namespace vgpu::api
