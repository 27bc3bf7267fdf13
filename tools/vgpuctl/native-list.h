// What is in the folder of a native program's snapshot beside its processes (vgpu/snapshot/process-part.h): `native.json`, which
// names them. It is written last, so a folder that has it is whole.
//
//   native.json     format ("vgpu-native"), version, driver (13000: whose memory it is), users[pid], list{bytes, xxh3} (of
//                   process/process.json), imageBytes
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "vgpu/snapshot/process-part.h"

namespace vgpu::ctl {

constexpr uint64_t nativeListVersion = 1;

struct NativeList {
  int driver = 0;
  std::vector<int> users;  // processes with memory of a GPU in them
  snapshot::ProcessSum process;
};

void writeNativeList(const std::string& directory, const NativeList& list);
// Nothing if the folder has none. Throws kj::Exception that names the file and the check.
std::optional<NativeList> readNativeList(const std::string& directory);

}  // namespace vgpu::ctl
