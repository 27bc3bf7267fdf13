// The snapshots of a store: which exist, and which chunks they need.
#pragma once

#include <string>
#include <vector>

#include "vgpu/store/chunk-store.h"

namespace vgpu::ctl {

// Whether the directory contains a complete snapshot.
bool isWhole(const std::string& directory);
// Whether it has files, none of which marks it as unfinished: something other than vgpu has removed its manifest.
bool hasLostManifest(const std::string& directory);
// Whether it is not complete yet, and its writer holds the lock.
bool isBeingWritten(const std::string& directory);
// Whether its chunks must be kept: it is complete or has lost its manifest, even if it lies in the directory of a snapshot that is being
// written. A snapshot that is being written leases its own chunks, and the chunks of one that is being removed are not needed.
bool needsChunks(const std::string& directory);

// The directories of the complete snapshots.
std::vector<std::string> wholeSnapshots(const ChunkStore& store);
// Also those that have lost their manifests.
std::vector<std::string> finishedSnapshots(const ChunkStore& store);
// The directory of such a snapshot by its name. Throws kj::Exception if there is none.
std::string wholeSnapshot(const ChunkStore& store, const std::string& name);
std::string finishedSnapshot(const ChunkStore& store, const std::string& name);
// These and the snapshots of other sessions in them, which need chunks too.
std::vector<std::string> withSessions(const std::vector<std::string>& directories);
// All snapshots, of both kinds, whose chunks must be kept.
std::vector<std::string> snapshotsInNeed(const ChunkStore& store);

// The names of its chunks, except those of zeros and those that are only in a daemon's memory. Throws kj::Exception if they cannot be read.
std::vector<ChunkName> chunksOf(const ChunkStore& store, const std::string& directory);
// Sorts the names and removes duplicates.
void makeUnique(std::vector<ChunkName>& names);

// Whether it was in the memory of a daemon that has ended.
bool isLost(const std::string& directory);

}  // namespace vgpu::ctl
