// What the program says of core dumps of its GPU (cuCoredump*): settings of the process, which a context has as they are when it is made,
// and then its own. A session writes no dump: a program that asks for them is told so, once.
//
// For the whole process, before cuInit() too; any thread, under a mutex that is a leaf. All of it stays over a suspend.
#pragma once

#include <cuda.h>

#include <cstddef>
#include <cstdint>
#include <string>

namespace vgpu::client {

struct CoreDumpSettings {
  bool onException = false, onRequest = false;
  uint32_t contents = CU_COREDUMP_DEFAULT_FLAGS;
  std::string file, pipe;  // empty: the driver's own names
};

// To be called when a context is made: it has the process's settings at this moment.
void inheritCoreDumps(CoreDumpSettings& context);

enum class CoreDumpsOf { process, context };
// Reads or writes one, as cuCoredumpGetAttribute and cuCoredumpSetAttribute say; without a value, its size. `entry`: the C function that
// calls this.
CUresult getCoreDumps(CoreDumpsOf whose, CUcoredumpSettings which, void* value, size_t* size, const char* entry = __builtin_FUNCTION());
CUresult setCoreDumps(CoreDumpsOf whose, CUcoredumpSettings which, const void* value, size_t* size,
                      const char* entry = __builtin_FUNCTION());

// To be called when the session opens: whoever asks for dumps by the environment is told that there are none.
void noteCoreDumps();

}  // namespace vgpu::client
