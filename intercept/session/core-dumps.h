// The program's settings for GPU core dumps (cuCoredump*): those of the process, which a context copies when it is created. A session
// writes no dumps: a program that enables them is told so once.
//
// One for the process, usable before cuInit(). Any thread; its mutex is a leaf lock. Survives a suspend.
#pragma once

#include <cuda.h>

#include <cstddef>
#include <cstdint>
#include <string>

namespace vgpu::client {

struct CoreDumpSettings {
  bool onException = false, onRequest = false;
  uint32_t contents = CU_COREDUMP_DEFAULT_FLAGS;
  std::string file, pipe;  // empty: the driver's default names
};

// Called when a context is created: copies the process's settings.
void inheritCoreDumps(CoreDumpSettings& context);

enum class CoreDumpsOf { process, context };
// Reads or writes a setting as cuCoredumpGetAttribute and cuCoredumpSetAttribute do; without a value, returns its size. `entry`: the
// calling C function.
CUresult getCoreDumps(CoreDumpsOf whose, CUcoredumpSettings which, void* value, size_t* size, const char* entry = __builtin_FUNCTION());
CUresult setCoreDumps(CoreDumpsOf whose, CUcoredumpSettings which, const void* value, size_t* size,
                      const char* entry = __builtin_FUNCTION());

// Called when the session opens: prints the message if the environment enables dumps.
void noteCoreDumps();

}  // namespace vgpu::client
