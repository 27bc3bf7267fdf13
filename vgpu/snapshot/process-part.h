// A snapshot's part that is its program's process: the folder `process` beside the other files, with CRIU's image and
// `process.json`, which lists that image and what a machine must have on which the process is to be restored. The manifest names
// the list.
//
//   process/            0700
//     *.img             CRIU's
//     process.json      format, version, criu (its version), pid, threads[], shellJob, images{name: bytes, xxh3},
//                       mapped[path, bytes, identity], pipes[descriptor, name]
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "vgpu/snapshot/manifest.h"

namespace vgpu::snapshot {

constexpr uint64_t processPartVersion = 1;

// A file that the process has mapped, and that must be the same where it is restored.
struct MappedFile {
  std::string path;
  uint64_t bytes = 0;
  std::string identity;  // "build id HEX", of an ELF file; else "xxh3 HEX". Empty: only its size counts
  bool operator==(const MappedFile&) const = default;
};

// A standard stream that is an end of a pipe whose other end was another process's: it becomes the restorer's.
struct ForeignPipe {
  int descriptor = 0;
  std::string name;  // as /proc/PID/fd shows it: "pipe:[123]"
  bool operator==(const ForeignPipe&) const = default;
};

struct ProcessPart {
  std::string criu;
  int pid = 0;
  std::vector<int> threads;  // their ids, the process's among them
  bool shellJob = false;     // its terminal session is led by another process
  std::map<std::string, FileSum> images;
  std::vector<MappedFile> mapped;
  std::vector<ForeignPipe> pipes;
};

// Of the snapshot's directory.
std::string processFolderOf(const std::string& directory);

std::string encodeProcessPart(const ProcessPart& part);
// Throws kj::Exception that names the file and the check.
ProcessPart readProcessPart(const std::string& directory, const ProcessSum& sum);

// The sums of all files of the folder that end in `.img`, each written to disk.
std::map<std::string, FileSum> sumImages(const std::string& folder);
// Reads all images and compares them with their sums; `progress` is told of bytes. Throws kj::Exception that names file and
// check.
void verifyImages(const std::string& directory, const ProcessPart& part, const std::function<void(uint64_t)>& progress);

// Writes the list, and replaces the manifest of the snapshot by one that names it. Nothing is named before all is on disk.
void addProcessPart(const std::string& directory, const ProcessPart& part);

// Of a file that is there: what MappedFile says of it. `isShared`: the process may write it. Throws kj::Exception if it cannot be
// read.
MappedFile describeMapped(const std::string& path, bool isShared);

}  // namespace vgpu::snapshot
