// The files in the folder of a native program's snapshot besides its processes (vgpu/snapshot/process-part.h).
//
//   native.json        format ("vgpu-native"), version, driver (13000: the driver that took the memory), users[pid], list{bytes, xxh3} (of
//                      process/process.json), imageBytes. Written last: a folder that has it is complete
//   native-held.json   format ("vgpu-native-held"), version, root{pid, start}, users[pid, start]: the processes that a save holds. Written
//                      before it holds the first, and removed when they have ended: the next command that finds it repairs the effects of a
//                      killed save (native-held.h). Locked (flock) by the save, and by the CRIU that it runs
#pragma once

#include <kj/io.h>

#include <optional>
#include <string>
#include <vector>

#include "vgpu/snapshot/process-part.h"

namespace vgpu::ctl {

constexpr uint64_t nativeListVersion = 1, nativeHeldVersion = 1;

struct NativeList {
  int driver = 0;
  std::vector<int> users;  // processes into which GPU memory was taken
  snapshot::ProcessSum process;
};

// A process and its start time (process::ProcessFacts), which distinguishes it from another process with the same id.
struct HeldProcess {
  int pid = 0;
  uint64_t start = 0;
};

struct NativeHeld {
  HeldProcess root;
  std::vector<HeldProcess> users;
};

void writeNativeList(const std::string& directory, const NativeList& list);
void writeNativeHeld(const std::string& directory, const NativeHeld& held);
// Nothing if the folder has no such file. Throws kj::Exception that names the file and the failed check.
std::optional<NativeList> readNativeList(const std::string& directory);
std::optional<NativeHeld> readNativeHeld(const std::string& directory);

// Locks native-held.json until the descriptor is closed. Throws kj::Exception if another process has locked it. `inherited`: executed
// programs inherit the lock.
kj::AutoCloseFd lockNativeHeld(const std::string& directory, bool inherited);
void removeNativeHeld(const std::string& directory);

}  // namespace vgpu::ctl
