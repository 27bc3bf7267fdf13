// The snapshots of a store: which are there, and what they need.
#pragma once

#include <string>
#include <vector>

#include "vgpu/store/chunk-store.h"

namespace vgpu::ctl {

// Of a directory.
bool isWhole(const std::string& directory);
// It has files, and none that says that they are unfinished: whoever removed the manifest was none of us.
bool hasLostManifest(const std::string& directory);
// It is not whole yet, and whoever writes it holds its lock.
bool isBeingWritten(const std::string& directory);
// Whether its chunks must be kept: it is one of both, also if it is in the directory of a snapshot that is being written. One that is
// being written itself leases its chunks, and of one that is being removed nobody needs them.
bool needsChunks(const std::string& directory);

// The directories of those that are whole.
std::vector<std::string> wholeSnapshots(const ChunkStore& store);
// And of those that have lost their manifests.
std::vector<std::string> finishedSnapshots(const ChunkStore& store);
// The directory of one of these by its name. Throws kj::Exception if there is none.
std::string wholeSnapshot(const ChunkStore& store, const std::string& name);
std::string finishedSnapshot(const ChunkStore& store, const std::string& name);
// With those of other sessions that are in them: they need chunks too.
std::vector<std::string> withSessions(const std::vector<std::string>& directories);
// Of both kinds, those whose chunks must be kept.
std::vector<std::string> snapshotsInNeed(const ChunkStore& store);

// The names of its chunks but those of zeros and those that are in a daemon's memory only. Throws kj::Exception if they cannot be
// read.
std::vector<ChunkName> chunksOf(const ChunkStore& store, const std::string& directory);
// Sorted, each once.
void makeUnique(std::vector<ChunkName>& names);

// Whether it was in the memory of a daemon that has ended.
bool isLost(const std::string& directory);

}  // namespace vgpu::ctl
