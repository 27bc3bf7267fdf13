// The part of a snapshot that holds its program's process and that process's descendants: the folder `process` beside the other files, with
// CRIU's image and `process.json`, which lists the image's files and what a machine must have for the processes to be restored there. The
// manifest names the list. Other sessions of the process tree have snapshots of their own, in the folder `sessions`.
//
//   process/            0700
//     *.img             CRIU's
//     process.json      format, version, criu (its version), pid (of the root), processes[pid, name], threads[], stopped[],
//                       shellJob, images{name: bytes, xxh3}, mapped[path, bytes, identity], pipes[descriptor, name],
//                       sessions[session, pid, bytes, xxh3]
//   sessions/ID/        a snapshot like the enclosing one, without a process
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "vgpu/snapshot/manifest.h"

namespace vgpu::snapshot {

constexpr uint64_t processPartVersion = 2;

// A file that the process has mapped; an identical file must exist where the process is restored.
struct MappedFile {
  std::string path;
  uint64_t bytes = 0;
  std::string identity;  // "build id HEX" for an ELF file, else "xxh3 HEX". Empty: only its size is compared
  bool operator==(const MappedFile&) const = default;
};

// A standard stream that is an end of a pipe to a process outside the tree: the restoring process's own stream replaces it.
struct ForeignPipe {
  int descriptor = 0;
  std::string name;  // as /proc/PID/fd shows it: "pipe:[123]"
  bool operator==(const ForeignPipe&) const = default;
};

struct SavedProcess {
  int pid = 0;
  std::string name;
  bool operator==(const SavedProcess&) const = default;
};

// Another session of the tree, and its snapshot's manifest.
struct SavedSession {
  std::string session;
  int pid = 0;
  FileSum manifest;
  bool operator==(const SavedSession&) const = default;
};

struct ProcessPart {
  std::string criu;
  int pid = 0;                          // of the root process
  std::vector<SavedProcess> processes;  // the root first; without those that had ended
  std::vector<int> threads;             // ids of all processes and threads
  std::vector<int> stopped;             // processes that were already stopped by a signal
  bool shellJob = false;                // its terminal session's leader is a process that is not saved
  std::map<std::string, FileSum> images;
  std::vector<MappedFile> mapped;
  std::vector<ForeignPipe> pipes;
  std::vector<SavedSession> sessions;
};

// `directory`: the snapshot's.
std::string processFolderOf(const std::string& directory);
// The folder of the snapshot of another session of the tree; and the ids of the sessions that have a complete snapshot there, whether or
// not there is a list.
std::string sessionFolderOf(const std::string& directory, const std::string& session);
std::vector<std::string> sessionsIn(const std::string& directory);
// The entry for such a snapshot in the list. Throws kj::Exception if the snapshot cannot be read.
SavedSession describeSession(const std::string& directory, const std::string& session, int pid);

std::string encodeProcessPart(const ProcessPart& part);
// Throws kj::Exception that names the file and the failed check.
ProcessPart readProcessPart(const std::string& directory, const ProcessSum& sum);

// Syncs all files of the folder that end in `.img` to disk, and returns their sums.
std::map<std::string, FileSum> sumImages(const std::string& folder);
// Throws kj::Exception that names the file and the failed check unless the other sessions' manifests match the list.
void verifySessions(const std::string& directory, const ProcessPart& part);
// Reads all images and compares them with their sums; `progress` is called with the number of bytes read. Throws kj::Exception that names
// the file and the failed check.
void verifyImages(const std::string& directory, const ProcessPart& part, const std::function<void(uint64_t)>& progress);

// Writes the list to disk; nothing refers to it yet. Throws kj::Exception if there is one already, or if it cannot be written.
ProcessSum writeProcessList(const std::string& directory, const ProcessPart& part);
// Writes the list, then replaces the snapshot's manifest by one that names the list. The manifest is replaced only after everything is on
// disk.
void addProcessPart(const std::string& directory, const ProcessPart& part);

// Describes an existing file as MappedFile does. `isShared`: it is mapped shared, so others may write to it. Throws kj::Exception if it
// cannot be read.
MappedFile describeMapped(const std::string& path, bool isShared);

}  // namespace vgpu::snapshot
