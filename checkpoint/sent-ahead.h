// What a worker has of a session before it restores the session, because a migration has sent it ahead. One thread at a time.
#pragma once

#include "checkpoint/made-ahead.h"
#include "checkpoint/resident-chunks.h"
#include "checkpoint/session-capture.h"

namespace vgpu::checkpoint {

struct SentAhead {
  ResidentChunks memory;
  ImageDigests images;  // of images that are completely among the worker's blobs
  MadeAhead made;
};

}  // namespace vgpu::checkpoint
