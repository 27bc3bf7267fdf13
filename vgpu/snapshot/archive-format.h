// Definitions that the writer and the reader of an archive share: its head, and the header of each chunk.
#pragma once

#include <cstdint>

#include "vgpu/snapshot/snapshot-files.h"

namespace vgpu::snapshot {

constexpr uint32_t archiveVersion = 1;

struct ArchiveHead {
  char magic[8] = {'v', 'g', 'p', 'u', 'a', 'r', 'c', 'h'};
  uint32_t version = archiveVersion;
  uint32_t unused = 0;
};
static_assert(sizeof(ArchiveHead) == 16);

// These follow the manifest, in this order.
constexpr const char* archivedFiles[] = {objectsFile, chunksFile, pendingCallsFile, outputFile};

struct ArchivedChunk {
  uint32_t bytes = 0;
  uint32_t form = 0;
};
static_assert(sizeof(ArchivedChunk) == 8);

constexpr size_t archivePieceBytes = size_t{1} << 20;  // files are copied in pieces of this size

}  // namespace vgpu::snapshot
