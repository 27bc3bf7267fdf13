// Where a copy's end lies.
#pragma once

namespace vgpu::client {

// Of a range; `nowhere` if it begins in an allocation and does not end in it.
enum class Where { device, arena, pageable, nowhere };

}  // namespace vgpu::client
