// What of a session lies on its devices and cannot be rebuilt by calls: the bytes of live allocations, of module
// variables and of arrays. Used on the working thread, quiesced.
#pragma once

#include <functional>
#include <vector>

#include "checkpoint/chunk-file.h"
#include "checkpoint/manifest.h"
#include "stub/worker/execution.h"

namespace vgpu::checkpoint {

// Every variable of every loaded module, whether the program ever asked for it or not.
std::vector<SavedVariable> variablesOf(stub::Execution& on);

// Live allocations, joined where they touch, and each of `variables`.
std::vector<MemoryRange> memoryOf(const stub::Execution& on, const std::vector<SavedVariable>& variables);

uint64_t bytesOf(const std::vector<MemoryRange>& ranges);
ChunkPlan planOf(const std::vector<MemoryRange>& ranges, const std::vector<SavedArray>& arrays);

// Called with each piece's bytes once they are where they should be.
using Moved = std::function<void(size_t bytes)>;

void saveMemory(stub::Execution& on, Pipeline& pipeline, FileWriter& file, const std::vector<MemoryRange>& ranges,
                const std::vector<SavedArray>& arrays, const Moved& moved);
// Throws kj::Exception where a range is not the session's, and as readChunks() does.
void restoreMemory(stub::Execution& on, Pipeline& pipeline, FileReader& file, const std::vector<MemoryRange>& ranges,
                   const std::vector<SavedArray>& arrays, const std::vector<SavedVariable>& variables,
                   const Moved& moved);

// Throws kj::Exception, naming the symbol, where one is not `here` where it was.
void requireSameAddresses(const std::vector<SavedVariable>& variables, const std::vector<SavedVariable>& here);

}  // namespace vgpu::checkpoint
