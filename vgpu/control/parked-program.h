// A parked program: suspended, and without anything of a node: no connection, no socket, no state directory, no object list on
// disk. So its process can be saved as it is, and restored on a machine that has none of these. What it waits for comes through a
// file of its own in memory, called `vgpu-parked`, which whoever may debug the process finds in /proc/PID/fd:
//
//    0   state (4)      below
//    8   session (24)   its id, filled up with zeros; called: the one that it has from now on, another one if it is a copy
//   32   text (4064)    called: the state directory that a daemon has made for it; failed: why it cannot use that
//
//   waits ── daemon ──▶ called ── program ──▶ attached: it is suspended in that directory and listens there
//                        ▲  └──── program ──▶ failed: it waits on, or goes on where another daemon has called it
//                        └─────── daemon ──────┘ (from either)
//
// The program closes the file when it runs again: until then any daemon can call it to a directory of its own, whatever became of
// the one that has called it before. The state has one writer at a time, and is written after the text, by a system call of its
// own. Neither side maps the file, so neither can make the other fault.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <optional>
#include <string>

#include "vgpu/base/memory-file.h"

namespace vgpu {

// Of the program. Its control thread alone.
class ParkingPlace {
 public:
  explicit ParkingPlace(const std::string& session);
  // Once a daemon has called.
  struct Call {
    std::string directory, session;
  };
  std::optional<Call> called() const;
  void attached() const;
  void failed(const std::string& why) const;

 private:
  MemoryFile file;
};

// Of whoever looks for it. Any thread; waits for the program, so it is for FileWork.
class ParkedProgram {
 public:
  // The process if it is our own user's, and was parked with that session and has not run since. Nothing also if we may not look
  // into it.
  static std::optional<ParkedProgram> find(pid_t pid, const std::string& session);

  // Has the program go on in that state directory, whose owner it must be, as that session; continues a process that is stopped.
  // Returns when it listens there. Throws kj::Exception with its reason, or that it does not answer.
  void attach(const std::string& directory, const std::string& session, std::chrono::seconds limit) const;

  // Whether a daemon has called it to that directory, where it has listened since.
  bool isIn(const std::string& directory) const;

 private:
  ParkedProgram(pid_t pid, MemoryFile file) : pid(pid), file(std::move(file)) {}
  pid_t pid;
  MemoryFile file;
};

}  // namespace vgpu
