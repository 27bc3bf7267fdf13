// Where a worker finds the node's image store, and where it counts images; its session's own images are in Blobs.
#pragma once

#include "vgpu/store/image-counters.h"

namespace vgpu::stub {

class ImageStore;

struct Images {
  ImageStore* store = nullptr;        // null: images are not kept
  ImageCounters* counters = nullptr;  // null: images are not counted
};

}  // namespace vgpu::stub
