// Where an end of a copy is.
#pragma once

namespace vgpu::client {

// Of a range; `nowhere` if it starts in an allocation and does not end in it. `pooled`: memory of a pinned pool, also in the arena, which
// the program may declare as host memory only, like its own. `hosts`: host memory mapped by the program that no device may access; the
// program may declare it as any kind.
enum class Where { device, arena, pooled, hosts, pageable, nowhere };

}  // namespace vgpu::client
