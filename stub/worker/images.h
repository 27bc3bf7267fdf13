// What a worker has for module images apart from its session's own: where the node keeps them, and where they are
// counted.
#pragma once

#include "vgpu/store/image-counters.h"

namespace vgpu::stub {

class ImageStore;

struct Images {
  ImageStore* store = nullptr;        // null: none are kept
  ImageCounters* counters = nullptr;  // null: nobody asks
};

}  // namespace vgpu::stub
