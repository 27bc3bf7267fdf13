// A snapshot's part that is its program's process, and the tree of processes below it: the folder `process` beside the other
// files, with CRIU's image and `process.json`, which lists that image and what a machine must have on which the processes are to
// be restored. The manifest names the list. Other sessions of the tree have snapshots of their own, in the folder `sessions`.
//
//   process/            0700
//     *.img             CRIU's
//     process.json      format, version, criu (its version), pid (of the root), processes[pid, name], threads[], stopped[],
//                       shellJob, images{name: bytes, xxh3}, mapped[path, bytes, identity], pipes[descriptor, name],
//                       sessions[session, pid, bytes, xxh3]
//   sessions/ID/        a snapshot as the one around it, without a process
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "vgpu/snapshot/manifest.h"

namespace vgpu::snapshot {

constexpr uint64_t processPartVersion = 2;

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

struct SavedProcess {
  int pid = 0;
  std::string name;
  bool operator==(const SavedProcess&) const = default;
};

// A session of the tree beside the one whose snapshot this is, and its snapshot's manifest.
struct SavedSession {
  std::string session;
  int pid = 0;
  FileSum manifest;
  bool operator==(const SavedSession&) const = default;
};

struct ProcessPart {
  std::string criu;
  int pid = 0;                          // of the root
  std::vector<SavedProcess> processes;  // the root first; not those that had ended
  std::vector<int> threads;             // ids of all processes and threads
  std::vector<int> stopped;             // those processes that were stopped by a signal already
  bool shellJob = false;                // its terminal session is led by a process that is not saved
  std::map<std::string, FileSum> images;
  std::vector<MappedFile> mapped;
  std::vector<ForeignPipe> pipes;
  std::vector<SavedSession> sessions;
};

// Of the snapshot's directory.
std::string processFolderOf(const std::string& directory);
// The snapshot of another session of its tree, and the names of those that are there and whole, whether or not there is a list.
std::string sessionFolderOf(const std::string& directory, const std::string& session);
std::vector<std::string> sessionsIn(const std::string& directory);
// What the list says of such a snapshot. Throws kj::Exception if it cannot be read.
SavedSession describeSession(const std::string& directory, const std::string& session, int pid);

std::string encodeProcessPart(const ProcessPart& part);
// Throws kj::Exception that names the file and the check.
ProcessPart readProcessPart(const std::string& directory, const ProcessSum& sum);

// The sums of all files of the folder that end in `.img`, each written to disk.
std::map<std::string, FileSum> sumImages(const std::string& folder);
// Throws kj::Exception that names the file and the check unless the other sessions' manifests are those that the list names.
void verifySessions(const std::string& directory, const ProcessPart& part);
// Reads all images and compares them with their sums; `progress` is told of bytes. Throws kj::Exception that names file and
// check.
void verifyImages(const std::string& directory, const ProcessPart& part, const std::function<void(uint64_t)>& progress);

// Writes the list to disk, and names it nowhere. Throws kj::Exception if there is one, or it cannot be written.
ProcessSum writeProcessList(const std::string& directory, const ProcessPart& part);
// Writes the list, and replaces the manifest of the snapshot by one that names it. Nothing is named before all is on disk.
void addProcessPart(const std::string& directory, const ProcessPart& part);

// Of a file that is there: what MappedFile says of it. `isShared`: it is mapped so, and others may write it. Throws kj::Exception
// if it cannot be read.
MappedFile describeMapped(const std::string& path, bool isShared);

}  // namespace vgpu::snapshot
