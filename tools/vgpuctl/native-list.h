// What is in the folder of a native program's snapshot beside its processes (vgpu/snapshot/process-part.h).
//
//   native.json        format ("vgpu-native"), version, driver (13000: whose memory it is), users[pid], list{bytes, xxh3} (of
//                      process/process.json), imageBytes. Written last: a folder that has it is whole
//   native-held.json   format ("vgpu-native-held"), version, root{pid, start}, users[pid, start]: the processes that a save
//   holds.
//                      Written before it holds one, and removed when they have ended: whoever finds it puts them right after a
//                      save that was killed (native-held.h). Locked (flock) by the save, and by the CRIU that it runs
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
  std::vector<int> users;  // processes with memory of a GPU in them
  snapshot::ProcessSum process;
};

// A process, and when it was started (process::ProcessFacts): another one of its id is not it.
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
// Nothing if the folder has none. Throws kj::Exception that names the file and the check.
std::optional<NativeList> readNativeList(const std::string& directory);
std::optional<NativeHeld> readNativeHeld(const std::string& directory);

// The lock of native-held.json, until it is closed. Throws kj::Exception if another process has it. `inherited`: programs that
// are executed have it too.
kj::AutoCloseFd lockNativeHeld(const std::string& directory, bool inherited);
void removeNativeHeld(const std::string& directory);

}  // namespace vgpu::ctl
