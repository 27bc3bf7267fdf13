// Where a copy's end lies.
#pragma once

namespace vgpu::client {

// Of a range; `nowhere` if it begins in an allocation and does not end in it. `pooled`: in the arena of pinned memory too, but what
// a program may say of it is what it may say of its own memory: that it is the host's. `hosts`: the host's, mapped by the program, which
// no device may use; a program may say of it what it likes.
enum class Where { device, arena, pooled, hosts, pageable, nowhere };

}  // namespace vgpu::client
