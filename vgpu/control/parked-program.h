// A parked program: suspended, and using nothing of a node: no connection, no socket, no state directory, no object list on disk. So its
// process can be saved unchanged, and restored on a machine that has none of these. It waits for messages in a memfd of its own, called
// `vgpu-parked`, which any process that may debug it finds in /proc/PID/fd:
//
//    0   state (4)      below
//    8   session (24)   its id, padded with zeros; in state `called`: its id from now on, which differs if the process is a copy
//   32   text (4064)    `called`: the state directory that a daemon has made for it; `failed`: why it cannot use that directory
//
//   waits ── daemon ──▶ called ── program ──▶ attached: it is suspended in that directory and listens there
//                        ▲  └──── program ──▶ failed: it keeps waiting, or follows another daemon's call
//                        └─────── daemon ──────┘ (from either)
//
// The program closes the file when it runs again: until then any daemon can call it to a directory of its own, whatever became of the
// daemon that called it before. The state has one writer at a time. It is written after the text, by a separate system call. Neither side
// maps the file, so neither can make the other fault.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <optional>
#include <string>

#include "vgpu/base/memory-file.h"

namespace vgpu {

// The program's side. Used by its control thread alone.
class ParkingPlace {
 public:
  explicit ParkingPlace(const std::string& session);
  // What a daemon has written, in state `called`.
  struct Call {
    std::string directory, session;
  };
  std::optional<Call> called() const;
  void attached() const;
  void failed(const std::string& why) const;

 private:
  MemoryFile file;
};

// The side of a process that looks for the program. Any thread; waits for the program, so call it from FileWork.
class ParkedProgram {
 public:
  // The process if it belongs to our user, was parked with that session and has not run since. Returns nothing also if we may not inspect
  // the process.
  static std::optional<ParkedProgram> find(pid_t pid, const std::string& session);

  // Makes the program continue in that state directory, which the program's user must own, as that session; sends SIGCONT to a stopped
  // process. Returns when the program listens there. Throws kj::Exception with the program's reason, or if it does not answer.
  void attach(const std::string& directory, const std::string& session, std::chrono::seconds limit) const;

  // Whether a daemon has called the program to that directory and the program has listened there since.
  bool isIn(const std::string& directory) const;

 private:
  ParkedProgram(pid_t pid, MemoryFile file) : pid(pid), file(std::move(file)) {}
  pid_t pid;
  MemoryFile file;
};

}  // namespace vgpu
