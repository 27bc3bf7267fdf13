// Redirects every CUDA runtime that is linked into the program or its libraries to this library's functions.
//
// Runs as the first constructor of the process (the library is linked with -z initfirst: glibc calls its constructors before those of the
// program and of every other library, even libc's), so no runtime function has been called yet, __cudaRegisterFatBinary included. It
// therefore relies on nothing that a constructor would have to set up. Later it runs whenever dlopen has added objects (linker.h), before
// their constructors.
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "intercept/patch/linker.h"
#include "intercept/patch/object.h"
#include "intercept/runtime/message.h"

namespace vgpu::runtime {
namespace {

constexpr int refusedStatus = 127;  // a shell's status for a command that could not be run

struct Known {
  uint64_t base;
  const void* dynamic;
  bool seen;  // in the present walk
};
// Objects already examined, sorted by base; written under the linker's lock, before that by the only thread.
constinit std::vector<Known>* known = nullptr;

constinit const char* ownName = "";  // this library's path in the linker's list

/// False if an earlier walk saw the object too.
bool isNew(const LoadedObject& object) {
  auto at = std::ranges::lower_bound(*known, object.base, {}, &Known::base);
  for (auto row = at; row != known->end() && row->base == object.base; ++row)
    if (row->dynamic == object.dynamic) {
      row->seen = true;
      return false;
    }
  known->insert(at, {object.base, object.dynamic, true});
  return true;
}

std::string_view folderOf(std::string_view path) { return path.substr(0, path.rfind('/') + 1); }

/// Reports NVIDIA's driver once for the process. A program that opens the driver by name gets ours, which lies beside this library.
void nameForeignDriver(const LoadedObject& object) {
  static constinit bool named = false;
  const std::string_view path = object.name == nullptr ? "" : object.name, folder = folderOf(path);
  if (named || !path.substr(folder.size()).starts_with("libcuda.so") || folder == folderOf(ownName) || getenv("VGPU_NODE") == nullptr)
    return;
  named = true;
  say({path, " is not vgpu's driver, but the program opened it by its path: calls to it bypass the virtual GPU and are not suspended with "
             "it. Have the program open libcuda.so.1 without a path"});
}

void patchNew(const LoadedObject& object) {
  if (!isNew(object)) return;
  if (isThisLibrary(object)) {
    ownName = object.name;
    return;
  }
  nameForeignDriver(object);
  std::string problem = patchObject(object);
  // A library that keeps its own runtime may never be called; if it is, libcuda.so.1 prints its name (private-runtime.cc).
  if (problem.empty() || !isProgram(object)) return;
  say({problem});
  // No code of the program has run yet: exiting now is better than a later failure with NVIDIA's error.
  _exit(refusedStatus);
}

void patchLoadedObjects() {
  for (Known& object : *known) object.seen = false;
  if (!visitLoadedObjects(patchNew)) return;
  std::erase_if(*known, [](const Known& object) { return !object.seen; });
}

__attribute__((constructor(101))) void patchAtStart() {
  // Never freed: the program's destructors may still call dlopen.
  known = std::make_unique<std::vector<Known>>().release();
  patchLoadedObjects();
  std::string problem = hookLinker(patchLoadedObjects);
  if (problem.empty()) return;
  say(
      {"CUDA calls fail in libraries that are opened while the program runs and have the CUDA runtime linked into them: ",
       problem, ". Link such libraries with `nvcc -cudart shared`"});
}

}  // namespace
}  // namespace vgpu::runtime
